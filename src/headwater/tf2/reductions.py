"""Reductions of TensorFlow 2 that differ from 1.15's.

``tf.reduce_max`` and ``tf.reduce_min`` return NaN if a value is NaN; 1.15's ignore NaN. ``tf.argmax`` and ``tf.argmin``
accept Booleans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headwater.dtypes import bool_, int32, int64
from headwater.graph.convert import convert_to_tensor
from headwater.graph.ragged_value import RaggedTensorValue
from headwater.tf1.compat import tf as graphs
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf2.at_once import at_once


def _with_nan(name: str) -> Callable[..., Any]:
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        extreme = getattr(graphs, function)
        if isinstance(input_tensor, RaggedTensor | RaggedTensorValue):
            return extreme(input_tensor, axis, keepdims, name=name)
        x = convert_to_tensor(input_tensor)
        found = extreme(x, axis, keepdims, name=name)
        if not x.dtype.is_floating:
            return found
        nan = graphs.constant(np.nan, x.dtype)
        return graphs.where_v2(graphs.reduce_any(graphs.is_nan(x), axis, keepdims), nan, found)

    function = reduce.__name__ = name
    reduce.__doc__ = getattr(graphs, name).__doc__
    return at_once(reduce, name)


reduce_max: Callable[..., Any] = _with_nan("reduce_max")
reduce_min: Callable[..., Any] = _with_nan("reduce_min")


def _of_booleans(name: str) -> Callable[..., Any]:
    def find(input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None) -> Any:
        x = convert_to_tensor(input)
        if x.dtype == bool_:
            x = graphs.cast(x, int32)
        return getattr(graphs, function)(x, axis, name=name, output_type=output_type)

    function = find.__name__ = name
    find.__doc__ = getattr(graphs, name).__doc__
    return at_once(find, name)


argmax: Callable[..., Any] = _of_booleans("argmax")
argmin: Callable[..., Any] = _of_booleans("argmin")
