#!/bin/sh
# The figures of speed, each beside a peer or a straight loop run in the same minutes; ends with 1 where one is worse than the bound
# that its benchmark states. `benches/bench.sh` takes three minutes for the first ratios, `benches/bench.sh all` a quarter of an hour.
# `OLD=REVISION benches/bench.sh all` runs the packet engine of that revision in turn with this one, too.
# The comparison with ns-3 wants its headers (Debian: libns3-dev) and is skipped where they are missing.
set -u
cd "$(dirname "$0")/.."
ns3=${CARGO_TARGET_DIR:-target}/ns3
benches/ns3/build.sh "$ns3" || exit
case $ns3 in /*) ;; *) ns3=$PWD/$ns3 ;; esac
rc=0
bench() { cargo bench --quiet --locked "$@" || rc=1; }
if [ "${1:-}" = all ]; then
  if [ -n "${OLD:-}" ]; then benches/engines.sh "$OLD" || rc=1; fi
  bench -p subak-packet --bench packet_hop
  bench -p subak-packet --bench threads
  bench -p subak-packet --bench against_ns3 -- "$ns3"
  bench -p subak-solve --bench solve
  bench -p subak-solve --bench ned
  bench -p subak-control
  bench -p subak-allocator --bench datagrams
  bench -p subak-allocator --bench flood
else
  bench -p subak-packet --bench packet_hop -- cubic s-perc soze numfabric
  bench -p subak-packet --bench against_ns3 -- "$ns3" hops
  bench -p subak-solve --bench solve -- 10000 100000 clarabel=1
  bench -p subak-solve --bench ned -- 384/3072 4608/49152 quick
fi
exit $rc
