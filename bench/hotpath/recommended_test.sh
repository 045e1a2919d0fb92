#!/bin/bash
# Smoke test of recommended.sql: submit, claim, complete in part, retry, promote, expire, reclaim.
# Usage: recommended_test.sh <conninfo> (drops schema stint)
cd "$(dirname "$0")" || exit 1
get() { awk -v n="$1" '/^-- name: /{on=($3==n);next} on' recommended.sql; }
S=00000000-0000-0000-0000-00000000000a T=00000000-0000-0000-0000-0000000000f1 U=00000000-0000-0000-0000-0000000000f2
{ echo "SET client_min_messages = warning; DROP SCHEMA IF EXISTS stint CASCADE;"
  get schema
  for n in submit claim complete retry promote expire reclaim; do
    case $n in
      submit) t='bigint[],int[],text[]' ;;
      claim) t='uuid,int,uuid,int[],bigint[],int[],text[],int,int' ;;
      complete) t='bigint[],uuid[],bigint[],text[]' ;;
      retry) t='bigint[],uuid[],bigint[],bigint[],text[]' ;;
      promote) t=int ;; expire) t=uuid ;; reclaim) t='uuid,smallint' ;; esac
    echo "PREPARE $n($t) AS"; get $n; echo ";"
  done
  cat <<SQL
INSERT INTO lane(queue, type) VALUES (1, 1);
INSERT INTO session VALUES ('$S', 0, clock_timestamp() + interval '1 min');
EXECUTE submit('{1,2,3,4}', '{1,1,1,1}', '{a,b,c,d}');
\\echo claim 3
EXECUTE claim('$S', 3, '$T', '{}', '{}', '{1}', '{}', 100, 1);
\\echo complete 1 with the wrong token, then the right one, then again
EXECUTE complete('{1}', '{$U}', '{1}', '{x}');
EXECUTE complete('{1}', '{$T}', '{1}', '{x}');
EXECUTE complete('{1}', '{$T}', '{1}', '{x}');
\\echo retry 2, promote
EXECUTE retry('{1}', '{$T}', '{2}', '{0}', '{boom}');
EXECUTE promote(10);
\\echo stale complete of 2
EXECUTE complete('{1}', '{$T}', '{2}', '{x}');
\\echo reclaim 3
UPDATE session SET lease_until = clock_timestamp() - interval '1 s';
BEGIN; EXECUTE expire('$S'); EXECUTE reclaim('$S', 3::smallint); COMMIT;
\\echo ready, lease, attempts, audit
SELECT string_agg(task || ':' || attempt, ' ' ORDER BY pos), (SELECT count(*) FROM lease) FROM ready;
SELECT string_agg(task || ':' || attempt || ':' || outcome, ' ' ORDER BY task) FROM attempt;
SELECT string_agg(task || ':' || kind, ' ' ORDER BY task, at) FROM audit_entry;
SQL
} | psql -X -q -At -v ON_ERROR_STOP=1 "$1"
