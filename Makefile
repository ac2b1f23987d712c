# Each target sets up its own environment in .venv from Python 3.11 or later, from wheels alone: no
# compiler is needed. Another interpreter: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
DATA ?= ../shared

.PHONY: help demo test bench lint clean

help:
	@echo "make demo   search the camera space for its three teams; prints them side by side, plot in demo/"
	@echo "make test   run the tests"
	@echo "make lint   ruff and mypy"
	@echo "make bench  the benchmarks of tests/bench, beside other libraries; figures in bench/"
	@echo "make clean  remove the environment and everything that was made"

demo: $(READY)
	$(BIN)/dse compare camera --out demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The reference problems and tuning spaces of the benchmarks are no part of the product: make bench DATA=/path/to/them.
# Without them, what the benchmarks generate themselves is measured. BENCH_ARGS: --quick, --strict, names of benchmarks.
bench: $(READY) $(PEERS)
	$(BIN)/python -m tests.bench.run --json bench $(if $(wildcard $(DATA)),--data $(DATA)) $(BENCH_ARGS)

clean:
	rm -rf $(VENV) build dist demo bench dse_engine.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, in two stamped steps: the locked packages, then this project in editable mode.
$(LOCKED): requirements.lock
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
		echo "'$(PYTHON)' was not found. dse needs Python 3.11 or later: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "dse needs Python 3.11 or later; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1)." >&2; \
		echo "Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements.lock
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# What the benchmarks compare with; neither the product nor its tests need it.
$(PEERS): $(LOCKED) tests/bench/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r tests/bench/requirements.txt
	@touch $@
