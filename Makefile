# Needs Python 3.11 or newer and GNU make 3.81 or newer; everything else is installed into .venv.

VENV   := .venv
PY     := $(VENV)/bin/python
TOOLS  := .venv-lock
READERS := .venv-readers
AIRFLOW := .venv-airflow
CONFIG ?=
ARGS   ?=

export DAGSTER_DISABLE_TELEMETRY := yes
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The .ready file holds the folder it was made in. An environment that was moved, or that has lost its
# Python, counts as not built.
$(shell test -x $(PY) && test "$$(cat $(VENV)/.ready 2>/dev/null)" = '$(CURDIR)' || rm -f $(VENV)/.ready)

# Every candidate is tried, not only looked up: version managers leave names on the PATH that do not run.
FIND_PYTHON = for found in $(PYTHON) python3.13 python3.12 python3.11 python3 python; do \
	"$$found" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	found=; \
	done; \
	if [ -z "$$found" ]; then \
	echo 'Python 3.11 or newer, with its venv module, was not found on the PATH.' >&2; \
	echo 'Install it (Debian and Ubuntu: the packages python3 and python3-venv), or name one:' >&2; \
	echo '  make PYTHON=/path/to/python3.12 ...' >&2; \
	exit 1; \
	fi

.DEFAULT_GOAL := help
.PHONY: help audit test test-all check dev docs bench crashes lock readers airflow airflow-demo audit-deps sbom clean clean-data

help: ## Show this list
	@echo 'make TARGET'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

audit: $(VENV)/.ready ## Audit every batch, of demo logs at first; of your own with CONFIG=my/audit.yaml
	@$(PY) -m assets.audit $(if $(CONFIG),--config '$(CONFIG)')

test: $(VENV)/.ready ## Run the tests that are soon done; ARGS='-k name' chooses some
	@$(PY) -m pytest -n auto --dist loadfile -m 'not slow and not harm and not project' \
		--ignore tests/harm --ignore tests/project $(ARGS)

test-all: $(VENV)/.ready ## Run every test on all of its cases: 20 minutes or so
	@$(PY) -m pytest -n auto --dist loadfile --full $(ARGS)

check: $(VENV)/.ready ## Lint, formatting, types and import contracts
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports --no-logo

# A new home is set up by one process alone: the several that `dagster dev` starts would race for it.
dev: export EVENRANK_CONFIG = $(or $(CONFIG),audit.yaml)
dev: $(VENV)/.ready ## Open Dagster on http://127.0.0.1:3000; on your own audit with CONFIG=...
	@DAGSTER_HOME="$$(cd "$$(dirname "$$EVENRANK_CONFIG")" && pwd)/.dagster"; export DAGSTER_HOME; \
	mkdir -p "$$DAGSTER_HOME" && cp dagster.yaml "$$DAGSTER_HOME/dagster.yaml" && \
	{ test -d "$$DAGSTER_HOME/schedules" || $(PY) -m dagster instance migrate >/dev/null; } && \
	$(PY) -W 'ignore:Function `dev_command`' -m dagster dev -h 127.0.0.1 -p 3000

docs: $(VENV)/.ready ## Write the derived parts of docs/ anew
	@$(PY) -m docs.build

bench: $(VENV)/.ready ## Measure the speed here; ARGS='--size small' for a quick look
	@$(PY) benchmarks/bench.py $(ARGS)

crashes: $(VENV)/.ready ## Kill, fail and damage stores, and count what is lost; ARGS='--kills 50'
	@PYTHONPATH=tests/helpers $(PY) tests/harm/crash_record.py $(ARGS)

# Extras stay in the pins: a pip older than 23.3 does not see that gql==4 fulfils gql[requests].
COMPILE = $(TOOLS)/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-strip-extras --custom-compile-command 'make lock' $(ARGS)

lock: $(TOOLS)/.ready ## Bring the locks in line with pyproject.toml; ARGS=--upgrade takes the newest versions
	@$(COMPILE) pyproject.toml --extra dev --output-file requirements.lock
	@$(COMPILE) .ci/tools.in --output-file .ci/tools.lock
	@$(COMPILE) .ci/readers.in --output-file .ci/readers.lock
	@$(COMPILE) .ci/airflow.in --output-file .ci/airflow.lock

readers: $(READERS)/.ready ## Install what reads the published copy, oldest DuckDB included, for its tests

airflow: $(AIRFLOW)/.ready ## Install an Airflow 3 that runs examples/airflow in their tests

airflow-demo: $(VENV)/.ready $(AIRFLOW)/.ready ## Open Airflow on demo logs, in .airflow-demo; ARGS='--port 8081'
	@$(PY) examples/airflow/local.py .airflow-demo $(ARGS)

# Without a package index there is no tool, which the script says; the minus lets it.
audit-deps: $(VENV)/.ready ## Ask whether a locked package has a known vulnerability; ARGS=--strict wants an answer
	-@$(MAKE) --silent --no-print-directory $(TOOLS)/.ready
	@$(PY) .ci/audit_deps.py $(ARGS)

sbom: $(VENV)/.ready $(TOOLS)/.ready ## List what is locked as CycloneDX; ARGS=FILE writes it there
	@$(TOOLS)/bin/python .ci/sbom.py $(ARGS)

clean: ## Remove the environment and all caches; data stays
	@rm -rf $(VENV) $(TOOLS) $(READERS) $(AIRFLOW) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find metrics schemas pipeline assets tests benchmarks examples docs \
		-name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	@echo 'Left in place: store/ and logs/ (make clean-data removes them), .dagster/ (run history).'

clean-data: ## Remove logs/, items.parquet and store/ of this folder: the demo and its results
	@own=$$(find logs items.parquet -type f ! -exec grep -q -e 'evenrank.generated' -e 'rankaudit.generated' {} \; -print 2>/dev/null | head -n 3); \
	if [ -n "$$own" ]; then \
	printf '%s\n' 'Nothing was removed. These files are not of the demo; move them away first:' "$$own" >&2; \
	exit 1; \
	fi
	@rm -rf logs items.parquet store
	@echo 'Removed: logs/, items.parquet, store/.'

# The mark goes first and comes last: an interrupted build is started anew by the next call.
$(VENV)/.ready: requirements.lock pyproject.toml
	@if [ -f $@ ]; then \
	echo 'Bringing $(VENV) up to date with requirements.lock.'; \
	rm -f $@; \
	else \
	$(FIND_PYTHON); \
	echo "Building $(VENV) with $$("$$found" --version): one to five minutes, this once."; \
	"$$found" -m venv --clear $(VENV); \
	fi
	@$(PY) -m pip install --quiet --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .
	@printf '%s' '$(CURDIR)' > $@

$(TOOLS)/.ready: .ci/tools.lock
	@rm -f $@; $(FIND_PYTHON); test -x $(TOOLS)/bin/python || "$$found" -m venv --clear $(TOOLS)
	@$(TOOLS)/bin/python -m pip install --quiet --require-hashes -r .ci/tools.lock
	@touch $@

$(READERS)/.ready: .ci/readers.lock
	@rm -f $@; $(FIND_PYTHON); test -x $(READERS)/bin/python || "$$found" -m venv --clear $(READERS)
	@$(READERS)/bin/python -m pip install --quiet --require-hashes -r .ci/readers.lock
	@touch $@

# The lock is whole, so pip resolves nothing: one older than 23.3 does not see that fastapi[...] fulfils fastapi.
$(AIRFLOW)/.ready: .ci/airflow.lock
	@rm -f $@; $(FIND_PYTHON); test -x $(AIRFLOW)/bin/python || "$$found" -m venv --clear $(AIRFLOW)
	@$(AIRFLOW)/bin/python -m pip install --quiet --no-deps --require-hashes -r .ci/airflow.lock
	@$(AIRFLOW)/bin/python -m pip check
	@touch $@
