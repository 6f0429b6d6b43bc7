"""Losses of classification, and confusion matrices."""

from __future__ import annotations

from typing import Any

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.registry import CHECKED, CLASSES
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.checks import assert_less, assert_non_negative
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.nn import relu
from headwater.tf1.functional.reductions import either, reduce_max


def require_names(sentinel: object, labels: object, logits: object, function: str) -> None:
    """Raises ValueError unless both ``labels`` and ``logits`` were given, by name."""
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Returns -Σⱼ labelsⱼ log softmax(logits)ⱼ along a dimension (by default the last), which is removed.

    Gradients also flow into the labels.
    """
    axis = either(axis, dim, "axis", "dim")
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        narrow = logits.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        wide = math.cast(logits, dtypes.float32) if narrow else logits
        labels = math.cast(labels, wide.dtype.base_dtype)
        cost = _cross_entropy(wide, labels, -1 if axis is None else axis, scope)
        return math.cast(cost, logits.dtype.base_dtype)


def _cross_entropy(logits: Tensor, labels: Tensor, axis: int, scope: str) -> Tensor:
    """The loss of matrices, to which everything else is reshaped."""
    dims = logits.dims if logits.dims is not None else labels.dims
    if dims is None:
        dims = (None, None)
    last = len(dims) - 1
    if not -len(dims) <= axis < len(dims):
        raise ValueError(f"Dimension {axis} must be in the range [{-len(dims)}, {len(dims)})")
    axis = axis % len(dims)
    if axis != last:
        order = [i for i in range(len(dims)) if i != axis] + [axis]
        logits, labels = arrays.transpose(logits, order), arrays.transpose(labels, order)
        dims = tuple(dims[i] for i in order)
    if len(dims) == 2:
        return apply("SoftmaxCrossEntropyWithLogits", logits, labels, name=scope).outputs[0]
    sizes = arrays.shape(logits)
    matrix = [-1, sizes[last] if dims[last] is None else dims[last]]
    cost = one(
        "SoftmaxCrossEntropyWithLogits", arrays.reshape(logits, matrix), arrays.reshape(labels, matrix), name=scope
    )
    cost = arrays.reshape(cost, sizes[:last])
    cost.set_shape(dims[:last])
    return cost


def softmax_cross_entropy_with_logits(
    _sentinel: TensorLike | None = None,
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """Like `softmax_cross_entropy_with_logits_v2`, with no gradient into the labels.

    Raises:
      ValueError: labels or logits are missing, or arguments are not named.
    """
    require_names(_sentinel, labels, logits, "softmax_cross_entropy_with_logits")
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        fixed = arrays.stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(fixed, logits, dim if axis is None else axis, name=scope)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: object = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-log softmax(logits)[label] along the last dimension of the logits, for class numbers ``labels``.

    Raises:
      ValueError: labels or logits are missing, their ranks do not match, or arguments are not named.
    """
    require_names(_sentinel, labels, logits, "sparse_softmax_cross_entropy_with_logits")
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]) as scope:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        narrow = logits.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16)
        wide = math.cast(logits, dtypes.float32) if narrow else logits
        dims, own = logits.dims, labels.dims
        if dims == ():
            raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
        if dims is not None and own is not None and len(own) != len(dims) - 1:
            raise ValueError(
                f"Rank mismatch: Rank of labels (received {len(own)}) should equal rank of logits minus 1 "
                f"(received {len(dims)})."
            )
        attrs: dict[str, object] = {CHECKED: True}
        if dims is not None and dims[-1] is not None:
            attrs[CLASSES] = dims[-1]
        if dims is None or len(dims) == 2:
            inner = "SparseSoftmaxCrossEntropyWithLogits/"
            cost = one("SparseSoftmaxCrossEntropyWithLogits", wide, labels, name=scope + inner, **attrs)
        else:
            classes = arrays.shape(wide)[-1] if dims[-1] is None else dims[-1]
            flat = one(
                "SparseSoftmaxCrossEntropyWithLogits",
                arrays.reshape(wide, [-1, classes]),
                arrays.reshape(labels, [-1]),
                name=scope + "SparseSoftmaxCrossEntropyWithLogits/",
                **attrs,
            )
            cost = arrays.reshape(flat, arrays.shape(labels))
            cost.set_shape(labels.dims)
        return math.cast(cost, logits.dtype.base_dtype)


def sigmoid_cross_entropy_with_logits(
    _sentinel: object = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-z log σ(x) - (1 - z) log(1 - σ(x)), computed as max(x, 0) - x z + log(1 + e^-|x|).

    Raises:
      ValueError: labels or logits are missing, their shapes differ, or arguments are not named.
    """
    require_names(_sentinel, labels, logits, "sigmoid_cross_entropy_with_logits")
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        _require_one_shape(labels, logits, "labels")
        # Select instead of max and abs: the gradients of these at 0 would add up to a wrong gradient of the loss.
        zeros = arrays.zeros_like(logits, dtype=logits.dtype)
        above = math.greater_equal(logits, zeros)
        clipped = one("Select", above, logits, zeros)
        minus_abs = one("Select", above, math.negative(logits), logits)
        return math.add(clipped - logits * labels, math.log1p(math.exp(minus_abs)), name=scope)


def _require_one_shape(labels: Tensor, logits: Tensor, name: str) -> None:
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(f"logits and {name} must have the same shape ({logits.shape} vs {labels.shape})")


def weighted_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> Tensor:
    """-q z log σ(x) - (1 - z) log(1 - σ(x)) with the weight q of positive examples.

    Raises:
      ValueError: the shapes of labels and logits differ.
    """
    labels = either(labels, targets, "labels", "targets")
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="targets")
        _require_one_shape(labels, logits, "targets")
        weight = 1 + (pos_weight - 1) * labels
        penalty = math.log1p(math.exp(-math.abs(logits))) + relu(-logits)
        return math.add((1 - labels) * logits, weight * penalty, name=scope)


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """e^c - c z for the logarithm c of a predicted rate and a count z.

    Args:
      compute_full_loss: add Stirling's approximation of log z!.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        _require_one_shape(targets, log_input, "targets")
        result = math.exp(log_input) - log_input * targets
        if compute_full_loss:
            stirling = targets * math.log(targets) - targets + 0.5 * math.log(2 * 3.141592653589793 * targets)
            small = math.logical_and(targets >= 0, targets <= 1)
            result = result + one("Select", small, arrays.zeros_like(targets), stirling)
        return result


def _of_one_rank(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Removes the last dimension, of size 1, of the tensor with one dimension more."""
    ranks = one.shape.ndims, other.shape.ndims
    if None not in ranks:
        more = (ranks[0] or 0) - (ranks[1] or 0)
        return (arrays.squeeze(one, [-1]) if more == 1 else one, arrays.squeeze(other, [-1]) if more == -1 else other)
    return one, other


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """Returns how often class i was predicted as class j, or the sum of the weights of these examples.

    Args:
      num_classes: number of classes; one more than the largest number that occurs if None.

    Raises:
      ValueError: labels, predictions and weights differ in shape, except for a last dimension of size 1 of labels or
        predictions.
    """
    with name_scope(name, "confusion_matrix", [predictions, labels, num_classes, weights]):
        truth, found = _of_one_rank(math.cast(labels, dtypes.int64), math.cast(predictions, dtypes.int64))
        truth = with_dependencies([assert_non_negative(truth, message="`labels` contains negative values")], truth)
        found = with_dependencies([assert_non_negative(found, message="`predictions` contains negative values")], found)
        if num_classes is None:
            count = math.maximum(reduce_max(found), reduce_max(truth)) + 1
        else:
            count = math.cast(num_classes, dtypes.int64)
            truth = with_dependencies([assert_less(truth, count, message="`labels` out of bound")], truth)
            found = with_dependencies([assert_less(found, count, message="`predictions` out of bound")], found)
        wanted = as_dtype(dtype)
        if weights is None:
            values: Tensor = arrays.ones_like(found, wanted)
        else:
            values = math.cast(weights, wanted)
            values.shape.assert_is_compatible_with(found.shape)
        shape = math.cast(arrays.stack([count, count]), dtypes.int64)
        return one("ScatterNd", arrays.stack([truth, found], 1), values, shape)
