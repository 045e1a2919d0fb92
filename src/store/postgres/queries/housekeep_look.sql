-- What there is to tidy, in one look: an idle node asks for nothing else. Whether it is still so is asked again by whoever changes something.
SELECT
    -- A task that nobody has touched was accepted before its type was known, which is known now.
    EXISTS (
        SELECT FROM $schema$.task_type d JOIN $schema$.lane l ON l.type = d.name CROSS JOIN LATERAL (
            SELECT FROM $schema$.live v
            WHERE v.lane = l.id AND (v.flags & 32) <> 0 AND NOT EXISTS (SELECT FROM $schema$.past p WHERE p.task = v.id OFFSET 0) LIMIT 1) v),
    EXISTS (SELECT FROM $schema$.resource),
    -- Names of resources that nobody has set and nobody holds.
    EXISTS (
        SELECT FROM $schema$.resource r
        WHERE r.name NOT LIKE '%*' AND r.settings NOT LIKE '%"changed_at"%' AND NOT EXISTS (SELECT FROM $schema$.slot s WHERE s.resource = r.id)),
    -- Waiting tasks over their start-by deadline.
    EXISTS (
        SELECT FROM $schema$.live v
        WHERE v.start_by <= (SELECT $schema$.now_())
            AND (EXISTS (SELECT FROM $schema$.ready r WHERE r.lane = v.lane AND r.pos = v.pos AND r.task = v.id OFFSET 0)
                OR EXISTS (SELECT FROM $schema$.later w WHERE w.task = v.id OFFSET 0))),
    -- Flows and results whose time to be looked at has come.
    EXISTS (SELECT FROM $schema$.flow f WHERE f.look_at <= (SELECT $schema$.now_())),
    EXISTS (SELECT FROM $schema$.task_result r WHERE r.look_at <= (SELECT $schema$.now_())),
    -- Retentions that some queue has had of its own.
    EXISTS (SELECT FROM $schema$.retention WHERE class > 0)
