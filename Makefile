# Each target sets up its environment first. A fresh machine needs Python 3.11 or newer, git and make.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests run in parallel. More than the number of cores, because tests of processes wait longer than they compute.
JOBS := 4
# Without bytecode files every process compiles all modules that it imports, which takes longer than the rest of its start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: test-fast coverage soak test-kubernetes simulate simulate-scale help venv screenshots pictures demo demo-towers demo-keras demo-platform demo-survive bench bench-models bench-recovery bench-precautions bench-quality bench-scaling bench-click test test-long test-other check check-style check-pyright check-programs check-types check-copies compatibility stubs format docs clean

help:
	@echo 'make venv     create the virtual environment $(VENV) with all dependencies'
	@echo 'make demo     train Y = 2 X + 10 on one parameter server and two workers'
	@echo 'make demo-towers   train MNIST on four towers, on virtual GPUs if the machine has none'
	@echo 'make demo-keras    train MNIST with Keras: on two mirrored workers, one of which is killed, and on a ps'
	@echo 'make demo-survive   train on 3 or 4 replicated ps and 4 workers; every 10 s a task is killed, stopped, added or removed'
	@echo 'make demo-platform  start the server with its web page and two jobs, kill a worker, add one; ARGS=--keep keeps it running'
	@echo 'make test     run all tests, four modules in parallel (JOBS=4); ARGS=... is passed to pytest'
	@echo 'make test-fast  run the tests of functions and state machines, two modules in parallel: about a minute'
	@echo 'make coverage   run all tests and list the lines of the package that no test runs; requires Python 3.12'
	@echo 'make test-long  run additional tests that take minutes, one at a time'
	@echo 'make test-kubernetes IMAGE=... KUBECONFIG=...  run jobs on a real Kubernetes cluster'
	@echo 'make soak MINUTES=60  train with continuous faults and check that no resource grows; ARGS="--copies graph" also kills ps'
	@echo 'make simulate SEEDS=N  simulate histories of clusters with faults on a virtual clock; FIRST=N and KINDS=... select them'
	@echo 'make simulate-scale  plot simulated clusters of up to 1,000 workers and 16 ps to docs/scale.png'
	@echo 'make test-other  run a part of the tests with another Python; OTHER=python3.13 selects it'
	@echo 'make bench    compare Headwater with TensorFlow 1.15; PEER=... is the Python of TensorFlow 1.15'
	@echo 'make bench-models  compare only 27 models, with TensorFlow 1.15 and 2: PEER=..., PEER2=..., ARGS="--only lenet gru"'
	@echo 'make bench-recovery   measure the effect of a lost ps in each mode of recovery, also for TensorFlow'
	@echo 'make bench-precautions  measure the cost of replicas and saved states: ARGS="copies", ARGS="saves --seconds 20 --pauses 0"'
	@echo 'make bench-scaling   measure how long a worker waits while ps with 100 MB each join and shut down'
	@echo 'make bench-click  compare a click model from records to predictions with TensorFlow 1.15: PEER=..., ARGS="--rounds 1"'
	@echo 'make bench-quality    measure the loss of a model while its ps are killed, in each mode of recovery; ARGS="--mnist FOLDER"'
	@echo 'make screenshots  save each state of the web page, wide and narrow, light and dark, to build/browser'
	@echo 'make pictures  save pictures of running jobs to docs: headwater status of a Keras and a JAX job, and the web page'
	@echo 'make check    check style, types, layers, duplicated code and documents'
	@echo 'make compatibility   write docs/compatibility.md: the supported names of TensorFlow, and the shares of supported and tested names'
	@echo 'make stubs    write the type stubs of the namespace tf for editors and type checkers'
	@echo 'make format   fix and format the code with ruff'
	@echo 'make docs     write the API reference to build/docs/index.html'
	@echo 'make clean    delete the files that the other targets created'

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

bench-click: $(READY)
	$(BIN)/python benchmarks/click_model.py $(if $(PEER),--peer $(PEER)) $(ARGS)

test: $(READY)
	$(BIN)/python -m $(RECORDER) pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder \
	    -m 'not long' $(ARGS)

test-fast: $(READY)
	$(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile tests/pure -m 'not slow and not long' $(ARGS)

# Records the executed lines, also in the processes of tasks: about 0.2 s for each of them, more before Python 3.12.
coverage: $(READY)
	rm -rf build/coverage
	$(MAKE) --no-print-directory test RECORDER='coverage run -m'
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

test-long: $(READY)
	$(BIN)/python -m pytest -m long $(ARGS)

# KUBECONFIG must grant administrator rights on a cluster used only for the tests, and its nodes must have the image IMAGE
# with Headwater.
test-kubernetes: $(READY)
	HEADWATER_TEST_KUBECONFIG=$(abspath $(or $(KUBECONFIG),$(HOME)/.kube/config)) HEADWATER_TEST_IMAGE=$(IMAGE) \
	    $(BIN)/python -m pytest tests/kubernetes --timeout 600 --override-ini faulthandler_timeout=0 $(ARGS)

MINUTES := 60

soak: $(READY)
	$(BIN)/python -m tests.soak.run --minutes $(MINUTES) $(ARGS)

SEEDS := 1000
FIRST := 0
KINDS := copies copies-in-step ended examples graph-copies graph-copies-examples graph-copies-queues graph-copies-rounds graph-examples graph-moves \
    graphs jobs jobs-ends left mirrored moved-copies moves own parameters rounds shared-batches

simulate: $(READY)
	$(BIN)/python -m tests.simulation.run $(KINDS:%=%:$(SEEDS)) --first $(FIRST) $(ARGS)

simulate-scale: $(READY)
	$(BIN)/python -m tests.simulation.scale docs/scale.png $(ARGS)

pictures: $(READY)
	$(BIN)/python -m tests.browser.pictures docs $(ARGS)

screenshots: $(READY)
	$(BIN)/python -m pytest tests/browser/test_states.py $(ARGS)

# A part of the tests that takes a minute or two: the modules that depend most on the version of JAX, one cluster of processes,
# and tasks of other users, which may have access only to this interpreter.
test-other:
	PYTHON=$(OTHER) tools/venv.sh .venv-other
	.venv-other/bin/python -m pytest -q --numprocesses $(JOBS) --dist loadfile tests/pure/test_shapes.py tests/pure/graph tests/pure/graph/passes \
	    tests/inproc/graph/session tests/inproc/tf2/test_loops.py tests/inproc/tf1/training/test_divided_tables.py \
	    tests/processes/test_jaxlib_faults.py tests/processes/cluster/test_divided_table.py \
	    tests/processes/cluster/test_other_users.py $(ARGS)

# Runs two checks in parallel, for two cores.
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

# NumPy's stubs support only the Python versions that NumPy supports, so pyright assumes the version of the environment.
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
