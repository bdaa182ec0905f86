#!/bin/sh
# The packet engine of another revision and this one, run in turn: `benches/engines.sh REVISION [TURNS]`. Nanoseconds a packet-hop of the
# permutation under DCTCP at 16, 144 and 1024 hosts, the medians of three turns. The first time it builds the other engine, for minutes.
set -eu
cd "$(dirname "$0")/.."
revision=$(git rev-parse --short "$1")
place=${CARGO_TARGET_DIR:-target}/engines
case $place in /*) ;; *) place=$PWD/$place ;; esac
mkdir -p "$place/$revision"
git archive "$revision" | tar -x -C "$place/$revision"
# Builds the benchmark that is in a folder; prints where it is.
built() {
  (cd "$1" && CARGO_TARGET_DIR=$2 cargo bench --locked --no-run -p subak-packet --bench packet_hop 2>&1) |
    sed -n 's/.*(\(.*packet_hop-[0-9a-f]*\)).*/\1/p' | sed "s|^[^/]|$1/&|"
}
old=$(built "$place/$revision" "$place/build")
new=$(built "$PWD" "${CARGO_TARGET_DIR:-$PWD/target}")
for one in "$old" "$new"; do
  [ -x "$one" ] || { echo "benches/engines.sh: the benchmark packet_hop of $revision or of this revision could not be built" >&2; exit 1; }
done
: >"$place/rows"
for turn in $(seq "${2:-3}"); do
  # What comes after the first rows is not waited for.
  "$old" dctcp 2>/dev/null | head -4 | awk 'NR > 1 { print "old", $2, $3 }' >>"$place/rows"
  "$new" dctcp 2>/dev/null | head -4 | awk 'NR > 1 { print "new", $2, $3 }' >>"$place/rows"
done
printf '%6s %13s %10s %7s\n' hosts "$revision, ns" 'now, ns' ratio
for hosts in 16 144 1024; do
  for which in old new; do
    awk -v w=$which -v h=$hosts '$1 == w && $2 == h { print $3 }' "$place/rows" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
  done | paste -s | awk -v h=$hosts '{ printf "%6d %13.1f %10.1f %7.2f\n", h, $1, $2, $2 / $1 }'
done
