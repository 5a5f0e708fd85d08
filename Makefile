# `make demo` and `make test` are all that a newcomer needs; `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# uv where it is on the PATH, else pip alone.
UV := $(shell command -v uv 2>/dev/null)
INSTALL = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check)
MODEL ?= $(MEMGUARD_MODEL)
BASE_URL ?= $(MEMGUARD_BASE_URL)

# Tests start processes. Without compiled files each of them compiles every library that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow coverage check audit docs notebooks format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## / - /'

demo: $(VENV)/.installed-demo ## install, then run the main job (MODEL=openai:NAME [BASE_URL=...])
	@MEMGUARD_MODEL='$(MODEL)' MEMGUARD_BASE_URL='$(BASE_URL)' $(BIN)/memguard demo

test: $(VENV)/.installed-dev ## install what tests need, then run them
	$(BIN)/python -m pytest -n 2 -m "not slow and not live"

test-slow: $(VENV)/.installed-dev ## the tests marked slow
	$(BIN)/python -m pytest -m "slow and not live"

coverage: $(VENV)/.installed-dev ## what the tests of `make test` run, as a table and in build/coverage
	$(BIN)/python -m pytest -n 2 -m "not slow and not live" --cov --cov-report=term --cov-report=html

check: $(VENV)/.installed-dev ## format, lint, types and import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

audit: $(VENV)/.installed-dev ## look for known vulnerabilities in what is installed
	$(BIN)/python .ci/audit.py $(BIN)/python

notebooks: $(VENV)/.installed-dev ## run every notebook, and keep what it shows
	$(BIN)/python notebooks/run.py

docs: $(VENV)/.installed-dev ## build the site into build/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.installed-dev ## format, and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[local]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[local,bench,docs,studio,dev]'
	@touch $@
