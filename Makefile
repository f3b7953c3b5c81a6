# Statecast: every job of this repository is a target here. CI runs only these.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules

PYTHON ?= python3.11
VENV := .venv
BIN := $(abspath $(VENV))/bin
MVN := mvn -q -B -ntp
SERVICES := cdc-simulator stream-processor query-service ws-edge
SOURCES := $(wildcard libs/*/src) $(wildcard services/*/src) clients/python/src tools/onboarding/src tools/jobs/src testkit/src infra/kafka/kafka_topics infra/kong/kong_envoy infra/local/local_stack
# The slowest come first: a worker that has finished its own tests takes over others from the end.
SLOW_TESTS := services/stream-processor/tests infra/local/tests
TESTS := $(SLOW_TESTS) $(filter-out $(SLOW_TESTS),$(wildcard services/*/tests)) $(wildcard libs/*/tests) clients/python/tests clients/tests tools/onboarding/tests tools/jobs/tests infra/kafka/tests infra/kong/tests infra/observability/tests tests/contract tests/pages tests/release bench/tests testkit/tests
WORKERS ?= 2
FUZZ := tests/fuzz
MINUTES ?= 60
GHZ_VERSION := v0.120.0
HELM_VERSION := v3.19.0
# Without Go, the tests of the charts are skipped and report it.
HELM := $(if $(shell command -v go),$(BIN)/helm)
CHARTS := $(SERVICES:%=services/%/chart) tools/jobs/chart infra/charts/statecast
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
JAVA_DONE := services/stream-processor/jvm/target/.done infra/local/kafka/target/.done infra/local/connect/target/.done infra/local/connect-mariadb/target/.done infra/local/postgres/target/.done clients/kotlin/target/.done
CLASS_ARCHIVE := services/stream-processor/jvm/target/jars/classes.jsa
# Their queries load the classes of every pipeline shape.
ARCHIVED := orders/orders-by-customer positions/us-share-holders invoices/stores-with-sales
LAST_CONTRACT := $(lastword $(shell printf '%s\n' $(wildcard releases/statecast-contract/*/contract.binpb) | sort -V))
POSTGRES_ARCHITECTURE := $(if $(filter aarch64 arm64,$(shell uname -m)),arm64v8,amd64)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  \033[1m%-18s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

## Installation

.PHONY: install
install: $(VENV)/.contract $(VENV)/.services $(JAVA_DONE) $(CLASS_ARCHIVE) ## Install everything into .venv and fetch the jars

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.contract: $(VENV)/bin/python constraints.txt $(shell find proto -name '*.proto') $(wildcard proto/rules/*.py) proto/pyproject.toml proto/generate.py proto/build_backend.py
	$(BIN)/pip install -q -c constraints.txt --force-reinstall --no-deps ./proto
	touch $@

$(VENV)/.services: $(VENV)/.contract constraints.txt requirements-dev.txt libs/service/pyproject.toml libs/domains/pyproject.toml testkit/pyproject.toml infra/pyproject.toml clients/python/pyproject.toml tools/onboarding/pyproject.toml tools/jobs/pyproject.toml $(SERVICES:%=services/%/pyproject.toml)
	$(BIN)/pip install -q -c constraints.txt -r requirements-dev.txt -e libs/service -e libs/domains -e testkit -e infra -e clients/python -e tools/onboarding -e tools/jobs $(SERVICES:%=-e services/%)
	touch $@

services/stream-processor/jvm/target/.done: services/stream-processor/jvm/pom.xml $(shell find services/stream-processor/jvm/src -name '*.java' 2>/dev/null)
	rm -rf $(@D)
	$(MVN) -f services/stream-processor/jvm/pom.xml package -DskipTests
	touch $@

clients/kotlin/target/.done: clients/kotlin/pom.xml $(shell find clients/kotlin/src -name '*.kt')
	rm -rf $(@D)
	$(MVN) -f $< package -DskipTests
	touch $@

# The archive is valid only for this Java and these jars in this place; see run/class_archive.py.
$(CLASS_ARCHIVE): services/stream-processor/jvm/target/.done $(VENV)/.services
	$(BIN)/stream-processor archive-classes $(ARCHIVED:%=domains/%.yaml)

# Jars that another version of a pom has fetched must not stay beside those of this one.
infra/local/%/target/.done: infra/local/%/pom.xml
	rm -rf $(@D)
	$(MVN) -f $< package
	touch $@

infra/local/postgres/target/.done: infra/local/postgres/pom.xml
	rm -rf $(@D)
	$(MVN) -f $< package -Dpostgres.architecture=$(POSTGRES_ARCHITECTURE)
	$(PYTHON) -m tarfile -e infra/local/postgres/target/archive/*.txz infra/local/postgres/target/postgres
	touch $@

.PHONY: clean
clean: ## Remove all build results, and all files of runs
	git clean -fdXq

## The local stack

ifdef SOURCE
export LOCAL_STACK_SOURCE := $(SOURCE)
endif
ifdef DOMAIN
export LOCAL_STACK_DOMAIN := $(DOMAIN)
endif

.PHONY: demo
demo: install ## Show live rows behind the gateway; DOMAIN=odds shows another domain, SOURCE=postgres reads PostgreSQL by Debezium
	$(BIN)/local-stack demo

.PHONY: up
up: install ## Start the local stack in the background; takes DOMAIN and SOURCE like the demo, and DOMAIN=all
	$(BIN)/local-stack up

.PHONY: down
down: ## Stop the local stack and all its processes
	$(BIN)/local-stack down

.PHONY: status
status: ## Show the running processes, their addresses and whether they are ready
	$(BIN)/local-stack status

## Checks

.PHONY: test
test: lint types contract unit conformance-short e2e e2e-containers ## Run every check that CI has time for: lint, types, contract, unit and end-to-end tests

.PHONY: lint
lint: install ## Check Python style and format, import rules and Dockerfiles
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache # a cache would keep an older contract
	$(BIN)/hadolint services/*/Dockerfile infra/*/Dockerfile tools/jobs/Dockerfile

.PHONY: types
types: install clients/javascript/node_modules/.package-lock.json ## Check the types of every package and its tests, and of the callers of the JavaScript client
	$(BIN)/mypy clients/javascript/make_types.py services/stream-processor/wheel_with_jars.py proto/generate.py proto/build_backend.py proto/rules/*.py conftest.py bench $(SOURCES)
	for tests in $(TESTS) $(FUZZ) tests/conformance tests/e2e tests/upgrade tests/containers tests/kubernetes; do
	    (cd $$tests && $(BIN)/mypy --config-file $(CURDIR)/pyproject.toml .)
	done
	npm --prefix clients/javascript run types

clients/javascript/node_modules/.package-lock.json: clients/javascript/package-lock.json
	npm --prefix clients/javascript ci --silent

.PHONY: contract
contract: install ## Lint the contract, and check that it stays compatible with its guard and its last recorded release
	cd proto
	$(BIN)/buf lint
	for guard in released.binpb $(LAST_CONTRACT:%=../%); do
	    $(BIN)/buf breaking --against "$$guard"
	done

.PHONY: broken-forms
broken-forms: install ## Break each stored or exchanged form (docs/compatibility.md), and show the test that fails
	$(BIN)/pytest -v tests/contract/test_released_contract.py tests/contract/test_broken_forms.py

.PHONY: fast
fast: $(VENV)/.services ## Run all tests that need no Spark, Kafka or Maven, in a minute or two
	node --test clients/javascript/tests/*.test.js
	$(PYTEST) -q -m "not kafka and not spark and not stack and not long" $(TESTS)

.PHONY: unit
unit: install $(HELM) ## Run unit tests, tests of single services on a real broker and Spark session, and a short fuzz
	$(MVN) -f services/stream-processor/jvm/pom.xml test
	$(MVN) -f clients/kotlin/pom.xml surefire:test
	node --test clients/javascript/tests/*.test.js
	$(PYTEST) -m "not long" $(TESTS) $(FUZZ)

.PHONY: fuzz
fuzz: install ## Fuzz every input of the services for MINUTES=60, beginning with SEED, until the first defect
	seed=$${SEED:-$$(date +%s)}
	end=$$((SECONDS + 60 * $(MINUTES)))
	while ((SECONDS < end)); do
	    echo "SEED=$$seed"
	    FUZZ_PROFILE=long $(PYTEST) -q --hypothesis-seed=$$seed $(FUZZ)
	    seed=$$((seed + 1))
	done

.PHONY: conformance-short
conformance-short: install ## Test the cases of docs/sources.md that take seconds, and 200 random histories of tables
	$(BIN)/pytest -m "not long" tests/conformance

.PHONY: conformance
conformance: install ## Test every case of docs/sources.md, and HISTORIES=10000 random histories of tables from SEED
	HISTORIES=$${HISTORIES:-10000} $(BIN)/pytest tests/conformance

.PHONY: e2e
e2e: install $(HELM) ## Run end-to-end tests through the gateway, on the real stack
	$(BIN)/pytest -m "not long" tests/e2e

.PHONY: long
long: install ## Run the unit and end-to-end tests that take minutes each, for which CI has no time
	$(BIN)/pytest -m long $(TESTS)
	THREE_BROKERS_VICTIMS=3 $(BIN)/pytest -m long tests/e2e

.PHONY: e2e-brokers
e2e-brokers: install ## Kill and freeze each of three brokers under steady load (end-to-end)
	THREE_BROKERS_VICTIMS=3 $(BIN)/pytest tests/e2e/test_three_brokers.py

.PHONY: e2e-upgrade
e2e-upgrade: install ## Upgrade and downgrade one process at a time between each part's last release and HEAD, under load (end-to-end)
	$(BIN)/pytest tests/upgrade

.PHONY: e2e-domains
e2e-domains: install $(HELM) ## Kill each service under every domain but the orders, and compare all rows with the models (end-to-end)
	$(BIN)/pytest tests/e2e/domains

.PHONY: e2e-adoption
e2e-adoption: install ## Adopt foreign tables on a Kafka with rights to a prefix, by the documented commands alone (end-to-end)
	$(BIN)/pytest -s tests/e2e/test_adoption.py

.PHONY: images
images: $(VENV)/.services ## Build every image with Docker or Podman (CONTAINER_ENGINE), and print their sizes
	$(BIN)/python -m testkit.containers.images

$(BIN)/helm: | $(VENV)/bin/python
	GOBIN=$(BIN) go install -ldflags "-s -w" helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

.PHONY: charts
charts: $(VENV)/.services $(BIN)/helm ## Check the Helm charts, and pack each with its dependencies into dist/charts/
	$(BIN)/pytest tests/contract/test_chart*.py
	for chart in $(CHARTS); do
	    $(BIN)/helm package "$$chart" --destination dist/charts 2> >(grep -v "symbolic link" >&2)
	done

.PHONY: e2e-containers
e2e-containers: install ## Test compose.yaml's stack in containers; skipped without a container engine or base images (end-to-end)
	$(BIN)/pytest tests/containers

.PHONY: e2e-kubernetes
e2e-kubernetes: install $(BIN)/helm ## Test the charts on the cluster of KUBECONFIG, or as root on an own node; otherwise skipped (end-to-end)
	$(BIN)/pytest tests/kubernetes

.PHONY: random-kills
random-kills: install ## Kill every process but the simulator at random, two minutes for each of SEEDS="1 2 … 20" (end-to-end)
	RANDOM_KILLS_SEEDS="$${SEEDS:-$$(seq -s ' ' 20)}" $(BIN)/pytest -x tests/e2e/test_random_kills.py

.PHONY: format
format: install ## Fix and format the Python files
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

.PHONY: reference
reference: install ## Rewrite the files generated from code and domains/: tables, schemas, topics, stores
	$(BIN)/stream-processor schema > domains/pipeline.schema.json
	$(BIN)/query-service schema > services/query-service/src/query_service/stores.schema.json
	$(BIN)/python -m statecast_domains domains --domain-schema domains/domain.schema.json --topics infra/kafka/topics.yaml \
	    --stores services/query-service/src/query_service/stores.yaml
	$(BIN)/python -m testkit.reference services/*/README.md domains/README.md
	$(BIN)/python clients/javascript/make_types.py
	PYTHONPATH=tests/conformance $(BIN)/python -m kit.page docs/sources.md
	$(BIN)/python -m testkit.constraints constraints.txt services/* tools/jobs
	$(BIN)/python -m testkit.chart_schemas $(CHARTS)

## Releases and measurements

.PHONY: release-contract
release-contract: install ## Make the current contract the guard that later changes must stay compatible with
	cd proto && $(BIN)/buf build --exclude-source-info -o released.binpb

.PHONY: release
release: install ## Release the part in the folder PART=libs/service as VERSION=0.2.0: commits, tag, wheel, record in releases/
	cd $(PART)
	$(BIN)/python -m testkit.release $(VERSION)

.PHONY: bench
bench: install ## Measure the whole stack; all measurements write bench/results/
	PYTHONPATH=tests/e2e $(BIN)/python -m bench

.PHONY: bench-processor
bench-processor: install ## Measure the stream-processor alone, in both modes
	$(BIN)/python -m bench.processor

.PHONY: bench-query
bench-query: install ## Measure the query-service alone, with 1,000,000 keys
	$(BIN)/python -m bench.query

bench/peer/target/.done: bench/peer/pom.xml $(shell find bench/peer/src -type f) $(shell find proto -name '*.proto')
	$(MVN) -f bench/peer/pom.xml package
	touch $@

$(BIN)/ghz: | $(VENV)/bin/python
	GOBIN=$(BIN) go install github.com/bojand/ghz/cmd/ghz@$(GHZ_VERSION)

.PHONY: bench-peer
bench-peer: install bench/peer/target/.done $(BIN)/ghz ## Measure Kafka Streams behind gRPC and the query-service in turn
	$(BIN)/python -m bench.peer

.PHONY: soak
soak: install ## Check that the memory of edge and query-service stays flat while clients come and go, for SOAK_MINUTES=30
	$(BIN)/python -m bench.soak

.PHONY: bench-scale
bench-scale: install ## Measure a query-service cluster as its rows, partitions, instances and stores grow
	$(BIN)/python -m bench.scale
	$(BIN)/python -m bench.scale_page

.PHONY: sizing-page
sizing-page: install ## Write docs/sizing.md and its plots from the results of bench-scale
	$(BIN)/python -m bench.scale_page

.PHONY: bench-edge
bench-edge: install ## Measure one ws-edge with 5,000 sockets
	$(BIN)/python -m bench.edge

.PHONY: bench-postgres
bench-postgres: install ## Measure the freshness at clients with PostgreSQL and Debezium as the source
	PYTHONPATH=tests/e2e $(BIN)/python -m bench.postgres
