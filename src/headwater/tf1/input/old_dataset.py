"""``tf.contrib.data``: datasets with the methods of TensorFlow 1.2 and 1.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from headwater.data import readers
from headwater.tf1.input import dataset as new

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


class Dataset(new.Dataset):
    """Like ``tf.data.Dataset``, but `map` has the arguments of TensorFlow 1.3."""

    @classmethod
    def _plain_class(cls) -> object:
        return Dataset

    def map(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        map_func: Callable[..., object],
        num_threads: Any = None,
        output_buffer_size: TensorLike | None = None,
        num_parallel_calls: TensorLike | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Maps each element with ``map_func``, in order.

        Args:
          num_threads: maximum number of concurrent calls.
          output_buffer_size: number of results to prefetch; None for no prefetching.
        """
        made = super().map(map_func, num_parallel_calls or num_threads, deterministic, name)
        return made if output_buffer_size is None else made.prefetch(output_buffer_size)


class TFRecordDataset(readers.TFRecordDataset, Dataset):
    __doc__ = readers.TFRecordDataset.__doc__


class TextLineDataset(readers.TextLineDataset, Dataset):
    __doc__ = readers.TextLineDataset.__doc__


class FixedLengthRecordDataset(readers.FixedLengthRecordDataset, Dataset):
    __doc__ = readers.FixedLengthRecordDataset.__doc__
