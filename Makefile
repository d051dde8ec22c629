# The two commands of the README, for a machine with Python 3.11 and make; everything goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INCIDENT := inc-4127

.PHONY: investigate test lint clean

# One analysis, two reports: the post-mortem as a file, the page for the terminal.
investigate: $(VENV)/installed
	$(BIN)/causeline investigate fixtures/incidents/$(INCIDENT) -o out/$(INCIDENT).json
	$(BIN)/causeline report out/$(INCIDENT).json -o out/$(INCIDENT).html
	@$(BIN)/causeline report out/$(INCIDENT).json

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.namespace $(BIN)/lint-imports
	$(BIN)/causeline kb check

clean:
	rm -rf $(VENV) build dist out *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'  # the first that knows --group
	touch $@

$(VENV)/installed: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/pip pyproject.toml
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@ $(VENV)/installed
