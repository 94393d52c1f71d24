# Two commands do all the set-up: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
NPM_PEERS := tests/peers/npm
# Where nothing compiled may be kept, as in many containers, every worker and every process that the tests
# start would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test rooms everything lint ruff words types format docs docs-check samples site precision client-peers published bench owner clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcptest needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) 'pip>=25.2'  # an older one writes scripts that import `re`, and the benchmarks measure it
	$(PIP) --editable '.[dev,peers,docs]'
	@touch $@ $(VENV)/.installed

$(NPM_PEERS)/node_modules/.installed: $(NPM_PEERS)/package.json $(NPM_PEERS)/package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
	  cd $(NPM_PEERS) && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.installed; \
	fi

demo: $(VENV)/.installed
	$(BIN)/mcptest record --server demo --out .cache/demo.jsonl
	$(BIN)/mcptest compliance invariants --capture .cache/demo.jsonl

# What answers while one still thinks about the change: lint, types, and the tests of single rooms.
ROOMS := core wire schema suite transport session servers rules report probe commands meta
check: $(VENV)/.installed-dev ruff
	@$(MAKE) --no-print-directory --jobs 2 types rooms

test: $(VENV)/.installed-dev $(NPM_PEERS)/node_modules/.installed ruff
	@$(MAKE) --no-print-directory --jobs 2 types everything

rooms:
	$(BIN)/python -m pytest -n logical -q $(addprefix tests/,$(ROOMS))

everything:
	@$(BIN)/python -m compileall -q src tests benchmarks  # thousands of processes are started: once is enough
	$(BIN)/python -m pytest -n auto

lint: ruff words types

ruff: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The words that people read: docs/contributing/words.md
words: $(VENV)/.installed-dev
	$(BIN)/python -m tests.meta.words

types: $(VENV)/.installed-dev
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.rule_docs docs/rules
	$(BIN)/python -m tests.docs.compliance_docs docs/compliance
	$(BIN)/python -m tests.docs.lint_docs docs/commands/lint.md
	$(BIN)/python -m tests.docs.scenario_docs docs/conformance
	$(BIN)/python -m tests.docs.comparison_page
	$(BIN)/python -m tests.peers.clients.page
	$(BIN)/python -m tests.mutants.precision --new
	$(BIN)/python -m tests.mutants.exchanges --new

docs-check: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.rule_docs docs/rules --check
	$(BIN)/python -m tests.docs.compliance_docs docs/compliance --check
	$(BIN)/python -m tests.docs.lint_docs docs/commands/lint.md --check
	$(BIN)/python -m tests.docs.scenario_docs docs/conformance --check
	$(BIN)/python -m tests.docs.comparison_page --check
	$(BIN)/python -m tests.peers.clients.page --check

# Pages that show how many rules there are, or how many hold: with a new rule their numbers change.
COUNTING := README.md docs/guide.md docs/commands/compliance.md \
  docs/howto/upgrade-a-server.md docs/howto/write-a-rule.md
samples: $(VENV)/.installed-dev
	$(BIN)/python -m tests.docs.rewrite $(COUNTING)

# The documentation as a site in .cache/site, which can be read from disk. Any warning fails.
site: $(VENV)/.installed-dev docs-check
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# Every mutant and the healthy demo, for minutes; `make precision RULE=PROG-001` judges just that rule's.
precision: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutants.precision $(RULE)
	$(BIN)/python -m tests.mutants.exchanges $(RULE)
	$(if $(RULE),,$(BIN)/python -m tests.properties.precision)

# Client libraries as they are pinned, each in an environment of its own below .cache/clients (2.5 GB), for
# `python -m tests.peers.clients.record`. `make test` judges the captures that were recorded, and needs none of it.
client-peers: $(VENV)/.installed-dev
	$(BIN)/python -m tests.peers.clients.install

# Servers that other people published, installed into .cache and judged over every transport that they have.
published: $(VENV)/.installed-dev
	$(BIN)/python -m tests.published.install
	$(BIN)/python -m tests.published.judge --minimal
	$(BIN)/python -m tests.published.judge
	$(BIN)/python -m tests.published.commonness
	$(BIN)/python -m tests.published.readings

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/throughput.py

# Who publishes this: fills in every OWNER/mcptest (docs/contributing/release.md).
owner:
	@test -n "$(OWNER)" || { echo "usage: make owner OWNER=acme" >&2; exit 2; }
	git grep -lz 'OWNER/mcptest' -- ':!Makefile' ':!docs/contributing' ':!tests' | xargs -0 perl -pi -e 's#\bOWNER/mcptest#$(OWNER)/mcptest#g'

clean:
	rm -rf $(VENV) .cache $(NPM_PEERS)/node_modules
