"""Losses of classifiers with very many classes, computed from the true ones and a few random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, losses, math, reductions
from headwater.tf1.functional.candidates import log_uniform_candidate_sampler
from headwater.tf1.functional.linalg import matmul
from headwater.tf1.variables.embedding import embedding_lookup
from headwater.tf1.variables.partitioned import PartitionedVariable

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def sampled_logits(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The logits [batch, num_true + num_sampled], each less the logarithm of its expected count, and their labels."""
    inputs = convert_to_tensor(inputs)
    labels = math.cast(labels, dtypes.int64)
    flat = arrays.reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_expected, sampled_expected = (
        arrays.stop_gradient(convert_to_tensor(value)) for value in sampled_values
    )
    sampled = math.cast(sampled, dtypes.int64)
    # One look-up for both, so that the gradient of a table on parameter servers is sent once.
    ids = arrays.concat([flat, sampled], 0)
    count = arrays.shape(flat)[0]
    rows, offsets = (
        math.cast(embedding_lookup(table, ids, partition_strategy), inputs.dtype) for table in (weights, biases)
    )
    true_rows = arrays.reshape(rows[:count], arrays.stack([-1, num_true, arrays.shape(rows)[1]]))
    true_logits = reductions.reduce_sum(arrays.expand_dims(inputs, 1) * true_rows, 2)
    true_logits = true_logits + arrays.reshape(offsets[:count], [-1, num_true])
    sampled_logits = matmul(inputs, rows[count:], transpose_b=True) + offsets[count:]
    if remove_accidental_hits:
        matches = math.equal(arrays.expand_dims(arrays.reshape(flat, [-1, num_true]), 2), sampled)
        hits = math.cast(reductions.reduce_any(matches, 1), inputs.dtype)
        sampled_logits = sampled_logits + hits * float(np.finfo(np.float32).min)
    true_logits = true_logits - math.cast(math.log(true_expected), inputs.dtype)
    sampled_logits = sampled_logits - math.cast(math.log(sampled_expected), inputs.dtype)
    out_labels = arrays.concat([arrays.ones_like(true_logits) / num_true, arrays.zeros_like(sampled_logits)], 1)
    return arrays.concat([true_logits, sampled_logits], 1), out_labels


def _parts(weights: TensorLike) -> list[Any]:
    if isinstance(weights, PartitionedVariable | list | tuple):
        return list(weights)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [weights]


def nce_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: a sigmoid loss that distinguishes true classes from drawn ones, for each row.

    Gutmann and Hyvärinen, Noise-contrastive estimation, 2010.

    Args:
      weights: [num_classes, dim], or a list or partitioned variable of its parts.
      biases: [num_classes].
      labels: int64 [batch, num_true], the true classes.
      inputs: [batch, dim].
      num_sampled: number of classes to draw for the whole batch.
      sampled_values: the result of a sampler; `log_uniform_candidate_sampler`'s if None.
      remove_accidental_hits: ignore drawn classes that are true classes of a row.

    Returns:
      The loss of each row.
    """
    sampling = (num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy)
    with name_scope(name, "nce_loss", [*_parts(weights), biases, inputs, labels]):
        logits, wanted = sampled_logits(weights, biases, labels, inputs, *sampling)
        each = losses.sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits, name="sampled_losses")
        return reductions.reduce_sum(each, 1)


def sampled_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Like `nce_loss`, with the cross entropy of a softmax over the true and the drawn classes.

    Jean et al., On Using Very Large Target Vocabulary for Neural Machine Translation, 2014.
    """
    sampling = (num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits, partition_strategy)
    with name_scope(name, "sampled_softmax_loss", [*_parts(weights), biases, inputs, labels]):
        logits, wanted = sampled_logits(weights, biases, labels, inputs, *sampling, seed)
        wanted = arrays.stop_gradient(wanted, name="labels_stop_gradient")
        return losses.softmax_cross_entropy_with_logits_v2(labels=wanted, logits=logits)
