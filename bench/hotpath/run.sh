#!/bin/bash
# All figures of decision 0002, repetitions interleaved over the shapes. Usage: run.sh <conninfo> [repetitions]
# The schema "hotpath" of that database is dropped and created again and again: use a database of its own.
cd "$(dirname "$0")" || exit 1
ci=$1 reps=${2:-3} out=${OUT:-/tmp/hotpath-build}
mkdir -p "$out"
for x in hotpath checks; do
  g++ -std=c++20 -O2 -I"$(pg_config --includedir)" $x.cpp -o "$out/$x" -lpq -pthread || exit 1
done
h() { "$out/hotpath" "$ci" "shapes/$1.sql" "${@:2}"; }
for _ in $(seq "$reps"); do
  for cfg in "100 2" "500 1" "500 2" "1000 2"; do
    read -r batch workers <<< "$cfg"
    for s in a b b1 c d e f; do h $s drain 100000 "$batch" "$workers"; done
    ./raw.sh "$ci" 100000 "$batch" "$workers"
  done
  for s in a b c d e f; do h $s latency 1000; done
  for s in a b c d f; do h $s drain 30000 500 2; h $s drain 1000000 500 2 200000; done
done
for s in a b c d f; do h $s loop 80 100 2 1; done
MARK=0 h b loop 80 100 2 1
h f loop 80 100 2 2
for s in a b c d e; do "$out/checks" "$ci" $s; done
