"""`TestCase`: a test with its own empty graph, sessions, and threads whose errors fail the test."""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import numpy as np
from absl.testing import absltest

from headwater.graph.context import clear_default_graphs, get_default_session
from headwater.graph.session.session import Session
from headwater.tensorboard_protos import config_pb2
from headwater.tf1.functional.random import set_random_seed
from headwater.tf1.testing.assertions import Assertions
from headwater.tf1.testing.devices import gpu_device_name

SEED: Final = 87654321
"""Seed of Python's, NumPy's and the graph's random numbers at the start of every test."""


class TestCase(Assertions):
    """Base of tests of operations. Each test begins with an empty default graph and the same random numbers.

    Sessions come from `session`, a new one each time, or `cached_session`, one for the whole test. On a machine without
    a GPU both run everything on the CPU.
    """

    def __init__(self, methodName: str = "runTest") -> None:
        cast(Any, super()).__init__(methodName)
        self._checked: list[CheckedThread] = []
        self._directory: str | None = None
        self._cached: Session | None = None
        self._cached_for: tuple[object, object, bool] = (None, None, False)

    def setUp(self) -> None:
        cast(Any, super()).setUp()
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")
        self._close_cached()
        random.seed(SEED)
        np.random.seed(SEED)
        clear_default_graphs()
        set_random_seed(SEED)

    def tearDown(self) -> None:
        try:
            for thread in self._checked:
                thread.check_termination()
        finally:
            self._close_cached()
            cast(Any, super()).tearDown()

    def get_temp_dir(self) -> str:
        """A folder for this test alone, the same at every call."""
        if self._directory is None:
            self._directory = tempfile.mkdtemp(dir=get_temp_dir())
        return self._directory

    def evaluate(self, tensors: object) -> Any:
        """Evaluates tensors, in the same structure, in the default session, or else in the cached one."""
        session = get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as session:
            return session.run(tensors)

    @contextmanager
    def session(
        self, graph: object = None, config: object = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Generator[Session]:
        """Yields a new session, the default one within the block with its graph as default graph; closes it at the end.

        Args:
          graph: the graph to run; the default one if None.
          config: a ``ConfigProto``.
          use_gpu: let operations run on a GPU if there is one; False: place operations made in the block on the CPU.
          force_gpu: place operations made in the block on the first GPU.
        """
        with _new_session(graph, config, force_gpu) as session, _devices(session, use_gpu, force_gpu):
            yield session

    @contextmanager
    def cached_session(
        self, graph: object = None, config: object = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Generator[Session]:
        """Like `session`, but the same session throughout the test.

        Raises:
          ValueError: other arguments than at the first call of the test.
        """
        with self._use_cached(graph, config, use_gpu, force_gpu, strict=True) as session:
            yield session

    @contextmanager
    def test_session(
        self, graph: object = None, config: object = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Generator[Session]:
        """Older form of `session`, if a graph is given, or else of `cached_session` with any arguments."""
        chosen = (
            self.session(graph, config, use_gpu, force_gpu)
            if graph is not None
            else self._use_cached(graph, config, use_gpu, force_gpu, strict=False)
        )
        with chosen as session:
            yield session

    @contextmanager
    def _use_cached(
        self, graph: object, config: object, use_gpu: bool, force_gpu: bool, strict: bool
    ) -> Generator[Session]:
        if self._cached is None:
            self._cached = _new_session(graph, config, force_gpu)
            self._cached_for = (graph, config, force_gpu)
        elif strict:
            for name, before, now in zip(
                ("graph", "config", "force_gpu"), self._cached_for, (graph, config, force_gpu), strict=True
            ):
                if before is not now:
                    raise ValueError(
                        f"The {name} used to get the cached session is different than the one that was used to create "
                        "the session. Maybe create a new session with self.session()"
                    )
        with _devices(self._cached, use_gpu, force_gpu):
            yield self._cached

    def _close_cached(self) -> None:
        session, self._cached = self._cached, None
        if session is not None:
            session.close()

    def checkedThread(
        self,
        target: Callable[..., object],
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
    ) -> CheckedThread:
        """Returns a thread whose error fails the test; it has to be joined before the test ends."""
        thread = CheckedThread(self, target, args or (), kwargs or {})
        self._checked.append(thread)
        return thread

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Generator[CapturedWrites]:
        """Captures all writes of the block to a stream's file descriptor; yields the captured output."""
        descriptor = stream.fileno()
        path = os.path.join(self.get_temp_dir(), f"captured-{threading.get_ident()}")
        stream.flush()
        saved = os.dup(descriptor)
        target = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target, descriptor)
        os.close(target)
        try:
            yield CapturedWrites(path)
        finally:
            stream.flush()
            os.dup2(saved, descriptor)
            os.close(saved)


class CapturedWrites:
    """Output captured by `TestCase.captureWritesToStream`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def contents(self) -> str:
        """Returns all captured output so far."""
        with open(self._path, errors="replace") as file:
            return file.read()


class CheckedThread:
    """See `TestCase.checkedThread`."""

    def __init__(
        self, test: TestCase, target: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        self._test = test
        self._call = lambda: target(*args, **kwargs)
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self._joined = False

    def _run(self) -> None:
        try:
            self._call()
        except Exception as error:  # noqa: BLE001  any error fails the test when the thread is joined
            self._error = error

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Waits for the thread, and fails the test if the thread raised an error."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._test.fail(f"Error in checkedThread: {self._error}")

    def is_alive(self) -> bool:
        """Returns whether it has begun and not ended."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fails the test if the thread was not joined."""
        if not self._joined:
            self._test.fail("A checked thread was not joined.")


def get_temp_dir() -> str:
    """Returns a folder for the tests of this process: ``TEST_TMPDIR`` or the flag ``--test_tmpdir``."""
    folder = os.environ.get("TEST_TMPDIR") or absltest.get_default_test_tmpdir()
    os.makedirs(folder, exist_ok=True)
    return folder


def _new_session(graph: Any, config: Any, force_gpu: bool) -> Session:
    chosen = config_pb2.ConfigProto(allow_soft_placement=True)
    if config is not None:
        chosen = config_pb2.ConfigProto()
        chosen.CopyFrom(config)
    if force_gpu:
        chosen.allow_soft_placement = False
    return Session(graph=graph, config=chosen)


@contextmanager
def _devices(session: Session, use_gpu: bool, force_gpu: bool) -> Generator[None]:
    with session.graph.as_default(), session.as_default():
        if force_gpu:
            with session.graph.device(gpu_device_name() or "/device:GPU:0"):
                yield
        elif use_gpu:
            yield
        else:
            with session.graph.device("/device:CPU:0"):
                yield
