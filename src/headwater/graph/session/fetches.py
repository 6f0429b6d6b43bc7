"""Fetches in nested structures, and feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from headwater.dtypes import string, to_string_array
from headwater.graph.fetch_types import Rebuild, expansion_of, register_session_run_conversion_functions
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.prune import RunRequest
from headwater.graph.registry import HostArray
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headwater.graph.types import FeedDict
from headwater.shapes import TensorShape


class IndexedSlicesValue(NamedTuple):
    """The value of an `IndexedSlices`."""

    values: HostArray
    indices: HostArray
    dense_shape: HostArray | None


def _fetch_slices(slices: Any) -> tuple[list[object], Rebuild]:
    parts = [slices.values, slices.indices]
    if slices.dense_shape is None:
        return parts, lambda found: IndexedSlicesValue(found[0], found[1], None)
    return [*parts, slices.dense_shape], lambda found: IndexedSlicesValue(*found)


def _feed_slices(slices: Any, value: Any) -> list[tuple[object, object]]:
    parts = [slices.values, slices.indices, slices.dense_shape]
    return [(part, item) for part, item in zip(parts, value, strict=False) if part is not None]


def _fetch_sparse(sparse: Any) -> tuple[list[object], Rebuild]:
    parts = [sparse.indices, sparse.values, sparse.dense_shape]
    return parts, lambda found: SparseTensorValue(*found)


def _feed_sparse(sparse: Any, value: Any) -> list[tuple[object, object]]:
    return list(zip((sparse.indices, sparse.values, sparse.dense_shape), value, strict=True))


register_session_run_conversion_functions(IndexedSlices, _fetch_slices, _feed_slices)
register_session_run_conversion_functions(SparseTensor, _fetch_sparse, _feed_sparse)

_element_types: set[type] = {Tensor, Operation, str}
"""Types that are known to be elements of a structure, not containers. This is a cache: most fetches have few types, and
a lookup is faster than checking a type."""


def cache_key(structure: object) -> Any:
    """Returns a hashable key. The keys of two structures are equal if they have the same form and the same elements."""
    if type(structure) in _element_types:
        return structure
    if isinstance(structure, (list, tuple)):  # a tuple, as a union of types would be created on each call
        items = cast(Sequence[object], structure)
        return type(items), *[item if type(item) in _element_types else cache_key(item) for item in items]
    if isinstance(structure, Mapping):
        named = cast(Mapping[object, object], structure)
        return type(named), *((key, cache_key(value)) for key, value in named.items())
    _element_types.add(type(structure))
    return structure


class Fetches:
    """A structure of fetches, decomposed into tensors and operations.

    Attributes:
      tensors: the tensors to fetch, each once.
      targets: the operations to run.
    """

    def __init__(self, graph: Graph, structure: object) -> None:
        self._graph = graph
        self._index: dict[Tensor, int] = {}
        self._targets: dict[Operation, None] = {}
        self._build = self._expand(structure)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self._index)

    @property
    def targets(self) -> tuple[Operation, ...]:
        return tuple(self._targets)

    def rebuild(self, values: Sequence[object]) -> Any:
        """Returns the structure with values in place of tensors, and None in place of operations."""
        return self._build(values)

    def _expand(self, item: object) -> Rebuild:
        if item is None:
            raise TypeError("Fetch argument None has invalid type <class 'NoneType'>")
        expansion = expansion_of(item)
        if expansion is not None:
            parts, make = expansion[0](item)
            inner = [self._expand(part) for part in parts]
            return lambda values: make([build(values) for build in inner])
        if isinstance(item, Mapping):
            made = {key: self._expand(value) for key, value in cast(Mapping[object, object], item).items()}
            return lambda values: _fill(type(cast(Any, item))(), made, values)
        if isinstance(item, list | tuple):
            builds = [self._expand(part) for part in cast(Sequence[object], item)]
            if isinstance(item, list):
                return lambda values: [build(values) for build in builds]
            named: Any = getattr(type(item), "_make", tuple)  # pyright: ignore[reportUnknownArgumentType]
            return lambda values: named(build(values) for build in builds)
        return self._element(item)

    def _element(self, item: object) -> Rebuild:
        try:
            element = self._graph.as_graph_element(item)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {item!r} has invalid type {type(item)}, must be a string or Tensor. ({error})"
            ) from None
        except (ValueError, KeyError) as error:
            raise ValueError(f"Fetch argument {item!r} cannot be interpreted as a Tensor. ({error})") from None
        if not self._graph.is_fetchable(element):
            raise ValueError(f"Operation {element.name!r} has been marked as not fetchable.")
        if isinstance(element, Operation):
            self._targets[element] = None
            return lambda values: None
        index = self._index.setdefault(element, len(self._index))
        return lambda values: values[index]


def _fill(mapping: Any, builds: Mapping[object, Rebuild], values: Sequence[Any]) -> object:
    for key, build in builds.items():
        mapping[key] = build(values)
    return mapping


_FLOATS = frozenset((float, np.float64))


class FedTensor:
    """Converts and checks the values fed to a tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._dtype = tensor.dtype.base_dtype
        self._numpy = self._dtype.numpy_dtype
        self._is_string = self._dtype == string
        # A Python float in this range can be converted without an overflow, so NumPy gives no warning, and the slower
        # conversion within `errstate` is not needed.
        fits = np.finfo(self._numpy) if self._numpy.kind == "f" else None
        self._least, self._most = (float(fits.tiny), float(fits.max)) if fits is not None else (1.0, 0.0)
        self._dims = tensor.dims
        self._fits: tuple[int, ...] | None = None  # the latest shape that fits

    def array(self, value: Any) -> Any:
        """Converts ``value`` to an array of the tensor's type.

        Raises:
          TypeError: ``value`` cannot be converted to the tensor's type.
          ValueError: the shape of ``value`` is incompatible with the tensor's static shape.
        """
        if type(value) is np.ndarray and value.dtype == self._numpy:
            array: Any = value  # pyright: ignore[reportUnknownVariableType]
        else:
            fits = type(value) in _FLOATS and self._least <= abs(value) <= self._most
            array = np.asarray(value, self._numpy) if fits else self._convert(value)
        dims = self._dims
        if dims is not None:
            shape = array.shape
            if shape != dims and shape != self._fits:
                self._check_shape(shape)
                self._fits = shape
        return array

    def _convert(self, value: Any) -> HostArray:
        if isinstance(value, Tensor):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
                f"strings, lists, and numpy ndarrays. For reference, the tensor object was {value!r} which was passed "
                f"to the feed with key {self.tensor!r}."
            )
        if self._is_string:
            return to_string_array(value)
        try:
            with np.errstate(all="ignore"):  # as in all operations of a step, values that are too large become infinite
                return np.asarray(value, self._numpy)
        except OverflowError as error:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{self._dtype.name}. Try explicitly setting the type of the feed tensor to a larger type."
            ) from error
        except NotImplementedError as error:  # the value contains tensors
            raise TypeError(f"The value of a feed cannot hold tensors: {value!r}") from error

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if not self.tensor.shape.is_compatible_with(TensorShape(shape)):
            raise ValueError(
                f"Cannot feed value of shape {shape!r} for Tensor {self.tensor.name!r}, "
                f"which has shape '{self.tensor.shape}'"
            )


def expand_feeds(graph: Graph, feed_dict: FeedDict) -> dict[Tensor, Any]:
    """Returns the tensors that ``feed_dict`` feeds, with their values. If a tensor is fed twice, the last value is
    used.

    Raises:
      TypeError: ``feed_dict`` is not a mapping, or a key is not a tensor.
      ValueError: a tensor may not be fed, or the value for a tuple of tensors has the wrong structure.
    """
    if not isinstance(feed_dict, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"feed_dict must be a dictionary, not {feed_dict!r}")
    found: dict[Tensor, Any] = {}
    for key, value in feed_dict.items():
        for target, item in _feed_pairs(key, value):
            try:
                tensor = graph.as_graph_element(target, allow_operation=False)
            except (TypeError, ValueError, KeyError) as error:
                message = error.args[0] if error.args else ""
                raise TypeError(f"Cannot interpret feed_dict key as Tensor: {message}") from None
            if not graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor} may not be fed.")
            found[tensor] = item
    return found


def _feed_pairs(key: object, value: object) -> list[tuple[object, object]]:
    """Expands one item of a feed_dict into pairs of a tensor (or its name) and a value."""
    if isinstance(key, tuple):
        keys = cast(Sequence[object], key)
        if not isinstance(value, list | tuple) or len(cast(Sequence[object], value)) != len(keys):
            raise ValueError(f"feed_dict has {len(keys)} tensors in a tuple, and a value of another structure for it")
        return [pair for k, v in zip(keys, cast(Sequence[object], value), strict=True) for pair in _feed_pairs(k, v)]
    expansion = expansion_of(key)
    if expansion is not None and expansion[1] is not None:
        return expansion[1](key, value)
    return [(key, value)]


def make_request(fetches: Fetches, feeds: Sequence[FedTensor], block: int = 1) -> RunRequest:
    """Returns the request for these fetches with these feeds; ``block`` as in `RunRequest`."""
    return RunRequest(fetches.tensors, tuple(feed.tensor for feed in feeds), fetches.targets, block)


def to_result(value: object) -> Any:
    """Converts an array to a result for programs: a NumPy scalar for rank 0, else a writable array."""
    array = value if type(value) is np.ndarray else np.asarray(value)
    if array.ndim == 0:  # pyright: ignore[reportUnknownMemberType]
        return array[()]  # pyright: ignore[reportUnknownVariableType]
    if not array.flags.writeable:  # pyright: ignore[reportUnknownMemberType]
        return array.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return array  # pyright: ignore[reportUnknownVariableType]
