"""Headwater's datasets as data for Keras: ``fit``, ``evaluate``, ``predict`` and ``adapt`` accept them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jax.experimental.sparse import JAXSparse

from headwater.data.composites import is_dense
from headwater.data.dataset import Dataset
from headwater.keras.internals import DataAdapter, data_adapter_utils

if TYPE_CHECKING:
    from headwater.keras.text_fronts import Front
    from headwater.keras.types import Tree

_base = DataAdapter
_utils = data_adapter_utils


def is_dataset(value: object) -> bool:
    """Returns whether ``value`` is one of Headwater's datasets."""
    return isinstance(value, Dataset)


def require_dense(dataset: Dataset) -> None:
    """Raises ValueError for sparse or ragged components of a dataset's elements: compiled models take arrays only."""
    if not is_dense(dataset.node.specs):
        raise ValueError(
            "the dataset's elements have sparse or ragged components, which only a DynamicEmbedding with a combiner "
            f"takes, in the scope of a ParameterServerStrategy: {dataset.element_spec}. Other models take arrays: in a "
            "map, use tf.sparse.to_dense(tf.sparse.reset_shape(bag, [rows, longest]), -1) or ragged.to_tensor(-1)"
        )


def is_sparse(leaf: object) -> bool:
    """Returns whether ``leaf`` is a sparse array of JAX or SciPy."""
    return isinstance(leaf, JAXSparse) or hasattr(leaf, "tocsr")


def require_dense_leaf(leaf: object) -> None:
    """Raises ValueError for a sparse array, whose rows cannot be divided among workers."""
    if is_sparse(leaf):
        raise ValueError(
            f"a batch has a sparse array ({type(leaf).__name__}), whose rows workers cannot divide: make it dense, "
            "with toarray() or todense(), where the program makes its batches"
        )


class DatasetAdapter(_base):
    """Adapts a dataset to Keras's training loops.

    Args:
      dataset: a dataset of batches: inputs, or tuples of inputs, targets and weights.
      class_weight: weights of examples, by class number.
      front: see `headwater.keras.text_fronts`.
    """

    def __init__(self, dataset: Dataset, class_weight: object = None, front: Front | None = None) -> None:
        require_dense(dataset)
        self._dataset = dataset
        self._class_weight = class_weight
        self._front = front

    def get_jax_iterator(self) -> Iterator[object]:
        batches: Iterator[object] = iter(self._dataset)
        if self._front is not None:
            batches = self._front.batches(batches)
        return batches if self._class_weight is None else map(self._add_class_weights, batches)

    def get_numpy_iterator(self) -> Iterator[object]:
        return self.get_jax_iterator()

    def _add_class_weights(self, batch: object) -> Tree:
        x, y, sample_weight = _utils.unpack_x_y_sample_weight(batch)
        if sample_weight is not None:
            raise ValueError("class_weight must not be given if the elements of the dataset have sample weights")
        return x, y, _utils.class_weight_to_sample_weights(y, self._class_weight)

    @property
    def num_batches(self) -> int | None:
        count = int(self._dataset.cardinality())
        return count if count >= 0 else None

    @property
    def batch_size(self) -> int | None:
        return None

    @property
    def has_partial_batch(self) -> bool | None:
        return None

    @property
    def partial_batch_size(self) -> int | None:
        return None
