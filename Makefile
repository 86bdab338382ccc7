# make demo   trains on the embedded benchmark, evaluates, localizes, writes runs/demo/report.html
# make test   passes every test
# make label-studio   lets Label Studio's own package, in an environment of its own, validate the tasks that we write
# make attack   throws 200,000 wrong inputs at every reader and command (INPUTS, MINUTES), counts into docs/reliability.md;
#               then every command finds the disk full at each of its writes
# make audit   compares the installed versions with the known vulnerabilities (needs pip-audit or pipx)
# All set up .venv with the pinned versions of constraints.txt first.

PYTHON ?= python3
WORKERS ?= 2
INPUTS ?= 200000
MINUTES ?= 60
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: demo test lint label-studio attack audit setup clean

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

attack: setup
	$(VENV)/bin/python tests/attack/run.py --inputs $(INPUTS) --minutes $(MINUTES)
	TZOOM_ATTACK_WRITES=all $(VENV)/bin/python -m pytest -q tests/attack/test_kills.py -k "full_disk_is or some_write"

AUDIT := --strict --skip-editable --progress-spinner off
audit: setup
	@if $(VENV)/bin/python -m pip_audit --version >/dev/null 2>&1; then $(VENV)/bin/python -m pip_audit $(AUDIT); \
	elif command -v pipx >/dev/null; then pipx run pip-audit $(AUDIT) --path $$($(VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'); \
	else echo "audit: needs pip-audit: $(VENV)/bin/python -m pip install pip-audit, or install pipx"; exit 2; fi \
	|| { echo "audit: a version has a known hole, or could not be compared (is the service reachable?); see above"; exit 1; }

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) runs build dist
