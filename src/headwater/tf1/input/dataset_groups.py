"""``tf.data.experimental``: groups elements by a key, or by their length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.data import structure as nest
from headwater.data.composites import is_dense
from headwater.data.dataset import Dataset, Nested
from headwater.data.grouping import Described, Grouped
from headwater.data.node import Node
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import indexing, math, random, reductions
from headwater.tf1.functional.checks import assert_less
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.input import dataset as input_dataset

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import TensorShape


Transformation = Callable[[Dataset], Any]


def group_by_window(
    key_func: Callable[..., Structure],
    reduce_func: Callable[..., Structure],
    window_size: TensorLike | None = None,
    window_size_func: Callable[..., Structure] | None = None,
) -> Transformation:
    """Returns a transformation that gathers elements with the same key into windows and maps each to a dataset.

    Args:
      key_func: returns the key of an element, an int64 scalar.
      reduce_func: maps a key and a dataset of at most ``window_size`` elements with this key to a dataset.
      window_size: number of elements of a window; or
      window_size_func: returns this number for a key.

    Raises:
      ValueError: not exactly one of the last two arguments is given.
    """
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Must pass either window_size or window_size_func.")

    def apply(dataset: Dataset) -> Any:
        structure = dataset._structure  # pyright: ignore[reportPrivateUsage]
        several = type(structure) is tuple

        def keyed(*element: object) -> Any:
            key = math.cast(key_func(*element), dtypes.int64)
            if key.dims:
                raise ValueError("`key_func` must return a single tf.int64 scalar tensor.")
            size = window_size if window_size_func is None else window_size_func(key)
            return key, math.cast(size, dtypes.int64), element if several else element[0]

        with_keys = dataset.map(keyed)
        leaves = [Nested(None, (spec,)) for spec in dataset.node.specs]
        node: Node = with_keys.node
        if not is_dense(dataset.node.specs):
            node = Described(input=node, of=(*node.specs[:2], *dataset.node.specs))
        grouped = with_keys.changed(Grouped(input=node), (None, nest.pack(structure, leaves)))

        def reduced(key: TensorLike, window: TensorLike) -> object:
            return reduce_func(key, window if isinstance(window, Dataset) else dataset.zip(window))

        return grouped.flat_map(reduced)

    return apply


class Reducer:
    """Reduction of elements to one: initial state, state transition, and final result.

    Args:
      init_func: returns the initial state for a key.
      reduce_func: returns the next state for a state and an element.
      finalize_func: returns the result for the last state.
    """

    def __init__(
        self,
        init_func: Callable[..., Structure],
        reduce_func: Callable[..., Structure],
        finalize_func: Callable[..., Structure],
    ) -> None:
        self.init_func = init_func
        self.reduce_func = reduce_func
        self.finalize_func = finalize_func


def group_by_reducer(key_func: Callable[..., object], reducer: Reducer) -> Transformation:
    """Returns a transformation that reduces the elements of each key with a `Reducer`, by ascending keys.

    Args:
      key_func: returns the key of an element, an int64 scalar.
      reducer: the reduction for each key.
    """

    def of_window(key: object, window: Any) -> Dataset:
        state = window.reduce(reducer.init_func(key), reducer.reduce_func)
        found = reducer.finalize_func(*state) if type(state) is tuple else reducer.finalize_func(state)
        return input_dataset.Dataset.from_tensors(found)

    return group_by_window(key_func, of_window, window_size=np.int64(np.iinfo(np.int64).max))


def rejection_resample(
    class_func: Callable[..., object], target_dist: object, initial_dist: object = None, seed: int | None = None
) -> Transformation:
    """Returns a transformation that drops random elements for a target distribution; elements become (class, element).

    Args:
      class_func: returns the class of an element, an int32 scalar.
      target_dist: desired frequency of each class.
      initial_dist: frequency of each class in the input; if None, estimated from the elements so far.
      seed: the seed of the random choice.
    """
    target = np.asarray(target_dist, np.float32)

    def apply(dataset: Dataset) -> Any:
        several = type(dataset._structure) is tuple  # pyright: ignore[reportPrivateUsage]

        def with_class(*element: object) -> tuple[object, object | tuple[object, ...]]:
            return class_func(*element), element if several else element[0]

        def with_frequencies(*both: object) -> object:
            return np.asarray(initial_dist, np.float32), both

        def without(frequencies: Structure, both: object) -> object:
            del frequencies
            return both

        def counted(counts: Any, both: Any) -> Any:
            counts = counts + indexing.one_hot(both[0], len(target), dtype=dtypes.float32)
            return counts, (counts / reductions.reduce_sum(counts), both)

        pairs = dataset.map(with_class)
        if initial_dist is None:
            first = np.zeros(len(target), np.float32)
            known = pairs.scan(first, counted)
        else:
            known = pairs.map(with_frequencies)

        def accepted(frequencies: Structure, both: Any) -> Tensor:
            ratio = target / math.maximum(frequencies, np.float32(np.finfo(np.float32).tiny))
            # Keep all elements of the most under-represented class, and a fraction of all other classes.
            chance = indexing.gather(ratio, both[0]) / reductions.reduce_max(ratio)
            return random.random_uniform([], seed=seed) < chance

        return known.filter(accepted).map(without)

    return apply


def bucket_by_sequence_length(
    element_length_func: Callable[..., object],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Structure = None,
    padding_values: Structure = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Returns a transformation to batches of elements of similar lengths, padded to the longest of each batch.

    Args:
      element_length_func: returns the length of an element, an int32 scalar.
      bucket_boundaries: ascending lengths; each is the least length of the next bucket.
      bucket_batch_sizes: elements of a batch, for each bucket: one more than boundaries.
      padded_shapes: as for `Dataset.padded_batch`; dimensions that are not known are padded if None.
      padding_values: values of the padding; 0 or empty if None.
      pad_to_bucket_boundary: pad to the longest length that a bucket takes; no element may belong to the last.
      no_padding: elements of a bucket have the same shape.
      drop_remainder: drop smaller batches.

    Raises:
      ValueError: the numbers of boundaries and batch sizes do not match.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError("len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1")

    def bucket_of(*element: object) -> Tensor:
        length = math.cast(element_length_func(*element), dtypes.int64)
        reached = math.greater_equal(length, np.asarray(bucket_boundaries, np.int64))
        return reductions.reduce_sum(math.cast(reached, dtypes.int64))

    def size_of(bucket: Any) -> Tensor:
        return indexing.gather(np.asarray(bucket_batch_sizes, np.int64), bucket)

    def longest_of(bucket: Any) -> Tensor:
        message = "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
        last = np.int64(len(bucket_boundaries))
        with control_dependencies([assert_less(bucket, last, message=message)]):
            return indexing.gather(np.asarray(bucket_boundaries, np.int64), bucket) - 1

    def batched(bucket: object, window: Any) -> Any:
        size = size_of(bucket)
        if no_padding:
            return window.batch(size, drop_remainder)
        filler = longest_of(bucket) if pad_to_bucket_boundary else None
        shapes = padded_shapes
        if padded_shapes is None:
            shapes = nest.map_structure(lambda spec: spec.shape, window.element_spec)

        def filled(shape: TensorShape) -> Any:
            dims: list[Any] = list(shape.as_list() if hasattr(shape, "as_list") else shape)
            dims = [filler if dim is None or getattr(dim, "value", dim) is None else dim for dim in dims]
            return dims if None in dims or not pad_to_bucket_boundary else convert_to_tensor(dims, dtypes.int64)

        return window.padded_batch(size, nest.map_structure(filled, shapes), padding_values, drop_remainder)

    return group_by_window(bucket_of, batched, window_size_func=size_of)
