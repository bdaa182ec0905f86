#!/bin/sh
# Cache misses a packet-hop, counted by Cachegrind (Debian: valgrind): of the permutation under DCTCP at 16, 144, 1024 and 8192 hosts, in
# caches of 32 KiB (first level), 1 MiB (second) and 32 MiB (last). Counting knows no prefetching: these are lines that a hop needs
# and that are not there. Each size runs twice, and what the longer run has more is counted: the set-up is not. It takes five minutes.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "benches/misses.sh: install valgrind" >&2; exit 1; }
# Lines, for whoever asks cg_annotate where the misses are.
export CARGO_PROFILE_BENCH_DEBUG=line-tables-only
binary=$(cargo bench --locked --no-run -p subak-packet --bench misses 2>&1 | sed -n 's/.*(\(.*misses-[0-9a-f]*\)).*/\1/p')
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# Prints "hops instructions first-level-misses last-level-misses" of a run.
count() { # leaves micros last-level-bytes
  valgrind --tool=cachegrind --cache-sim=yes --D1=32768,8,64 --LL="$3",16,64 --cachegrind-out-file="$out/cg" \
    "$binary" "$1" "$2" >"$out/hops" 2>"$out/err" || { cat "$out/err" >&2; exit 1; }
  awk -v hops="$(cat "$out/hops")" '/^events:/ { for (i = 2; i <= NF; i++) at[$i] = i }
    /^summary:/ { print hops, $at["Ir"], $at["D1mr"] + $at["D1mw"], $at["DLmr"] + $at["DLmw"] }' "$out/cg"
}
printf '%6s %13s %13s %13s %13s\n' hosts instructions 'beyond 32 KiB' 'beyond 1 MiB' 'beyond 32 MiB'
for size in "1 4000 8000" "9 1500 3000" "64 400 800" "512 100 200"; do
  set -- $size
  for last in 1048576 33554432; do
    short=$(count "$1" "$2" $last)
    long=$(count "$1" "$3" $last)
    echo "$short $long" | awk '{ n = $5 - $1; print ($6 - $2) / n, ($7 - $3) / n, ($8 - $4) / n }' >"$out/$last"
  done
  awk -v hosts=$(($1 * 16)) '{ second = $3 } NR == 1 { at = $3; next } { printf "%6d %13.0f %13.2f %13.2f %13.2f\n", hosts, $1, $2, at, $3 }' \
    "$out/1048576" "$out/33554432"
done
