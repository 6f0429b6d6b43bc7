"""What programs call to ask for TensorFlow 1's behaviour, which is the only one there is."""

from __future__ import annotations


def _already() -> None:
    """Does nothing: graphs, reference variables and TensorFlow 1's shapes are what there is."""


disable_control_flow_v2 = disable_eager_execution = disable_resource_variables = disable_tensor_equality = _already
disable_v2_behavior = disable_v2_tensorshape = _already


def executing_eagerly() -> bool:
    """False: operations are added to a graph."""
    return False


def resource_variables_enabled() -> bool:
    """False: variables are TensorFlow 1's."""
    return False


def control_flow_v2_enabled() -> bool:
    """False."""
    return False
