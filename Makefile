SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Settings of up, down and the tests: make up NAME=mine BROKERS=2 PROFILE=rollover, make up NATIVE=1,
# make demo BACKEND=native
NAME ?= default
BROKERS ?= 1
REPLICAS ?= 3
BACKEND ?= classic
PROFILE ?= ordinary
# Which Pulsar the brokers are, 4 or 5; NATIVE=1 has a broker of Pulsar 5 beside those of Pulsar 4.
PULSAR ?= 4
NATIVE ?=
# Parallel test processes: as many as cores, and few on a cluster that shares those cores.
UNIT_WORKERS ?= auto
INTEGRATION_WORKERS ?= 2
PYTEST_ARGUMENTS ?=
# How many times as many inputs make fuzz tries.
TIMES ?= 20
# Simulated stories: make simulate SEEDS=5000 FIRST=1000, or make simulate STORY=replicas:12
SEEDS ?= 1000
FIRST ?= 0
STORY ?=
# How long faults go on: make soak HOURS=8
HOURS ?= 0.33
# A chart holds all its files itself.
CRD_FOLDERS := crds charts/scalable-topics/files/crds

CACHE := $(or $(SCALABLE_TOPICS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/scalable-topics)
PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest $(PYTEST_ARGUMENTS)
ENVIRONMENT := .venv/.complete
SETTINGS := --profile $(PROFILE) --pulsar $(PULSAR) $(if $(filter 1,$(NATIVE)),--native)

export UV_PYTHON_DOWNLOADS := never

##@ A local cluster
.PHONY: up
up: $(ENVIRONMENT) ## Start a cluster (NAME=, BROKERS=1|2, PROFILE=ordinary|rollover, PULSAR=4|5, NATIVE=1)
	$(PYTHON) -m dev up --name $(NAME) --brokers $(BROKERS) $(SETTINGS)

.PHONY: down
down: $(ENVIRONMENT) ## Stop it and remove its data; its logs stay (NAME=)
	$(PYTHON) -m dev down --name $(NAME)

.PHONY: status
status: $(ENVIRONMENT) ## Show all clusters with their processes
	$(PYTHON) -m dev status

.PHONY: demo
demo: $(ENVIRONMENT) ## A topic from manifest to split and merge, on a cluster of its own (BACKEND=classic|native, REPLICAS=1|2|3)
	$(PYTHON) -m dev demo --replicas $(REPLICAS) --backend $(BACKEND)

.PHONY: kind
kind: $(ENVIRONMENT) ## A cluster by kind with the operator and a broker, ready for examples/quickstart.yaml
	$(PYTHON) -m dev kind-up $(if $(BASE_IMAGE),--base $(BASE_IMAGE)) $(if $(NODE_IMAGE),--node-image $(NODE_IMAGE))

.PHONY: kind-down
kind-down: $(ENVIRONMENT) ## Remove that cluster
	$(PYTHON) -m dev kind-down

##@ Checks
.PHONY: test
test: $(ENVIRONMENT) ## Everything: lint and all layers of tests, with the time of each
	@times=(); \
	for layer in build lint test-unit test-conformance test-simulation test-integration test-two-brokers test-native test-spark test-e2e; do \
	    echo "=== $$layer"; started=$$SECONDS; \
	    $(MAKE) "$$layer"; \
	    times+=("$$(printf '%-18s %4d s' "$$layer" $$((SECONDS - started)))"); \
	done; \
	printf '%s\n' "=== wall time of each layer" "$${times[@]}"

.PHONY: build
build: $(ENVIRONMENT) ## Build and fetch what clusters run, and helm (once a machine, about 11 minutes)
	$(PYTHON) -m dev build

.PHONY: lint
lint: $(ENVIRONMENT) ## Style, types, import contracts, generated files, a test or a reason for every hazard
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	$(PYTHON) -m scalable_topics_operator.generate --check --reference docs/reference $(CRD_FOLDERS)
	$(PYTHON) -m dev.dashboards --check
	$(PYTHON) -m dev.chart_values --check
	$(PYTHON) -m dev.cli_reference --check
	$(PYTHON) -m tests.hazards --check
	$(PYTHON) -m bench.page --check
	$(MAKE) docs

.PHONY: test-unit
test-unit: $(ENVIRONMENT) ## Unit tests
	$(PYTEST) tests/unit -m 'not spark' -n $(UNIT_WORKERS)

.PHONY: fuzz
fuzz: $(ENVIRONMENT) ## Those of them that make input up, with other input and many times as much (TIMES=)
	FUZZ_TIMES=$(TIMES) $(PYTEST) tests/unit/security --timeout 3600 -n $(UNIT_WORKERS)

.PHONY: test-conformance
test-conformance: $(ENVIRONMENT) ## Cases of the peer implementation
	$(PYTEST) tests/conformance -n $(UNIT_WORKERS)

.PHONY: test-simulation
test-simulation: $(ENVIRONMENT) ## Stories in which everything goes wrong that can, on models in virtual time (SIMULATION_SEEDS=)
	PYTHONHASHSEED=0 $(PYTEST) tests/simulation -n $(UNIT_WORKERS)

.PHONY: simulate
simulate: $(ENVIRONMENT) ## More of these stories (SEEDS=, FIRST=), or one again (STORY=)
	$(PYTHON) -m tests.simulation.simulate --seeds $(SEEDS) --first $(FIRST) $(if $(STORY),--story $(STORY))

.PHONY: test-integration
test-integration: $(ENVIRONMENT) ## Tests on a real API server and a real broker (PROFILE=, PULSAR=)
	$(PYTHON) -m dev run --brokers 1 $(SETTINGS) -- \
	    $(PYTEST) tests/integration -m 'not two_brokers and not native and not spark and not node' -n $(INTEGRATION_WORKERS) --dist worksteal

.PHONY: test-integration-5
test-integration-5: $(ENVIRONMENT) ## The same on a broker of Pulsar 5, with backend Classic (not part of test; test-native has a selection)
	$(MAKE) test-integration PULSAR=5

.PHONY: test-two-brokers
test-two-brokers: $(ENVIRONMENT) ## Tests that need two brokers (PROFILE=, PULSAR=)
	$(PYTHON) -m dev run --brokers 2 $(SETTINGS) -- \
	    $(PYTEST) tests/integration -m 'two_brokers and not native' -n $(INTEGRATION_WORKERS) --dist worksteal

.PHONY: test-native
test-native: $(ENVIRONMENT) ## Tests that need a broker of Pulsar 5, beside one of Pulsar 4, and a selection of the others on it
	$(PYTHON) -m dev run --brokers 1 --native -- \
	    $(PYTEST) tests/integration -m 'native and not two_brokers and not slow' -n $(INTEGRATION_WORKERS) --dist worksteal

.PHONY: test-native-whole
test-native-whole: $(ENVIRONMENT) ## The same with those that take long (not part of test)
	$(PYTHON) -m dev run --brokers 1 --native -- \
	    $(PYTEST) tests/integration -m 'native and not two_brokers' -n $(INTEGRATION_WORKERS) --dist worksteal

.PHONY: test-spark
test-spark: $(ENVIRONMENT) ## Tests of the load pipeline on real Spark and a real broker
	$(PYTHON) -m dev run --brokers 1 -- $(PYTEST) tests -m spark

.PHONY: test-node
test-node: $(ENVIRONMENT) ## The load pipeline in pods of a real node, run by the spark-operator (as root; not part of test)
	$(PYTHON) -m dev run --brokers 1 --spark -- $(PYTEST) tests/integration/node -m node

.PHONY: build-node
build-node: $(ENVIRONMENT) ## Build and fetch what a node is made of, too (once a machine, 13 minutes of processor time)
	$(PYTHON) -m dev build --spark

.PHONY: e2e
e2e: $(ENVIRONMENT) ## The chart on a real node with a broker and applications in pods, all of it (as root; ARGUMENTS= for pytest)
	$(PYTHON) -m dev e2e -- $(ARGUMENTS)

.PHONY: e2e-kind
e2e-kind: $(ENVIRONMENT) ## The same on a cluster by kind, which goes afterwards (BASE_IMAGE=, NODE_IMAGE=)
	$(PYTHON) -m dev e2e --on kind $(if $(BASE_IMAGE),--base $(BASE_IMAGE)) $(if $(NODE_IMAGE),--node-image $(NODE_IMAGE)) -- $(ARGUMENTS)

.PHONY: e2e-given
e2e-given: $(ENVIRONMENT) ## The same on the cluster of KUBECONFIG, with images that its nodes can pull (E2E_…_IMAGE)
	$(PYTHON) -m dev e2e --on given -- $(ARGUMENTS)

.PHONY: test-e2e
test-e2e: $(ENVIRONMENT) ## Its short form, where a node can be had
	$(PYTHON) -m dev e2e --short --where-possible -- $(ARGUMENTS)

.PHONY: image
image: $(ENVIRONMENT) ## The images, by Docker or podman, and what is in them in dist/ (BASE_IMAGE=, local makes one here)
	$(PYTHON) -m dev image $(if $(BASE_IMAGE),--base $(BASE_IMAGE))

.PHONY: bench
bench: $(ENVIRONMENT) ## Measurements into docs/benchmarks.md (ONLY=kernel,producing, ROUNDS=, SMALL=1 to see that they work, PROFILE_TO=folder)
	$(PYTHON) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SMALL),--small) \
	    $(if $(PROFILE_TO),--profile-to $(PROFILE_TO))

##@ Long runs, whose results are kept in docs/evidence/
LONG := $(PYTEST) -n 0

.PHONY: show-crash-matrix
show-crash-matrix: $(ENVIRONMENT) ## kill -9 of the operator at every write of every kind of work
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_crash_matrix.py

.PHONY: show-broker-outage
show-broker-outage: $(ENVIRONMENT) ## Brokers and API server gone for a minute in the middle of splits
	$(LONG) tests/long/test_long_outages.py

.PHONY: show-steady-state
show-steady-state: $(ENVIRONMENT) ## Five minutes of a fleet at rest, and three hundred topics at once
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_long_steady_state.py

.PHONY: show-idle-survival
show-idle-survival: $(ENVIRONMENT) ## Three minutes without clients on brokers that delete idle topics
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_idle_survival.py

.PHONY: show-two-brokers
show-two-brokers: $(ENVIRONMENT) ## The operator's whole suite on two brokers, and a broker that dies during a split
	$(PYTHON) -m dev run --brokers 2 -- $(LONG) tests/long/test_two_brokers.py

.PHONY: show-pulsar-5
show-pulsar-5: $(ENVIRONMENT) ## The whole integration layer on a broker of Pulsar 5, with backend Classic
	$(LONG) tests/long/test_classic_on_pulsar_5.py

.PHONY: show-ordered
show-ordered: $(ENVIRONMENT) ## Twenty minutes of consumers that come, go and die under changes, dead leaders and brokers
	$(LONG) tests/long/test_ordered_guarantee.py

.PHONY: show-first-message
show-first-message: $(ENVIRONMENT) ## How soon a stream consumer has its first message, and what moves for it
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_first_message.py

.PHONY: show-buckets
show-buckets: show-bucket-fleet show-bucket-churn show-bucket-drain ## All three of the following

.PHONY: show-bucket-fleet
show-bucket-fleet: $(ENVIRONMENT) ## 200 stream consumers on 64 segments of 4 entry buckets, every one of them busy
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_bucket_fleet.py

.PHONY: show-bucket-drain
show-bucket-drain: $(ENVIRONMENT) ## A sealed backlog of 1,000,000 messages drained by 1, 4 and 16 consumers
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_bucket_drain.py

.PHONY: show-bucket-churn
show-bucket-churn: $(ENVIRONMENT) ## Ten minutes of consumers that come, go and die every second on a shared segment
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_bucket_churn.py

.PHONY: show-simulation
show-simulation: $(ENVIRONMENT) ## 20,000 seeds of simulated stories, and every guard taken out in turn (SIMULATED_SEEDS=)
	PYTHONHASHSEED=0 $(LONG) tests/long/test_simulated.py

.PHONY: growth
growth: $(ENVIRONMENT) ## What a million topics need: on paper, beside fleets in virtual time (GROWTH_FLEETS=1000/3/12,… as topics/replicas/shards)
	PYTHONHASHSEED=0 $(LONG) tests/long/test_growth.py

.PHONY: show-migration
show-migration: $(ENVIRONMENT) ## Topics of 100,000 messages migrated under traffic
	$(LONG) tests/long/test_migration.py

.PHONY: show-guarantee
show-guarantee: $(ENVIRONMENT) ## Ten minutes of traffic through layout changes: ordinary, roll-over, two brokers
	$(LONG) tests/long/test_guarantee.py

.PHONY: show-stalls
show-stalls: $(ENVIRONMENT) ## How long messages wait for a hundred splits and merges, ordinary and stressed
	$(LONG) tests/long/test_stalls.py

.PHONY: show-native
show-native: $(ENVIRONMENT) ## Classic and Native side by side: how long changes take, and how long producers wait
	$(PYTHON) -m dev run --brokers 1 --native -- $(LONG) tests/long/test_native.py

.PHONY: show-broker-steps
show-broker-steps: $(ENVIRONMENT) ## Unloads, and the death of one of two brokers, at every write of every operation
	$(LONG) tests/long/test_broker_steps.py

.PHONY: show-failover
show-failover: $(ENVIRONMENT) ## Leaders killed and stopped 135 times in the middle of operations, ordinary and roll-over
	$(LONG) tests/long/test_failover.py

.PHONY: show-writes-at-rest
show-writes-at-rest: $(ENVIRONMENT) ## What three replicas write over 10, 100 and 1,000 topics at rest
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_writes_at_rest.py

.PHONY: show-auto-scale
show-auto-scale: $(ENVIRONMENT) ## Topics follow a load up and down, and ten minutes of noise around every threshold
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_auto_scale.py

.PHONY: show-pipeline
show-pipeline: $(ENVIRONMENT) ## Topics follow a pipeline on Spark, and all that it may lose
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_pipeline_ramp.py tests/long/test_pipeline_losses.py

.PHONY: show-pipeline-pods
show-pipeline-pods: $(ENVIRONMENT) ## The same by driver and executor pods of a real node, as root
	$(PYTHON) -m dev run --brokers 1 --spark -- $(LONG) tests/long/test_pipeline_pods.py

.PHONY: show-recorded-load
show-recorded-load: $(ENVIRONMENT) ## An hour of load, recorded by a pipeline, and the reports on it (RECORD_SECONDS=)
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_recorded_load.py

.PHONY: show-missing-brokers
show-missing-brokers: $(ENVIRONMENT) ## A broker dead, back again, and both silent, while segments are due to be merged
	$(LONG) tests/long/test_missing_brokers.py

.PHONY: show-console
show-console: $(ENVIRONMENT) ## Pictures of the console during a ramp, of 1,000 topics and of 500 segments, and what axe says
	$(PYTHON) -m dev run --brokers 1 -- $(LONG) tests/long/test_console_pictures.py

.PHONY: show-control-plane-down
show-control-plane-down: $(ENVIRONMENT) ## Five minutes of traffic without operator and API server
	$(LONG) tests/long/test_control_plane_down.py

.PHONY: soak
soak: $(ENVIRONMENT) ## Faults of every kind for HOURS= (20 minutes), after which nothing has grown (SOAK_SEED=)
	HOURS=$(HOURS) $(LONG) -s tests/long/test_soak.py

.PHONY: show-tutorial
show-tutorial: $(ENVIRONMENT) ## The tutorial pasted into a shell in a clean clone
	$(LONG) tests/long/test_tutorial.py

##@ Upkeep
.PHONY: docs
docs: $(ENVIRONMENT) ## The documentation as a site, in build/site/; links that lead nowhere are errors
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build $(MKDOCS_ARGUMENTS)

.PHONY: audit
audit: $(ENVIRONMENT) ## What is known to be wrong with what we depend on (needs the network), and the table of licences
	$(PYTHON) -m dev.audit.licences --check
	$(PYTHON) -m dev.audit $(AUDIT_ARGUMENTS)

.PHONY: generate
generate: $(ENVIRONMENT) ## Write crds/ (also for the chart), its dashboards, docs/reference/, docs/hazards.md and docs/benchmarks.md from what they tell of
	$(PYTHON) -m scalable_topics_operator.generate --reference docs/reference $(CRD_FOLDERS)
	$(PYTHON) -m dev.dashboards
	$(PYTHON) -m dev.chart_values
	$(PYTHON) -m dev.cli_reference
	$(PYTHON) -m dev.audit.licences
	$(PYTHON) -m tests.hazards
	$(PYTHON) -m bench.page

.PHONY: clean
clean: ## Stop all clusters, remove their logs, the environment and caches in the tree
	if [ -x $(PYTHON) ]; then $(PYTHON) -m dev clean; fi
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

.PHONY: help
help: ## Show this
	@awk 'BEGIN {FS = ":.*## "} \
	    /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	    /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The Python environment is what uv.lock says. uv comes from the PATH, else into a cache beside the tree.
$(ENVIRONMENT): pyproject.toml uv.lock
	@uv=$$(command -v uv || true); \
	if [ -z "$$uv" ]; then \
	    uv="$(CACHE)/uv/bin/uv"; \
	    if [ ! -x "$$uv" ]; then \
	        python3 -m venv "$(CACHE)/uv"; \
	        "$(CACHE)/uv/bin/python" -m pip install --quiet uv; \
	    fi; \
	fi; \
	"$$uv" sync --quiet --locked --extra operator --extra dev
	@touch $@
