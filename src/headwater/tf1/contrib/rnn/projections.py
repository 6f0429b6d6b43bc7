"""Cells that wrap another cell, and embed or project its inputs or outputs."""

from __future__ import annotations

import math as python_math
from typing import Any

from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.shapes import dimension_value
from headwater.tf1.contrib.rnn.base import WrappingCell
from headwater.tf1.functional import arrays, linalg, nest, nn
from headwater.tf1.rnn.cells import BIAS, KERNEL, RNNCell
from headwater.tf1.rnn.networks import require_cell
from headwater.tf1.variables.embedding import embedding_lookup
from headwater.tf1.variables.initializers import Constant, RandomUniform
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope


def linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Tensor:
    """Returns the product of one or several concatenated matrices with the variable ``kernel``, plus ``bias``.

    Raises:
      ValueError: there is no matrix, or one has the wrong rank or an unknown number of columns.
    """
    if args is None or (nest.is_nested(args) and not args):
        raise ValueError("`args` must be specified")
    parts: list[Tensor] = list(args) if nest.is_nested(args) else [args]
    shapes = [part.shape for part in parts]
    for shape in shapes:
        if shape.ndims != 2 or dimension_value(shape[1]) is None:
            raise ValueError(f"linear is expecting 2D arguments with known numbers of columns: {shapes}")
    dtype = parts[0].dtype.base_dtype
    columns = sum(int(shape[1]) for shape in shapes)
    kernel = get_variable(KERNEL, [columns, output_size], dtype=dtype, initializer=kernel_initializer)
    product = linalg.matmul(parts[0] if len(parts) == 1 else arrays.concat(parts, 1), kernel)
    if not bias:
        return product
    with variable_scope(get_variable_scope()) as scope:
        scope.set_partitioner(None)
        initializer = Constant(0.0) if bias_initializer is None else bias_initializer
        biases = get_variable(BIAS, [output_size], dtype=dtype, initializer=initializer)
    return nn.bias_add(product, biases)


class _CheckedWrapper(WrappingCell):
    def __init__(self, cell: RNNCell, reuse: bool | None) -> None:
        super().__init__(cell, reuse)
        require_cell("cell", cell)


class EmbeddingWrapper(_CheckedWrapper):
    """Embeds ids before the cell.

    Args:
      embedding_classes: the number of ids.
      embedding_size: the size of an embedding.
      initializer: the initializer of the variable ``embedding``; the scope's if None, or uniform with variance 1.

    Raises:
      ValueError: a number is not positive.
    """

    def __init__(
        self,
        cell: RNNCell,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                f"Both embedding_classes and embedding_size must be > 0: {embedding_classes}, {embedding_size}."
            )
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        with get_default_graph().device("/cpu:0"):
            bound = python_math.sqrt(3)
            initializer = self._initializer or get_variable_scope().initializer or RandomUniform(-bound, bound)
            dtype: Any = nest.flatten(state)[0].dtype.base_dtype
            embedding = get_variable("embedding", self._shape, initializer=initializer, dtype=dtype)
            return self._cell(embedding_lookup(embedding, arrays.reshape(inputs, [-1])), state)


class InputProjectionWrapper(_CheckedWrapper):
    """Projects inputs before the cell.

    Args:
      num_proj: the size of projected inputs.
      activation: applied to them.
      input_size: ignored; deprecated in TensorFlow.
    """

    def __init__(
        self, cell: RNNCell, num_proj: int, activation: Any = None, input_size: object = None, reuse: bool | None = None
    ) -> None:
        del input_size
        super().__init__(cell, reuse)
        self._num_proj = num_proj
        self._activation = activation

    def call(self, inputs: Any, state: Any) -> Any:
        projected = linear(inputs, self._num_proj, True)
        return self._cell(projected if self._activation is None else self._activation(projected), state)


class OutputProjectionWrapper(_CheckedWrapper):
    """Projects outputs of the cell.

    Args:
      output_size: the size of projected outputs.
      activation: applied to them.

    Raises:
      ValueError: ``output_size`` is not positive.
    """

    def __init__(self, cell: RNNCell, output_size: int, activation: Any = None, reuse: bool | None = None) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size = output_size
        self._activation = activation

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        output, after = self._cell(inputs, state)
        projected = linear(output, self._output_size, True)
        return (projected if self._activation is None else self._activation(projected)), after
