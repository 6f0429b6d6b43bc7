"""What programs call to ask for TensorFlow 1's behaviour, which is the only one there is."""

from __future__ import annotations

from collections.abc import Callable


def disable_v2_behavior() -> None:
    """Does nothing: graphs, reference variables and TensorFlow 1's shapes are what there is."""


disable_control_flow_v2: Callable[[], None] = disable_v2_behavior
disable_eager_execution: Callable[[], None] = disable_v2_behavior
disable_resource_variables: Callable[[], None] = disable_v2_behavior
disable_tensor_equality: Callable[[], None] = disable_v2_behavior
disable_v2_tensorshape: Callable[[], None] = disable_v2_behavior


def executing_eagerly() -> bool:
    """False: operations are added to a graph."""
    return False


def resource_variables_enabled() -> bool:
    """False: variables are TensorFlow 1's."""
    return False


def control_flow_v2_enabled() -> bool:
    """False."""
    return False


def enable_resource_variables() -> None:
    """Does nothing: a step reads each variable once, as TensorFlow's resource variables are read."""


def enable_control_flow_v2() -> None:
    """Does nothing: ``tf.cond`` and ``tf.while_loop`` are operations with graphs of their own already."""
