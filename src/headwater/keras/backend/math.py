"""``tf.keras.backend``: element-wise operations, reductions along dimensions, and changes of shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import KerasTensor

from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.keras.graphs.calls import has_graph_value
from headwater.keras.graphs.phase import builds_graph
from headwater.keras.old_activations import hard_sigmoid as hard_sigmoid
from headwater.keras.types import Value
from headwater.tf1.functional import arrays, higher_order
from headwater.tf1.functional.sparse import sparse_tensor_dense_matmul

_keras: Any = keras
ops: Any = keras.ops
"""A JAX array, a variable or a symbolic tensor of Keras, or Python or NumPy values."""
Axes = int | Sequence[int] | None


def _unary(function: Callable[..., Value], doc: str) -> Callable[[Value], Value]:
    def compute(x: Value) -> Value:
        return function(x)

    compute.__doc__ = doc
    return compute


def _binary(function: Callable[..., Value], doc: str) -> Callable[[Value, Value], Value]:
    def compute(x: Value, y: Value) -> Value:
        return function(x, y)

    compute.__doc__ = doc
    return compute


def _reduction(function: Callable[..., Value], doc: str) -> Callable[..., Value]:
    def compute(x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
        return function(x, axis=axis, keepdims=keepdims)

    compute.__doc__ = doc
    return compute


def _on_floats(function: Callable[..., Value]) -> Callable[..., Value]:
    def compute(x: Value, **kwargs: object) -> Value:
        is_bool = _keras.backend.standardize_dtype(getattr(x, "dtype", "float32")) == "bool"
        return function(ops.cast(x, _keras.config.floatx()) if is_bool else x, **kwargs)

    return compute


abs = _unary(ops.abs, "Absolute values.")
cos = _unary(ops.cos, "Cosines.")
exp = _unary(ops.exp, "Powers of e.")
log = _unary(ops.log, "Natural logarithms.")
round = _unary(ops.round, "The nearest whole numbers; halves become even.")
sigmoid = _unary(ops.sigmoid, "1 / (1 + exp(-x)).")
sign = _unary(ops.sign, "-1, 0 or 1.")
sin = _unary(ops.sin, "Sines.")
softplus = _unary(ops.softplus, "log(1 + exp(x)).")
softsign = _unary(ops.softsign, "x / (1 + |x|).")
square = _unary(ops.square, "Squares.")
tanh = _unary(ops.tanh, "Hyperbolic tangents.")
transpose = _unary(ops.transpose, "Dimensions in the reverse order.")

equal = _binary(ops.equal, "Whether elements are equal.")
not_equal = _binary(ops.not_equal, "Whether elements differ.")
greater = _binary(ops.greater, "Whether ``x`` is greater.")
greater_equal = _binary(ops.greater_equal, "Whether ``x`` is not less.")
less = _binary(ops.less, "Whether ``x`` is less.")
less_equal = _binary(ops.less_equal, "Whether ``x`` is not greater.")
maximum = _binary(ops.maximum, "The greater of two elements.")
minimum = _binary(ops.minimum, "The lesser of two elements.")

all = _reduction(ops.all, "Whether all elements along the dimensions are true.")
any = _reduction(ops.any, "Whether an element along the dimensions is true.")
max = _reduction(ops.max, "The greatest along the dimensions.")
mean = _reduction(_on_floats(ops.mean), "The mean along the dimensions.")
min = _reduction(ops.min, "The least along the dimensions.")
prod = _reduction(ops.prod, "The product along the dimensions.")
std = _reduction(_on_floats(ops.std), "The standard deviation along the dimensions.")
sum = _reduction(ops.sum, "The sum along the dimensions.")
var = _reduction(_on_floats(ops.var), "The variance along the dimensions.")


def argmax(x: Value, axis: int = -1) -> Value:
    """Returns the position of the greatest element along a dimension."""
    return ops.argmax(x, axis=axis)


def argmin(x: Value, axis: int = -1) -> Value:
    """Returns the position of the least element along a dimension."""
    return ops.argmin(x, axis=axis)


def cumsum(x: Value, axis: int = 0) -> Value:
    """Returns the sums of all elements up to each position along a dimension."""
    return ops.cumsum(x, axis=axis)


def cumprod(x: Value, axis: int = 0) -> Value:
    """Returns the products of all elements up to each position along a dimension."""
    return ops.cumprod(x, axis=axis)


def pow(x: Value, a: Value) -> Value:
    """Returns ``x`` to the power of ``a``."""
    return ops.power(x, a)


def sqrt(x: Value) -> Value:
    """Returns the square roots; 0 for negative elements."""
    return ops.sqrt(ops.maximum(x, 0))


def clip(x: Value, min_value: Value | float | None, max_value: Value | float | None) -> Value:
    """Limits the elements to a range. An upper limit below the lower one is raised to it, if both are numbers."""
    if isinstance(min_value, int | float) and isinstance(max_value, int | float):
        max_value = min_value if max_value < min_value else max_value
    low = float("-inf") if min_value is None else min_value
    return ops.clip(x, low, float("inf") if max_value is None else max_value)


def elu(x: Value, alpha: float = 1.0) -> Value:
    """Returns ``x`` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere."""
    return ops.elu(x, alpha)


def relu(x: Value, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0) -> Value:
    """Returns ``min(x, max_value)`` where ``x`` is at least ``threshold``, and ``alpha * (x - threshold)``
    elsewhere."""
    return _keras.activations.relu(x, alpha, max_value, threshold)


def softmax(x: Value, axis: int = -1) -> Value:
    """Returns ``exp(x)`` divided by its sum along a dimension."""
    return ops.softmax(x, axis=axis)


def l2_normalize(x: Value, axis: Axes = None) -> Value:
    """Returns ``x`` divided by its Euclidean norm along dimensions."""
    return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=axis, keepdims=True), 1e-12))


# Products -------------------------------------------------------------------------------------------------------


def dot(x: Value, y: Value) -> Value | Tensor:
    """Returns the product over the last dimension of ``x`` and the second to last of ``y`` (the only one, if it is a
    vector)."""
    if isinstance(x, SparseTensor):
        return sparse_tensor_dense_matmul(x, y)
    return ops.dot(x, y)


def batch_dot(x: Value, y: Value, axes: int | Sequence[int] | None = None) -> Value:
    """Multiplies corresponding examples of two batches, and sums over one dimension of each.

    Args:
      axes: the dimensions to contract: one for both, or a pair. By default the last dimension of ``x`` and the second
        to last of ``y`` (its last, if ``y`` has two dimensions).

    Returns:
      An array with the other dimensions of ``x``, then the other dimensions of ``y``; if only the batch dimension is
      left, a second dimension of size 1 is added.

    Raises:
      ValueError: there is no dimension for examples, or the sizes differ.
    """
    x_rank, y_rank = len(x.shape), len(y.shape)
    if x_rank < 2 or y_rank < 2:
        raise ValueError(f"Cannot do batch_dot on inputs of {x_rank} and {y_rank} dimensions; both need two or more.")
    if axes is None:
        axes = (x_rank - 1, y_rank - 1 if y_rank == 2 else y_rank - 2)
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % x_rank, second % y_rank
    if 0 in (first, second):
        raise ValueError("Cannot perform batch_dot over axis 0: that is the dimension of examples.")
    if None not in (x.shape[first], y.shape[second]) and x.shape[first] != y.shape[second]:
        raise ValueError(f"Cannot do batch_dot on inputs with shapes {x.shape} and {y.shape} with axes={axes}.")
    letters = "abcdefghijklmnopqrstuvw"
    left = ["z", *letters[: x_rank - 1]]
    right = ["z", *letters[x_rank - 1 : x_rank + y_rank - 2]]
    left[first] = right[second] = "y"
    rest = "".join(letter for letter in (*left[1:], *right[1:]) if letter != "y")
    product = ops.einsum(f"{''.join(left)},{''.join(right)}->z{rest}", x, y)
    return product if rest else ops.expand_dims(product, 1)


# Shapes ---------------------------------------------------------------------------------------------------------


def reshape(x: Value, shape: Sequence[int]) -> Value:
    """Returns the same elements in another shape."""
    return ops.reshape(x, shape)


def flatten(x: Value) -> Value:
    """Returns all elements in one dimension."""
    return ops.reshape(x, (-1,))


def batch_flatten(x: Value) -> Value:
    """Merges all dimensions but the first into one."""
    rest = 1
    for size in x.shape[1:]:
        rest = -1 if size is None or rest == -1 else rest * size
    return ops.reshape(x, (-1 if rest != -1 else x.shape[0], rest))


def expand_dims(x: Value, axis: int = -1) -> Value:
    """Adds a dimension of size 1."""
    return ops.expand_dims(x, axis)


def squeeze(x: Value, axis: int) -> Value:
    """Removes a dimension of size 1."""
    return ops.squeeze(x, axis)


def permute_dimensions(x: Value, pattern: Sequence[int]) -> Value:
    """Reorders the dimensions."""
    return ops.transpose(x, pattern)


def concatenate(tensors: Sequence[Value], axis: int = -1) -> Value:
    """Concatenates tensors along a dimension."""
    return ops.concatenate(list(tensors), axis=axis)


def stack(x: Sequence[Value], axis: int = 0) -> Value:
    """Stacks tensors along a new dimension."""
    return ops.stack(list(x), axis=axis)


def tile(x: Value, n: int | Sequence[int]) -> Value:
    """Repeats the whole tensor, ``n`` times along each dimension."""
    return ops.tile(x, (n,) if isinstance(n, int) else tuple(n))


def repeat(x: Value, n: int) -> Value:
    """Repeats each row of a matrix ``n`` times along a new second dimension."""
    if len(x.shape) != 2:
        raise ValueError(f"repeat needs a matrix, and got {len(x.shape)} dimensions.")
    return ops.repeat(ops.expand_dims(x, 1), n, axis=1)


def repeat_elements(x: Value, rep: int, axis: int) -> Value:
    """Repeats each element ``rep`` times along a dimension."""
    return ops.repeat(x, rep, axis=axis)


def reverse(x: Value, axes: int | Sequence[int]) -> Value:
    """Reverses the order of the elements along dimensions."""
    return ops.flip(x, axis=axes)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: str = "int32") -> Any:
    """Returns the numbers from ``start`` up to, but excluding, ``stop``; without ``stop``, from 0 up to ``start``."""
    if stop is None and start < 0:
        start = 0
    if builds_graph() or has_graph_value((start, stop, step)):
        numbers = arrays.range(*((start,) if stop is None else (start, stop)), delta=step)
        return numbers if dtype == "int32" and numbers.dtype.is_integer else ops.cast(numbers, dtype)
    return ops.arange(start, stop, step, dtype=dtype)


def gather(reference: Value, indices: Value) -> Value:
    """Returns the rows with these numbers."""
    return ops.take(reference, indices, axis=0)


def one_hot(indices: Value, num_classes: int) -> Value:
    """Returns a row for each number, with a one at the position of that number and zeros elsewhere."""
    return ops.one_hot(indices, num_classes)


# Functions and conditions ---------------------------------------------------------------------------------------


def map_fn(fn: Callable[[Value], Value], elems: Value, name: str | None = None, dtype: str | None = None) -> Value:
    """Applies a function to each row."""
    if has_graph_value(elems):
        return higher_order.map_fn(fn, elems, dtype, name=name)
    del name
    results = ops.map(fn, elems)
    return results if dtype is None else _keras.tree.map_structure(lambda part: ops.cast(part, dtype), results)


def foldl(
    fn: Callable[[Value, Value], Value], elems: Value, initializer: Value | None = None, name: str | None = None
) -> Value:
    """Returns ``fn(fn(fn(initializer, first), second), ...)``; without ``initializer``, begins with the first row."""
    if has_graph_value((elems, initializer)):
        return higher_order.foldl(fn, elems, initializer, name=name)
    del name
    elems = ops.convert_to_tensor(elems) if not isinstance(elems, KerasTensor) else elems
    start, rest = (elems[0], elems[1:]) if initializer is None else (initializer, elems)
    return ops.scan(lambda carry, row: (fn(carry, row), None), ops.convert_to_tensor(start), rest)[0]


def foldr(
    fn: Callable[[Value, Value], Value], elems: Value, initializer: Value | None = None, name: str | None = None
) -> Value:
    """Like `foldl`, from the last row to the first."""
    if has_graph_value((elems, initializer)):
        return higher_order.foldr(fn, elems, initializer, name=name)
    return foldl(fn, ops.flip(ops.convert_to_tensor(elems), axis=0), initializer, name)


def switch(condition: Value, then_expression: Value, else_expression: Value) -> Value:
    """Selects one of two values, or of two functions' results; a condition with dimensions selects by element."""
    if len(getattr(condition, "shape", ())) == 0:

        def branch(expression: Value) -> Callable[[], Value]:
            return expression if callable(expression) else lambda: expression

        return ops.cond(ops.cast(condition, "bool"), branch(then_expression), branch(else_expression))
    then_value: Value = then_expression() if callable(then_expression) else then_expression
    else_value = else_expression() if callable(else_expression) else else_expression
    chosen: Value = ops.cast(condition, "bool")
    while len(chosen.shape) < len(then_value.shape):
        chosen = ops.expand_dims(chosen, -1)
    return ops.where(chosen, then_value, else_value)


def in_top_k(predictions: Value, targets: Value, k: int) -> Value:
    """Returns whether each target is among the ``k`` greatest elements of its row."""
    return ops.in_top_k(targets, predictions, k)
