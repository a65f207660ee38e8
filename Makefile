# Two commands: `make demo` and `make test`. Both set up the environment first; a second run finds
# it in place and installs nothing. The demo installs what users need, the tests the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
PIP_INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types unit docs slow wheel results install clean

demo: $(BASE)
	@echo "A graph of 800 nodes in two classes, whose neighbours mostly differ."
	@echo "LON-GNN is not told so. What filter will it learn?"
	@echo
	@rm -rf demo-run
	$(BIN)/longnn train csbm --data phi=-0.6 --output demo-run
	@echo "next:   open the report, then README.md, 'From two files'"

# The tests take both cores. Then the wheel, which mostly waits for files, is made beside the check
# of types and the site.
test: lint unit
	$(MAKE) --jobs=2 --output-sync wheel types docs

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

unit: $(DEV)
	$(PYTEST) -n 2 --dist worksteal -m "not slow and not gpu and not wheel"

slow: $(DEV)
	$(BIN)/python -m pytest -q -m "slow and not gpu and not wheel"

# The site, in build/docs: every notebook runs, and a warning is an error; about two minutes.
docs: $(DEV)
	$(BIN)/python -m sphinx -b html -j 2 -q -W --keep-going docs build/docs
	@echo "site: build/docs/index.html"

# Build the wheel, install it in a new environment and use it there; two to four minutes.
wheel: $(DEV)
	$(PYTEST) -m wheel tests/test_wheel.py

# Tables, figures, pages of results, recipes and portfolios again, from the committed records.
results: $(DEV)
	$(BIN)/python -m lab results

install: $(DEV)

$(BASE): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'longnn needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) pip setuptools torch
	PYTHONWARNINGS=ignore $(PIP_INSTALL) --no-build-isolation --editable .
	touch $@

$(DEV): $(BASE)
	PYTHONWARNINGS=ignore $(PIP_INSTALL) --no-build-isolation --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist docs/api/*.rst *.egg-info .pytest_cache .mypy_cache .ruff_cache
