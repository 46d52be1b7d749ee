# Each target sets up what it needs on a bare machine: see scripts/setup.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo dev test test-cluster check fix bench

BIN := .venv/bin

help:  ## This list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup:
	@scripts/setup

demo: setup  ## Make a dataset, train on it, print what happened (about 3 minutes)
	@$(BIN)/factory demo

dev: setup  ## The Dagster UI on the demo's instance and definitions
	@$(BIN)/factory dev

REACHED := .pytest_cache/reached
WATCHED := REFUSALS_REACHED=$(REACHED) $(BIN)/python -m pytest -p tests.data.mutations.reached

test: setup  ## Every test that needs neither a GPU nor a Kubernetes
	rm -rf $(REACHED)
	$(WATCHED) -n 2 --dist loadgroup
	$(WATCHED) -n 2 --dist loadfile -m "slow and not gpu and not cluster" --durations=15
	$(BIN)/python -m tests.data.mutations.unreached $(REACHED)

test-cluster: setup  ## The tests that need a real Kubernetes, which the first time takes half an hour to build
	scripts/setup-cluster
	$(BIN)/python -m tests.cluster.builds
	$(BIN)/pytest tests/cluster -n 2 --dist loadfile --no-loadscope-reorder \
	  -m "cluster and not gpu" --durations=15

check: setup  ## Lint, types, import contracts, lock file
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	scripts/lock --check

fix: setup  ## Format, mend what ruff can, renew the lock
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	scripts/lock

bench: setup  ## Benchmarks against peers; renews docs/benchmarks.md
	$(BIN)/python -m tests.bench
