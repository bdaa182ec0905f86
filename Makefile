# What people run; `make setup` comes first of itself. Rust is built at most twice: dev for the tests, release for the package.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

# The programs of hosts are built where clang and two libraries are; all else is without them.
BPF = $(shell command -v clang >/dev/null && [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ] && echo --features subak-agent/bpf)

.PHONY: setup agent packages wheel man clang quick format demo test lint fuzz soak docs records deny bench bench-all clean chromium tshark

## .venv with the locked packages, the subak package and .venv/bin/subak
setup: .venv/.locked .venv/.installed agent

## .venv/bin/subak-agent, which hosts run: with eBPF where clang is
agent: .venv/.locked
	cargo build --quiet --release --locked -p subak-agent -p subak-allocator $(BPF)
	install -C target/release/subak-agent target/release/subak-allocator .venv/bin/

## dist: static binaries of the daemons of hosts, and Debian packages
packages: clang
	packages/build.sh

## dist: wheels for x86-64 and arm64, whose users need no Rust, and the source distribution; minutes
wheel: setup man
	packages/wheel.sh

## the manual page of the command, from what --help says
man: setup
	$(BIN)/python docs/man.py

# What tests, documentation and all extras need.
.venv/.locked: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	touch $@

# What builds the package.
.venv/.maturin: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock maturin
	touch $@

.venv/.installed: .venv/.maturin $(SOURCES)
	PIP_CONSTRAINT=requirements.lock $(BIN)/maturin develop --release --locked --extras plot
	rm -f .venv/.wheel
	touch $@

# Where nothing is built yet, a wheel for this machine stands in: one that is newer than all sources, or any where there is no Rust.
WHEEL := $(shell ls -t dist/subak-*linux*_$$(uname -m).whl 2>/dev/null | head -1)
ifneq ($(WHEEL),)
INSTEAD := $(shell [ -e .venv/.installed ] || { command -v cargo && find $(SOURCES) python -newer $(WHEEL) -name '*.[prt]*' | grep .; } >/dev/null || echo .venv/.wheel)
endif

# An older wheel may have the same version, and pip would leave it there: the wheel itself is installed again.
.venv/.wheel: $(WHEEL) requirements.lock
	[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock "$(WHEEL)[plot]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$(WHEEL)"
	touch $@

## every file in its form
format: setup
	rustfmt --edition 2024 $(shell find crates fuzz -name '*.rs')
	$(BIN)/ruff format

## the package again after a change, in seconds: unoptimized at the seams, for whoever writes a scheme
quick: .venv/.locked
	$(BIN)/maturin develop --quiet --profile quick --locked
	rm -f .venv/.installed

## dctcp, s-perc and ideal under web search on 64 hosts, the report of it, and the README's picture
demo: $(or $(INSTEAD),.venv/.installed)
	rm -rf out/demo
	$(BIN)/subak run examples/demo.toml --out out/demo
	$(BIN)/subak report out/demo --output out/demo/report.html
	$(BIN)/python docs/demo_figure.py out/demo

# Random tests draw the same cases each time; `make test PROPTEST_RNG_SEED=7` draws others.
PROPTEST_RNG_SEED ?= 1
export PROPTEST_RNG_SEED

## everything that has to pass; what the tests want of the system is installed while Rust builds. A whole build is
## faster where nothing is kept for the next one.
test: export CARGO_INCREMENTAL ?= 0
test: clang
	$(MAKE) setup
	$(MAKE) chromium tshark & $(MAKE) lint && wait
	cargo test --workspace --locked $(BPF)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

## each decoder and the allocator's exchange, `make fuzz FUZZ_SECONDS=600` for longer; what makes one behave in a new way is kept in fuzz/corpus
FUZZ_SECONDS ?= 60
fuzz:
	cargo run --locked --release -p subak-fuzz -- all $(FUZZ_SECONDS)

## random networks, flows, specs and faults for so many hours, against what always has to hold; `make soak SEED=17` repeats
## one case. Built as the tests are: with checks of overflow.
HOURS ?= 1
soak:
	cargo run --locked -p subak-fuzz --bin soak -- $(if $(SEED),seed $(SEED),hours $(HOURS))

# cargo fmt does not see the modules that macros declare: registries are lists. Links to private items lead somewhere in an editor.
lint: setup
	rustfmt --check --edition 2024 $(shell find crates fuzz -name '*.rs')
	cargo clippy --workspace --all-targets --locked $(BPF) -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@command -v cargo-deny >/dev/null && $(MAKE) deny || echo "cargo-deny is not there: tests/project/test_dependencies.py alone looks at licenses and sources"

# The report's screenshot test wants a browser; where it cannot be had the test says so and skips.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	  echo "chromium is missing and could not be installed: the screenshot test will be skipped"

# Programs that run in the kernel want clang and two libraries to build; without them hosts have the kernel's own schemes.
clang:
	@{ command -v clang >/dev/null && [ -e /usr/include/libelf.h ] && [ -e /usr/include/zlib.h ]; } || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq clang libelf-dev zlib1g-dev >/dev/null; } || \
	  echo "clang, libelf-dev and zlib1g-dev are missing and could not be installed: subak-agent is built without eBPF"

# The tests of captures want tshark; where it cannot be had they say so and skip.
tshark:
	@command -v tshark >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq tshark >/dev/null; } || \
	  echo "tshark is missing and could not be installed: the tests of captures will be skipped"

## the documentation in docs/_build/html, and the README's count of verdicts; warnings are errors, and the tests build it too
docs: setup
	$(BIN)/python docs/record.py
	$(BIN)/sphinx-build -q -W --keep-going docs docs/_build/html

## the papers' experiments anew, the oldest and least certain records first; `make records BUDGET=60` for more core-minutes
BUDGET ?= 20
records: setup
	$(BIN)/python docs/record.py --budget $(BUDGET)

## licenses and sources of the dependencies; wants cargo-deny (`cargo install cargo-deny`), advisories want the network
deny:
	cargo deny check licenses bans sources

## the first figures of speed, each beside a peer or a straight loop run in the same minutes: three minutes once it is built; it fails
## where one is worse than its bound
bench:
	sh benches/bench.sh

## all of them: a quarter of an hour; `make bench-all OLD=REVISION` runs the packet engine of that revision in turn with this one, too
bench-all:
	sh benches/bench.sh all

clean:
	rm -rf .venv target out docs/_build docs/generated
	find python crates -name '*.so' -delete
