# CuteSmith needs Python 3.11 or newer and pip; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTENSION := vscode-extension
DEMO := examples/new_gelu.py

.DEFAULT_GOAL := help
.PHONY: help demo test lint typecheck check extension e2e-vscode test-vscode corpus honest sizes fuzz-editor test-gpu bench-gpu constraints clean distclean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## Make a CuTe kernel for examples/new_gelu.py, proved on the emulated device without a GPU
	@$(BIN)/cutesmith optimize $(DEMO)

test: $(VENV)/installed-dev ## Run every test that needs no GPU (the extension's too where npm is present)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory extension; \
	elif [ -n "$$CI" ]; then echo "make test: CI must have npm, for the extension's tests" >&2; exit 1; \
	else echo "make test: no npm here, so the extension's tests are left out"; fi
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/installed-dev ## Check style and the layers between the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

typecheck: $(VENV)/installed-dev ## Check types with pyright
	$(BIN)/pyright

check: lint typecheck test ## Everything a change must pass

extension: $(EXTENSION)/node_modules/.package-lock.json ## Type-check, test and package the VS Code extension
	cd $(EXTENSION) && npm run check && npm test && npm run package

e2e-vscode: $(VENV)/installed-dev extension ## Drive the packaged extension in a real VS Code in a browser (needs chromium)
	cd $(EXTENSION) && npm run e2e

test-vscode: $(VENV)/installed-dev extension ## All of that: keyboard only, reports with axe, themes, models, failures (a quarter of an hour; docs/editors.md)
	cd $(EXTENSION) && npm run e2e -- all

fuzz-editor: $(VENV)/installed-dev ## Random editor sessions against the real server (FUZZ_STEPS=2000 FUZZ_SEED=0)
	$(BIN)/python -m pytest -q -s tests/e2e/stateful_sessions.py

honest: $(VENV)/installed-dev ## Put every honest kernel through cutesmith check (a quarter of an hour)
	CUTESMITH_HONEST=all $(BIN)/python -m pytest tests/evaluator/test_guards_check.py -k honest

sizes: $(VENV)/installed-dev ## Validate every family of recipes over all its shapes on the emulated device (hours; goes on where it was)
	$(BIN)/python benchmarks/sizes.py build/sizes-emulated.jsonl --device emulated

test-gpu: $(VENV)/installed-dev ## Run the tests that need a CUDA device
	$(BIN)/python -m pytest -m gpu tests/gpu

corpus: $(VENV)/installed-dev ## Hold the emulated device against every kernel that an H200 has recorded
	$(BIN)/python tests/emulator/corpus/compare.py

bench-gpu: $(VENV)/installed-dev ## Measure the benchmarks on this CUDA device and rewrite docs/performance.md
	$(BIN)/python benchmarks/memory_bound.py
	$(BIN)/python benchmarks/call_overhead.py
	$(BIN)/python benchmarks/timing_verdicts.py
	$(BIN)/python benchmarks/report.py

constraints: $(VENV)/installed-dev ## Pin what is installed in .venv
	@{ head -n 1 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable | sed 's/+[a-z0-9]*$$//'; } > constraints.new
	@mv constraints.new constraints.txt

clean: ## Remove build output and caches
	rm -rf build dist $(EXTENSION)/dist $(EXTENSION)/*.vsix .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean ## Remove .venv and node_modules too
	rm -rf $(VENV) $(EXTENSION)/node_modules

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "CuteSmith needs Python 3.11 or newer, and $(PYTHON) is not. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@$(BIN)/python -m compileall -q server agent evaluator  # processes that judge write no bytecode of their own
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt --group dev
	@touch $@

$(EXTENSION)/node_modules/.package-lock.json: $(EXTENSION)/package-lock.json
	cd $(EXTENSION) && npm ci --no-audit --no-fund
	@touch $@
