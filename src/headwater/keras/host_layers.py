"""Layers that compute their outputs with NumPy on the host, from dense, ragged or sparse tensors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import keras
import numpy as np

from headwater.graph.composites import CompositeTensor
from headwater.graph.operation import Tensor
from headwater.graph.ragged_value import RaggedTensorValue
from headwater.graph.sparse_tensor import SparseTensorValue
from headwater.keras.graphs import lookups
from headwater.keras.graphs.functions import is_exporting
from headwater.tf1.functional.arrays import squeeze
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.functional.script import py_func

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

_layer = keras.layers.Layer
_tensor = keras.KerasTensor


class _Results:
    """The form of layers' results.

    Attributes:
      convert: converts a computed NumPy array or `SparseTensorValue` to the result of a layer: a tensor in programs of
        TensorFlow 2; unchanged in other programs.
    """

    convert: Callable[[Any], Any] = staticmethod(lambda array: array)


def as_dense(value: Tree) -> HostArray:
    """Returns the result of a layer as an array, also if it is sparse."""
    if not hasattr(value, "dense_shape"):
        return np.asarray(value)
    dense = np.zeros(np.asarray(value.dense_shape), np.float32)
    dense[tuple(np.asarray(value.indices).T)] = np.asarray(value.values)
    return dense


results = _Results()


def map_composite(function: Callable[[Any], Any], inputs: Tree) -> Tree:
    """Returns a ragged or sparse tensor with the results of ``function`` of its values."""
    if isinstance(inputs, RaggedTensor):
        return inputs.with_flat_values(function(inputs.flat_values))
    return type(inputs)(inputs.indices, function(inputs.values), inputs.dense_shape)


def composite_rows(inputs: Tree) -> list[HostArray]:
    """Returns the values of each row of a ragged or sparse tensor with two dimensions.

    Raises:
      ValueError: it has the wrong number of dimensions, or belongs to a graph.
    """
    if not hasattr(inputs, "to_value"):
        raise ValueError(
            f"{inputs} has no values yet: call the layer outside of the dataset's function, or pass a dense tensor"
        )
    value = inputs.to_value()
    if isinstance(value, RaggedTensorValue):
        if isinstance(value.values, RaggedTensorValue) or value.values.ndim > 1:
            raise ValueError("a ragged tensor must have two dimensions to be encoded, one for samples")
        return [value.values[begin:end] for begin, end in itertools.pairwise(value.row_splits)]
    if len(value.dense_shape) != 2:
        raise ValueError("a sparse tensor must have two dimensions to be encoded, one for samples")
    return [value.values[value.indices[:, 0] == row] for row in range(int(value.dense_shape[0]))]


class HostLayer(_layer):
    """A layer that computes its outputs with NumPy.

    Attributes:
      output_mode: ``int`` for numbers; otherwise the encoding of a sample's numbers.
      sparse: whether encoded results are sparse tensors. Within a model, which computes with arrays, they are dense.
    """

    output_mode = "int"
    sparse = False

    def __init__(self, **kwargs: Tree) -> None:
        super().__init__(**kwargs)
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    def _depth(self) -> int:
        raise NotImplementedError

    def _numbers(self, values: object) -> Tree:
        raise NotImplementedError

    def _type(self) -> type[np.generic]:
        return np.int64 if self.output_mode == "int" else np.float32

    def call(self, inputs: object) -> Tree:
        if isinstance(inputs, CompositeTensor):
            return self._of_composite(inputs)
        if isinstance(inputs, Tensor) and is_exporting():
            return self._in_function(inputs)
        if isinstance(inputs, Tensor):
            spec = self.compute_output_spec(inputs)
            outputs = py_func(
                lambda values: self._on_host(values).astype(spec.dtype), [inputs], spec.dtype, stateful=False
            )
            outputs.set_shape(spec.shape)
            return outputs
        if isinstance(inputs, jax.core.Tracer):
            spec = self.compute_output_spec(inputs)
            dtype = np.int32 if self.output_mode == "int" else np.float32
            shape = jax.ShapeDtypeStruct(spec.shape, dtype)
            return jax.pure_callback(lambda values: self._on_host(values).astype(dtype), shape, inputs)
        return self._result(self._on_host(inputs))

    def _result(self, dense: Tree) -> Tree:
        if self.sparse:
            places = np.argwhere(dense)
            values = dense[tuple(places.T)].astype(self._sparse_type())
            dense = SparseTensorValue(places, values, np.array(dense.shape, np.int64))
        return results.convert(dense)

    def _sparse_type(self) -> type[np.generic]:
        """Returns the element type of sparse results, as in TensorFlow."""
        return np.float32

    def _in_function(self, inputs: Tensor) -> Tree:
        """Adds operations that compute the outputs to a function that is exported."""
        if self.output_mode == "one_hot" and inputs.dims and inputs.dims[-1] == 1:
            inputs = squeeze(inputs, [-1])
        numbers = self._numbers_in_function(inputs)
        return numbers if self.output_mode == "int" else lookups.encode(self, numbers, self._depth(), self._weights())

    def _numbers_in_function(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def _weights(self) -> HostArray | None:
        return None

    def _of_composite(self, inputs: object) -> Tree:
        if self.output_mode == "int":
            return map_composite(self.call, inputs)
        rows = [self._numbers(row) for row in composite_rows(inputs)]
        if self.output_mode == "one_hot":
            raise ValueError(f"{self.name}: output_mode 'one_hot' needs a dense tensor, with one value for each sample")
        return self._result(
            np.stack([self._encode(row) for row in rows]) if rows else np.zeros((0, self._depth()), np.float32)
        )

    def _on_host(self, inputs: object) -> Tree:
        values = np.asarray(inputs)
        if self.output_mode == "int":
            return self._numbers(values)
        if self.output_mode == "one_hot" and values.ndim and values.shape[-1] == 1:
            values = values[..., 0]
        numbers = self._numbers(values)
        return self._encode(numbers)

    def _encode(self, numbers: Any) -> Tree:
        """Encodes the numbers in the last dimension as one vector; with ``one_hot``, as a vector for each number."""
        depth = self._depth()
        encoded = np.zeros((*numbers.shape, depth), np.float32)
        is_valid = (numbers >= 0) & (numbers < depth)
        np.put_along_axis(
            encoded, np.where(is_valid, numbers, 0)[..., None], is_valid[..., None].astype(np.float32), -1
        )
        if self.output_mode == "one_hot" or not numbers.ndim:
            return encoded
        if self.output_mode == "multi_hot":
            return encoded.max(-2, initial=0.0)
        counts, weights = encoded.sum(-2), self._weights()
        return counts if weights is None else counts * weights

    def compute_output_spec(self, inputs: Tree) -> Tree:
        shape = tuple(inputs.shape)
        if self.output_mode == "int":
            return _tensor(shape, dtype="int64")
        if self.output_mode == "one_hot":
            leading = shape[:-1] if shape and shape[-1] == 1 else shape
        else:
            leading = shape[:-1]
        return _tensor((*leading, self._depth()), dtype="float32")

    def compute_output_shape(self, input_shape: object) -> Tree:
        return self.compute_output_spec(_tensor(input_shape)).shape
