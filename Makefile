# `make sweep` and `make test` do everything on a fresh machine; a second call installs nothing.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: sweep test lint types clean
.DEFAULT_GOAL := sweep

# Made anew when the declared dependencies change, not when the code does: the install is editable.
$(STAMP): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

sweep: $(STAMP)
	$(VENV)/bin/ganbench sweep quickstart

test: $(STAMP) lint types
	$(VENV)/bin/python -m pytest -n auto

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(STAMP)
	$(VENV)/bin/mypy

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
