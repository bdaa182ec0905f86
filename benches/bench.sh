#!/bin/sh
# The figures of speed, each beside a peer or a straight loop run in the same minutes; about three minutes in all.
# The comparison with ns-3 wants its headers (Debian: libns3-dev) and is skipped where they are missing.
set -e
cd "$(dirname "$0")/.."
ns3=${CARGO_TARGET_DIR:-target}/ns3
benches/ns3/build.sh "$ns3"
case $ns3 in /*) ;; *) ns3=$PWD/$ns3 ;; esac
cargo bench --locked -p subak-packet --bench packet_hop
cargo bench --locked -p subak-packet --bench against_ns3 -- "$ns3"
cargo bench --locked -p subak-solve
