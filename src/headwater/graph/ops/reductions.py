"""Reductions: sums and other reductions over dimensions, positions of extremes, cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int64
from headwater.graph.ops.common import AnyArray, array_module, as_ints, constant_int, constant_ints, normal_axis, output
from headwater.graph.ops.define import pure, unary_not_scalar
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import jax, jnp, lax

# Over some dimensions ---------------------------------------------------------------------------------------------


def _reduced(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    keep = inference.attrs.get("keep_dims", False)
    axes, of_axes = constant_ints(inference, 1), inference.inputs[1].dims
    if of_axes is not None and len(of_axes) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(of_axes)}")
    if dims is None:
        return output(inference, None)
    if axes is None:
        return output(inference, (None,) * len(dims) if keep else None)
    for axis in axes:
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"Invalid reduction dimension {axis} for input with {len(dims)} dimensions.")
    gone = {axis % len(dims) for axis in axes}
    if keep:
        return output(inference, tuple(1 if i in gone else d for i, d in enumerate(dims)))
    return output(inference, tuple(d for i, d in enumerate(dims) if i not in gone))


def _reduction(op_type: str, compute: Callable[..., object], inputs: str, **options: Any) -> None:
    def lower(input: jax.Array, reduction_indices: jax.Array, *, keep_dims: bool = False) -> object:
        axes = tuple({normal_axis(axis, input.ndim) for axis in as_ints(reduction_indices)})
        return compute(input, axes, keep_dims)

    pure(op_type, inputs=f"{inputs}, reduction_indices:Tidx=int32", static=(1,), infer=_reduced, **options)(lower)


def _sum(x: AnyArray, axes: tuple[int, ...], keep: bool) -> AnyArray:
    return array_module(x).sum(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _mean(x: AnyArray, axes: tuple[int, ...], keep: bool) -> AnyArray:
    """Returns the sum divided by the count; for integers, the fraction is dropped."""
    if x.dtype.kind not in "iu":
        return jnp.mean(x, axis=axes, keepdims=keep, dtype=x.dtype)
    total = _sum(x, axes, keep)
    count = max(int(np.prod([x.shape[axis] for axis in axes])), 1)
    return (array_module(x).sign(total) * (abs(total) // count)).astype(x.dtype)


def _prod(x: AnyArray, axes: tuple[int, ...], keep: bool) -> AnyArray:
    return array_module(x).prod(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _extreme(name: str, empty: Callable[[np.dtype[Any]], object]) -> Callable[..., object]:
    """Returns NumPy's function ``name``, which returns the identity element for an empty input.

    As in TensorFlow, NaN counts as the identity element, unless there is only one element.
    """

    def compute(x: jax.Array, axes: tuple[int, ...], keep: bool) -> Any:
        xp = array_module(x)
        if all(x.shape[axis] == 1 for axis in axes):
            return x if keep else x.squeeze(axes)
        more = {"initial": empty(x.dtype)} if 0 in x.shape else {}
        if x.dtype.kind not in "iub":
            x = xp.where(xp.isnan(x), x.dtype.type(empty(x.dtype)), x)
        return getattr(xp, name)(x, axis=axes, keepdims=keep, **more)

    return compute


def _lowest(dtype: np.dtype[Any]) -> object:
    return -np.inf if not jnp.issubdtype(dtype, np.integer) else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> object:
    return np.inf if not jnp.issubdtype(dtype, np.integer) else np.iinfo(dtype).max


def _all(x: AnyArray, axes: tuple[int, ...], keep: bool) -> AnyArray:
    return array_module(x).all(x, axis=axes, keepdims=keep)


def _any(x: AnyArray, axes: tuple[int, ...], keep: bool) -> AnyArray:
    return array_module(x).any(x, axis=axes, keepdims=keep)


def _euclidean_norm(x: jax.Array, axes: tuple[int, ...], keep: bool) -> jax.Array:
    """Returns the root of the sum of squares; for integers, the fraction is dropped."""
    return jnp.sqrt(_sum(x * jnp.conj(x), axes, keep)).astype(x.dtype)


_reduction("Sum", _sum, "input:T|numeric")
_reduction("Mean", _mean, "input:T|numeric")
_reduction("Prod", _prod, "input:T|numeric")
_reduction("Max", _extreme("max", _lowest), "input:T|numeric")
_reduction("Min", _extreme("min", _highest), "input:T|numeric")
_reduction("EuclideanNorm", _euclidean_norm, "input:T|numeric")
_reduction("All", _all, "input:bool", differentiable=False)
_reduction("Any", _any, "input:bool", differentiable=False)

# Positions --------------------------------------------------------------------------------------------------------


def _position_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    dtype: DType = inference.attrs.get("output_type", int64)
    of_axis = inference.inputs[1].dims
    if of_axis:
        raise ValueError(f"Shape must be rank 0 but is rank {len(of_axis)}")
    axis = constant_int(inference, 1)
    if dims is None:
        return [Spec(dtype, None)]
    if axis is None:
        return [Spec(dtype, (None,) * (len(dims) - 1))]
    if not -len(dims) <= axis < len(dims):
        if len(dims) < 2:  # TensorFlow reports the error only when the step runs
            return [Spec(dtype, ())]
        raise ValueError(
            f"Dimension ({axis}) must be in the range [{-len(dims)}, {len(dims)}), where {len(dims)} is "
            "the number of dimensions in the input."
        )
    axis %= len(dims)
    return [Spec(dtype, dims[:axis] + dims[axis + 1 :])]


def _position(op_type: str, name: str) -> None:
    """Registers NumPy's function ``name``. For ``argmax``, NaN and -∞ count as the lowest finite number; for
    ``argmin``, NaN and ∞ count as the highest."""

    def lower(input: jax.Array, dimension: jax.Array, *, output_type: DType = int64) -> jax.Array:
        xp = array_module(input)
        if input.dtype.kind not in "iub":
            last = input.dtype.type(getattr(jnp.finfo(input.dtype), "min" if name == "argmax" else "max"))
            better = input > last if name == "argmax" else input < last
            input = xp.where(better, input, last)
        return getattr(xp, name)(input, axis=int(dimension)).astype(output_type.numpy_dtype)

    pure(
        op_type,
        inputs="input:T|numeric, dimension:Tidx|int32_or_64=int32",
        static=(1,),
        infer=_position_spec,
        differentiable=False,
    )(lower)


_position("ArgMax", "argmax")
_position("ArgMin", "argmin")

# Cumulative -------------------------------------------------------------------------------------------------------


def _cumulative(op_type: str, compute: Callable[..., object], neutral: float) -> None:
    def lower(x: jax.Array, axis: jax.Array, *, exclusive: bool = False, reverse: bool = False) -> object:
        where = normal_axis(int(axis), x.ndim, "Expected scan axis in the range")
        xp = array_module(x)
        if exclusive:
            pad = [(0, 0)] * x.ndim
            pad[where] = (0, 1) if reverse else (1, 0)
            x = xp.pad(x, pad, constant_values=np.asarray(neutral, x.dtype))
            x = lax.slice_in_dim(x, 1, None, axis=where) if reverse else lax.slice_in_dim(x, 0, -1, axis=where)
        return compute(x, where, reverse)

    pure(op_type, inputs="x:T|numeric, axis:Tidx=int32", static=(1,), infer=unary_not_scalar)(lower)


_cumulative("Cumsum", lambda x, axis, reverse: lax.cumsum(jnp.asarray(x), axis, reverse=reverse), 0)
_cumulative("Cumprod", lambda x, axis, reverse: lax.cumprod(jnp.asarray(x), axis, reverse=reverse), 1)
_cumulative(
    "CumulativeLogsumexp", lambda x, axis, reverse: lax.cumlogsumexp(jnp.asarray(x), axis, reverse=reverse), -np.inf
)
