"""Sparse and ragged tensors with values: `SparseTensor` and `RaggedTensor` of TensorFlow 2.

Both are subclasses of a graph's sparse and ragged tensors, with arrays in place of a graph's tensors. While functions
add operations to a graph, the parts are tensors of this graph, so that every function of sparse and ragged tensors also
takes these. Their own methods are computed eagerly, as `headwater.tf2.at_once` computes functions.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from abc import ABCMeta
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax.core
import jax.numpy as jnp
import keras
import numpy as np

from headwater.dtypes import DType, from_numpy
from headwater.graph.composites import CompositeTensor
from headwater.graph.ragged_value import RaggedTensorValue, ragged_value
from headwater.graph.sparse_tensor import SparseTensor as GraphSparseTensor
from headwater.graph.sparse_tensor import SparseTensorValue
from headwater.keras.host_layers import composite_rows, map_composite, results
from headwater.shapes import TensorShape
from headwater.tf1.functional.math import equal, not_equal
from headwater.tf1.functional.ragged_operators import of_two
from headwater.tf1.functional.ragged_tensor import RaggedTensor as GraphRaggedTensor
from headwater.tf2.at_once import EagerComposite, at_once, register_result, tensor_in_graph
from headwater.tf2.tensors import host_tensor

_OWN: Final = frozenset({"__init__", "__init_subclass__", "__repr__", "__hash__", "components", "with_components"})


class _Kind(ABCMeta):
    """The class of a kind of composite tensors: its instances include the same kind's tensors of a graph."""

    graph_kind: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.graph_kind)

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        return at_once(cls.graph_kind)(*args, **kwargs)


def _compute_eagerly(kind: Any) -> Any:
    """Replaces the inherited methods and properties of a class by methods and properties that return values."""
    base = kind.graph_kind
    members = {name: member for parent in reversed(base.__mro__[:-1]) for name, member in vars(parent).items()}
    for name, member in members.items():
        if name in _OWN or name in vars(kind):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, staticmethod(at_once(getattr(base, name))))
        elif isinstance(member, property):
            setattr(kind, name, property(at_once(member.fget)))  # pyright: ignore[reportArgumentType]
        elif inspect.isfunction(member):
            setattr(kind, name, at_once(member))
    return kind


@_compute_eagerly
class SparseTensor(GraphSparseTensor, EagerComposite, metaclass=_Kind):
    """A sparse tensor with values.

    Args:
      indices: int64 [elements, rank], in row-major order of the elements.
      values: vector of the elements.
      dense_shape: int64 vector.
    """

    graph_kind = GraphSparseTensor

    @classmethod
    def of(cls, parts: Sequence[Any]) -> SparseTensor:
        """Returns the sparse tensor of these indices, values and dense shape."""
        made: SparseTensor = object.__new__(cls)
        made.arrays = tuple(parts)
        return made

    _indices = property(lambda self: tensor_in_graph(self.arrays[0]))  # pyright: ignore
    _values = property(lambda self: tensor_in_graph(self.arrays[1]))  # pyright: ignore
    _dense_shape = property(lambda self: tensor_in_graph(self.arrays[2]))  # pyright: ignore

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return _dtype(self.arrays[1])

    @property
    def shape(self) -> TensorShape:
        """The dense shape."""
        sizes = self.arrays[2]
        return TensorShape([None] * len(sizes) if isinstance(sizes, jax.core.Tracer) else np.asarray(sizes).tolist())

    def to_value(self) -> SparseTensorValue:
        """Returns the value as NumPy arrays."""
        return SparseTensorValue(*map(np.asarray, self.arrays))

    def numpy(self) -> Any:
        """Returns the dense array, as ``Dataset.as_numpy_iterator`` yields it."""
        indices, values, shape = map(np.asarray, self.arrays)
        dense = np.full(shape.tolist(), b"" if values.dtype == object else 0, values.dtype)
        dense[tuple(indices.T)] = values
        return dense

    def __repr__(self) -> str:
        indices, values, shape = (np.asarray(part).tolist() for part in self.arrays)
        return f"SparseTensor(indices={indices}, values={values}, dense_shape={shape})"


@_compute_eagerly
class RaggedTensor(GraphRaggedTensor, EagerComposite, metaclass=_Kind):
    """A ragged tensor with values, made by the class methods ``from_…``."""

    graph_kind = GraphRaggedTensor

    @classmethod
    def of(cls, parts: Sequence[Any]) -> Any:
        """Returns the ragged tensor of the innermost values and all splits, the outermost first."""
        flat, *splits = parts
        for bounds in reversed(splits):
            made: RaggedTensor = object.__new__(cls)
            made.arrays = (flat, bounds)
            flat = made
        return flat

    @property
    def _values(self) -> Any:
        inner = self.arrays[0]
        return inner if isinstance(inner, RaggedTensor) else tensor_in_graph(inner)

    _splits = property(lambda self: tensor_in_graph(self.arrays[1]))  # pyright: ignore

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return _dtype(self._flat_array)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        inner = self.arrays[0]
        return 1 + (inner.ragged_rank if isinstance(inner, RaggedTensor) else 0)

    @property
    def _flat_array(self) -> Any:
        inner = self.arrays[0]
        return inner._flat_array if isinstance(inner, RaggedTensor) else inner

    @property
    def _split_arrays(self) -> tuple[Any, ...]:
        inner = self.arrays[0]
        return (self.arrays[1], *(inner._split_arrays if isinstance(inner, RaggedTensor) else ()))

    def to_value(self) -> Any:
        """Returns the value as NumPy arrays."""
        return ragged_value([np.asarray(self._flat_array), *map(np.asarray, self._split_arrays)])

    def to_list(self) -> list[Any]:
        """Returns the value as nested lists."""
        return self.to_value().to_list()

    def numpy(self) -> Any:
        """Returns the rows as an array of arrays; as one array if all have the same length."""
        return _as_rows(self.to_value())

    def __iter__(self) -> Iterator[Any]:
        for row in range(len(self.arrays[1]) - 1):
            yield self[row]

    def __repr__(self) -> str:
        if any(isinstance(part, jax.core.Tracer) for part in (self._flat_array, *self._split_arrays)):
            return f"tf.RaggedTensor(values={self.arrays[0]}, row_splits={self.arrays[1]})"
        return f"<tf.RaggedTensor {self.to_list()}>"


def _compare(function: Any) -> Any:
    @at_once
    def compare(self: object, other: object) -> Any:
        return of_two(function, self, other)

    return compare


_Ragged: Any = RaggedTensor
_Ragged.__eq__ = _compare(equal)
_Ragged.__ne__ = _compare(not_equal)
_Ragged.__hash__ = object.__hash__


def _as_rows(value: object) -> Any:
    if not isinstance(value, RaggedTensorValue):
        return value
    inner, bounds = _as_rows(value.values), value.row_splits
    rows = [inner[begin:end] for begin, end in itertools.pairwise(bounds)]
    if len({row.shape for row in rows}) == 1 and rows[0].dtype != object:
        return np.stack(rows)
    found = np.empty(len(rows), object)
    found[:] = rows
    return found


def _dtype(array: Any) -> DType:
    return from_numpy(np.dtype(array.dtype))


def _restored(kind: Any, _: None, parts: Sequence[object]) -> Any:
    made = object.__new__(kind)
    made.arrays = tuple(parts)
    return made


def _evaluated(kind: Any, result: Any, value: Callable[[Any], Any]) -> Any:
    """Returns the eager form of a graph's composite tensor."""
    return kind.of([value(part) for part in result.components])


def _result_of_layer(value: Any) -> Any:
    """Converts the result of a layer on the host to a tensor."""
    if isinstance(value, RaggedTensorValue | SparseTensorValue):
        return with_values(value)
    if value.dtype.kind == "U":
        texts = [text.encode() for text in value.reshape(-1).tolist()]
        value = np.fromiter(texts, object, len(texts)).reshape(value.shape)
    return host_tensor(value)


def _with_composites(kind: Any, of_composite: Callable[[Any, Any], Any]) -> None:
    """Makes a layer of Keras accept ragged and sparse tensors."""
    call = kind.call
    if hasattr(call, "__wrapped__"):
        return

    @functools.wraps(call)
    def called(self: object, inputs: object, *args: object, **kwargs: object) -> Any:
        if isinstance(inputs, CompositeTensor):
            return of_composite(self, inputs)
        return call(self, inputs, *args, **kwargs)

    kind.call = called


def _category_codes(layer: Any, inputs: Any) -> Any:
    """Returns `CategoryEncoding` of each row."""
    if layer.output_mode == "one_hot":
        raise ValueError(f"{layer.name}: output_mode 'one_hot' needs a dense tensor, with one value for each sample")
    rows = composite_rows(inputs)
    codes = np.zeros((len(rows), layer.num_tokens), np.float32)
    np.add.at(codes, (np.repeat(np.arange(len(rows)), [len(row) for row in rows]), np.concatenate(rows)), 1)
    return jnp.asarray(np.minimum(codes, 1) if layer.output_mode == "multi_hot" else codes)


def attach() -> None:
    """Makes eager functions return these classes, and JAX and layers of Keras take them. Idempotent."""
    results.convert = _result_of_layer
    _with_composites(keras.layers.CategoryEncoding, _category_codes)
    _with_composites(keras.layers.Discretization, lambda layer, inputs: map_composite(layer.call, inputs))
    for kind in (SparseTensor, RaggedTensor):
        if register_result(kind.graph_kind, functools.partial(_evaluated, kind)):
            jax.tree_util.register_pytree_node(
                kind, lambda made: (made.arrays, None), functools.partial(_restored, kind)
            )


# Elements of datasets -------------------------------------------------------------------------------------------------


def with_values(element: object) -> Any:
    """Converts a component of a dataset's element to a composite tensor of NumPy arrays; returns others unchanged."""
    if isinstance(element, SparseTensorValue):
        return SparseTensor.of(element)
    if isinstance(element, RaggedTensorValue):
        return RaggedTensor.of((element.flat_values, *element.nested_row_splits))
    return element


def without_values(value: object) -> Any:
    """Converts a composite tensor to its NumPy arrays; returns others unchanged."""
    return value.to_value() if isinstance(value, EagerComposite) else value
