SELECT w.tenant, w.name, w.version, w.definition, w.updated_at, w.updated_by FROM $schema$.workflow w ORDER BY w.tenant, w.name
