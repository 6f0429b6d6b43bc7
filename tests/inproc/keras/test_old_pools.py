"""Ending the process pools of Keras's data loading, by name."""

from __future__ import annotations

import multiprocessing
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, wait
from typing import Any

import pytest

from headwater import tf
from headwater.keras.internals import data_pools


@contextmanager
def _busy(handler: signal.Handlers) -> Iterator[tuple[Any, Any]]:
    """Yields a pool and its process, which waits for the test and handles SIGTERM with ``handler``."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        context = multiprocessing.get_context("spawn")
        pool: Any = context.Pool(1, initializer=signal.signal, initargs=(signal.SIGTERM, handler))
        data_pools.add(pool)
        pool.apply_async(Client, (server.getsockname(), "AF_INET", b"key"))
        with server.accept()[0]:
            yield pool, pool._pool[0]


def _end(**kwargs: Any) -> list[str]:
    return tf.keras.experimental.terminate_keras_multiprocessing_pools(**kwargs)


def test_processes_end() -> None:
    with _busy(signal.SIG_DFL) as (pool, process):
        assert _end(grace_period=60) == []
        assert wait([process.sentinel], timeout=0)
    with pytest.raises(ValueError, match="Pool not running"):
        pool.apply(print)


def test_an_ended_process_without_a_readable_exit_code_is_not_named() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with _busy(signal.SIG_DFL) as (_, process):
            process.kill()
            assert wait([process.sentinel])
            assert _end(grace_period=60) == []
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_those_that_do_not_end_are_named_or_killed() -> None:
    with _busy(signal.SIG_IGN) as (_, process):
        (left,) = _end(grace_period=0.1)
        assert left == f"{process.name} with the id {process.pid} is still running"
        (killed,) = _end(grace_period=0.1, use_sigkill=True)
        assert killed == f"{process.name} did not end within 0.1 s and was killed"
        assert wait([process.sentinel])  # SIGTERM does not end the process
