"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from xdist.workermanage import NodeManager

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("headwater", deadline=None)
hypothesis.settings.load_profile("headwater")

REPOSITORY = Path(__file__).resolve().parent.parent


_COMPILED = "HEADWATER_COMPILATION_CACHE"
#: Folders of modules that take long, the longest first.
_LONG = ("simulation", "processes", "browser")
#: How long a process that runs tests may take to end, in seconds: it writes last which lines have run.
_EXIT_S = 60


def pytest_configure(config: pytest.Config) -> None:
    """Restores default signal handlers, and keeps compiled code for other tests and later runs.

    A shell that starts the tests in the background makes them, and every process they start, ignore Ctrl-C. Half of
    the tests' time is spent on compiling small programs, most of which were compiled before. Without bytecode files,
    each of more than a thousand processes compiles every module that it imports: 4 s instead of 1.2 s for JAX.
    """
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(signum) is signal.SIG_IGN:
            signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
    distributes = config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ
    if distributes:
        NodeManager.EXIT_TIMEOUT = _EXIT_S
    if _COMPILED not in os.environ:  # processes of xdist inherit the folder from the process that starts them
        os.environ |= {
            _COMPILED: str(REPOSITORY / ".pytest_cache" / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the modules, the long ones come first, so that none is left alone at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: next((at for at, name in enumerate(_LONG) if name in item.path.parts), len(_LONG)))


@pytest.fixture(autouse=True)
def sigterm_as_before() -> Iterator[None]:
    """What SIGTERM does stays as it was: a server that is joined in the main thread keeps a handler for good."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
    preemption = sys.modules.get("headwater.tf1.training.preemption")
    if preemption is not None:  # of sessions that a test has left open, as a program that is killed does
        preemption._installed.clear()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of programs and data beside the repository, or at ``HEADWATER_SHARED``; skips the test if it is
    missing."""
    path = Path(os.environ.get("HEADWATER_SHARED") or REPOSITORY.parent / "shared")
    if not (path / "programs").is_dir():
        pytest.skip(f"no folder {path} with programs and data; HEADWATER_SHARED can name another")
    return path


def _peer_python(variable: str) -> Path:
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no Python interpreter with TensorFlow")
    return Path(path)


@pytest.fixture(scope="session")
def tf1_python() -> Path:
    """A Python interpreter that has TensorFlow 1.15, named by ``HEADWATER_TF1_PYTHON``; skips the test if it is
    missing."""
    return _peer_python("HEADWATER_TF1_PYTHON")


@pytest.fixture(scope="session")
def tf2_python() -> Path:
    """A Python interpreter that has TensorFlow 2, named by ``HEADWATER_TF2_PYTHON``; skips the test if it is
    missing."""
    return _peer_python("HEADWATER_TF2_PYTHON")
