"""``tf.data.experimental`` and ``tf.contrib.data``: functions that transform datasets, for `Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater import dtypes
from headwater.data.batches import SparseBatch
from headwater.data.composites import is_dense
from headwater.data.dataset import Dataset
from headwater.data.functions import IgnoreErrors, Map
from headwater.data.node import INFINITE, UNKNOWN, positive
from headwater.data.queries import Unique
from headwater.errors import InvalidArgumentError
from headwater.shapes import as_shape

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike


INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN

Transformation = Callable[[Dataset], Any]


def map_and_batch(
    map_func: Callable[..., object],
    batch_size: TensorLike,
    num_parallel_batches: Any = None,
    drop_remainder: TensorLike = False,
    num_parallel_calls: TensorLike | None = None,
) -> Transformation:
    """`Dataset.map`, then `Dataset.batch`.

    Args:
      num_parallel_batches: ``num_parallel_calls`` in batches.

    Raises:
      ValueError: both numbers are given.
    """
    if num_parallel_batches is not None:
        if num_parallel_calls is not None:
            raise ValueError("The `num_parallel_batches` and `num_parallel_calls` arguments are mutually exclusive.")
        num_parallel_calls = num_parallel_batches * batch_size

    def applied(dataset: Dataset) -> Dataset:
        mapped = dataset.map(map_func, num_parallel_calls)
        if isinstance(mapped.node, Map):
            mapped = mapped.changed(replace(mapped.node, preserve_cardinality=True))
        return mapped.batch(batch_size, drop_remainder)

    return applied


def shuffle_and_repeat(
    buffer_size: TensorLike, count: TensorLike | None = None, seed: int | None = None
) -> Transformation:
    """`Dataset.shuffle`, then `Dataset.repeat`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., object],
    cycle_length: TensorLike,
    block_length: TensorLike = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Transformation:
    """`Dataset.interleave`, with a thread for each dataset of the cycle.

    Args:
      sloppy: whether to skip a dataset whose next element is not ready.
      buffer_output_elements: number of elements of each dataset to prefetch.
      prefetch_input_elements: a performance hint; it must be valid, but has no effect.

    Raises:
      InvalidArgumentError: a number of elements is invalid.
    """
    if buffer_output_elements is not None:
        positive(buffer_output_elements, "`buffer_output_elements`")
    if prefetch_input_elements is not None and prefetch_input_elements < 0:
        raise InvalidArgumentError("`prefetch_input_elements` must be >= 0")
    return lambda dataset: dataset.interleaved(
        map_func, cycle_length, block_length, "interleave", cycle_length, buffer_output_elements or 0, sloppy
    )


def unbatch() -> Transformation:
    """`Dataset.unbatch`."""
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start: TensorLike = 0) -> Transformation:
    """`Dataset.enumerate`."""
    return lambda dataset: dataset.enumerate(start)


def scan(initial_state: Structure, scan_func: Callable[..., object]) -> Transformation:
    """`Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


def take_while(predicate: Callable[..., object]) -> Transformation:
    """`Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


def ignore_errors() -> Transformation:
    """Skips the elements for which the function of a `Dataset.map` fails."""
    return lambda dataset: dataset.changed(IgnoreErrors(input=dataset.node))


def unique() -> Transformation:
    """Yields each element once, at its first occurrence.

    Raises:
      TypeError: the elements have several components, or other types than int32, int64 and string.
    """

    def apply(dataset: Dataset) -> Any:
        specs = dataset.node.specs
        if len(specs) != 1 or not is_dense(specs) or specs[0].dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
            raise TypeError(
                "`tf.data.experimental.unique()` only supports inputs with a single `tf.int32`, `tf.int64`, or "
                "`tf.string` component."
            )
        return dataset.changed(Unique(input=dataset.node))

    return apply


def prefetch_to_device(device: str, buffer_size: TensorLike | None = None) -> Transformation:
    """`Dataset.prefetch`. Elements are transferred to a device with the step that uses them."""
    del device
    return lambda dataset: dataset.prefetch(buffer_size)


def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """Returns the dataset unchanged. Elements are transferred to a device with the step that uses them."""
    del target_device, source_device
    return lambda dataset: dataset


def dense_to_sparse_batch(batch_size: TensorLike, row_shape: Any) -> Transformation:
    """Batches dense elements of different sizes as sparse tensors.

    Args:
      batch_size: number of elements in a batch; the last may be smaller.
      row_shape: the dense shape of a row; None or -1 for the largest size in a batch.

    Raises:
      TypeError: the elements have several components, or a sparse or ragged component.
    """

    def apply(dataset: Dataset) -> Any:
        specs = dataset.node.specs
        if len(specs) != 1 or not is_dense(specs):
            raise TypeError(f"dense_to_sparse_batch takes elements of one dense component, not {dataset.element_spec}")
        sizes = np.asarray([-1 if size is None else size for size in as_shape(row_shape).as_dims or ()], np.int64)
        count = dataset.as_value(batch_size, dtypes.int64)
        return dataset.changed(SparseBatch(input=dataset.node, batch_size=count, row_shape=sizes), None)

    return apply


def batch_and_drop_remainder(batch_size: TensorLike) -> Transformation:
    """`Dataset.batch`, without a smaller last batch."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: TensorLike, padded_shapes: Structure, padding_values: Structure = None
) -> Transformation:
    """`Dataset.padded_batch`, without a smaller last batch."""
    return lambda dataset: dataset.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: TensorLike | None = None, seed: int | None = None
) -> Dataset:
    """`Dataset.sample_from_datasets`."""
    return datasets[0].sample_from_datasets(datasets, weights, seed)


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """`Dataset.choose_from_datasets`."""
    return datasets[0].choose_from_datasets(datasets, choice_dataset)
