#!/bin/sh
# Builds the ns-3 programs into the folder given, where ns-3's headers are installed; says so where they are not.
set -e
here=$(dirname "$0")
out=${1:?the folder for the programs}
if ! [ -e /usr/include/ns3/core-module.h ]; then
    echo "ns-3 is not installed (Debian: apt-get install libns3-dev): the comparison with it is skipped" >&2
    exit 0
fi
mkdir -p "$out"
libraries="-lns3-applications -lns3-internet -lns3-bridge -lns3-traffic-control -lns3-point-to-point"
libraries="$libraries -lns3-network -lns3-stats -lns3-core"
for program in permutation fct; do
    if ! [ "$out/$program" -nt "$here/$program.cc" ] || ! [ "$out/$program" -nt "$here/common.h" ]; then
        # shellcheck disable=SC2086
        "${CXX:-c++}" -O2 -std=c++17 -o "$out/$program" "$here/$program.cc" $libraries
    fi
done
