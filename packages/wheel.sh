#!/bin/sh
# Wheels for Python 3.11 and later on Linux with glibc 2.17 or later, and the source distribution, in the folder dist.
#   packages/wheel.sh          for x86-64 and arm64, by zig's linker: minutes each
#   packages/wheel.sh here     for this machine's processor and glibc, from what `make setup` has built: seconds
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
which=${1:-all}
dist=${2:-dist}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources() {
  find crates packages python Cargo.lock Cargo.toml LICENSE README.md pyproject.toml -type f ! -name '*.pyc' ! -name '*.so' \
    ! -name NOTICES -printf '%C@ %p\n' | sort
}
# One wheel a processor is left, for pip installs no two of one name.
remove() {
  if [ "$which" = here ]; then rm -f "$dist"/subak-*"$(uname -m)".whl; else rm -f "$dist"/subak-*.whl "$dist"/subak-*.tar.gz; fi
}
sources >"$work/before"
if [ "$which" = here ]; then
  remove
  python packages/notices.py "$(rustc -vV | sed -n 's/^host: //p')"
  maturin build --quiet --release --locked --out "$dist"
else
  python -m pip install --quiet --disable-pip-version-check --requirement packages/wheel.lock
  remove
  for arch in x86_64 aarch64; do
    target=$arch-unknown-linux-gnu
    if ! rustc --print target-libdir --target "$target" | xargs test -d && ! rustup target add "$target"; then
      echo "no standard library of Rust for $target: \`rustup target add $target\` gets it; this wheel is left out" >&2
      continue
    fi
    python packages/notices.py "$target"
    maturin build --quiet --release --locked --zig --compatibility manylinux_2_17 --target "$target" --out "$dist"
  done
  maturin sdist --out "$dist"
fi
sources >"$work/after"
changed=$(diff "$work/before" "$work/after" | sed -n 's/^[<>] [^ ]* //p' | sort -u)
if [ -n "$changed" ]; then
  remove
  echo "sources changed while wheels were made of them: none is kept; call it again once nobody writes to" $changed >&2
  exit 1
fi
[ "$which" = here ] || python packages/check_wheel.py "$dist"/subak-*.whl
