# make run, make test, make lint and make docs set up all they need, given Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ALL := $(VENV)/.all
SITE := $(VENV)/.site

.PHONY: run test test-all lint format docs signatures bench clean

run: $(READY)  ## Train all methods on the Guarded Maze at a quick scale: table, pictures, page.
	@$(BIN)/steadyrl reproduce maze --quick --open

test: $(ALL)  ## The tests, on two processes, without the long ones.
	@$(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not slow"

test-all: $(ALL)  ## All tests, with real learning, killed processes and a Ray cluster.
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(ALL)  ## Lint, format check and types.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(ALL)  ## Fix what the linter can fix.
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: $(SITE)  ## The documentation site, in docs/_build/html; a warning or a broken link is an error.
	@$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Site: docs/_build/html/index.html"

signatures: $(ALL)  ## Rewrite the typed keyword arguments of the agents after a change of settings.
	@$(BIN)/python -m steadyrl.agents.make_signatures

bench: $(ALL)  ## Measure speed, ours and that of others, in 15 minutes: a table, and docs/benchmarks.md.
	@$(BIN)/python -m benchmarks.speed.all

clean:  ## Remove the virtual environment, the site and what runs wrote.
	rm -rf $(VENV) results runs docs/_build

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steadyrl needs Python 3.11 or later; try: make PYTHON=python3.11")'
	@echo "Setting up $(VENV) (once; a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(ALL): $(READY)
	@echo "Installing what development needs (once; a minute or two) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,box2d,mujoco,fast,film,tensorboard,onnx,ray,tune]' flax seaborn six
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gymnax
	@touch $@

$(SITE): $(READY)
	@echo "Installing what the documentation needs (once; some seconds) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@
