# make run, make test, make lint and make docs set up all they need, given Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
READY := $(VENV)/.ready
ALL := $(VENV)/.all
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: run test test-all lint format docs signatures bench clean

run: $(READY)  ## Train all methods on the Guarded Maze at a quick scale: table, pictures, page.
	@$(BIN)/steadyrl reproduce maze --quick --open

test: $(ALL)  ## The tests, on two processes, without the long ones.
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q -m "not slow"

test-all: $(ALL)  ## All tests, with real learning, killed processes and a Ray cluster.
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(ALL)  ## Lint, format check and types.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: $(ALL)  ## Fix what the linter can fix.
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

docs: $(ALL)  ## The documentation site, in docs/_build/html; a warning or a broken link is an error.
	@$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Site: docs/_build/html/index.html"

signatures: $(ALL)  ## Rewrite the typed keyword arguments of the agents after a change of settings.
	@$(BIN)/python -m steadyrl.agents.make_signatures

bench: $(ALL)  ## Measure speed, ours and that of others, in 15 minutes: a table, and docs/benchmarks.md.
	@$(BIN)/python -m benchmarks.speed.all

clean:  ## Remove the virtual environment, the site and what runs wrote.
	rm -rf $(VENV) results runs docs/_build

# An environment with everything is also ready to run: one installation, not two.
$(READY): pyproject.toml constraints.txt | $(MADE)
	@echo "Installing steadyrl in $(VENV) (once; a minute or two) ..."
	@$(INSTALL) -e .
	@touch $@

$(ALL): pyproject.toml constraints.txt | $(MADE)
	@echo "Installing steadyrl and what development needs in $(VENV) (once; a minute or two) ..."
	@$(INSTALL) -e '.[dev,docs,box2d,mujoco,fast,film,tensorboard,onnx,ray,tune]' flax seaborn six
	@$(INSTALL) --no-deps gymnax
	@touch $(READY) $@

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "steadyrl needs Python 3.11 or later; try: make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@touch $@
