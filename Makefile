# make demo   trains on the embedded benchmark, evaluates, localizes, writes runs/demo/report.html
# make test   passes every test
# make label-studio   lets Label Studio's own package, in an environment of its own, validate the tasks that we write
# All set up .venv with the pinned versions of constraints.txt first.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: demo test lint label-studio setup clean

demo: setup
	$(VENV)/bin/tzoom demo --out runs/demo

test: setup
	$(VENV)/bin/python -m pytest -n $(WORKERS) -m "not slow"
	$(VENV)/bin/python -m pytest -n $(WORKERS) -m slow

lint: setup
	$(VENV)/bin/ruff check src tests benchmarks examples
	$(VENV)/bin/ruff format --check src tests benchmarks examples
	$(VENV)/bin/mypy

label-studio: setup
	$(PYTHON) -m venv build/label-studio
	build/label-studio/bin/python -m pip install --quiet label-studio-sdk==2.1.2
	$(VENV)/bin/python tests/outside/label_studio.py write build/label-studio/tasks.json
	build/label-studio/bin/python tests/outside/label_studio.py check build/label-studio/tasks.json

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs build dist
