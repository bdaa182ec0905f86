#!/bin/sh
# Runs an arm64 wheel on this machine, by qemu-user with Debian's Python for arm64, and compares the results of a small run with
# those of the wheel's own machine: the same bytes. On Debian, with qemu-user; nothing of the system is changed.
#   packages/try_arm64.sh dist/subak-*aarch64.whl
set -eu
wheel=$(realpath "$1")
cd "$(dirname "$0")/.."
command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 is missing (Debian: apt-get install qemu-user)" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/root"
touch "$work/apt/status"
# As an apt of its own, for another processor.
apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State="$work/apt" \
    -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt" "$@"
}
apt update
# Debian's Python, what it is linked with, and what the wheels of numpy and pyarrow are.
(cd "$work/apt" && apt download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libexpat1 zlib1g libssl3 \
  libcrypt1 libgcc-s1 libstdc++6 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1)
for package in "$work"/apt/*.deb; do dpkg -x "$package" "$work/root"; done
pip=".venv/bin/python -m pip --disable-pip-version-check --quiet"
for name in numpy pyarrow typer rich tqdm shellingham markdown-it-py mdurl pygments typing_extensions annotated-doc; do
  locked=$(grep -i "^$(echo $name | tr _ -)==\|^$name==" requirements.lock)
  $pip download --no-deps --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux2014_aarch64 --dest "$work/wheels" "$locked"
done
for one in "$work"/wheels/*.whl "$wheel"; do .venv/bin/python -m zipfile -e "$one" "$work/site"; done
cat >"$work/run.py" <<'EOF'
import sys
import subak
schemes = [{"name": "dctcp"}, {"name": "s-perc"}, {"name": "hpcc"}, {"name": "ideal"}]
spec = {"network": {"kind": "star", "hosts": 4}, "workload": {"kind": "poisson", "sizes": "web-search", "load": 0.5}}
subak.run(spec | {"scheme": schemes, "run": {"duration": "5ms", "seeds": 2}}, sys.argv[1], progress=False)
EOF
PYTHONHOME="$work/root/usr" PYTHONPATH="$work/site" qemu-aarch64 -L "$work/root" "$work/root/usr/bin/python3.11" "$work/run.py" "$work/arm64"
.venv/bin/python "$work/run.py" "$work/here"
cmp "$work/arm64/results.parquet" "$work/here/results.parquet"
for trial in "$work"/here/trials/*; do cmp "$trial" "$work/arm64/trials/$(basename "$trial")"; done
echo "$(basename "$wheel"): $(ls "$work/here/trials" | wc -l) trials with the same bytes as here"
