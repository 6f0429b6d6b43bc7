"""Layers of feature columns, as ``tf.keras`` of TensorFlow 1.15 had them, for tensors of graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headwater.tf1.feature_columns.dense import concatenate, sort_columns, sort_dense_columns
from headwater.tf1.feature_columns.sequences import concatenate_sequences
from headwater.tf1.layers.base import Layer

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.tf1.feature_columns.base import Column


class DenseFeatures(Layer):
    """Concatenates dense columns, in the order of their names, to a matrix with a row per example.

    Args:
      trainable: whether the variables are trained.
      name: the layer's name.

    Raises:
      ValueError: there are no columns, two have the same name, or one is not dense.
    """

    def __init__(
        self, feature_columns: Iterable[Column], trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._columns = sort_dense_columns(feature_columns)

    def call(self, features: object, cols_to_output_tensors: object = None) -> Tensor:
        """Returns the matrix; adds each column's tensor to the dictionary ``cols_to_output_tensors``."""
        return concatenate(features, self._columns, None, self.trainable, None, cols_to_output_tensors)


class SequenceFeatures(Layer):
    """Concatenates sequence columns, in the order of their names; also returns each example's number of steps.

    Args:
      feature_columns: columns of numbers of sequences, and indicators and embeddings of categories of sequences.
      trainable: whether the variables are trained.
      name: the layer's name.

    Raises:
      ValueError: there are no columns, or two have the same name; at a call: a column is not a sequence column.
    """

    def __init__(
        self, feature_columns: Iterable[Column], trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        self._columns = sort_columns(feature_columns)

    def call(self, features: object) -> tuple[Tensor, Tensor]:
        """``[batch, steps, size]`` of float32, and the lengths, int64."""
        return concatenate_sequences(features, self._columns, None, self.trainable)
