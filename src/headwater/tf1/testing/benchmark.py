"""``tf.test.Benchmark``: times steps, and writes reports to files with the prefix ``TEST_REPORT_FILE_PREFIX``.

A program's benchmarks run with ``--benchmarks=PATTERN``: all methods ``benchmark…`` of subclasses whose full name,
``module.Class.method``, contains a match of the pattern (``all``: all of them).
"""

from __future__ import annotations

import inspect
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headwater.cluster.telemetry.timeline import Timeline
from headwater.data.io import files
from headwater.graph.context import get_default_session
from headwater.graph.session.session import Session
from headwater.tensorboard_protos import config_pb2

_PREFIX = "TEST_REPORT_FILE_PREFIX"
_FLAG = re.compile("--?benchmarks=(.*)")


class Benchmark:
    """Base of benchmarks: methods ``benchmark…`` of subclasses are benchmarks."""

    registry: ClassVar[list[type[Benchmark]]] = []

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        Benchmark.registry.append(cls)

    def run_op_benchmark(
        self,
        sess: Session,
        op_or_tensor: object,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Times steps, and reports the median.

        Args:
          op_or_tensor: the operation or tensor to run.
          feed_dict: values to feed.
          burn_iters: number of warm-up steps, which are not timed.
          min_iters: number of timed steps.
          store_trace: run one more step, and add its trace for Chrome to the result.
          store_memory_usage: accepted; XLA does not report it by step.
          name: the name of the benchmark; the method's if None.
          extras: for the report.
          mbs: MiB that a step moves, for the throughput.

        Returns:
          The report: ``iters``, ``wall_time`` in seconds, ``extras``, ``name`` and ``throughput`` in MiB/s.
        """
        del store_memory_usage
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        seconds: list[float] = []
        for _ in range(min_iters):
            begin = time.perf_counter()
            sess.run(op_or_tensor, feed_dict)
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds) if seconds else -1.0
        values: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": dict(extras or {}),
            "name": name,
            "throughput": mbs / median,
        }
        self.report_benchmark(**values)
        if store_trace:
            metadata = config_pb2.RunMetadata()
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            sess.run(op_or_tensor, feed_dict, options=options, run_metadata=metadata)
            values["extras"]["full_trace_chrome_format"] = Timeline(metadata.step_stats).generate_chrome_trace_format()
        return values

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, object] | None = None,
        name: str | None = None,
        metrics: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """Prints a result. If ``TEST_REPORT_FILE_PREFIX`` is set, also writes it as JSON to ``PREFIX<Class.method>``.

        Args:
          iters: steps.
          cpu_time, wall_time: seconds.
          throughput: MiB/s.
          extras: further numbers and texts.
          name: the name of the benchmark; the method's if None.
          metrics: further measurements: ``name``, ``value``, and perhaps ``min_value`` and ``max_value``.
        """
        given = {
            "iters": iters,
            "cpu_time": cpu_time,
            "wall_time": wall_time,
            "throughput": throughput,
            "extras": dict(extras) if extras else None,
            "metrics": [dict(each) for each in metrics] if metrics else None,
        }
        entry: dict[str, Any] = {"name": self._full_name(name)} | {
            key: value for key, value in given.items() if value is not None
        }
        print(f"entry {json.dumps(entry, default=str)}", flush=True)
        prefix = os.environ.get(_PREFIX)
        if prefix:
            with files.atomic_write(prefix + entry["name"].replace("/", "__")) as file:
                file.write(json.dumps(entry, default=str).encode())

    def evaluate(self, tensors: object) -> Any:
        """Evaluates tensors in the default session, or else in a new one."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with Session() as opened:
            return opened.run(tensors)

    def _full_name(self, name: str | None) -> str:
        if name is None:
            frames = (frame.function for frame in inspect.stack())
            name = next((each for each in frames if each.startswith("benchmark")), None)
            if name is None:
                raise ValueError("Unable to determine calling Benchmark method: give report_benchmark a name")
        return f"{type(self).__name__}.{name}"


def benchmark_config() -> Any:
    """A ``ConfigProto`` for benchmarks: the default one, since no optimisation skips repeated steps."""
    return config_pb2.ConfigProto()


def pop_pattern(arguments: list[str]) -> str | None:
    """Removes ``--benchmarks=PATTERN`` from ``arguments``, and returns the pattern; None without this argument."""
    for argument in arguments[1:]:
        found = _FLAG.fullmatch(argument)
        if found:
            arguments.remove(argument)
            return found[1]
    return None


def run_benchmarks(pattern: str) -> None:
    """Runs the benchmarks with names that contain a match of ``pattern``; makes one object per class."""
    for kind in list(Benchmark.registry):
        made: object = None
        for method in (name for name in dir(kind) if name.startswith("benchmark")):
            full = f"{kind.__module__}.{kind.__name__}.{method}"
            if callable(getattr(kind, method)) and (pattern == "all" or re.search(pattern, full)):
                made = made or kind()
                getattr(made, method)()
    sys.stdout.flush()
