PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.PHONY: demo test types compiled torture bench lint docs reproduce clean

# Python compiles modules when they are first imported; to compile all 24,000 beforehand takes a minute.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade pip  # older ones take minutes to resolve
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[test,docs]'
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory --jobs 2 types compiled
	$(BIN)/pytest -n 2 --dist worksteal

types: $(STAMP)
	$(BIN)/mypy

compiled: $(STAMP)
	$(BIN)/python tests/warm_up.py

torture: $(STAMP)
	$(BIN)/python tests/torture/run.py --minutes $(or $(MINUTES),60)

lint: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/mypy

bench: $(STAMP)
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

# Trained weights that stand beside the smoke run in the reports, where they are there.
trained = $(addprefix --run ../,$(wildcard pretrained/$(1)-s2gru))

demo: $(STAMP)
	rm -rf demo && mkdir demo
	cd demo && ../$(BIN)/s2rm-data bballs --balls 1-6 --train 400 --val 40 --test 20
	cd demo && ../$(BIN)/s2rm-data sc2 --scenario 3s5z --train 40 --val 10 --radial 8 --angular 24
	cd demo && ../$(BIN)/s2rm-data info data.zarr
	cd demo && ../$(BIN)/s2rm-data verify data.zarr
	cd demo && ../$(BIN)/s2rm-data preview data.zarr bballs/test_6
	cd demo && ../$(BIN)/s2rm-data preview data.zarr sc2/3s5z/train
	cd demo && ../$(BIN)/s2rm-train --store data.zarr --task bballs --preset smoke --out runs/smoke-balls
	cd demo && ../$(BIN)/s2rm-train --store data.zarr --task sc2 --preset smoke --out runs/smoke-battles
	cd demo && ../$(BIN)/s2rm-eval --run runs/smoke-balls $(call trained,bballs) --store data.zarr --quick --out report-balls
	cd demo && ../$(BIN)/s2rm-eval --run runs/smoke-battles $(call trained,sc2) --store data.zarr --quick --out report-battles
	@echo "Look at demo/previews, demo/report-balls/report.html and demo/report-battles/report.html"
	@echo "(the smoke run shows that everything works, the run from pretrained/ what a model learns)"

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "Open build/site/index.html; with search and the selector of versions: $(PYTHON) -m http.server -d build/site"

reproduce: $(STAMP)
	$(BIN)/s2rm-reproduce -y

clean:
	rm -rf $(VENV) demo build
