-- Flows whose counts are not those of their steps and signals.
SELECT f.task, f.steps, s.steps, f.bytes, s.bytes, f.waiting, g.waiting FROM $schema$.flow f
CROSS JOIN LATERAL (SELECT coalesce(max(x.no), 0) AS steps, coalesce(sum(octet_length(x.result)), 0)::bigint AS bytes
                    FROM $schema$.flow_step x WHERE x.task = f.task) s
CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM $schema$.flow_signal x WHERE x.task = f.task AND x.step IS NULL) g
WHERE f.steps <> s.steps OR f.bytes <> s.bytes OR f.waiting <> g.waiting
LIMIT 20
