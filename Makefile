# bmoe. `make help` lists the targets. Everything a build needs besides Go, a C
# compiler and npm is fetched, verified and kept in ${XDG_CACHE_HOME:-~/.cache}/bmoe.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build test race lint vuln fuzz-short golden bench docs docs-check screenshots \
	peers rpc lavapipe llama-source demo release sanitize torture clean

SETUP := engine/internal/llama/setup
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/bmoe
PKG ?= ./...
# The version is stamped from git; a tree that git refuses to read (another
# owner, no repository) builds without the stamp.
VCS := $(shell git status --porcelain >/dev/null 2>&1 && echo auto || echo false)
GOFLAGS_BUILD := -buildvcs=$(VCS)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'
	@echo
	@echo "  LLAMA_DIR=/path   use a llama.cpp build of your own (setup, build, test)"
	@echo "  PKG=./planner     packages for test, race, bench; BENCH=regexp; FUZZTIME=10s"

setup: ## fetch llama.cpp into the cache, put its libraries into ./lib
	@$(SETUP)/deps.sh
	@[ -n "$${LLAMA_DIR:-}" ] || $(SETUP)/fetch.sh
	@$(SETUP)/link.sh
	@cmd/bmoe/testdata/duckdb/setup.sh >/dev/null || echo "setup: no DuckDB; its test will fail, all else works" >&2

build: setup ## build bin/bmoe
	@mkdir -p bin
	@[ -e bin/bmoe ] || echo "the first build compiles SQLite and the bindings too: some minutes"
	go build $(GOFLAGS_BUILD) -o bin/bmoe ./cmd/bmoe

test: build rpc ## vet and test everything, the documents too
	go vet ./...
	go test $(PKG)
	@.ci/chromium
	@.ci/docs --check

race: build rpc ## test under the race detector, in shuffled order
	go test -race -shuffle=on -timeout 60m $(PKG)

lint: setup ## run the pinned golangci-lint
	@.ci/lint

vuln: setup ## look for known vulnerabilities, if their database can be reached
	@.ci/vuln

FUZZTIME ?= 10s
fuzz-short: setup ## run every fuzz target for FUZZTIME (10s)
	@.ci/fuzz $(FUZZTIME)

golden: build ## rewrite the golden files of the tests
	@.ci/golden

BENCH ?= .
bench: build peers ## run the benchmarks, llama.cpp's own tools beside ours
	go test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 60m $(PKG)

docs: build ## regenerate what is generated under docs/
	@.ci/docs

screenshots: build ## take the documents' screenshots again (needs Chromium)
	@.ci/chromium docs/img

docs-check: build ## fail if something generated under docs/ is out of date
	@.ci/docs --check

peers: setup ## build llama-bench, llama-completion, llama-perplexity on our libraries
	@$(SETUP)/peers.sh peers

rpc: setup ## build llama.cpp's RPC device and server, a device for tests
	@$(SETUP)/peers.sh rpc

lavapipe: build ## compute a prompt on a stock Vulkan device (Mesa's, no card needed)
	@$(SETUP)/vulkan.sh
	@.ci/lavapipe

llama-source: ## build the pinned llama.cpp from source instead of fetching it built
	@$(SETUP)/source.sh

demo: build ## the whole job on a synthetic model: run, sweep, report (under 6 minutes)
	@docs/demo.sh

release: setup ## build dist/bmoe-VERSION-OS-ARCH.tar.gz, which runs from any folder
	@.ci/release

.PHONY: release-check
release-check: release ## do the whole job with the tarball in a bare Debian root (debootstrap)
	@.ci/release-check

sanitize: build rpc ## test the C shim under sanitizers, and sessions under a leak checker
	@.ci/sanitize

torture: build ## kill, starve and fault runs and sweeps; rewrites docs/reliability.md
	@.ci/torture

clean: ## remove what was built here; the cache stays
	rm -rf bin lib lib.new out dist
	rm -f engine/internal/llama/include engine/internal/llama/lib
