"""Functions of `tf` that compute the same as functions of Keras's backend, by their name.

A function returns NotImplemented for arguments for which the results would differ, such as operands of two types,
which Keras converts to a common type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import jax
import jax.core
import keras
import numpy as np

from headwater.dtypes import as_dtype
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.keras.internals import backend
from headwater.keras.types import Tree
from headwater.tf1.functional import (
    arrays,
    conditions,
    convolution,
    indexing,
    linalg,
    math,
    nn,
    random,
    reductions,
    space_to_batch,
    special,
)

Function = Callable[..., Tree]
_keras: Tree = keras


def _number(value: Tree) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _operands(*values: Tree) -> list[Tensor] | None:
    """Returns the operands as tensors of one numeric type; None if Keras would convert tensors among them."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype.base_dtype
    if any(tensor.dtype.base_dtype != dtype for tensor in tensors):
        return None
    if not (dtype.is_floating or dtype.is_integer):
        return None
    operands: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            operands.append(value)
        elif _number(value) and (dtype.is_floating or isinstance(value, int)):
            operands.append(convert_to_tensor(value, dtype))
        elif isinstance(value, np.ndarray | np.generic | jax.Array) and value.dtype == dtype.numpy_dtype:
            # A function that JAX traces has no values yet; `at_once` captures its arrays.
            traced = isinstance(value, jax.core.Tracer)
            operands.append(convert_to_tensor(value if traced else np.asarray(value), dtype))
        else:
            return None
    return operands


def _binary(function: Function, *, floating: bool = False) -> Function:
    def call(x1: Tree, x2: Tree) -> Tree:
        operands = _operands(x1, x2)
        if operands is None or (floating and not operands[0].dtype.is_floating):
            return NotImplemented
        return function(*operands)

    return call


def _of_floats(function: Function) -> Function:
    """A function of one argument, for floating-point tensors."""

    def call(x: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if not x.dtype.is_floating or args or kwargs:
            return NotImplemented
        return function(x)

    return call


def _of_numbers(function: Function) -> Function:
    def call(x: Tree) -> Tree:
        return function(x) if x.dtype.is_floating or x.dtype.is_integer else NotImplemented

    return call


def _reduction(function: Function) -> Function:
    def call(x: Tree, axis: Tree = None, keepdims: bool = False, initial: Tree = None, dtype: Tree = None) -> Tree:
        if not isinstance(x, Tensor) or not x.dtype.is_floating or initial is not None or dtype is not None:
            return NotImplemented
        return function(x, axis=list(axis) if isinstance(axis, tuple) else axis, keepdims=keepdims)

    return call


def _logical(function: Function) -> Function:
    def call(x: Tree, axis: Tree = None, keepdims: bool = False) -> Tree:
        if not isinstance(x, Tensor) or not x.dtype.is_bool:
            return NotImplemented
        return function(x, axis=list(axis) if isinstance(axis, tuple) else axis, keepdims=keepdims)

    return call


def _convert(x: Tree, dtype: Tree = None, sparse: bool | None = None, ragged: bool | None = None) -> Tree:
    del sparse, ragged
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x)
    return x if dtype is None else _cast(x, dtype)


def _cast(x: Tree, dtype: Tree) -> Tree:
    return math.cast(x, as_dtype(backend.standardize_dtype(dtype)))


def _sizes(x: Tree) -> Tree:
    """The sizes: numbers, and scalar tensors for unknown sizes."""
    if x.dims is None:
        raise ValueError(f"Keras needs the number of dimensions of {x.name!r}, which is unknown: set it with set_shape")
    if None not in x.dims:
        return x.dims
    whole = arrays.shape(x)
    return tuple(whole[index] if dim is None else dim for index, dim in enumerate(x.dims))


def _matmul(x1: Tree, x2: Tree) -> Tree:
    operands = _operands(x1, x2)
    if operands is None or not operands[0].dtype.is_floating:
        return NotImplemented
    left, right = operands
    ranks = [None if t.dims is None else len(t.dims) for t in operands]
    if ranks == [2, 2]:
        return linalg.matmul(left, right)
    if ranks[0] is not None and ranks[0] > 2 and ranks[1] == 2:
        return linalg.tensordot(left, right, [[ranks[0] - 1], [0]])
    return NotImplemented


def _reshape(x: Tree, newshape: Tree) -> Tree:
    return arrays.reshape(x, [newshape] if isinstance(newshape, int) else newshape)


def _transpose(x: Tree, axes: Tree = None) -> Tree:
    return arrays.transpose(x, None if axes is None else list(axes))


def _joined(function: Function) -> Function:
    def call(tensors: Sequence[Tree], axis: Tree = 0) -> Tree:
        if not all(isinstance(x, Tensor) for x in tensors) or axis is None:
            return NotImplemented
        if len({x.dtype.base_dtype for x in tensors}) > 1:
            return NotImplemented
        return function(list(tensors), axis=axis)

    return call


def _expand_dims(x: Tree, axis: Tree) -> Tree:
    return arrays.expand_dims(x, axis) if isinstance(axis, int) else NotImplemented


def _squeeze(x: Tree, axis: Tree = None) -> Tree:
    return arrays.squeeze(x, list(axis) if isinstance(axis, tuple) else axis)


def _clip(x: Tree, x_min: Tree, x_max: Tree) -> Tree:
    if not isinstance(x, Tensor) or not x.dtype.is_floating or not (_number(x_min) and _number(x_max)):
        return NotImplemented
    return math.minimum(math.maximum(x, float(x_min)), float(x_max))


def _like(function: Function) -> Function:
    def call(x: Tree, dtype: Tree = None) -> Tree:
        return function(x, dtype=None if dtype is None else as_dtype(backend.standardize_dtype(dtype)))

    return call


def _take(x: Tree, indices: Tree, axis: int | None = None) -> Tree:
    if axis is None or not isinstance(indices, Tensor) or not isinstance(x, Tensor):
        return NotImplemented
    return indexing.gather(x, indices, axis=axis)


def _where(condition: Tree, x1: Tree = None, x2: Tree = None) -> Tree:
    if x1 is None or x2 is None or not isinstance(x1, Tensor) or not isinstance(x2, Tensor):
        return NotImplemented
    shapes = [t.dims for t in (condition, x1, x2) if isinstance(t, Tensor)]
    same = len(shapes) == 3 and all(dims == shapes[0] for dims in shapes) and None not in (shapes[0] or (None,))
    return indexing.where(condition, x1, x2) if same and condition.dtype.is_bool else NotImplemented


def _softmax(function: Function) -> Function:
    def call(x: Tree, axis: Tree = -1) -> Tree:
        return function(x, axis=axis) if isinstance(axis, int) else NotImplemented

    return call


def _leaky_relu(x: Tree, negative_slope: float = 0.2) -> Tree:
    return nn.leaky_relu(x, alpha=negative_slope)


def _elu(x: Tree, alpha: float = 1.0) -> Tree:
    return nn.elu(x) if alpha == 1.0 else NotImplemented


def _silu(x: Tree) -> Tree:
    return math.multiply(x, math.sigmoid(x))


def _one_hot(x: Tree, num_classes: int, axis: int = -1, dtype: Tree = None, sparse: bool = False) -> Tree:
    if sparse:
        return NotImplemented
    return indexing.one_hot(x, num_classes, axis=axis, dtype=as_dtype(backend.standardize_dtype(dtype)))


def _convolution(
    inputs: Tree,
    kernel: Tree,
    strides: Tree = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Tree = 1,
) -> Tree:
    rank = len(inputs.dims or ()) - 2
    layout = data_format or _keras.config.image_data_format()
    channels = kernel.dims and inputs.dims and kernel.dims[-2] == inputs.dims[-1]
    if layout != "channels_last" or rank not in (1, 2, 3) or not channels or padding not in ("same", "valid"):
        return NotImplemented
    spread = [list(v) if isinstance(v, list | tuple) else [v] * rank for v in (strides, dilation_rate)]
    return space_to_batch.convolution_(inputs, kernel, padding.upper(), spread[0], spread[1])


def _pool(kind: str) -> Function:
    def call(
        inputs: Tree, pool_size: Tree, strides: Tree = None, padding: str = "valid", data_format: str | None = None
    ) -> Tree:
        rank = len(inputs.dims or ()) - 2
        layout = data_format or _keras.config.image_data_format()
        if layout != "channels_last" or rank != 2:
            return NotImplemented
        window = [pool_size] * rank if isinstance(pool_size, int) else list(pool_size)
        steps = window if strides is None else [strides] * rank if isinstance(strides, int) else list(strides)
        function = convolution.max_pool if kind == "MAX" else convolution.avg_pool
        return function(inputs, [1, *window, 1], [1, *steps, 1], padding.upper())

    return call


def _dropout(inputs: Tree, rate: Tree, noise_shape: Tree = None, seed: Tree = None) -> Tree:
    number = seed if isinstance(seed, int) else getattr(seed, "_initial_seed", None)
    return nn.dropout(inputs, noise_shape=noise_shape, seed=number, rate=rate)


def _drawn(function: Function) -> Function:
    def call(shape: Tree, *args: Tree, dtype: Tree = None, seed: Tree = None, **kwargs: Tree) -> Tree:
        number = seed if isinstance(seed, int) else getattr(seed, "_initial_seed", None)
        kind = as_dtype(backend.standardize_dtype(dtype))
        return function(arrays.stack(list(shape)), *args, dtype=kind, seed=number, **kwargs)

    return call


def _cond(pred: Tree, true_fn: Function, false_fn: Function) -> Tree:
    return conditions.cond(pred, true_fn, false_fn)


FUNCTIONS: Final[dict[str, Function]] = {
    "abs": _of_numbers(math.abs),
    "absolute": _of_numbers(math.abs),
    "add": _binary(math.add),
    "all": _logical(reductions.reduce_all),
    "any": _logical(reductions.reduce_any),
    "average_pool": _pool("AVG"),
    "cast": _cast,
    "clip": _clip,
    "concatenate": _joined(arrays.concat),
    "cond": _cond,
    "conv": _convolution,
    "convert_to_tensor": _convert,
    "cos": _of_floats(math.cos),
    "divide": _binary(math.realdiv, floating=True),
    "dot": _matmul,
    "elu": _elu,
    "equal": _binary(math.equal),
    "erf": _of_floats(special.erf),
    "exp": _of_floats(math.exp),
    "expand_dims": _expand_dims,
    "floor": _of_floats(math.floor),
    "greater": _binary(math.greater),
    "greater_equal": _binary(math.greater_equal),
    "leaky_relu": _leaky_relu,
    "less": _binary(math.less),
    "less_equal": _binary(math.less_equal),
    "log": _of_floats(math.log),
    "log1p": _of_floats(math.log1p),
    "log_softmax": _softmax(nn.log_softmax),
    "logical_not": lambda x: math.logical_not(x) if x.dtype.is_bool else NotImplemented,
    "matmul": _matmul,
    "max": _reduction(reductions.reduce_max),
    "max_pool": _pool("MAX"),
    "maximum": _binary(math.maximum),
    "mean": _reduction(reductions.reduce_mean),
    "min": _reduction(reductions.reduce_min),
    "minimum": _binary(math.minimum),
    "multiply": _binary(math.multiply),
    "negative": _of_numbers(math.negative),
    "not_equal": _binary(math.not_equal),
    "one_hot": _one_hot,
    "ones_like": _like(arrays.ones_like),
    "power": _binary(math.pow, floating=True),
    "prod": _reduction(reductions.reduce_prod),
    "random.dropout": _dropout,
    "random.normal": _drawn(random.random_normal),
    "random.truncated_normal": _drawn(random.truncated_normal),
    "random.uniform": _drawn(random.random_uniform),
    "relu": _of_floats(nn.relu),
    "relu6": _of_floats(nn.relu6),
    "reshape": _reshape,
    "rsqrt": _of_floats(math.rsqrt),
    "selu": _of_floats(nn.selu),
    "shape": _sizes,
    "sigmoid": _of_floats(math.sigmoid),
    "sign": _of_floats(math.sign),
    "silu": _silu,
    "sin": _of_floats(math.sin),
    "softmax": _softmax(nn.softmax),
    "softplus": _of_floats(nn.softplus),
    "softsign": _of_floats(nn.softsign),
    "sqrt": _of_floats(math.sqrt),
    "square": _of_numbers(math.square),
    "squeeze": _squeeze,
    "stack": _joined(arrays.stack),
    "stop_gradient": arrays.stop_gradient,
    "subtract": _binary(math.subtract),
    "sum": _reduction(reductions.reduce_sum),
    "take": _take,
    "tanh": _of_floats(math.tanh),
    "transpose": _transpose,
    "true_divide": _binary(math.realdiv, floating=True),
    "where": _where,
    "zeros_like": _like(arrays.zeros_like),
    "is_tensor": lambda x: isinstance(x, Tensor),
}
"""By the name of the backend's function, which may be preceded by the name of its module."""
