PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
FAST = $(addprefix tests/,test_imports.py core store learning models/test_model_config.py training/test_schedule.py)

.PHONY: demo check test test-all linted types compiled mutations torture faults bench lint docs reproduce clean

# Python compiles modules when they are first imported; to compile all 24,000 beforehand takes a minute.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip  # older ones take minutes to resolve
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[test,docs]'
	touch $(STAMP)

# What a minute can show, while you work.
check: linted types
	$(BIN)/pytest -q -m "not whole and not costs" $(FAST)

# All claims; the dearest cases of some are left to test-all.
test: linted
	$(MAKE) --no-print-directory --jobs 2 types compiled
	$(BIN)/pytest -n 2 --dist worksteal -m "not whole"

test-all: linted
	$(MAKE) --no-print-directory --jobs 2 types compiled
	$(BIN)/pytest -n 2 --dist worksteal

linted: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

compiled: $(STAMP)
	$(BIN)/python tests/support/warm_up.py

# Ten of the mistakes in tests/mutations.py, drawn by a seed: does a test notice each?
mutations: $(STAMP)
	$(BIN)/python tests/mutations.py --seed $(or $(SEED),24)

torture: $(STAMP)
	$(BIN)/python tests/torture/run.py --minutes $(or $(MINUTES),60)

# Every fault of every command that writes, some of each in turn: MINUTES=all for all of them, which takes hours.
faults: $(STAMP)
	$(BIN)/python tests/faults/run.py --minutes $(or $(MINUTES),20)

lint: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

bench: $(STAMP)
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# What the demo needs: a third of the time and half of the space that everything takes.
$(VENV)/.train: pyproject.toml constraints.txt
	@echo "Installing what training needs into $(VENV): one to five minutes, most of them for PyTorch"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check --no-compile -c constraints.txt -e '.[train]'
	touch $@

comma := ,

# One command of the demo, and how long it took. A comma in it is $(comma).
define timed
@echo; echo "$$ $(1)"
@cd demo && begun=$$(date +%s) && $(abspath $(BIN))/$(1) && echo "($$(( $$(date +%s) - begun )) s)"
endef

demo: $(if $(wildcard $(STAMP)),,$(VENV)/.train)
	rm -rf demo && mkdir demo
	$(call timed,s2rm-data bballs --balls 1-6)
	$(call timed,s2rm-data sc2 --scenario 3s5z)
	$(call timed,s2rm-data info data.zarr)
	$(call timed,s2rm-data preview data.zarr bballs/test_6)
	$(call timed,s2rm-train data.zarr --steps 1000 --set held_out_sequences=100 --out runs/balls)
	$(call timed,s2rm-train data.zarr --task sc2 --steps 400 --set skip=true --set image_size=[8$(comma)24] --set cell_size=1.125 --set held_out_sequences=20 --out runs/battles)
	$(call timed,s2rm-eval runs/balls bballs-s2gru runs/battles sc2-s2gru --store data.zarr --quick --out report)
	@echo; echo "Open demo/report/report.html: truth beside predictions of your runs, and of the trained weights that"
	@echo "come with the package (bballs-s2gru, sc2-s2gru). demo/previews shows the data."

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Open build/site/index.html; with search and the selector of versions: $(PYTHON) -m http.server -d build/site"

reproduce: $(STAMP)
	$(BIN)/s2rm-reproduce -y

clean:
	rm -rf $(VENV) demo build
