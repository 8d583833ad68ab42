# uevt: conformance of the Linux user_events ABI.  `make help` lists what there is.
# Each target sets the machine up first if need be (.ci/setup: host packages, .venv).

BIN := .venv/bin
KERNEL ?= 6.12
EXAMPLE := 6.1 6.1-byte-status 6.12 7.3
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup conformance matrix test lint format clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo '  (KERNEL=$(KERNEL) names the kernel of conformance; PYTEST_ARGS="-k name" goes to pytest)'

setup: ## install missing host packages, create .venv; does nothing the second time
	@.ci/setup

conformance: setup ## build Linux 6.12, boot it, and say whether it keeps the user_events ABI
	@$(BIN)/uevt run --kernel $(KERNEL)

matrix: setup ## all cases on every default kernel that can be built here; a summary of each in docs/results
	@$(BIN)/uevt kernels build >/dev/null
	@rm -rf results/matrix
	@kernels=$$($(BIN)/uevt kernels list --buildable); \
	$(BIN)/uevt run --tier full --out results/matrix $$(printf -- '--kernel %s ' $$kernels); code=$$?; \
	$(BIN)/python -m conformance.results.summary $$(printf 'results/matrix/%s ' $$kernels) docs/results; \
	exit $$code

test: setup ## harness tests, model self-check and the run on Linux 6.12, in one pytest
	@$(BIN)/pytest -n 2 --dist loadfile $(PYTEST_ARGS)

lint: setup ## ruff (rules and format) and mypy --strict
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy

format: setup ## let ruff fix what it can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean: ## remove results and caches; built kernels stay in the build store
	@rm -rf results build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	@rm -rf .venv .venv.lock

.PHONY: docs
docs: setup ## write docs/abi.md from the switches and docs/cli.md from the parsers
	@$(BIN)/python -m conformance.report.specification.abi_tables
	@$(BIN)/python -m conformance.cli.reference

.PHONY: spec
spec: setup ## the cases as the specification of user_events, on a page to be browsed
	@$(BIN)/python -m conformance.report.specification.page build/specification.html

.PHONY: coverage
coverage: setup ## what the cases execute of user_events, beside upstream's selftests
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.bench.coverage $(KERNEL)

.PHONY: bisect-example
bisect-example: setup ## uevt bisect over a history of 6.12 made for it, as in docs/bisect.md
	@$(BIN)/uevt kernels build 6.12 >/dev/null
	@$(BIN)/python -m tests.bench.bisecting build/bisect-example

.PHONY: bench
bench: setup ## measure what the harness costs; the table is kept in docs/performance.md
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.bench $(KERNEL) --keep

.PHONY: fuzz
fuzz: setup ## feed malformed input to every parser, for some minutes
	@$(BIN)/pytest tests/fuzz --hypothesis-profile=fuzz $(PYTEST_ARGS)

.PHONY: browser
browser: setup ## the tests of pages, in Chromium, which it installs
	@.ci/setup browser
	@$(BIN)/pytest tests/browser $(PYTEST_ARGS)

.PHONY: example
example: setup ## docs/example anew: a report on quick runs of four kernels, and its picture (by Chromium)
	@$(BIN)/uevt kernels build $(EXAMPLE) >/dev/null
	@rm -rf results/example
	@$(BIN)/uevt run --quiet --out results/example $(addprefix --kernel ,$(EXAMPLE))
	@$(BIN)/uevt report results/example --html docs/example/report.html
	@.ci/setup browser
	@$(BIN)/python -m tests.browser.picture docs/example/report.html docs/example/report.png

.PHONY: torture
torture: setup ## three hundred faults in runs on 6.12; the table is kept in docs/reliability.md
	@$(BIN)/uevt kernels build $(KERNEL) >/dev/null
	@$(BIN)/python -m tests.torture --keep
