#!/bin/bash
# Raw limit: a server-side SQL loop that makes the writes of shape E (ready delete, lease, result, audit;
# a commit after claim and after settle)
# without fence, lanes, SKIP LOCKED or a client. Usage: raw.sh <conninfo> [tasks] [batch] [connections]
cd "$(dirname "$0")" || exit 1
ci=$1 tasks=${2:-100000} n=${3:-500} w=${4:-2}
q() { psql -X -q -At "$ci" -v ON_ERROR_STOP=1 "$@"; }
{ echo "SET client_min_messages = warning; DROP SCHEMA IF EXISTS hotpath CASCADE;
        CREATE SCHEMA hotpath; SET search_path = hotpath;"
  cat shapes/common.sql; sed '/^-- name: submit/,$d' shapes/e.sql
  cat <<SQL
INSERT INTO task(id, lane, input) SELECT g, 1,
  '{"n":123456,"user":"u-000123","action":"send_email","template":"welcome","lang":"en","pad":"xxxxxxx"}'
  FROM generate_series(1, $tasks) g;
INSERT INTO ready(lane, pos, task) SELECT 1, g, g FROM generate_series(1, $tasks) g;
CREATE PROCEDURE raw(lo bigint, hi bigint, n int) LANGUAGE plpgsql AS \$f\$
DECLARE v_ids bigint[]; v_att smallint[]; v_lease bigint; v_token uuid; c bigint;
BEGIN
  FOR i IN lo..hi BY n LOOP
    v_token := gen_random_uuid();
    WITH g AS (DELETE FROM ready WHERE lane = 1 AND pos >= i AND pos < i + n RETURNING task, attempt)
      SELECT array_agg(g.task), array_agg((g.attempt + 1)::smallint), count(t.input)
      INTO v_ids, v_att, c FROM g JOIN task t ON t.id = g.task;
    INSERT INTO lease(id, token, session, ids, attempts)
      VALUES (nextval('lease_seq'), v_token, 1, v_ids, v_att) RETURNING id INTO v_lease;
    INSERT INTO audit(kind, session, token, span, ids) VALUES (2, 1, v_token, int8range(i, i + n), v_ids);
    COMMIT;
    DELETE FROM lease WHERE id = v_lease;
    INSERT INTO result(id, session, started, token, attempt, state, output)
      SELECT u, 1, clock_timestamp(), v_token, 1, 1, '{}' FROM unnest(v_ids) u;
    INSERT INTO audit(kind, token, span, ids) VALUES (3, v_token, int8range(i, i + n), v_ids);
    COMMIT;
  END LOOP;
END \$f\$;
SQL
} | q; q -c "VACUUM ANALYZE" -c CHECKPOINT
s=$(date +%s.%N)
for k in $(seq 0 $((w - 1))); do
  q -c "SET search_path = hotpath" -c "SET enable_seqscan = off" \
    -c "CALL raw($((k * tasks / w + 1)), $(((k + 1) * tasks / w)), $n)" &
done; wait
e=$(date +%s.%N)
left=$(q -c 'SELECT count(*) FROM hotpath.ready')
echo "raw drain tasks=$tasks batch=$n workers=$w: $(echo "$tasks/($e-$s)" | bc -l | cut -d. -f1)/s left=$left"
