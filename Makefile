# Two commands: `make demo` and `make test`. Both set up the environment first;
# a second run finds it in place and installs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint types unit slow results install clean

demo: $(STAMP)
	@echo "A graph of 800 nodes in two classes, whose neighbours mostly differ."
	@echo "LON-GNN is not told so. What filter will it learn?"
	@echo
	@rm -rf demo-run
	$(BIN)/longnn train csbm --data phi=-0.6 --output demo-run
	@echo "next:   open the report, then README.md, 'Your own graph'"

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not gpu"

slow: $(STAMP)
	$(BIN)/python -m pytest -q -m "slow and not gpu"

# Tables, figures, pages of results and recipes again, from the committed records.
results: $(STAMP)
	$(BIN)/python -m longnn.studies results docs/results longnn/recipes

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'longnn needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip setuptools torch
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache
