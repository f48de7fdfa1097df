# make serve   set everything up and start the service on http://127.0.0.1:8000
# make docs    build the documentation, which the service then has under /docs/
# make test    the same set-up, then every check that CI runs

# Named by hand: make PYTHON=python3.13 ...  By default tools/install.sh looks for one that is new enough.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000
TEST_WORKERS ?= 3

# A third test worker has something to do on two cores while others wait for processes that they started. Threads of
# their own would only wait for each other.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile

.PHONY: serve test setup page docs sbom chromium lint typecheck page-check page-test pytest clean
# Steps are told apart by their order, also under make -j: but for the quick checks of `make test`, which have nothing
# to do with each other. Of these only mypy takes long, and it uses one core.
ifdef SIDE_BY_SIDE
page-check page-test: page
else
.NOTPARALLEL:
endif

serve: setup page
	$(BIN)/fusionscope serve --host $(HOST) --port $(PORT)

# The quick checks first, pytest last: its closing line ends the output.
test: setup
	@$(MAKE) --no-print-directory --jobs=2 SIDE_BY_SIDE=yes typecheck page-check page-test chromium lint
	$(PYTEST)

# Each of these three does nothing where its work is done already; they compare contents, not times.
setup:
	@sh tools/install.sh $(VENV) $(PYTHON)

page: setup
	@$(BIN)/python tools/page.py build

# The documentation in server/documentation, which the service has under /docs/.
docs: setup
	@$(BIN)/python tools/documentation.py

# What a release is made of, as CycloneDX documents in dist/.
sbom: setup
	@$(BIN)/python tools/sbom.py

chromium: setup
	@$(BIN)/python tools/chromium.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: setup
	$(BIN)/mypy

page-check: setup
	$(BIN)/python tools/page.py check

page-test: setup
	$(BIN)/python tools/page.py test

pytest: setup page chromium
	$(PYTEST)

clean:
	rm -rf $(VENV) web/node_modules server/static server/documentation .cache .chromium
