#!/bin/sh
# Wheels for Python 3.11 and later on Linux with glibc 2.17 or later, and the source distribution, in the folder dist.
#   packages/wheel.sh          for x86-64 and arm64, by zig's linker: minutes each
#   packages/wheel.sh here     for this machine's processor and glibc, from what `make setup` has built: seconds
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
if [ "${1:-}" = here ]; then
  exec maturin build --quiet --release --locked --out "${2:-dist}"
fi
python -m pip install --quiet --disable-pip-version-check --requirement packages/wheel.lock
rm -f dist/subak-*.whl dist/subak-*.tar.gz
for arch in x86_64 aarch64; do
  target=$arch-unknown-linux-gnu
  if ! rustc --print target-libdir --target "$target" | xargs test -d && ! rustup target add "$target"; then
    echo "no standard library of Rust for $target: \`rustup target add $target\` gets it; this wheel is left out" >&2
    continue
  fi
  maturin build --quiet --release --locked --zig --compatibility manylinux_2_17 --target "$target" --out dist
done
maturin sdist --out dist
python packages/check_wheel.py dist/subak-*.whl
