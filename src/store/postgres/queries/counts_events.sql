SELECT e.type, e.state, count(*) FROM $schema$.published e GROUP BY e.type, e.state
