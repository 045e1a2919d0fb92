-- Names that come and go by a pattern soon number more than a smallint holds; then the views could not be read.
DROP VIEW $schema$.task_resource_dep;
DROP VIEW $schema$.task_resource;
CREATE VIEW $schema$.task_resource AS
SELECT r.id, r.name, (r.settings::jsonb ->> 'capacity')::int AS max_concurrency FROM $schema$.resource r;
CREATE VIEW $schema$.task_resource_dep AS
SELECT v.id AS task_id, r.id AS depends_on
FROM $schema$.live v JOIN $schema$.lane l ON l.id = v.lane AND l.placement <> ''
CROSS JOIN LATERAL jsonb_object_keys(coalesce(l.placement::jsonb -> 'needs', '{}')) n JOIN $schema$.resource r ON r.name = n;
