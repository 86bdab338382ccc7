# make demo   trains on the embedded benchmark, evaluates, localizes, writes runs/demo/report.html
# make test   passes every test
# Both set up .venv with the pinned versions of constraints.txt first.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: demo test lint setup clean

demo: setup
	$(VENV)/bin/tzoom demo --out runs/demo

test: setup
	$(VENV)/bin/python -m pytest -n $(WORKERS) -m "not slow"
	$(VENV)/bin/python -m pytest -n $(WORKERS) -m slow

lint: setup
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/mypy

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs build dist
