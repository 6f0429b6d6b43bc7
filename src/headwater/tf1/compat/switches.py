"""Functions that select TensorFlow 1's behaviour; they do nothing, because no other behaviour is supported."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from headwater import shapes
from headwater.tf1.compat.dialect import is_eager

if TYPE_CHECKING:
    from headwater.tensorboard_protos import ConfigProto

_EXECUTORS: Final = (None, "", "DEFAULT", "SINGLE_THREADED_EXECUTOR")


def disable_v2_behavior() -> None:
    """Does nothing: graphs, reference variables and TensorFlow 1's behaviour are always used."""


disable_control_flow_v2: Callable[[], None] = disable_v2_behavior
disable_eager_execution: Callable[[], None] = disable_v2_behavior
disable_resource_variables: Callable[[], None] = disable_v2_behavior
disable_tensor_equality: Callable[[], None] = disable_v2_behavior


def enable_tensor_equality() -> None:
    """Does nothing: in graphs ``==`` compares the identity of tensors in any case."""


def enable_v2_tensorshape() -> None:
    """Makes the dimensions of a `tf.TensorShape`, by index and in loops, numbers or None."""
    shapes.use_numbers(True)


def disable_v2_tensorshape() -> None:
    """Makes the dimensions of a `tf.TensorShape` `tf.Dimension` objects again."""
    shapes.use_numbers(False)


def output_all_intermediates(state: bool | None) -> None:
    """Does nothing: branches have no graph of their own that could output intermediate values."""
    del state


@contextmanager
def function_executor_type(executor_type: str | None) -> Generator[None]:
    """Returns a context without effect: XLA compiles each part of a step, independent of TensorFlow's executors.

    Raises:
      ValueError: TensorFlow has no such executor.
    """
    if executor_type not in _EXECUTORS:
        raise ValueError(f"executor_type must be one of {', '.join(map(repr, _EXECUTORS))}, not {executor_type!r}")
    yield


def executing_eagerly() -> bool:
    """False: operations are added to a graph."""
    return False


def resource_variables_enabled() -> bool:
    """False: variables are TensorFlow 1's."""
    return False


def control_flow_v2_enabled() -> bool:
    """Returns False: graphs have the control flow of TensorFlow 1."""
    return False


def enable_resource_variables() -> None:
    """Does nothing: all variables are read as TensorFlow's resource variables are."""


def enable_control_flow_v2() -> None:
    """Does nothing: ``tf.cond`` and ``tf.while_loop`` are operations with graphs of their own already."""


def enable_eager_execution(
    config: ConfigProto | None = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """Does nothing: a program that calls this is run as a program of TensorFlow 2.

    Raises:
      RuntimeError: the program was started as one of graphs.
      NotImplementedError: an argument is given.
    """
    if config is not None or device_policy is not None or execution_mode is not None:
        raise NotImplementedError("enable_eager_execution: its arguments are not supported")
    if not is_eager():
        raise RuntimeError("this program runs in graphs: start it with `headwater exec --dialect 2`")


def enable_v2_behavior() -> None:
    """Does nothing in a program of TensorFlow 2; RuntimeError in a program of graphs."""
    enable_eager_execution()
