#!/bin/sh
# Static binaries of both daemons, and a Debian package of each, in the folder dist.
#   packages/build.sh
set -eu
cd "$(dirname "$0")/.."
# Where the compiler finds a library's archive; nothing where it has none.
archive() { found=$(cc -print-file-name="$1"); if [ -e "$found" ]; then echo "$found"; fi; }
features=
with=
elf=$(archive libelf.a)
if command -v clang >/dev/null && [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; then
  [ -n "$elf" ] || { echo "no libelf.a: a static agent with eBPF wants it (Debian's libelf-dev)" >&2; exit 1; }
  features="--features bpf,static"
  export LIBBPF_SYS_LIBRARY_PATH="$(dirname "$elf")"
  # Newer ones of libelf want zstd.
  if [ -n "$(archive libzstd.a)" ]; then with="-C link-arg=-lzstd"; fi
fi
# All but the programs themselves is built as ever.
static="-C target-feature=+crt-static"
cargo rustc --quiet --release --locked -p subak-allocator --bin subak-allocator -- $static
cargo rustc --quiet --release --locked -p subak-agent --bin subak-agent $features -- $static $with
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
arch=$(dpkg --print-architecture)
mkdir -p dist

# NAME, then what it is, then its units; files of its own come from the function with its name.
package() {
  root=$(mktemp -d)
  units=$3
  install -D "target/release/$1" "$root/usr/bin/$1"
  for unit in $units; do install -D -m 644 "packages/systemd/$unit" "$root/usr/lib/systemd/system/$unit"; done
  install -D -m 644 LICENSE "$root/usr/share/doc/$1/copyright"
  install -D -m 644 docs/allocator.md "$root/usr/share/doc/$1/allocator.md"
  mkdir -p "$root/usr/share/man/man1"
  "target/release/$1" man "$root/usr/share/man/man1"
  gzip -9n "$root"/usr/share/man/man1/*.1
  "target/release/$1" completion bash | install -D -m 644 /dev/stdin "$root/usr/share/bash-completion/completions/$1"
  mkdir -p "$root/DEBIAN"
  cat >"$root/DEBIAN/control" <<EOF
Package: $1
Version: $version
Architecture: $arch
Maintainer: The authors of Subak <subak@localhost>
Section: net
Priority: optional
Description: $2
EOF
  maintained "$root"
  "files_of_$(echo "$1" | tr - _)" "$root"
  chmod -R u+rwX,go+rX,go-w "$root"
  dpkg-deb --root-owner-group --build "$root" "dist/$1_${version}_$arch.deb" >/dev/null
  install -D "target/release/$1" "dist/$1"
  rm -rf "$root"
}

# What dpkg runs: units are stopped before removal, and restarted by an upgrade if they ran.
maintained() {
  cat >"$1/DEBIAN/postinst" <<EOF
#!/bin/sh
set -e
if [ "\$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ -n "\$2" ]; then systemctl try-restart $units || true; fi
fi
EOF
  cat >"$1/DEBIAN/prerm" <<EOF
#!/bin/sh
set -e
if [ "\$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now $units || true; fi
EOF
  cat >"$1/DEBIAN/postrm" <<'EOF'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
# Keys and files that somebody made stay.
if [ "$1" = purge ]; then rmdir --ignore-fail-on-non-empty /etc/subak/keys /etc/subak 2>/dev/null || true; fi
EOF
  chmod 755 "$1/DEBIAN/postinst" "$1/DEBIAN/prerm" "$1/DEBIAN/postrm"
}

files_of_subak_allocator() {
  install -D -m 644 packages/allocator.toml "$1/etc/subak/allocator.toml"
  install -D -m 644 -t "$1/usr/share/doc/subak-allocator" packages/monitoring/subak.rules.yml packages/monitoring/subak.dashboard.json
  echo /etc/subak/allocator.toml >"$1/DEBIAN/conffiles"
  printf 'u subak - "Subak'\''s allocator"\n' | install -D -m 644 /dev/stdin "$1/usr/lib/sysusers.d/subak.conf"
  cat >>"$1/DEBIAN/postinst" <<'EOF'
if [ "$1" = configure ] && command -v systemd-sysusers >/dev/null; then systemd-sysusers /usr/lib/sysusers.d/subak.conf || true; fi
if [ "$1" = configure ]; then
  install -d -m 750 /etc/subak/keys
  if getent group subak >/dev/null; then chgrp subak /etc/subak/keys; fi
fi
EOF
}

files_of_subak_agent() {
  install -D -m 600 packages/flowtune.env "$1/etc/subak/flowtune.env"
  install -D -m 644 packages/soze.env "$1/etc/subak/soze.env"
  printf '%s\n' /etc/subak/flowtune.env /etc/subak/soze.env >"$1/DEBIAN/conffiles"
}

package subak-allocator "Flowtune's allocator: grants rates to hosts" subak-allocator.service
package subak-agent "Subak on Linux hosts: Flowtune's endpoint, Soze, s-PERC" "subak-flowtune.service subak-soze.service"
ls dist/*.deb
