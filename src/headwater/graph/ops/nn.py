"""Neural networks: activations, losses, biases, normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import bool_, int32
from headwater.graph.ops.common import constant_int, output
from headwater.graph.ops.define import pure, unary, unary_not_scalar
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import custom_jvp, deferred, jax, jnp
from headwater.shapes import Dims, merge_dims

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax

# Activations ------------------------------------------------------------------------------------------------------

_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772


def _activation(op_type: str, compute: Callable[..., object], allowed: str = "floating") -> None:
    pure(op_type, inputs=f"features:T|{allowed}", infer=unary)(lambda features: compute(features))


def _relu6(x: jax.Array) -> jax.Array:
    """min(max(x, 0), 6), with gradient 0 at both bounds."""
    return jnp.where(x >= 6, jnp.full_like(x, 6), jax.nn.relu(x))


def _elu(x: jax.Array) -> jax.Array:
    """x above 0, else exp(x) - 1."""
    return jnp.where(x < 0, jnp.expm1(jnp.where(x < 0, x, 0)), x)


def _selu(x: jax.Array) -> jax.Array:
    """λ x above 0, else λ α (exp(x) - 1) (Klambauer et al., Self-Normalizing Neural Networks, 2017)."""
    negative = _SELU_ALPHA * jnp.expm1(jnp.where(x < 0, x, 0))
    return (_SELU_SCALE * jnp.where(x < 0, negative, x)).astype(x.dtype)


_activation("Relu", deferred(jax, "nn.relu"), "numeric")
_activation("Relu6", _relu6, "numeric")
_activation("Elu", _elu)
_activation("Selu", _selu)
_activation("Softplus", deferred(jax, "nn.softplus"))
_activation("Softsign", deferred(jax, "nn.soft_sign"))


@pure("LeakyRelu", inputs="features:T|floating=float32", infer=unary)
def leaky_relu(features: jax.Array, *, alpha: float = 0.2) -> jax.Array:
    """x above 0, else alpha x."""
    return jnp.where(features > 0, features, features * jnp.asarray(alpha, features.dtype))


@pure("Softmax", inputs="logits:T|floating", infer=unary_not_scalar)
def softmax(logits: jax.Array) -> jax.Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) along the last dimension."""
    return jax.nn.softmax(logits, axis=-1)


@pure("LogSoftmax", inputs="logits:T|floating", infer=unary_not_scalar)
def log_softmax(logits: jax.Array) -> jax.Array:
    """xᵢ - log Σⱼ exp(xⱼ) along the last dimension."""
    return jax.nn.log_softmax(logits, axis=-1)


# Losses -----------------------------------------------------------------------------------------------------------


def _cross_entropy_spec(inference: Inference) -> Sequence[Spec]:
    features, labels = inference.inputs
    dims = merge_dims(features.dims, labels.dims)
    if dims is not None and len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    dtype = features.dtype.base_dtype
    return [Spec(dtype, (None if dims is None else dims[0],)), Spec(dtype, dims or (None, None))]


@pure("SoftmaxCrossEntropyWithLogits", inputs="features:T|floating, labels:T", infer=_cross_entropy_spec)
def softmax_cross_entropy(features: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """-Σⱼ labelsⱼ log softmax(features)ⱼ of each row, and its gradient softmax(features) - labels.

    The gradient assumes that the labels of a row add up to 1, as in TensorFlow, even if they do not.
    """
    return _cross_entropy(features, labels), jax.nn.softmax(features, axis=-1) - labels


@custom_jvp
def _cross_entropy(features: jax.Array, labels: jax.Array) -> jax.Array:
    return -jnp.sum(labels * jax.nn.log_softmax(features, axis=-1), axis=-1)


@_cross_entropy.defjvp
def _cross_entropy_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    features, labels = primals
    log_p = jax.nn.log_softmax(features, axis=-1)
    slope = (jnp.exp(log_p) - labels) * tangents[0] - log_p * tangents[1]
    return -jnp.sum(labels * log_p, axis=-1), jnp.sum(slope, axis=-1)


def _sparse_cross_entropy_spec(inference: Inference) -> Sequence[Spec]:
    features, labels = inference.inputs
    dims = features.dims or (None, None)
    if len(dims) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
    rows = merge_dims(dims[:1], labels.dims)
    assert rows is not None
    dtype = features.dtype.base_dtype
    return [Spec(dtype, rows), Spec(dtype, (rows[0], dims[1]))]


@pure(
    "SparseSoftmaxCrossEntropyWithLogits",
    inputs="features:T|floating, labels:Tlabels|index=int64",
    infer=_sparse_cross_entropy_spec,
)
def sparse_softmax_cross_entropy(features: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
    """-log softmax(features)[label] of each row, and its gradient; NaN for a label that is not a class."""
    valid, hot = _one_hot(labels, features.shape[-1])
    nan = jnp.asarray(jnp.nan, features.dtype)
    slope = jax.nn.softmax(features, axis=-1) - hot.astype(features.dtype)
    return jnp.where(valid, _sparse_cross_entropy(features, labels), nan), jnp.where(valid[:, None], slope, nan)


def _one_hot(labels: jax.Array, classes: int) -> tuple[jax.Array, jax.Array]:
    """Returns which labels are classes, and for each row, which class is its label."""
    return (labels >= 0) & (labels < classes), labels[:, None] == jnp.arange(classes, dtype=labels.dtype)


@custom_jvp
def _sparse_cross_entropy(features: jax.Array, labels: jax.Array) -> jax.Array:
    log_p = jax.nn.log_softmax(features, axis=-1)
    return -jnp.sum(jnp.where(_one_hot(labels, features.shape[-1])[1], log_p, 0), axis=-1)


@_sparse_cross_entropy.defjvp
def _sparse_cross_entropy_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, object]
) -> tuple[jax.Array, jax.Array]:
    features, labels = primals
    # JAX's own derivative would sum the gradients of all classes of a row.
    hot = _one_hot(labels, features.shape[-1])[1].astype(features.dtype)
    slope = (jax.nn.softmax(features, axis=-1) - hot) * tangents[0]
    return _sparse_cross_entropy(features, labels), jnp.sum(slope, axis=-1)


@pure("L2Loss", inputs="t:T|floating", infer=lambda inference: output(inference, ()))
def l2_loss(t: jax.Array) -> jax.Array:
    """Σ t² / 2."""
    return jnp.sum(t * t, dtype=t.dtype) / 2


# Biases -----------------------------------------------------------------------------------------------------------


def _bias_spec(inference: Inference) -> Sequence[Spec]:
    value, bias = inference.inputs
    if bias.dims is not None and len(bias.dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(bias.dims)}")
    if value.dims is None:
        return output(inference, None)
    first = inference.attrs.get("data_format", "NHWC") == "NCHW"
    if len(value.dims) < 2:
        raise ValueError(f"Shape must be at least rank 2 but is rank {len(value.dims)}")
    axis = 1 if first else len(value.dims) - 1
    size = value.dims[axis]
    if bias.dims is not None:
        if None not in (size, bias.dims[0]) and size != bias.dims[0]:
            raise ValueError(f"Dimensions must be equal, but are {size} and {bias.dims[0]}")
        size = bias.dims[0] if size is None else size
    return output(inference, (*value.dims[:axis], size, *value.dims[axis + 1 :]))


@pure("BiasAdd", inputs="value:T|numeric, bias:T", infer=_bias_spec)
def bias_add(value: jax.Array, bias: jax.Array, *, data_format: str = "NHWC") -> jax.Array:
    """Adds a bias to each channel; channels are the last dimension, or the second (``NCHW``)."""
    if data_format == "NCHW":
        bias = bias.reshape((-1,) + (1,) * (value.ndim - 2))
    return value + bias


@pure("BiasAddV1", inputs="value:T|numeric, bias:T", infer=_bias_spec)
def bias_add_v1(value: jax.Array, bias: jax.Array) -> jax.Array:
    """Like `bias_add`, along the last dimension."""
    return value + bias


# Highest entries of a row
# ------------------------------------------------------------------------------------------------


def _in_top_k_spec(inference: Inference) -> Sequence[Spec]:
    predictions = inference.inputs[0].dims
    rows: Dims = None if predictions is None else predictions[:1]
    if predictions is not None and len(predictions) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(predictions)}")
    return [Spec(bool_, merge_dims(rows, inference.inputs[1].dims) or (None,))]


def _in_top_k(predictions: jax.Array, targets: jax.Array, k: Any) -> jax.Array:
    """Returns whether fewer than k entries of a row are above the target's entry; False if the target is out of range,
    or if an entry is infinite or NaN."""
    classes = predictions.shape[1]
    valid = (targets >= 0) & (targets < classes)
    safe = jnp.where(valid, targets, 0)
    score = jnp.take_along_axis(predictions, safe[:, None].astype(np.int32), axis=1)
    above = jnp.sum(predictions > score, axis=1)
    finite = jnp.all(jnp.isfinite(predictions), axis=1)
    return valid & finite & (above < k)


@pure("InTopK", inputs="predictions:float32, targets:T|index=int32", infer=_in_top_k_spec, differentiable=False)
def in_top_k(predictions: jax.Array, targets: jax.Array, *, k: int) -> jax.Array:
    """Returns whether each row's target is among its k highest predictions."""
    return _in_top_k(predictions, targets, k)


@pure("InTopKV2", inputs="predictions:float32, targets:T|index=int32, k:T", infer=_in_top_k_spec, differentiable=False)
def in_top_k_v2(predictions: jax.Array, targets: jax.Array, k: jax.Array) -> jax.Array:
    """Returns whether each row's target is among its k highest predictions."""
    return _in_top_k(predictions, targets, k)


def _top_specs(inference: Inference, k: int | None) -> Sequence[Spec]:
    spec = inference.inputs[0]
    dims = spec.dims
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims is not None:
        if k is not None and dims[-1] is not None and dims[-1] < k:
            raise ValueError(f"input must have last dimension >= k = {k} but is {dims[-1]}")
        dims = (*dims[:-1], k)
    return [Spec(spec.dtype.base_dtype, dims), Spec(int32, dims)]


def _top(input: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    if k > input.shape[-1]:
        raise ValueError(f"input must have at least k columns. Had {input.shape[-1]}, needed {k}")
    if input.dtype.kind in "iub":
        values, places = jax.lax.top_k(input, k)
        return values, places.astype(np.int32)
    # TensorFlow sorts NaN below all numbers; XLA sorts it above them.
    _, places = jax.lax.top_k(jnp.where(jnp.isnan(input), -np.inf, jax.lax.stop_gradient(input)), k)
    return jnp.take_along_axis(input, places, axis=-1), places.astype(np.int32)


@pure("TopK", inputs="input:T|numeric", infer=lambda inference: _top_specs(inference, inference.attrs["k"]))
def top_k(input: jax.Array, *, k: int, sorted: bool = True) -> tuple[jax.Array, jax.Array]:
    """Returns the k highest entries of each row in descending order, and their positions; of equal entries, the first
    precede."""
    del sorted
    return _top(input, k)


@pure(
    "TopKV2",
    inputs="input:T|numeric, k:int32",
    static=(1,),
    infer=lambda inference: _top_specs(inference, constant_int(inference, 1)),
)
def top_k_v2(input: jax.Array, k: HostArray, *, sorted: bool = True) -> tuple[jax.Array, jax.Array]:
    """Like `top_k`, with k as an input."""
    del sorted
    return _top(input, int(k))


# Normalisation ----------------------------------------------------------------------------------------------------


@pure("LRN", inputs="input:T|floating=float32", infer=unary)
def local_response_normalization(
    input: jax.Array, *, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5
) -> jax.Array:
    """x / (bias + alpha Σ x²)^beta, the sum over ``depth_radius`` channels to each side.

    Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, 2012.
    """
    channels = input.shape[-1]
    near = np.abs(np.arange(channels)[:, None] - np.arange(channels)) <= depth_radius

    def summed(values: jax.Array) -> jax.Array:
        return jnp.matmul(values, jnp.asarray(near, input.dtype))

    def scales(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        divisor = bias + alpha * summed(x * x)
        return divisor, _negative_power(divisor, beta).astype(x.dtype)

    @_jax.custom_vjp
    def normalised(x: jax.Array) -> jax.Array:
        return x * scales(x)[1]

    def backward(x: jax.Array, slope: jax.Array) -> tuple[jax.Array]:
        divisor, factor = scales(x)
        shared = summed(slope * x * factor / divisor)
        return ((slope * factor - (2 * alpha * beta) * x * shared).astype(x.dtype),)

    normalised.defvjp(lambda x: (normalised(x), x), backward)
    return normalised(input)


def _negative_power(x: jax.Array, exponent: float) -> Any:
    """Returns x^-exponent for x > 0; common exponents, multiples of 1/4, are computed by square roots, which are
    faster."""
    if exponent not in (0.25, 0.5, 0.75, 1.0):
        return jnp.power(x, -exponent)
    root: Any = jax.lax.rsqrt(x)
    return {0.25: jnp.sqrt, 0.5: lambda r: r, 0.75: lambda r: r * jnp.sqrt(r), 1.0: lambda r: r * r}[exponent](root)


def _fused_batch_norm(
    x: jax.Array,
    scale: jax.Array,
    offset: jax.Array,
    mean: jax.Array,
    variance: jax.Array,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[jax.Array, ...]:
    """y = scale (x - mean) / √(variance + epsilon) + offset, per channel.

    In training, mean and variance are computed from the batch; the returned variance has Bessel's correction n / (n -
    1).
    """
    channel = 1 if data_format == "NCHW" else x.ndim - 1
    axes = tuple(axis for axis in range(x.ndim) if axis != channel)
    shape = [1] * x.ndim
    shape[channel] = -1
    wide = x.astype(scale.dtype)
    if is_training:
        count = x.size // x.shape[channel]
        mean = jnp.mean(wide, axis=axes)
        variance = jnp.mean(jnp.square(wide - mean.reshape(shape)), axis=axes)
        shown = variance * (count / max(count - 1, 1))
    else:
        shown = variance
    factor = scale * jax.lax.rsqrt(variance + jnp.asarray(epsilon, scale.dtype))
    y = (wide - mean.reshape(shape)) * factor.reshape(shape) + offset.reshape(shape)
    return y.astype(x.dtype), mean, shown, mean, variance


def _fused_batch_norm_v3(
    x: jax.Array,
    scale: jax.Array,
    offset: jax.Array,
    mean: jax.Array,
    variance: jax.Array,
    *,
    epsilon: float = 1e-4,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[jax.Array, ...]:
    """Like FusedBatchNorm, with one more output, which only the gradient operation reads."""
    outputs = _fused_batch_norm(
        x, scale, offset, mean, variance, epsilon=epsilon, data_format=data_format, is_training=is_training
    )
    return *outputs, variance


def _norm_specs(inference: Inference) -> Sequence[Spec]:
    x, scale = inference.inputs[0], inference.inputs[1]
    rank = len(inference.attrs.get("data_format", "NHWC"))
    dims = merge_dims(x.dims, (None,) * rank) or ()
    channel = 1 if inference.attrs.get("data_format") == "NCHW" else rank - 1
    size: Dims = (dims[channel],)
    for spec in inference.inputs[1:3]:
        size = merge_dims(size, spec.dims)
    assert size is not None
    count = 6 if inference.op_type == "FusedBatchNormV3" else 5
    y = Spec(x.dtype.base_dtype, (*dims[:channel], *size, *dims[channel + 1 :]))
    return [y, *[Spec(scale.dtype.base_dtype, size)] * (count - 1)]


_NORM_INPUTS = "x:T|floating, scale:{0}|floating, offset:{0}, mean:{0}, variance:{0}"
for _type, _function, _other in (
    ("FusedBatchNorm", _fused_batch_norm, "T"),
    ("FusedBatchNormV2", _fused_batch_norm, "U"),
    ("FusedBatchNormV3", _fused_batch_norm_v3, "U"),
):
    pure(_type, inputs=_NORM_INPUTS.format(_other), constants=(3, 4), infer=_norm_specs)(_function)
