$1::uuid IS NOT NULL AND (z.id IS NULL OR z.state > 1 OR z.lease_until <= (SELECT t FROM n))
