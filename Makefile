# make serve   set everything up and start the service on http://127.0.0.1:8000
# make test    the same set-up, then every check that CI runs

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000

# Two test workers share the cores of a small machine; threads of their own would only wait for each other.
TEST_ENVIRONMENT := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
TEST_WORKERS ?= 2

.PHONY: serve test setup page lint typecheck page-check page-test pytest clean

serve: setup page
	$(BIN)/fusionscope serve --host $(HOST) --port $(PORT)

test: setup page lint typecheck page-check page-test pytest

setup: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml tools/install.sh
	@sh tools/install.sh "$(PYTHON)" "$(VENV)"
	@touch $@

page: setup
	@$(BIN)/python tools/page.py build

lint: setup
	$(BIN)/ruff check .

typecheck: setup
	$(BIN)/mypy

page-check: setup
	$(BIN)/python tools/page.py check

page-test: setup
	$(BIN)/python tools/page.py test

pytest: setup page
	$(TEST_ENVIRONMENT) $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile

clean:
	rm -rf $(VENV) web/node_modules server/static .chromium
