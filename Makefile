# uevt: conformance of the Linux user_events ABI.  `make help` lists the targets.
# Each target first sets up the machine if necessary (.ci/setup: host packages, .venv).

BIN := .venv/bin
KERNEL ?= 6.12
EXAMPLE := 6.1 6.1-byte-status 6.12 7.3
EXAMPLE_RUN := --tier quick -k 'enable.fork or unregister.c or format.array or dated.a or dated.e or dated.s'
PYTEST_ARGS ?=
# Many processes are started, and each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup conformance matrix test lint format clean distclean docs spec coverage \
	install-tests tarball fixes agreement mutation adequacy bisect-example bench fuzz browser example \
	torture

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  (KERNEL=$(KERNEL) selects the kernel; PYTEST_ARGS="-k name" is passed to pytest)'

setup: ## install host packages, and uevt with its development tools into .venv; once
	@.ci/setup dev

conformance: ## build Linux 6.12, boot it, and judge its user_events ABI
	@.ci/setup
	@$(BIN)/uevt run --kernel $(KERNEL)

matrix: setup ## run all cases on every default kernel; refresh docs/results
	@$(BIN)/uevt kernels build >/dev/null
	@rm -rf results/matrix
	@kernels=$$($(BIN)/uevt kernels list --buildable) || exit; \
	$(BIN)/uevt run --tier full --out results/matrix $$(printf -- '--kernel %s ' $$kernels); code=$$?; \
	$(BIN)/python -m conformance.results.summary $$(printf 'results/matrix/%s ' $$kernels) docs/results; \
	exit $$code

test: setup ## test the harness, check the model against itself, and judge Linux 6.12
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

DESTDIR ?= build/install

install-tests: setup ## install the suite as a kselftest collection to DESTDIR, to run it in a booted system
	@$(BIN)/python -m conformance.cli.install $(DESTDIR)

tarball: setup ## pack the same to build/uevt-VERSION.tar.xz
	@$(BIN)/python -m conformance.cli.install --tarball build

lint: setup ## ruff (rules and format) and mypy --strict
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: setup ## apply ruff's fixes and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean: ## remove results and caches; built kernels stay in the build store
	@rm -rf results build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	@rm -rf .venv .venv.lock

docs: setup ## generate docs/abi.md, cases.md, cli.md, *.schema.json and docs/example
	@$(BIN)/python -m conformance.report.specification.abi_tables
	@$(BIN)/python -m conformance.report.specification.level_table
	@$(BIN)/python -m conformance.cli.reference
	@$(BIN)/python -m conformance.results.schema
	@$(BIN)/python -m conformance.report.example

spec: setup ## write the sentences of all cases to build/specification.html
	@$(BIN)/python -m conformance.report.specification.page build/specification.html

coverage: setup ## lines of user_events that the cases execute, compared with upstream's selftests
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.bench.coverage $(KERNEL)

fixes: setup ## judge Linux 6.12 with all patches of fixtures/fixes; FIXES='ID…' for one kernel each
	@$(BIN)/python -m tests.bench.fixes $(FIXES)

agreement: setup ## compare each case with its program (uevt repro) on KERNEL; OPTIONS='-k EXPR --fixed'
	@$(BIN)/python -m tests.bench.agreement --kernel $(KERNEL) $(OPTIONS)

mutation: setup ## judge 1,370 machine-made wrong kernels by the cases; OPTIONS='--sample 100'
	@$(BIN)/uevt kernels build 6.12 >/dev/null
	@$(BIN)/python -m tests.bench.mutation --out build/mutation $(OPTIONS)

adequacy: setup ## test each rule of the model against recorded kernels; OPTIONS='--recorded --only TEXT'
	@$(BIN)/uevt kernels build 6.12 6.1 7.3 6.1-byte-status 6.1-bpf-iter 6.1-two-pages >/dev/null
	@$(BIN)/python -m tests.bench.adequacy $(OPTIONS)

bisect-example: setup ## create the history of docs/bisect.md and bisect it
	@$(BIN)/uevt kernels build 6.12 >/dev/null
	@$(BIN)/python -m tests.bench.bisecting build/bisect-example

bench: setup ## measure the cost of the harness; refresh docs/performance.md
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.bench $(KERNEL) --keep

fuzz: setup ## feed malformed input to every parser, for a quarter of an hour
	@$(BIN)/pytest tests/fuzz --hypothesis-profile=fuzz $(PYTEST_ARGS)

browser: setup ## test the HTML pages in Chromium, which it installs
	@.ci/setup browser
	@$(BIN)/pytest tests/browser $(PYTEST_ARGS)

example: setup ## run the kernels of docs/example again, and take its picture
	@$(BIN)/uevt kernels build $(EXAMPLE) >/dev/null
	@rm -rf results/example
	@$(BIN)/uevt run --quiet --out results/example $(addprefix --kernel ,$(EXAMPLE)) $(EXAMPLE_RUN)
	-@$(BIN)/uevt run --quiet --out results/example/seeded --kernel 6.12 --fail-on behaviour \
		--patch fixtures/mutants/fork_copies_one.patch $(EXAMPLE_RUN)
	@$(BIN)/python -m conformance.report.example results/example/*
	@.ci/setup browser
	@$(BIN)/python -m tests.browser.picture docs/example/report.html docs/example/report.png

torture: setup ## inject three hundred faults; refresh the table in docs/reliability.md
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.torture --keep
