# `make` lists the targets. Each sets up what it needs in .venv, on a machine with Python 3.11+.

PYTHON ?= python3
BIN := .venv/bin
# torch 2.13.0 is the small CPU build; installed first, it keeps the larger ones away.
TORCH := torch==2.13.0

.DEFAULT_GOAL := help
.PHONY: help demo test check bench results clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/demo.stamp ## dense retrieval and SkillSight side by side on the example library
	@$(BIN)/python examples/demo.py

test: .venv/dev.stamp ## the tests
	@$(BIN)/python -m pytest

check: .venv/dev.stamp ## format, lint and types, as CI checks them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/dev.stamp ## ratios of time, measured side by side
	@for script in core_query library_scale langchain_overhead llamaindex_overhead tool_tokens; do \
		echo "== $$script" && $(BIN)/python -m tests.benchmarks.$$script || exit 1; done

results: .venv/dev.stamp ## measure every method on ../shared/data and write examples/results
	$(BIN)/python examples/results/measure.py
	$(BIN)/python examples/results/ranking.py

clean: ## remove the virtual environment and what tools left behind
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist

.venv/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, %s is %s; make PYTHON=python3.12" % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

.venv/demo.stamp: .venv/pip.stamp pyproject.toml
	@$(BIN)/python -m pip install --quiet $(TORCH)
	@$(BIN)/python -m pip install --quiet --editable '.[offline]'
	@touch $@

.venv/dev.stamp: .venv/demo.stamp pyproject.toml
	@$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@
