"""Functions of neural networks: activations, affine maps, normalisation, dropout, top k."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.errors import InvalidArgumentError
from headwater.graph.constants import constant_value
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import as_shape
from headwater.tf1.functional import arrays, math, random, reductions, special
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.linalg import matmul
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.shapes import ShapeLike


# Activations ------------------------------------------------------------------------------------------------------


def _of_features(op_type: str, doc: str) -> Callable[..., Tensor]:
    def function(features: TensorLike, name: str | None = None) -> Tensor:
        return one(op_type, features, name=name)

    function.__doc__ = doc
    return function


relu: Callable[..., Tensor] = _of_features("Relu", "max(x, 0).")
elu: Callable[..., Tensor] = _of_features("Elu", "x above 0, else eˣ - 1.")
selu: Callable[..., Tensor] = _of_features("Selu", "The scaled exponential linear unit (Klambauer et al., 2017).")
softplus: Callable[..., Tensor] = _of_features("Softplus", "log(1 + eˣ).")
softsign: Callable[..., Tensor] = _of_features("Softsign", "x / (1 + |x|).")


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)."""
    return one("Relu6", features, name=name)


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x above 0, else alpha x; integers become float32."""
    with name_scope(name, "LeakyRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = math.to_float(features)
        return one("LeakyRelu", features, alpha=float(alpha), name=scope)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """Concatenates the `relu` of the features and of their negatives."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return relu(arrays.concat([features, math.negative(features)], axis, name=scope))


def swish(features: TensorLike) -> Tensor:
    """x sigmoid(x)."""
    features = convert_to_tensor(features, name="features")
    return features * math.sigmoid(features)


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """x Φ(x), where Φ is the distribution function of the standard normal distribution.

    Args:
      approximate: whether to use tanh in place of the error function.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units" (arXiv:1606.08415).
    """
    with name_scope(name, "Gelu", [features]):
        features = convert_to_tensor(features, name="features")
        if approximate:
            inner = math.tanh(float(np.sqrt(2 / np.pi)) * (features + 0.044715 * features * features * features))
        else:
            inner = special.erf(features * float(np.sqrt(0.5)))
        return 0.5 * features * (1.0 + inner)


def _softmax(op_type: str, logits: Tensor, axis: Any, name: str | None) -> Tensor:
    logits = convert_to_tensor(logits)
    place = constant_value(axis) if isinstance(axis, Tensor) else -1 if axis is None else axis
    dims = logits.dims
    if place is not None and (place == -1 or (dims is not None and place == len(dims) - 1)):
        return one(op_type, logits, name=name)
    if place is None or dims is None:
        order = _last_exchanged(axis, arrays.rank(logits))
        result = arrays.transpose(one(op_type, arrays.transpose(logits, order)), order, name=name or "transpose")
        result.set_shape(logits.shape)
        return result
    place = int(place)
    if not -len(dims) <= place < len(dims):
        raise InvalidArgumentError(
            f"Dimension ({place}) must be in the range [{-len(dims)}, {len(dims)}) where {len(dims)} is the number of "
            "dimensions in the input."
        )
    order = list(range(len(dims)))
    order[place], order[-1] = order[-1], order[place]
    return arrays.transpose(one(op_type, arrays.transpose(logits, order)), order, name=name or "transpose")


def _last_exchanged(axis: object, rank: Tensor) -> Tensor:
    """Returns the order of dimensions with ``axis``, which may be negative, and the last one exchanged."""
    place = math.add(axis, math.multiply(rank, math.cast(math.less(axis, 0), dtypes.int32)))
    places, last = arrays.range(rank), rank - 1
    at_axis, at_last = (math.cast(math.equal(places, each), dtypes.int32) for each in (place, last))
    return places + (last - place) * (at_axis - at_last)


def softmax(
    logits: Any, axis: TensorLike | None = None, name: str | None = None, dim: TensorLike | None = None
) -> Tensor:
    """Returns exp(xᵢ) / Σⱼ exp(xⱼ) along a dimension, by default the last."""
    return _softmax("Softmax", logits, either(axis, dim, "axis", "dim"), name)


def log_softmax(
    logits: Any, axis: TensorLike | None = None, name: str | None = None, dim: TensorLike | None = None
) -> Tensor:
    """Returns xᵢ - log Σⱼ exp(xⱼ) along a dimension, by default the last."""
    return _softmax("LogSoftmax", logits, either(axis, dim, "axis", "dim"), name)


# Layers -----------------------------------------------------------------------------------------------------------


def bias_add(value: TensorLike, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """A bias for each channel.

    Args:
      data_format: where the channels are: last (``NHWC`` and its like, None) or second (``NCHW`` and its like).

    Raises:
      ValueError: ``data_format`` is unknown.
    """
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        kind = "NHWC"
        if data_format is not None:
            if not data_format.startswith("N") or "C" not in data_format:
                raise ValueError("data_format must be of the form `N...C` or `NC...`")
            kind = "NCHW" if data_format.startswith("NC") else "NHWC"
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base_dtype, name="bias")
        return one("BiasAdd", value, bias, data_format=kind, name=scope)


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """x weights + biases."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return bias_add(matmul(x, weights), biases, name=scope)


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """relu(x weights + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return relu(bias_add(matmul(x, weights), biases), name=scope)


def dropout(
    x: TensorLike,
    keep_prob: Any = None,
    noise_shape: TensorLike | ShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> Tensor:
    """Sets each element to 0 with probability ``rate``, and divides it by 1 - ``rate`` otherwise.

    Args:
      keep_prob: 1 - ``rate``, an older argument.
      noise_shape: shape of the random choice, which is broadcast; the shape of x if None.

    Raises:
      ValueError: neither or both of ``rate`` and ``keep_prob`` are given, a number is not in [0, 1), or x is not
        floating.
    """
    drop = either(rate, None if keep_prob is None else 1.0 - keep_prob, "rate", "keep_prob")
    if drop is None:
        raise ValueError("You must provide a rate to dropout.")
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                f"x has to be a floating point tensor since it's going to be scaled. Got a {x.dtype.name} tensor."
            )
        if isinstance(drop, numbers.Real):
            if not 0 <= float(drop) < 1:
                raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1), got {drop}")
            if drop == 0:
                return x
        drop = convert_to_tensor(cast("TensorLike", drop), x.dtype.base_dtype, name="rate")
        shape = arrays.shape(x) if noise_shape is None else _noise_shape(x, noise_shape)
        draw = random.random_uniform(shape, seed=seed, dtype=x.dtype.base_dtype)
        keep = math.cast(math.greater_equal(draw, drop), x.dtype.base_dtype)
        result = x * (1.0 / (1.0 - drop)) * keep
        result.set_shape(x.dims)
        return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """``noise_shape`` with x's own size for each None."""
    if isinstance(noise_shape, Tensor):
        return noise_shape
    dims = as_shape(noise_shape).as_dims
    if dims is None or None not in dims:
        return noise_shape
    sizes = arrays.shape(x)
    return arrays.stack([sizes[i] if size is None else size for i, size in enumerate(dims)])


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The share of elements that are zero."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        zeros = math.cast(arrays.size(value, out_type=dtypes.int64) - reductions.count_nonzero(value), dtypes.float32)
        return math.realdiv(
            zeros, math.cast(arrays.size(value, out_type=dtypes.int64), dtypes.float32), name="fraction"
        )


# Normalisation ----------------------------------------------------------------------------------------------------


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Σ t² / 2."""
    return one("L2Loss", t, name=name)


def l2_normalize(
    x: TensorLike,
    axis: TensorLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: TensorLike | None = None,
) -> Tensor:
    """x / √max(Σ x², epsilon), the sum along ``axis``."""
    axis = either(axis, dim, "axis", "dim")
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        squares = reductions.reduce_sum(math.square(x), axis, keepdims=True)
        return math.multiply(x, math.rsqrt(math.maximum(squares, epsilon)), name=scope)


def moments(
    x: TensorLike,
    axes: TensorLike,
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and the variance along ``axes``; of float16 computed in float32."""
    del shift
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x)
        wide = math.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.float16 else x
        mean = reductions.reduce_mean(wide, axes, keepdims=True, name="mean")
        away = math.squared_difference(wide, arrays.stop_gradient(mean))
        variance = reductions.reduce_mean(away, axes, keepdims=True, name="variance")
        if not keep:
            mean, variance = arrays.squeeze(mean, axes), arrays.squeeze(variance, axes)
        return math.cast(mean, x.dtype.base_dtype), math.cast(variance, x.dtype.base_dtype)


def sufficient_statistics(
    x: TensorLike,
    axes: int | Sequence[int],
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Returns the number of elements along ``axes``, the sums of (x - ``shift``) and of its square, and ``shift``."""
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        along: list[int] = sorted(int(axis) for axis in np.ravel(axes))
        dims = () if x.dims is None else [x.dims[axis] for axis in along]
        if x.dims is not None and None not in dims:
            count = constant(prod(size or 0 for size in dims), x.dtype.base_dtype)
        else:
            sizes = math.cast(arrays.shape(x), x.dtype.base_dtype)
            count = reductions.reduce_prod(one("GatherV2", sizes, along, 0), name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, x.dtype.base_dtype, name="shift")
        away = x if shift is None else math.subtract(x, shift)
        squares = math.square(away)
        total = reductions.reduce_sum(away, along, keepdims=keep, name="mean_ss")
        return count, total, reductions.reduce_sum(squares, along, keepdims=keep, name="var_ss"), shift


def normalize_moments(
    counts: TensorLike, mean_ss: TensorLike, variance_ss: object, shift: object, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance that follow from `sufficient_statistics`."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = math.reciprocal(counts, name="divisor")
        away = math.multiply(mean_ss, divisor, name="mean" if shift is None else "shifted_mean")
        mean = away if shift is None else math.add(away, shift, name="mean")
        return mean, math.subtract(math.multiply(variance_ss, divisor), math.square(away), name="variance")


def weighted_moments(
    x: TensorLike,
    axes: int,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Like `moments`, with a weight for each element."""
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = math.cast(convert_to_tensor(frequency_weights), x.dtype.base_dtype)
        total = reductions.reduce_sum(weights + arrays.zeros_like(x), axes, keepdims=True)
        mean = reductions.reduce_sum(weights * x, axes, keepdims=True) / total
        variance = reductions.reduce_sum(weights * math.squared_difference(x, mean), axes, keepdims=True) / total
        return (mean, variance) if keep else (arrays.squeeze(mean, axes), arrays.squeeze(variance, axes))


def batch_normalization(
    x: Any, mean: Any, variance: object, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """scale (x - mean) / √(variance + variance_epsilon) + offset; ``scale`` and ``offset`` may be None.

    Ioffe and Szegedy, Batch Normalization, 2015.
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        factor = math.rsqrt(variance + variance_epsilon)
        if scale is not None:
            factor = factor * scale
        x = convert_to_tensor(x)
        shift = -mean * factor if offset is None else offset - mean * factor
        return x * math.cast(factor, x.dtype) + math.cast(shift, x.dtype)


def batch_norm_with_global_normalization(
    t: TensorLike | None = None,
    m: TensorLike | None = None,
    v: TensorLike | None = None,
    beta: TensorLike | None = None,
    gamma: TensorLike | None = None,
    variance_epsilon: TensorLike | None = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
) -> Tensor:
    """`batch_normalization` under its oldest name; ``gamma`` is used if ``scale_after_normalization``."""
    t = either(input, t, "input", "t")
    m = either(mean, m, "mean", "m")
    v = either(variance, v, "variance", "v")
    scale = gamma if scale_after_normalization else None
    return batch_normalization(t, m, v, beta, scale, variance_epsilon, name)


def fused_batch_norm(
    x: TensorLike,
    scale: Any,
    offset: Any,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_normalization` of images per channel, with the batch's own mean and variance in training.

    Returns:
      The result, the mean and the variance.

    Raises:
      ValueError: a mean or variance is given in training, or missing otherwise.
    """
    if is_training and (mean is not None or variance is not None):
        raise ValueError("Both 'mean' and 'variance' must be None if is_training is True.")
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both 'mean' and 'variance' must be given if is_training is False.")
    x, scale, offset = convert_to_tensor(x), convert_to_tensor(scale), convert_to_tensor(offset)
    none: Any = arrays.zeros([0], scale.dtype) if is_training else None
    statistics = (none if each is None else each for each in (mean, variance))
    attrs = {"epsilon": max(epsilon, 1.001e-5), "data_format": data_format, "is_training": is_training}
    op = apply("FusedBatchNormV3", x, scale, offset, *statistics, name=name, **attrs)
    y, found_mean, found_variance, *_ = op.outputs
    return y, found_mean, found_variance


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """x / (bias + alpha Σ x²)^beta, the sum over ``depth_radius`` channels to each side."""
    return one(
        "LRN", input, depth_radius=int(depth_radius), bias=float(bias), alpha=float(alpha), beta=float(beta), name=name
    )


# The highest entries of a row
# ------------------------------------------------------------------------------------------------


class TopK(NamedTuple):
    """The highest entries of each row in descending order, and their indices."""

    values: Tensor
    indices: Tensor


def top_k(input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """The ``k`` highest entries of each row."""
    return TopK(*apply("TopKV2", input, k, sorted=sorted, name=name).outputs)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: TensorLike, name: str | None = None) -> Tensor:
    """Returns whether each row's target is among its ``k`` highest predictions."""
    with name_scope(name, "in_top_k") as scope:
        return one("InTopKV2", predictions, targets, k, name=scope + "InTopKV2/")


def is_floating(value: TensorLike) -> bool:
    """Returns whether ``value``, as a tensor, has a floating type."""
    return as_dtype(convert_to_tensor(value).dtype).is_floating
