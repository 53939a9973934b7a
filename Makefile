# make demo   lands the demo feed, decides it, and shows what was decided
# make test   lints, and runs what a change is checked with (10 to 25 minutes on two cores)
# make test-all  lints and runs every test: kills, servers, brokers, clusters too (an hour)
# make torture  kills runs in every way and place, and counts what is lost or doubled (two hours)
# make docs   rewrites the pages that are made from seeds
# make site   builds the pages of docs/ as a site, into site/
# make bench  measures it against what people write instead
# make clean  takes away what make has made here, but neither profiles.yml nor your lake

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long test-all torture bench lint lint-python lint-sql docs site clean java
SHELL := /bin/bash

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PREPARED := $(VENV)/.prepared
# PYTHON=... names another Python
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.10,$(shell \
    $(name) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2>/dev/null \
    && echo $(name))))
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
JAVA_FILE := $(realpath $(shell command -v '$(JAVA)'))

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: java $(STAMP) profiles.yml $(PREPARED)

java:
	@version=$$('$(JAVA)' -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ "$${version:-0}" -lt 17 ]; then \
	    echo "Java 17 is needed: apt-get install openjdk-17-jre-headless, or brew install" \
	        "openjdk@17, or set JAVA_HOME to one (found: $${version:-none})" >&2; \
	    exit 1; \
	fi

$(STAMP): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
	    echo "Python 3.10 to 3.13 is needed: apt-get install python3 python3-venv, or brew" \
	        "install python@3.12, or name one with make PYTHON=..." >&2; \
	    exit 1; \
	fi
	@echo "-- making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@echo "-- installing dbt, Spark and the tools (some minutes, about 1 GB)"
	@# without --no-compile pip compiles every module, and most are never imported
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@

profiles.yml:
	@echo "-- copying profiles.example.yml to profiles.yml"
	@cp profiles.example.yml $@
	@mkdir -p .lake

# repeated if Java or the packages have changed; without it Spark only starts slower
$(PREPARED): $(STAMP) profiles.yml $(JAVA_FILE)
	@echo "-- preparing a quick start of Spark (a minute, 200 MB)"
	@$(BIN)/exactly-once prepare || echo "-- Spark starts as it always does; make goes on"
	@touch $@

demo: setup
	@$(BIN)/python demo/run_demo.py

PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: lint
	@echo "-- pytest"
	@$(PYTEST) -m 'not long'

# UNTIL=... seconds since 1970: skips the tests that could last longer
test-long: setup
	@echo "-- pytest, the long tests"
	@$(PYTEST) -rsEf --durations=40 -m long $(if $(UNTIL),--until=$(UNTIL))

test-all: test test-long

torture: setup
	@$(BIN)/python tests/python/torture.py --boundaries

lint: lint-python lint-sql

lint-python: setup
	@echo "-- ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# in a lake of its own: dbt compiles the models for sqlfluff and may look at the lake
lint-sql: setup
	@echo "-- sqlfluff (dbt compiles every model)"
	@mkdir -p .lake/lint
	@EXACTLY_ONCE_LAKE='$(CURDIR)/.lake/lint' $(BIN)/sqlfluff lint --disable-progress-bar \
	    models tests

docs: setup
	@$(BIN)/python -m dbt_exactly_once.lifecycle

site: setup
	@$(BIN)/mkdocs build --strict --quiet

# BENCH="--live 2e7 --parts rivals" and the like, see benchmarks/bench.py
bench: setup
	@$(BIN)/python benchmarks/bench.py $(BENCH)

clean:
	rm -rf $(VENV) .lake/demo .lake/lint target logs dbt_packages spark-warehouse metastore_db \
	    derby.log .user.yml build site *.egg-info .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
