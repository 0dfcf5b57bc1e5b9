# gatecert needs Python >= 3.10 and make, nothing else: each target sets itself up in .venv.
PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
OUT    ?= gatecert-out
BIN    := $(VENV)/bin
CODE   := gatecert mutants operators oracle reports
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: certify controls test lint docs clean
.DEFAULT_GOAL := certify

certify: $(VENV)/.installed  ## plant bugs in the built-in corpus and grade two gates with them
	$(BIN)/gatecert certify --jobs $(JOBS) --out $(OUT)

controls: $(VENV)/.installed  ## originals under 25 seeds, rewrites under 5, all dtypes: none may be rejected
	$(BIN)/gatecert controls --seeds 25 --rewrite-seeds 5 --jobs $(JOBS) --out $(OUT)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy --strict -p gatecert

test: lint
	@$(BIN)/python -m compileall -q $(CODE)  # hundreds of short processes import them
	$(BIN)/pytest -n $(JOBS) --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

docs: $(VENV)/.installed  ## write what is generated under docs/ and in the README
	$(BIN)/gatecert operators --markdown > docs/operators.md
	$(BIN)/gatecert init --schema > docs/gatecert.schema.json
	$(BIN)/python benchmarks/readme_block.py

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "gatecert needs Python 3.10 or newer; set PYTHON=/path/to/one"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

# The extra [liger] is installed too: its kernels are one of the subjects that tests plant in.
$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) -e '.[test,liger]'
	@touch $@
