"""The functions that a value passes on its way through a step: compares the lists of docs/walks.md with a run.

``HEADWATER_TEST_BUDGETS=write`` rewrites the page.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import keras
import numpy as np
import pytest

import headwater
from headwater.tf1.compat import tf
from tests.inproc.budgets.test_steps import mlp
from tests.inproc.conftest import StartCluster
from tests.inproc.keras.test_parameter_server_strategy import Cluster
from tests.support.mirrored import with_workers

# Keras's own variables cause this warning when NumPy requests their values.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
SOURCE = f"{Path(headwater.__file__).parent}{os.sep}"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "walks.md"
WINDOWS = 24
"""The number of steps that are recorded: functions that run in fewer than half of them belong to other work."""
SLACK = 0.1
"""The share of functions that may differ: some depend on the alignment of memory, and on which answer arrives first."""


class Walks:
    """The functions of Headwater that run in each of several steps, in the order in which they are first called.

    Attributes:
      mine: by step, the functions in the thread that makes the steps.
      others: by step, the functions in threads that are started meanwhile.
    """

    def __init__(self) -> None:
        self.mine: list[dict[str, int]] = []
        self.others: list[dict[str, int]] = []
        self.thread = threading.get_ident()
        self._lock = threading.Lock()

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """The function for `sys.setprofile`."""
        path = frame.f_code.co_filename
        if event != "call" or not self.mine or not path.startswith(SOURCE):
            return
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        if "<" in name.rpartition(".")[2]:  # comprehensions and similar code objects
            return
        entry = f"{path[len(SOURCE) : -3].replace(os.sep, '.')}: {name.replace('.<locals>', '')}"
        with self._lock:
            seen = (self.mine if threading.get_ident() == self.thread else self.others)[-1]
            seen[entry] = seen.get(entry, 0) + 1

    def step(self) -> None:
        """Starts the record of a step."""
        with self._lock:
            self.mine.append({})
            self.others.append({})


@contextmanager
def noting() -> Iterator[Walks]:
    """A context in which calls are recorded, in this thread and in threads that start meanwhile."""
    walks, before = Walks(), sys.getprofile()
    threading.setprofile(walks.note)
    sys.setprofile(walks.note)
    try:
        yield walks
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


class Steps(keras.callbacks.Callback):
    """Makes each batch of `fit`, from the third on, a step of ``walks``."""

    def __init__(self, walks: Walks) -> None:
        super().__init__()
        self.walks = walks

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if batch >= 3:
            self.walks.thread = threading.get_ident()
            self.walks.step()


def graph(start_cluster: StartCluster) -> Walks:
    with noting() as walks:
        cluster = start_cluster(ps=1, worker=1)
        with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            fetches, feed, _ = mlp()
            with tf.Session(cluster.targets["worker:0"]) as session:
                session.run(tf.global_variables_initializer())
                for _ in range(8):
                    session.run(fetches, feed)
                for _ in range(WINDOWS):
                    walks.step()
                    session.run(fetches, feed)
    return walks


def dense() -> Any:
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8), keras.layers.Dense(1)], name="walked")
    model.compile("adam", "mse")
    return model


DATA = np.zeros((4 * (WINDOWS + 3), 6), np.float32), np.zeros((4 * (WINDOWS + 3), 1), np.float32)


def parameters(_: StartCluster) -> Walks:
    with noting() as walks:
        cluster = Cluster(dense, servers=1)
        cluster.fit(*DATA, batch_size=4, callbacks=lambda: [Steps(walks)])
        cluster.stop()
    return walks


def mirrored(_: StartCluster) -> Walks:
    with noting() as walks:

        def work(rank: int, mirror: Callable[[Any], Any]) -> None:
            model = mirror(dense())
            model.fit(*DATA, batch_size=4, verbose=0, callbacks=[Steps(walks)] if rank == 0 else [])

        with_workers(2, work)
    return walks


def usual(steps: list[dict[str, int]]) -> list[str]:
    """Returns the functions that run in more than half of the steps, in the order of the first step with all of them,
    and their counts.
    """
    common = Counter(name for step in steps for name in step)
    kept = {name for name, count in common.items() if 2 * count > len(steps)}
    order = list(
        dict.fromkeys(name for step in sorted(steps, key=lambda one: -len(kept & one.keys())) for name in step)
    )
    times = {name: sorted(step[name] for step in steps if name in step) for name in kept}
    return [f"{name} ({times[name][len(times[name]) // 2]})" for name in order if name in kept]


SHOWN: dict[str, tuple[Callable[[StartCluster], Walks], str, str | None]] = {
    "A fed tensor and a gradient of a graph": (graph, "worker", "ps"),
    "A gradient of Keras on a parameter server": (parameters, "worker", "ps"),
    "A gradient of a mirrored worker": (mirrored, "worker", None),
}


def listed(steps: list[dict[str, int]]) -> str:
    names = usual(steps)
    calls = sum(int(name.rpartition("(")[2][:-1]) for name in names)
    return f"{len(names)} functions, {calls} calls.\n\n" + "".join(f"1. {name}\n" for name in names)


@pytest.mark.parametrize("title", SHOWN)
def test_the_page_lists_the_calls_of_a_step(title: str, start_cluster: StartCluster) -> None:
    make, here, there = SHOWN[title]
    walks = make(start_cluster)
    assert len(walks.mine) == WINDOWS
    found = {here: walks.mine} if there is None else {here: walks.mine, there: walks.others}
    page = PAGE.read_text()
    if os.environ.get("HEADWATER_TEST_BUDGETS") == "write":
        text = "\n".join(f"### At the {task}\n\n{listed(steps)}" for task, steps in found.items())
        before, _, rest = page.partition(f"## {title}\n")
        _, end, after = rest.partition("\n## ")
        PAGE.write_text(page := f"{before}## {title}\n\n{text}{end}{after}")
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    for task, steps in found.items():
        lines = section.partition(f"### At the {task}\n")[2].partition("\n### ")[0].splitlines()
        shown = {line.removeprefix("1. ").rpartition(" (")[0] for line in lines if line.startswith("1. ")}
        gone = shown - {name for step in steps for name in step}
        missing = set.intersection(*map(set, steps)) - shown
        assert len(gone | missing) <= SLACK * len(shown), (
            f"{PAGE.name} lists for the {task} what no step calls: {sorted(gone)}; every step calls, unlisted: "
            f"{sorted(missing)}; HEADWATER_TEST_BUDGETS=write writes it again"
        )
