"""Decorators of ``tensorflow.python.framework.test_util`` for modes of tests. Here all tests build graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Test = Callable[..., Any]
C = TypeVar("C", bound=type)


def _unchanged(test: Test) -> Test:
    return test


def run_deprecated_v1(func: Test | None = None) -> Any:
    """The test builds a graph."""
    return _unchanged if func is None else func


def run_v1_only(reason: str, func: Test | None = None) -> Any:
    """The test, or all tests of the class, run: this is TensorFlow 1.x."""
    del reason
    return run_deprecated_v1(func)


def deprecated_graph_mode_only(func: Test | None = None) -> Any:
    """The test builds a graph."""
    return run_deprecated_v1(func)


def run_in_graph_and_eager_modes(
    func: Test | None = None,
    config: object = None,
    use_gpu: bool = True,
    reset_test: bool = True,
    assert_no_eager_garbage: bool = False,
) -> Any:
    """The test runs once, in a graph, within `headwater.tf1.testing.test_case.TestCase.test_session`.

    Args:
      func: the test; if None, a decorator is returned.
      config: a ``ConfigProto``.
      use_gpu: as for ``test_session``.
      reset_test, assert_no_eager_garbage: accepted.
    """
    del reset_test, assert_no_eager_garbage

    def decorated(test: Test) -> Test:
        @functools.wraps(test)
        def run(self: Any, *args: object, **kwargs: object) -> None:
            with self.test_session(use_gpu=use_gpu, config=config):
                test(self, *args, **kwargs)

        return run

    return decorated if func is None else decorated(func)


def run_all_in_graph_and_eager_modes(cls: C) -> C:
    """`run_in_graph_and_eager_modes` for all tests of a class."""
    for name, value in list(vars(cls).items()):
        if name.startswith("test") and callable(value) and name != "test_session":
            setattr(cls, name, run_in_graph_and_eager_modes(value))
    return cls
