"""``tf.contrib.losses.metric_learning``: losses of embeddings whose distances represent classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.dtypes import float32
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import arrays, linalg, math, reductions
from headwater.tf1.functional.indexing import where_v2
from headwater.tf1.functional.losses import softmax_cross_entropy_with_logits_v2
from headwater.tf1.functional.script import Print

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


def contrastive_loss(
    labels: TensorLike, embeddings_anchor: TensorLike, embeddings_positive: TensorLike, margin: float = 1.0
) -> Tensor:
    """Squared distances of pairs with the label 1, and of the other pairs the squares by which they are below
    ``margin`` (Hadsell et al., 2006)."""
    distances = math.sqrt(reductions.reduce_sum(math.squared_difference(embeddings_anchor, embeddings_positive), 1))
    same = math.cast(labels, distances.dtype)
    apart = math.square(math.maximum(margin - distances, 0.0))
    return reductions.reduce_mean(same * math.square(distances) + (1.0 - same) * apart, name="contrastive_loss")


def npairs_loss(
    labels: TensorLike,
    embeddings_anchor: TensorLike,
    embeddings_positive: TensorLike,
    reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:
    """Cross entropy of the products of all anchors and positives, and a regularisation of their lengths (Sohn, 2016).

    Args:
      labels: the class of each pair: [pairs].
      embeddings_anchor, embeddings_positive: [pairs, dimensions].
      reg_lambda: the weight of the regularisation.
      print_losses: whether a run prints both parts.
    """
    anchor, positive = convert_to_tensor(embeddings_anchor), convert_to_tensor(embeddings_positive)
    lengths = [reductions.reduce_mean(reductions.reduce_sum(math.square(each), 1)) for each in (anchor, positive)]
    penalty = math.multiply(0.25 * reg_lambda, lengths[0] + lengths[1], name="l2loss")
    similar = linalg.matmul(anchor, positive, transpose_b=True)
    same = math.cast(_same(labels), float32)
    wanted = same / reductions.reduce_sum(same, 1, keepdims=True)
    loss = reductions.reduce_mean(softmax_cross_entropy_with_logits_v2(labels=wanted, logits=similar), name="xentropy")
    if print_losses:
        loss = Print(loss, ["cross entropy:", loss, "l2loss:", penalty])
    return penalty + loss


def triplet_semihard_loss(labels: TensorLike, embeddings: TensorLike, margin: float = 1.0) -> Tensor:
    """For each pair of one class, the amount by which its squared distance plus ``margin`` exceeds the smallest larger
    distance to another class, or the largest distance if there is none (Schroff et al., 2015).

    Args:
      labels: the class of each example: [examples].
      embeddings: [examples, dimensions].
    """
    distances = _squared_distances(convert_to_tensor(embeddings))
    same = _same(labels)
    other = math.logical_not(same)
    largest = reductions.reduce_max(distances, 1, keepdims=True)
    smallest = reductions.reduce_min(distances, 1, keepdims=True)
    # [anchor, positive, negative]
    beyond = math.logical_and(
        arrays.expand_dims(other, 1), math.greater(arrays.expand_dims(distances, 1), arrays.expand_dims(distances, 2))
    )
    nearest = reductions.reduce_min(
        where_v2(beyond, arrays.expand_dims(distances, 1), arrays.expand_dims(largest, 1)), 2
    )
    farthest = reductions.reduce_max(where_v2(other, distances, smallest), 1, keepdims=True)
    negatives = where_v2(reductions.reduce_any(beyond, 2), nearest, farthest)
    pairs = math.cast(same, float32) - linalg.eye(arrays.shape(distances)[0])
    excess = math.maximum((margin + distances - negatives) * pairs, 0.0)
    total = reductions.reduce_sum(excess)
    return math.truediv(total, reductions.reduce_sum(pairs), name="triplet_semihard_loss")


def _same(labels: TensorLike) -> Tensor:
    """Returns for each two labels whether they are equal."""
    column = arrays.reshape(labels, [-1, 1])
    return math.equal(column, arrays.transpose(column))


def _squared_distances(embeddings: Tensor) -> Tensor:
    """Returns the squared distance of each two rows."""
    lengths = reductions.reduce_sum(math.square(embeddings), 1, keepdims=True)
    products = linalg.matmul(embeddings, embeddings, transpose_b=True)
    found = math.maximum(lengths + arrays.transpose(lengths) - 2.0 * products, 0.0)
    return found * (1.0 - linalg.eye(arrays.shape(embeddings)[0]))
