-- Schemas of benchmarks, and whether we may drop each.
SELECT n.nspname::text, pg_has_role(n.nspowner, 'USAGE') FROM pg_namespace n
WHERE starts_with(n.nspname::text, 'stint_bench_') ORDER BY 1
