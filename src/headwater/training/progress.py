"""Training steps as whoever started this process sees them: the shared step and this task's own speed.

Where nobody listens (no launcher), sessions are plain ones and nothing is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.cluster.config import ClusterConfigError, task_config_from_environment
from headwater.graph.collections import GraphKeys
from headwater.graph.graph import Graph
from headwater.session import Session
from headwater.telemetry.progress import ProgressReporter
from headwater.training.coordinator import Coordinator, LooperThread

_REPORT_S = 1.0

_reporter: ProgressReporter | None = None
_lock = threading.Lock()


def progress_reporter() -> ProgressReporter:
    """This process's reporter; it reports to nobody where no launcher listens, or no task is named."""
    global _reporter
    with _lock:
        if _reporter is None:
            try:
                config = task_config_from_environment()
            except ClusterConfigError:  # said where the cluster is made; here it only means: no reports
                config = None
            task = config.task if config is not None else None
            if task is None:
                _reporter = ProgressReporter(task="", address=None)
            else:
                _reporter = ProgressReporter.from_environment(str(task))
        return _reporter


def open_session(target: str, graph: Graph | None, config: Any = None) -> Session:
    """A session; one that counts its training steps where somebody listens."""
    kind = _CountingSession if progress_reporter().listening else Session
    return kind(target, graph=graph, config=config)


class _CountingSession(Session):
    """Counts runs of what is in ``TRAIN_OP``: one training step each.

    A floating scalar that is fetched in a list together with such an operation is reported as the loss.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._reporter = progress_reporter()
        self._steps: set[Any] = set()

    def _make_runner(self, fetches: Any, feed_dict: Any, block: int = 1) -> Any:
        runner = super()._make_runner(fetches, feed_dict, block)
        train_ops = set(self.graph.get_collection(GraphKeys.TRAIN_OP))
        if train_ops.intersection((*runner.fetches.targets, *(tensor.op for tensor in runner.fetches.tensors))):
            self._steps.add(runner)
        return runner

    def _run(self, runner: Any, arrays: Sequence[Any], options: Any) -> Any:
        result = super()._run(runner, arrays, options)
        if runner in self._steps:
            self._reporter.step(loss=_first_float(result))
        return result


def _first_float(result: Any) -> float | None:
    if isinstance(result, dict):
        return _first_float(result.get("caller"))  # pyright: ignore[reportUnknownMemberType] - of a monitored session
    if not isinstance(result, list | tuple):
        return None
    return next((float(item) for item in result if isinstance(item, np.floating)), None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


class GlobalStepThread(LooperThread):
    """Reports the shared step once a second.

    Args:
      coord: stops it.
      sess: the session to read it in.
      global_step: the variable or tensor.
    """

    def __init__(self, coord: Coordinator, sess: Any, global_step: Any) -> None:
        super().__init__(coord, _REPORT_S)
        self._sess = sess
        self._global_step = global_step

    def run_loop(self) -> None:
        progress_reporter().step(int(self._sess.run(self._global_step)), steps=0)
