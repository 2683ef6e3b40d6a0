# One recipe for each check that a developer or CI runs. `make demo` and `make test` need only python3.
PYTHON ?= python3
UV := .make/bin/uv
RUN := $(UV) run --locked --no-sync
REALNODE := PYTHONPATH=tests $(RUN) python -m realnode
# The parts of the suite with one control plane each: the folders of a part share it, so they leave its CRDs and
# webhooks as they were. `+` separates folders.
PARTS := tests/cluster/charts tests/cluster/graph requests+profiler+scaling+rollout tests/adversary tests/faults \
	tests/conformance takeover+tenancy+models+permissions journeys people controlplane kube+legacy+api admission multinode epp+grove
# Of two parts that take long, what runs beside the rest of them.
PIECES := $(addprefix packages/dynamo-operator/tests/,dynamo_operator admission features properties) tests/adversary/test_growth_of_documents.py
# The parts that need no control plane.
UNITS := $(PIECES) $(addprefix packages/,dynamo-operator kube-runtime dynamoctl dynamo-graphs dynamo-profiler dynamo-legacy devcluster) $(addprefix tests/,repository golden lifecycle budget)
BUT_PIECES = $(addprefix --ignore=,$(filter $@/%,$(PIECES)))
# All of them start in this order, the longest first, so that none runs alone at the end.
ORDER := packages/dynamo-operator mypy pyright $(PIECES) $(PARTS) notebooks lint $(UNITS)
# Most tests of the parts wait for a cluster, so there are more of them than processors.
JOBS ?= 12
AT_ONCE = $(MAKE) --no-print-directory --keep-going --jobs=$(JOBS) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
ENGINE ?= buildah
IMAGE ?= dynamo-operator
SBOM ?= dist/sbom.cdx.json

.DEFAULT_GOAL := help
.PHONY: $(UNITS) $(PARTS) e2e help demo test real fmt lint types mypy pyright unit cluster crash long kernels planted builds conformance golden docs site charts bench image notebooks

help: ## List the recipes
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1|/' | column -t -s '|'

$(UV): requirements/uv.txt
	@test -x .make/bin/pip || $(PYTHON) -m venv .make
	@.make/bin/pip install --quiet --disable-pip-version-check --only-binary=:all: --require-hashes --requirement=$<
	@touch $@

.venv/.synced: $(UV) pyproject.toml uv.lock $(wildcard packages/*/pyproject.toml)
	@$(UV) sync --locked
	@touch $@

demo: .venv/.synced ## Local control plane, operator and a graph that answers
	@$(RUN) dynamoctl dev demo examples/vllm-disaggregated.yaml

test: .venv/.synced ## Everything CI runs (TIMES=1: and a table of what took how long)
	@$(RUN) dynamoctl dev build
	@$(if $(TIMES),rm -rf dist/times; DYNAMO_TEST_TIMES=$(CURDIR)/dist/times) $(AT_ONCE) $(ORDER)
	@$(if $(TIMES),$(RUN) python tools/times.py dist/times)

fmt: .venv/.synced ## Format the code
	@$(RUN) ruff format .
	@$(RUN) ruff check --fix .

lint: .venv/.synced ## Style, layers, dependencies, spelling, generated pages, links of the site
	@$(RUN) ruff format --check .
	@$(RUN) ruff check .
	@$(RUN) lint-imports
	@for package in packages/*; do $(RUN) deptry --config $$package/pyproject.toml $$package/src || exit 1; done
	@$(RUN) codespell
	@$(RUN) python -m tools.docs --check
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build # not --quiet, which would hide what `strict` fails for

types: mypy pyright ## mypy strict and pyright

mypy pyright: .venv/.synced
	@$(RUN) $@

unit: .venv/.synced ## Tests without a control plane
	@$(AT_ONCE) $(UNITS)

cluster: .venv/.synced ## Tests on the real control plane, several parts at a time (JOBS=1: one)
	@$(RUN) dynamoctl dev build
	@$(AT_ONCE) $(PARTS)

$(UNITS): .venv/.synced
	@$(RUN) pytest $@ $(BUT_PIECES)

$(PARTS): .venv/.synced
	@$(RUN) pytest $(BUT_PIECES) $(if $(findstring /,$@),$@,$(addprefix tests/cluster/,$(subst +, ,$@)))

crash: .venv/.synced ## Kill the operator before and after each of its writes (20 minutes; ARGS="-k scale")
	@$(RUN) dynamoctl dev build
	@DYNAMO_TEST_LONG=1 $(RUN) pytest -m "long or not long" $(wildcard tests/faults/test_*crash*.py) $(ARGS)

planted: .venv/.synced ## Plant each fault of tests/planted in a copy, print the test that finds it (ten minutes; ARGS="-k lease")
	@$(RUN) dynamoctl dev build
	@PYTHONPATH=tests $(RUN) python -m planted $(ARGS)

kernels: .venv/.synced ## The profiler with AI Configurator's measured kernels, which this installs (500 MB)
	@UV_PROJECT_ENVIRONMENT=.venv-kernels $(UV) sync --locked --all-packages --extra aiconfigurator
	@.venv-kernels/bin/python -m pytest tests/kernels

long: .venv/.synced ## All faults in full, a storm, 250 sequences of edits, 5000 odd manifests, 10000 conversions, every recorded case, real pods
	@$(RUN) dynamoctl dev build
	@FUZZ_MANIFESTS=5000 $(RUN) pytest --timeout=0 packages/dynamo-graphs/tests/dynamo_graphs/test_offline.py
	@FUZZ_MANIFESTS=5000 $(RUN) pytest --timeout=0 tests/cluster/admission -k odd_manifests
	@FUZZ_MANIFESTS=10000 $(RUN) pytest --timeout=0 packages/dynamo-operator/tests/versions -k without_a_difference
	@DYNAMO_TEST_LONG=1 $(RUN) pytest -m "long or not long" tests/faults $(ARGS)
	@DYNAMO_TEST_LONG=1 $(RUN) pytest -m long --timeout=0 tests/adversary
	@$(RUN) pytest -m long tests/cluster
	@$(MAKE) --no-print-directory conformance real ARGS=

notebooks: .venv/.synced ## Run the notebooks in Jupyter on the real control plane; installs Jupyter's kernel (STORE=1: keep their outputs)
	@$(RUN) dynamoctl dev build
	@$(UV) run --locked --group notebooks pytest tests/notebooks

# Skipped only if `support` reports that this machine cannot be a node; any other error fails.
real: .venv/.synced ## The tests on real pods, or the reason why this machine cannot run them
	@said=$$($(REALNODE) support 2>&1); case "$$?: $$said" in \
		0:*) $(MAKE) --no-print-directory e2e ;; \
		*"error: a real node: "*) echo "not run: the tests on real pods (make e2e). $${said##*error: }" ;; \
		*) echo "$$said"; exit 1 ;; esac

e2e: .venv/.synced ## Real pods on a real node; needs root on Linux (ARGS="-k rollout")
	@$(REALNODE) support
	@$(RUN) dynamoctl dev build
	@$(RUN) pytest tests/e2e -m 'not builds' $(ARGS)

builds: .venv/.synced ## An image from an archive to an answer, with a registry and BuildKit, which is built first (minutes)
	@$(REALNODE) support
	@$(RUN) dynamoctl dev build
	@$(RUN) pytest tests/e2e -m builds $(ARGS)

conformance: .venv/.synced ## Compare with the recorded Go operator, in all modes (ARGS="grove --case agg-vllm")
	@$(RUN) dynamoctl dev build
	@PYTHONPATH=tests $(RUN) python -m conformance $(ARGS)

golden: .venv/.synced ## Rewrite the golden files; `git diff` shows what changed
	@$(RUN) pytest tests/golden --rewrite-golden --quiet

docs: .venv/.synced ## Rewrite the generated reference pages
	@$(RUN) python -m tools.docs

site: .venv/.synced ## Build the documentation site in dist/site; fails on a dead link or anchor
	@NO_MKDOCS_2_WARNING=1 $(RUN) mkdocs build
	@echo dist/site/index.html

charts: docs ## Rewrite what is made from the charts; builds Helm
	@$(RUN) python tools/install_manifests.py
	@REWRITE_GOLDEN=1 $(RUN) pytest tests/cluster/charts -k golden_file

image: $(UV) ## Build the image and its SBOM (BASE=python:3.12-slim@sha256:… IMAGE=… ENGINE=buildah)
	@case "$(BASE)" in *@sha256:*) ;; *) echo "BASE must have a digest: BASE=python:3.12-slim@sha256:… (the registry says which, for example: skopeo inspect docker://docker.io/library/python:3.12-slim)" >&2; exit 2;; esac
	@mkdir -p $(dir $(SBOM))
	@$(UV) export --quiet --locked --no-dev --package dynamoctl --package dynamo-profiler --no-emit-package kubernetes --format=cyclonedx1.5 --output-file=$(SBOM) >/dev/null
	@$(ENGINE) build --build-arg BASE=$(BASE) --tag $(IMAGE) --file Containerfile .

bench: .venv/.synced ## What the operator costs, beside the floor (45 minutes; ARGS="--graphs 20,100 --rounds 1")
	@$(RUN) dynamoctl dev build
	@PYTHONPATH=tests $(RUN) python -m bench $(ARGS)
