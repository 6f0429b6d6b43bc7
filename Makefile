# Every target does its own set-up. A fresh machine needs Python 3.11 or newer, git and make.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Most tests of processes wait for one another more than they compute.
JOBS := 3

.PHONY: test-fast coverage coverage-report soak test-kubernetes simulate simulate-scale help venv screenshots pictures demo demo-towers demo-keras demo-platform demo-survive bench bench-models bench-recovery bench-precautions bench-quality bench-scaling test test-long test-other check check-style check-pyright check-programs check-types check-copies compatibility stubs format docs clean

help:
	@echo 'make venv     the virtual environment $(VENV) with everything in it'
	@echo 'make demo     trains Y = 2 X + 10 on one parameter server and two workers'
	@echo 'make demo-towers   MNIST on four towers, with stand-ins for GPUs where there are none'
	@echo 'make demo-keras    MNIST with Keras on two mirrored workers, one of which is killed, and on a ps'
	@echo 'make demo-survive   3 or 4 ps with second copies and 4 workers; every 10 s one is killed, stopped, added or taken away'
	@echo 'make demo-platform  the server with its page: two jobs, a worker is killed, another one added; ARGS=--keep goes on'
	@echo 'make test     all tests, three modules at a time (JOBS=3); ARGS=... goes to pytest'
	@echo 'make test-fast  functions and state machines, two modules at a time: about a minute'
	@echo 'make coverage   all tests, and which lines of the package none of them runs; needs Python 3.12 or newer'
	@echo 'make test-long  further cases that take minutes, one after the other'
	@echo 'make test-kubernetes IMAGE=... KUBECONFIG=...  lives of jobs on a real Kubernetes'
	@echo 'make soak MINUTES=60  trains on processes that are disturbed all along: nothing may grow; ARGS="--copies graph" kills ps, too'
	@echo 'make simulate SEEDS=N  histories of clusters with faults, on a virtual clock; FIRST=N and KINDS=... choose'
	@echo 'make simulate-scale  a plot of simulated clusters with up to 1,000 workers and 16 ps tasks, in docs/scale.png'
	@echo 'make test-other  a part of the tests with another Python, which OTHER=python3.13 names'
	@echo 'make bench    Headwater beside TensorFlow 1.15, whose python PEER=... names'
	@echo 'make bench-models  its part with 20 models beside both TensorFlows: PEER=..., PEER2=..., ARGS="--only lenet gru"'
	@echo 'make bench-recovery   what the loss of a ps costs in each mode, beside the same'
	@echo 'make bench-precautions  what second copies and own states cost: ARGS="copies", ARGS="saves --seconds 20 --pauses 0"'
	@echo 'make bench-scaling   how long a worker waits while ps come and go, with 100 MB on each'
	@echo 'make bench-quality    the loss of a model whose ps are killed, in each mode of recovery; ARGS="--mnist FOLDER"'
	@echo 'make screenshots  each state of the page, wide and narrow, light and dark, in build/browser'
	@echo 'make pictures  those of running jobs in docs: headwater status of a Keras and a JAX job, and a page'
	@echo 'make check    style, types, layers, duplicated code, documents'
	@echo 'make compatibility   docs/compatibility.md: the names of TensorFlow that are there; and their shares, with tests'
	@echo 'make stubs    what editors and type checkers read about the namespace tf'
	@echo 'make format   mends what of the style can be mended'
	@echo 'make docs     the reference of what programs use, as build/docs/index.html'
	@echo 'make clean    removes what the other targets made'

venv: $(READY)

$(READY): pyproject.toml tools/venv.sh
	tools/venv.sh $(VENV)
	@touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

demo-towers: $(READY)
	$(BIN)/python examples/demo_towers.py

demo-keras: $(READY)
	$(BIN)/python examples/demo_keras.py

demo-survive: $(READY)
	$(BIN)/python examples/demo_survive.py $(ARGS)

demo-platform: $(READY)
	$(BIN)/python examples/demo_platform.py $(ARGS)

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(if $(PEER),--peer $(PEER)) $(ARGS)
	$(MAKE) bench-models ARGS=

bench-models: $(READY)
	$(BIN)/python benchmarks/models.py $(if $(PEER),--peer $(PEER)) $(if $(PEER2),--peer2 $(PEER2)) $(ARGS)

bench-recovery: $(READY)
	$(BIN)/python benchmarks/recovery.py $(if $(PEER),--peer $(PEER)) $(if $(PEER2),--peer2 $(PEER2)) $(ARGS)

bench-precautions: $(READY)
	$(BIN)/python benchmarks/precautions.py $(ARGS)

bench-scaling: $(READY)
	$(BIN)/python benchmarks/scaling.py $(ARGS)

bench-quality: $(READY)
	$(BIN)/python benchmarks/quality.py $(ARGS)

# With COVERAGE=yes the lines that run are noted, in tasks that are processes, too: cheap on Python 3.12 and newer only.
test: $(READY)
	$(BIN)/python -m $(if $(COVERAGE),coverage run -m )pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder \
	    -m 'not long' $(ARGS)

test-fast: $(READY)
	$(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile tests/pure -m 'not slow and not long' $(ARGS)

coverage: $(READY)
	rm -rf build/coverage
	$(MAKE) --no-print-directory test COVERAGE=yes
	$(MAKE) --no-print-directory coverage-report

coverage-report: $(READY)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

test-long: $(READY)
	$(BIN)/python -m pytest -m long $(ARGS)

# A cluster of one's own, whose administrator KUBECONFIG lets one be, and an image with Headwater that its nodes have.
test-kubernetes: $(READY)
	HEADWATER_TEST_KUBECONFIG=$(abspath $(or $(KUBECONFIG),$(HOME)/.kube/config)) HEADWATER_TEST_IMAGE=$(IMAGE) \
	    $(BIN)/python -m pytest tests/kubernetes --timeout 600 --override-ini faulthandler_timeout=0 $(ARGS)

MINUTES := 60

soak: $(READY)
	$(BIN)/python -m tests.soak.run --minutes $(MINUTES) $(ARGS)

SEEDS := 1000
FIRST := 0
KINDS := copies copies-in-step ended examples graph-copies graph-copies-examples graph-copies-queues graph-copies-rounds graph-examples graph-moves \
    graphs jobs jobs-ends left mirrored moved-copies moves own parameters rounds

simulate: $(READY)
	$(BIN)/python -m tests.simulation.run $(KINDS:%=%:$(SEEDS)) --first $(FIRST) $(ARGS)

simulate-scale: $(READY)
	$(BIN)/python -m tests.simulation.scale docs/scale.png $(ARGS)

pictures: $(READY)
	$(BIN)/python -m tests.browser.pictures docs $(ARGS)

screenshots: $(READY)
	$(BIN)/python -m pytest tests/browser/test_states.py $(ARGS)

# A part of the tests that takes a minute or two: what rests on JAX, one cluster of processes, and other users, who may be able to run
# this interpreter only.
test-other:
	PYTHON=$(OTHER) tools/venv.sh .venv-other
	.venv-other/bin/python -m pytest -q --numprocesses $(JOBS) --dist loadfile tests/pure/test_shapes.py tests/pure/graph tests/pure/graph/passes \
	    tests/inproc/graph/session tests/inproc/tf2/test_loops.py tests/inproc/tf1/training/test_divided_tables.py \
	    tests/processes/test_jaxlib_faults.py tests/processes/cluster/test_divided_table.py \
	    tests/processes/cluster/test_other_users.py $(ARGS)

# Two at a time, on as many cores.
check: $(READY)
	$(MAKE) --no-print-directory --jobs 2 $(filter --output-sync,$(patsubst %,--%,$(.FEATURES))) check-pyright check-programs check-copies check-types check-style

check-style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/check_docs.py
	$(BIN)/python tools/check_prose.py
	$(BIN)/python tools/check_tests.py
	$(BIN)/python tools/check_commits.py
	$(BIN)/python tools/package_picture.py --check
	$(BIN)/python tools/stubs.py --check

# NumPy's stubs are written for the versions that it runs on.
check-pyright: $(READY)
	$(BIN)/pyright --pythonversion $$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

check-programs: $(READY)
	$(BIN)/pyrefly check --summary=none

check-types: $(READY)
	$(BIN)/python tools/check_types.py

check-copies: $(READY)
	$(BIN)/pylint --disable=all --enable=duplicate-code --ignore-patterns='.*_pb2.*' --ignore-paths='.*[.]pyi' --score=n src/headwater

compatibility: $(READY)
	$(BIN)/python tools/compatibility.py
	$(BIN)/python tools/signatures.py
	$(BIN)/python tools/tested_names.py

stubs: $(READY)
	$(BIN)/python tools/stubs.py

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY)
	rm -rf build/docs
	$(BIN)/python tools/api_docs.py build/docs

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
