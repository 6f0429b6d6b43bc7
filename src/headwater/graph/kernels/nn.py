"""Neural networks: activations, losses, biases; and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, channels_last, sum_over, where
from headwater.graph.kernels.elementwise import sigmoid
from headwater.graph.kernels.pieces import by_rows, compute_pieces, pieces_of
from headwater.graph.kernels.registry import gradient_kernel, kernel
from headwater.graph.kernels.rows import outside

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

# Activations ------------------------------------------------------------------------------------------------------

_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE_ALPHA = _SELU_SCALE * _SELU_ALPHA


def _activation(
    op_type: str, compute: Callable[[Any], Any], pull: Callable[[Any, Any], Any], grad_type: str = ""
) -> None:
    """Registers a kernel and its gradient, ``pull(gradient, x)``. If ``grad_type`` is given, ``pull`` is also the
    kernel of that operation."""
    kernel(op_type)(lambda features: compute(features))
    if grad_type:
        kernel(grad_type)(lambda gradients, features: by_rows(pull, gradients, features))

    @gradient_kernel(op_type)
    def gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        return (by_rows(pull, grads[0], inputs[0]),)


def _zero(x: HostArray) -> Any:
    return x.dtype.type(0)


def _elu(x: HostArray) -> HostArray:
    return where(x >= 0, x, np.expm1(np.minimum(x, _zero(x))))


def _selu(x: HostArray) -> HostArray:
    return (_SELU_SCALE * where(x >= 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, _zero(x))))).astype(x.dtype)


def _selu_pull(g: HostArray, x: HostArray) -> HostArray:
    slope = np.where(x < 0, _SELU_SCALE_ALPHA * np.exp(np.minimum(x, _zero(x))), x.dtype.type(_SELU_SCALE))
    return g * slope.astype(x.dtype, copy=False)


def _softplus(x: HostArray) -> HostArray:
    return np.maximum(x, _zero(x)) + np.log1p(np.exp(-np.abs(x)))


_activation("Relu", lambda x: np.maximum(x, _zero(x)), lambda g, x: where(x > 0, g, _zero(g)), "ReluGrad")
_activation(
    "Relu6",
    lambda x: np.minimum(np.maximum(x, _zero(x)), x.dtype.type(6)),
    lambda g, x: where((x > 0) & (x < 6), g, _zero(g)),
    "Relu6Grad",
)
_activation("Elu", _elu, lambda g, x: where(x < 0, g * np.exp(np.minimum(x, _zero(x))), g))
_activation("Selu", _selu, _selu_pull)
_activation("Softplus", _softplus, lambda g, x: g * sigmoid(x), "SoftplusGrad")
_activation("Softsign", lambda x: x / (1 + np.abs(x)), lambda g, x: g / np.square(1 + np.abs(x)), "SoftsignGrad")


@kernel("EluGrad")
def elu_grad(gradients: HostArray, features: HostArray) -> HostArray:
    """The gradient of Elu, given its result."""
    return where(features < 0, gradients * (features + 1), gradients)


@kernel("SeluGrad")
def selu_grad(gradients: HostArray, features: HostArray) -> HostArray:
    """The gradient of Selu, given its result."""
    slope = np.where(features < 0, features + _SELU_SCALE_ALPHA, _SELU_SCALE)
    return gradients * slope.astype(gradients.dtype)


for _type, _compute in {
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
}.items():
    kernel(_type)(_compute)


@kernel("LeakyRelu")
def leaky_relu(features: HostArray, *, alpha: float = 0.2) -> HostArray:
    """x above 0, else alpha x."""
    return where(features > 0, features, features * features.dtype.type(alpha))


@kernel("LeakyReluGrad")
def leaky_relu_grad(gradients: HostArray, features: HostArray, *, alpha: float = 0.2) -> HostArray:
    """The gradient of LeakyRelu."""
    return where(features > 0, gradients, gradients * gradients.dtype.type(alpha))


@gradient_kernel("LeakyRelu")
def leaky_relu_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """See `leaky_relu_grad`."""
    return (leaky_relu_grad(grads[0], inputs[0], alpha=attrs.get("alpha", 0.2)),)


# Softmax and losses -----------------------------------------------------------------------------------------------


def _exponentials(logits: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the logits minus the highest logit of the row, their exponentials, and the sums of the exponentials, with
    the last dimension kept."""
    shifted = logits - np.maximum.reduce(logits, axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(shifted)
    return shifted, powers, np.add.reduce(powers, axis=-1, keepdims=True)


def _of_rows(compute: Callable[..., Any], *arrays: HostArray) -> Any:
    """Returns the result of a function of vectors, the last dimension, for arrays of vectors."""
    return by_rows(compute, *arrays) if arrays[0].ndim > 1 else compute(*arrays)


@kernel("Softmax")
def softmax(logits: HostArray) -> HostArray:
    """exp(xᵢ) / Σⱼ exp(xⱼ) along the last dimension."""
    return _of_rows(_softmax, logits)


def _softmax(logits: HostArray) -> HostArray:
    _, powers, total = _exponentials(logits)
    powers /= total
    return powers


@kernel("LogSoftmax")
def log_softmax(logits: HostArray) -> HostArray:
    """xᵢ - log Σⱼ exp(xⱼ) along the last dimension."""
    return _of_rows(_log_softmax, logits)


def _log_softmax(logits: HostArray) -> HostArray:
    shifted, _, total = _exponentials(logits)
    shifted -= np.log(total)
    return shifted


def _through_softmax(g: HostArray, p: HostArray) -> HostArray:
    """Returns the gradient of logits, given the gradient of their softmax ``p``."""
    return p * (g - np.add.reduce(g * p, axis=-1, keepdims=True))


@gradient_kernel("Softmax", outputs=True)
def softmax_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:
    """p (g - Σ g p)."""
    return (_of_rows(_through_softmax, grads[0], outputs[0]),)


@gradient_kernel("LogSoftmax", outputs=True)
def log_softmax_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:
    """g - p Σ g."""
    pull = lambda g, y: g - np.exp(y) * np.add.reduce(g, axis=-1, keepdims=True)  # noqa: E731
    return (_of_rows(pull, grads[0], outputs[0]),)


@kernel("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(features: HostArray, labels: HostArray) -> tuple[HostArray, HostArray]:
    """-Σⱼ labelsⱼ log softmax(features)ⱼ of each row, and its gradient softmax(features) - labels."""
    return by_rows(_cross_entropy, features, labels)


def _cross_entropy(features: HostArray, labels: HostArray) -> tuple[HostArray, HostArray]:
    shifted, powers, total = _exponentials(features)
    loss = -np.add.reduce(labels * (shifted - np.log(total)), axis=-1)
    return loss, powers / total - labels


@gradient_kernel("SoftmaxCrossEntropyWithLogits", outputs=True)
def softmax_cross_entropy_gradient(
    inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs, outputs: Arrays
) -> Arrays:
    """Returns the gradient through both outputs: the loss, and the loss's gradient, which a program may differentiate,
    too."""
    features, labels = inputs
    of_loss, of_slope = grads
    for_features = for_labels = None
    if of_loss is not None:
        for_features = outputs[1] * of_loss[:, np.newaxis]
        for_labels = -log_softmax(features) * of_loss[:, np.newaxis] if needed[1] else None
    if of_slope is not None:
        through = _through_softmax(of_slope, outputs[1] + labels)
        for_features = through if for_features is None else for_features + through
        for_labels = -of_slope if for_labels is None else for_labels - of_slope
    return for_features, for_labels


def _classes(features: HostArray, labels: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the row numbers, the class of each row (0 for an invalid label), and which labels are invalid."""
    invalid = (labels < 0) | (labels >= features.shape[-1])
    return np.arange(len(labels)), np.where(invalid, 0, labels), invalid


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(features: HostArray, labels: HostArray) -> tuple[HostArray, HostArray]:
    """-log softmax(features)[label] of each row, and its gradient; NaN for a label that is not a class."""
    if not features.size:
        return np.full(len(labels), np.nan, features.dtype), np.empty_like(features)
    loss, slope = np.empty(len(labels), features.dtype), np.empty_like(features)

    def compute(piece: slice) -> None:
        powers = slope[piece]
        np.subtract(features[piece], np.maximum.reduce(features[piece], axis=-1, keepdims=True), out=powers)
        rows, classes, invalid = _classes(powers, labels[piece])
        shifted = powers[rows, classes]
        np.exp(powers, out=powers)
        total = np.add.reduce(powers, axis=-1, keepdims=True)
        powers /= total
        powers[rows, classes] -= 1
        loss[piece] = np.where(invalid, np.nan, np.log(total[:, 0]) - shifted)
        powers[invalid] = np.nan

    compute_pieces(compute, pieces_of(len(labels), features.shape[-1] * features.itemsize))
    return loss, slope


@gradient_kernel("SparseSoftmaxCrossEntropyWithLogits", outputs=True)
def sparse_softmax_cross_entropy_gradient(
    inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays
) -> Arrays:
    """Like the gradient of `softmax_cross_entropy`; zero for invalid labels."""
    features, labels = inputs
    of_loss, of_slope = grads
    if not features.size:
        return np.zeros_like(features), None
    result: Any = 0 if of_loss is None else outputs[1] * of_loss[:, np.newaxis]
    if of_slope is not None:
        result = result + _through_softmax(of_slope, softmax(features))
    if outside(labels, features.shape[-1]) is not None:
        result[_classes(features, labels)[2]] = 0
    return result, None


@kernel("L2Loss")
def l2_loss(t: HostArray) -> Any:
    """Σ t² / 2."""
    flat = t.reshape(-1)
    return (np.dot(flat, flat) if t.dtype.itemsize > 2 else np.add.reduce(flat * flat, dtype=t.dtype)) / 2


@gradient_kernel("L2Loss")
def l2_loss_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient times t."""
    return (grads[0] * inputs[0],)


# Biases -----------------------------------------------------------------------------------------------------------


@kernel("BiasAdd")
def bias_add(value: HostArray, bias: HostArray, *, data_format: str = "NHWC") -> HostArray:
    """Adds a bias to each channel; channels are the last dimension, or the second (``NCHW``)."""
    return value + (bias.reshape((-1,) + (1,) * (value.ndim - 2)) if data_format == "NCHW" else bias)


@kernel("BiasAddV1")
def bias_add_v1(value: HostArray, bias: HostArray) -> HostArray:
    """Like `bias_add`, along the last dimension."""
    return value + bias


@kernel("BiasAddGrad")
def bias_add_grad(out_backprop: HostArray, *, data_format: str = "NHWC") -> Any:
    """The gradient's sum for each channel."""
    return sum_over(channels_last(out_backprop, data_format), 0, out_backprop.ndim - 1)


@gradient_kernel("BiasAdd", "BiasAddV1")
def bias_add_gradient(_inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """The gradient, and its sum for each channel."""
    data_format = attrs.get("data_format", "NHWC")
    return grads[0], bias_add_grad(grads[0], data_format=data_format) if needed[1] else None


# Highest entries of a row
# ------------------------------------------------------------------------------------------------


@kernel("InTopKV2")
def in_top_k_v2(predictions: HostArray, targets: HostArray, k: object) -> HostArray:
    """Returns whether fewer than k entries of a row are above the target's entry; False if the target is out of range,
    or if an entry is infinite or NaN."""
    if not predictions.size:
        return np.zeros(len(targets), bool)
    rows, classes, invalid = _classes(predictions, targets)
    score = predictions[rows, classes][:, np.newaxis]
    above = np.count_nonzero(predictions > score, axis=1)
    finite = np.all(np.isfinite(predictions), axis=1)
    return ~invalid & finite & (above < k)


@kernel("InTopK")
def in_top_k(predictions: HostArray, targets: HostArray, *, k: int) -> HostArray:
    """Like `in_top_k_v2`, with k as an attribute."""
    return in_top_k_v2(predictions, targets, k)


def _best(input: HostArray, k: int) -> HostArray:
    """Returns the positions of the k highest entries of each row in descending order; of equal entries, the first
    precede."""
    size = input.shape[-1]
    if input.dtype.kind not in "iub":  # as in TensorFlow, NaN is sorted below all numbers
        input = np.where(np.isnan(input), input.dtype.type(-np.inf), input)
    if k > size:
        raise ValueError(f"input must have at least k columns. Had {size}, needed {k}")
    if k == 1 and input.size:
        return input.argmax(-1)[..., np.newaxis]
    if input.size >= _LARGE_SIZE and size >= _SORT_RATIO * k and input.dtype.kind in "iuf":
        return _best_by_partition(input, k)
    # Reverse before the stable sort, so that the first of equal elements ends up last.
    return size - 1 - np.argsort(input[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]


#: With at least `_LARGE_SIZE` elements, and `_SORT_RATIO` times k entries in a row, a partition is faster than a sort.
_LARGE_SIZE = 4096
_SORT_RATIO = 8


def _best_by_partition(input: HostArray, k: int) -> HostArray:
    """Like `_best`. Finds the k highest entries of each row without sorting the row, and sorts only these."""
    rows = input.reshape(-1, input.shape[-1])
    lowest = np.partition(rows, -k, axis=-1)[:, -k, np.newaxis]
    higher, equal = rows > lowest, rows == lowest
    chosen = higher | (equal & (equal.cumsum(-1) <= k - higher.sum(-1, keepdims=True)))
    places = chosen.nonzero()[1].reshape(len(rows), k)
    order = _best(np.take_along_axis(rows, places, -1), k)
    return np.take_along_axis(places, order, -1).reshape(*input.shape[:-1], k)


def _top(input: HostArray, k: int) -> tuple[HostArray, HostArray]:
    places = _best(input, k)
    return np.take_along_axis(input, places, -1), places.astype(np.int32)


@kernel("TopK")
def top_k(input: HostArray, *, k: int, sorted: bool = True) -> tuple[HostArray, HostArray]:
    """Returns the k highest entries of each row in descending order, and their positions; of equal entries, the first
    precede."""
    del sorted
    return _top(input, k)


@kernel("TopKV2")
def top_k_v2(input: HostArray, k: HostArray, *, sorted: bool = True) -> tuple[HostArray, HostArray]:
    """Like `top_k`, with k as an input."""
    del sorted
    return _top(input, int(k))


def _put_back(input: HostArray, k: int, gradient: HostArray | None) -> HostArray:
    result = np.zeros(input.shape, input.dtype)
    if gradient is not None:
        np.put_along_axis(result, _best(input, k), gradient, -1)
    return result


@gradient_kernel("TopK")
def top_k_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """The gradient at the positions."""
    return (_put_back(inputs[0], attrs["k"], grads[0]),)


@gradient_kernel("TopKV2")
def top_k_v2_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient at the positions."""
    return _put_back(inputs[0], int(inputs[1]), grads[0]), None
