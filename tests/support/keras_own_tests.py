"""Runs Keras's own tests of some files, unchanged, in the scope of strategies.

    python -m tests.support.keras_own_tests trainers/trainer_test.py callbacks/early_stopping_test.py

A test method runs without a strategy, under a mirrored strategy, and on a ``ps`` with synchronous and asynchronous
updates, with one and two workers. Each task is a process. The tasks of a test share its temporary folders, as tasks
share a file system; the first worker alone removes files, and all wait for each other at the end of a mirrored `fit`.
A test counts if it passes without a strategy; under a strategy, it passes if it passes on the first worker. Prints each
test that fails, and the rate of each file.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import importlib
import itertools
import json
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater import tf
from headwater.keras import MultiWorkerMirroredStrategy, ParameterServerStrategy
from headwater.tf1.compat.dialect import install
from tests.support.processes import bound

import keras  # isort: skip - the package before it chooses the backend
from keras.src.testing import test_case  # isort: skip

#: Names of configurations: the strategy, and the number of workers.
CONFIGURATIONS = {"mirrored 1": 1, "mirrored 2": 2, "sync 1": 1, "sync 2": 2, "async 1": 1}
TIMEOUT_S = 120.0


def outcome(case: unittest.TestCase, kind: str) -> str:
    """Runs a test; returns an empty text if it passes, ``skipped``, or the last line of its error."""
    result = unittest.TestResult()
    strategy: Any = None
    if kind == "mirrored":
        strategy = MultiWorkerMirroredStrategy()
        wait_after_fit(strategy)
    elif kind:
        strategy = ParameterServerStrategy(consistency=kind)
    with strategy.scope() if strategy else contextlib.nullcontext():
        case.run(result)
    if result.skipped:
        return "skipped"
    found = [text for _, text in [*result.errors, *result.failures]]
    if not found:
        return ""
    if "HEADWATER_TRACES" in os.environ:
        print(found[0], file=sys.stderr, flush=True)
    lines = [line for line in found[0].splitlines() if re.match(r"\S*(Error|Exception|Preempted)\b", line)]
    return (lines or found[0].splitlines())[-1][:300]


def share_folders(case: unittest.TestCase, folder: str, *, removes: bool) -> None:
    """Makes all tasks of a test use the same temporary folders, in their order, below ``folder``."""
    numbers = itertools.count()

    def make(*_: object, **__: object) -> str:
        made = os.path.join(folder, str(next(numbers)))
        os.makedirs(made, exist_ok=True)
        return made

    class Folder(contextlib.nullcontext[str]):
        """Replaces `tempfile.TemporaryDirectory`; the process that has started the tasks removes the folder."""

        def __init__(self, *_: object, **__: object) -> None:
            self.name = make()
            super().__init__(self.name)

        def cleanup(self) -> None:
            pass

    # Only the test's own modules use these: Headwater's processes must not share their folders.
    shared = types.SimpleNamespace(mkdtemp=make, TemporaryDirectory=Folder)
    for module in (sys.modules[type(case).__module__], test_case):
        if "tempfile" in vars(module):
            vars(module)["tempfile"] = shared
    if not removes:
        vars(os)["remove"] = vars(shutil)["rmtree"] = lambda *_, **__: None


def wait_after_fit(strategy: Any) -> None:
    """Makes all mirrored workers wait for each other at the end of ``fit``, when the first has written its files."""
    fit = keras.Model.fit

    def fit_together(*args: Any, **kwargs: Any) -> Any:
        history = fit(*args, **kwargs)
        strategy.reduce("SUM", np.float32(0), axis=None)
        return history

    keras.Model.fit = fit_together


def start(
    case: unittest.TestCase, kind: str, task: tuple[str, int], cluster: dict[str, list[str]], folder: str
) -> tuple[int, int]:
    """Runs a test in a new process, which is a task of a cluster; returns the process and a pipe of the outcome."""
    reading, writing = os.pipe()
    # Nothing is computed in this process, so that no thread of XLA or gRPC exists when it is copied.
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    share_folders(case, folder, removes=task == ("worker", 0))
    _run_task(case, kind, task, cluster, writing)
    raise AssertionError("the copy of this process has ended before")


def _run_task(
    case: unittest.TestCase, kind: str, task: tuple[str, int], cluster: dict[str, list[str]], writing: int
) -> None:
    try:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        if "HEADWATER_TRACES" not in os.environ:
            os.dup2(silent, 2)
        if cluster:
            os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": task[0], "index": task[1]}})
        os.write(writing, b"." + outcome(case, kind).encode())
        atexit._run_exitfuncs()  # tells the other tasks that this one ends as intended
    finally:
        os._exit(0)


def run(case: unittest.TestCase, configuration: str) -> str:
    """Returns the first worker's `outcome` in a configuration."""
    kind, _, number = configuration.partition(" ")
    jobs = {"worker": int(number or 1)} | ({"ps": 1} if kind in ("sync", "async") else {})
    cluster: dict[str, list[str]] = {}
    if kind and sum(jobs.values()) > 1:
        sockets = {job: [bound() for _ in range(count)] for job, count in jobs.items()}
        cluster = {job: [f"127.0.0.1:{one.getsockname()[1]}" for one in held] for job, held in sockets.items()}
        for one in (one for held in sockets.values() for one in held):
            one.close()
    tasks = [(job, index) for job, count in jobs.items() for index in range(count)]
    folder = tempfile.mkdtemp()
    started = {task: start(case, kind, task, cluster, folder) for task in tasks}
    told = ""
    try:
        until = time.monotonic() + TIMEOUT_S
        pipe = started["worker", 0][1]
        while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            read = os.read(pipe, 4096).decode(errors="replace")
            told += read
            if not read:
                return told[1:] if told else "the process ended"
        return f"runs for more than {TIMEOUT_S:.0f} s"
    finally:
        for pid, pipe in started.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(pipe)
        shutil.rmtree(folder, ignore_errors=True)


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="files below keras/src")
    parser.add_argument("--only", default="", help="pattern of the names of tests")
    parser.add_argument("--part", default="0/1", help="one of several equal parts of the tests")
    parser.add_argument("--configurations", nargs="+", default=list(CONFIGURATIONS), choices=list(CONFIGURATIONS))
    chosen = parser.parse_args()
    at, parts = map(int, chosen.part.split("/"))
    warnings.simplefilter("ignore")
    install(None, "2")
    assert tf.keras is not None
    for file in chosen.files:
        module = importlib.import_module("keras.src." + file.removesuffix(".py").replace("/", "."))
        counts = Counter[str]()
        tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromModule(module)))
        for test in tests[at::parts]:
            name = test.id().rpartition(".")[2]
            if not re.search(chosen.only, name) or name == "test_session":
                continue
            if problem := run(test, ""):
                counts["skipped" if problem == "skipped" else "fails alone"] += 1
                print(f"alone: {name}: {problem}", flush=True)
                continue
            counts["tests"] += 1
            for configuration in chosen.configurations:
                problem = run(test, configuration)
                counts[configuration] += not problem
                if problem:
                    print(f"{configuration}: {name}: {problem}", flush=True)
        print(f"{file}: {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
