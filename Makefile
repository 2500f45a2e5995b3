# Every target does all the set-up that it needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
BIN := .venv/bin
# A Java is looked for, and where possible installed, only by the targets that start one.
WITH_JAVA = JAVA_HOME="$$(scripts/ensure-java)"; export JAVA_HOME;
# A run of the tests starts hundreds of processes: what they compile is kept, also where the environment says otherwise.
COMPILED = env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX="$(CURDIR)/.cache/pyc"

##@ Use
.PHONY: help setup demo demo-streaming
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv from the locked requirements (instant when done)
	@python=$$(scripts/find-python); "$$python" scripts/setup_env.py main

demo: setup ## Run the operator on the flights of 2013, without a cluster
	@$(WITH_JAVA) $(BIN)/python examples/flights/demo.py

demo-streaming: setup setup-kafka setup-connect ## Follow a PostgreSQL through Debezium and Kafka, without a cluster
	@$(WITH_JAVA) $(BIN)/python -m examples.streaming.demo

##@ Develop
.PHONY: test test-one test-full check format mutants bench bench-operator acceptance-clustering mirror interop-env setup-s3a setup-k8s setup-kafka setup-mariadb setup-connect setup-registry setup-flink setup-streamer setup-schedulers setup-vale
test: setup interop-env setup-k8s setup-kafka setup-mariadb setup-connect setup-vale ## Run every test (TESTS="tests/tidy -k name" runs some of them)
	@$(WITH_JAVA) $(COMPILED) $(BIN)/pytest --numprocesses 4 --durations 15 $(TESTS)

test-one: setup ## Run some tests with no other set-up (TESTS="tests/hudi_table/read -k pruning"): what one lacks, it names
	@test -n "$(TESTS)" || { echo 'Say which: make test-one TESTS="tests/hudi_table/read -k pruning"'; exit 2; }
	@$(COMPILED) $(BIN)/pytest $(TESTS)

test-full: setup interop-env setup-k8s setup-kafka setup-mariadb setup-connect setup-registry setup-flink setup-streamer setup-schedulers ## Run the long version in shards of at most 10 minutes; goes on where it stopped
	@$(WITH_JAVA) $(COMPILED) $(BIN)/python -m scripts.test_full $(SHARDS)

check: setup setup-vale ## Lint, format, types, layers, tidiness, prose: all of them, then the verdict
	@failed=; \
	for step in "ruff check ." "ruff format --check ." mypy lint-imports "pytest -q tests/tidy"; do \
		echo "$(BIN)/$$step"; $(BIN)/$$step || failed="$$failed$$step; "; \
	done; \
	if [ -n "$$failed" ]; then echo "Failed: $$failed"; exit 1; fi

format: setup ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Apache Hudi takes part in all races but these.
BENCH_ALONE = $(or $(filter --reads --starts --writers --memory --hour,$(BENCH)),$(if $(findstring --only,$(BENCH)),$(if $(findstring hudi,$(BENCH)),,alone)))
bench: setup $(if $(BENCH_ALONE),,interop-env) $(if $(filter --streams --hour,$(BENCH)),setup-kafka) $(if $(filter --store --writers,$(BENCH)),setup-k8s) $(if $(filter --store,$(BENCH)),setup-s3a) ## Time the write path beside pyarrow, delta-rs and Apache Hudi
	@$(WITH_JAVA) $(BIN)/python -m bench $(BENCH)

bench-operator: setup setup-k8s ## Time the operator beside 2,000 tables and 2,000 services (BENCH="--count 200")
	@$(BIN)/python -m bench.operator_scale $(BENCH)

acceptance-clustering: setup ## Cluster 500 MiB as the project's seed does, beside its table (ACCEPTANCE="--scale 0.1")
	@$(BIN)/python -m tests.acceptance.clustering $(ACCEPTANCE)

mirror: setup interop-env setup-s3a setup-k8s ## Do the same faults to our writer and to Apache Hudi's, docs/results/faults.md (MIRROR="--minutes 60 --engines ours,1.1.1")
	@$(WITH_JAVA) $(BIN)/python -m tests.mirror $(MIRROR)

interop-env: ## Make .venv-hudi: Spark 3.5 and Apache Hudi's jars, for test and bench (instant when done)
	@python=$$(scripts/find-python); "$$python" scripts/setup_env.py hudi

setup-kafka: setup ## Fetch the jars of a Kafka broker, for tests of its source (instant when done)
	@$(WITH_JAVA) $(BIN)/python scripts/setup_env.py kafka

setup-s3a: setup ## Fetch what lets Apache Hudi's Spark write to S3, for the mirror and the bench of stores (instant when done)
	@$(WITH_JAVA) $(BIN)/python scripts/setup_env.py s3a

setup-mariadb: setup ## Fetch a MariaDB server, for tests of ingests from it (instant when done)
	@$(WITH_JAVA) $(BIN)/python scripts/setup_env.py mariadb

setup-connect: setup ## Fetch the jars of Kafka Connect with Debezium, for the demo of streams and tests of live databases (instant when done)
	@$(WITH_JAVA) $(BIN)/python scripts/setup_env.py connect

setup-registry: setup ## Fetch a schema registry with Maven, for the long tests (instant when done)
	@$(BIN)/python scripts/setup_env.py registry

setup-flink: setup ## Fetch Flink 1.17 and Apache Hudi's bundle for it, for the long tests (instant when done)
	@$(WITH_JAVA) $(BIN)/python scripts/setup_env.py flink

setup-streamer: setup ## Make .venv-streamer: Hudi Streamer on Spark 3.4, with Maven, for the long tests (instant when done)
	@$(WITH_JAVA) $(BIN)/python -m scripts.setup_streamer

setup-schedulers: ## Make .venv-schedulers: Airflow and Dagster, for the long tests of their sensors (instant when done)
	@python=$$(scripts/find-python); "$$python" scripts/setup_env.py schedulers

setup-vale: setup ## Build Vale, which reads the pages, with Go and a C compiler (two minutes, once)
	@$(BIN)/python -m scripts.setup_vale >/dev/null

setup-k8s: setup ## Build etcd, the API server, kubectl and Helm with Go, for tests of the control plane (minutes, once)
	@$(BIN)/python scripts/setup_k8s.py >/dev/null

##@ Images and a cluster
.PHONY: image sbom cluster-up cluster-images cluster-down e2e
image: ## Build the images of operator and jobs with docker, podman or buildah (TAG=dev BASE=… TOOL=…)
	@python=$$(scripts/find-python); "$$python" scripts/build_images.py >/dev/null

cluster-up: setup ## Make a cluster: kind where Docker is, else the parts of a node, as root (instant when it runs)
	@$(BIN)/python -m e2e.cluster up

cluster-images: image cluster-up ## Build the images and give them to that cluster
	@$(BIN)/python -m e2e.cluster load localhost/hudi-operator:dev localhost/hudi-spark:dev

cluster-down: setup ## End and remove that cluster
	@$(BIN)/python -m e2e.cluster down

sbom: image ## Write what the images hold as CycloneDX JSON, build/sbom, and hold it against the locks
	@test -x .venv-sbom/bin/python || { python=$$(scripts/find-python); "$$python" -m venv .venv-sbom; }
	@.venv-sbom/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/sbom.txt
	@for name in operator spark; do \
		.venv-sbom/bin/python scripts/sbom.py localhost/hudi-$$name:dev build/sbom/hudi-$$name.cdx.json; \
		.venv-sbom/bin/python scripts/check_sbom.py build/sbom/hudi-$$name.cdx.json requirements/$$name.txt; \
	done

e2e: setup image ## Test from end to end on that cluster, or on that of E2E_KUBECONFIG (E2E="-k tour" runs some)
	@$(WITH_JAVA) $(BIN)/python -m e2e $(E2E)

mutants: setup ## Change the code in random places and tell what the quick tests miss, docs/results/mutants.md (MUTANTS="--count 20")
	@test -x .venv-mutants/bin/python || { python=$$(scripts/find-python); "$$python" -m venv .venv-mutants; }
	@.venv-mutants/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/mutants.txt
	@$(WITH_JAVA) .venv-mutants/bin/python -m scripts.mutants $(MUTANTS)

##@ Publish
.PHONY: dist
dist: setup ## Build what is published, dist/: a source archive and a wheel of each distribution (TAG=v1.2.3 compares the version, REPOSITORY=https://… gives the project's URLs)
	@$(BIN)/python scripts/build_dist.py $(if $(TAG),--tag "$(TAG)") $(if $(REPOSITORY),--repository "$(REPOSITORY)")

##@ Keep
.PHONY: manifests options reference pictures docs lock clean
manifests: setup setup-k8s ## Write what follows from the models and the charts: crds, the definitions' chart, config
	@$(BIN)/python -m hudi_operator.api.crd crds && $(BIN)/python -m scripts.render_manifests

options: setup ## Write docs/reference/options.md from the table of options
	@$(BIN)/python -m scripts.render_options

reference: setup ## Write the pages that follow from the code: commands, fields, modules, the packages of the architecture
	@$(BIN)/python -m scripts.render_reference && $(BIN)/python -m tests.streams.conformance

pictures: setup ## Write the drawings of the pages, docs/pictures
	@$(BIN)/python -m scripts.render_pictures

docs: ## Build the site of docs/ into build/site; a link that leads nowhere ends it
	@python=$$(scripts/find-python); "$$python" scripts/setup_env.py docs
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet

lock: setup ## Write the hash-locked requirements (LOCK=--upgrade takes newer versions)
	@scripts/lock $(LOCK)

clean: ## Remove what the targets made, environments and caches included
	rm -rf .venv .venv-docs .venv-hudi .venv-mutants .venv-sbom .venv-schedulers .venv-streamer .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist demo demo-streaming
