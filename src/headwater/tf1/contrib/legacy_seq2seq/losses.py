"""Losses of lists of logits, and models of several lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.losses import sparse_softmax_cross_entropy_with_logits
from headwater.tf1.variables.variable_scope import get_variable_scope, variable_scope


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of each sequence, [batch].

    Args:
      logits: for each step [batch, classes].
      targets: for each step the classes [batch].
      weights: for each step [batch].
      average_across_timesteps: divide by the sum of the weights.
      softmax_loss_function: ``f(labels=, logits=)``; sparse softmax cross entropy if None.

    Raises:
      ValueError: the lists have different lengths.
    """
    if len(targets) != len(logits) or len(weights) != len(logits):
        raise ValueError(
            f"Lengths of logits, weights, and targets must be the same {len(logits)}, {len(weights)}, {len(targets)}."
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        found: list[Any] = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                labels = arrays.reshape(target, [-1])
                loss = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            found.append(loss * weight)
        total = math.add_n(found)
        # TensorFlow adds 1e-12 in case that all weights are zero.
        return total / (math.add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of `sequence_loss_by_example`, divided by the batch size with ``average_across_batch``."""
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        cost = reductions.reduce_sum(
            sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        )
        if not average_across_batch:
            return cost
        return cost / math.cast(arrays.shape(targets[0])[0], cost.dtype.base_dtype)


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], Any],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """A model with shared variables for each pair of lengths; returns for each the outputs, and the loss.

    Args:
      encoder_inputs, decoder_inputs, targets, weights: lists for the last bucket, the longest one.
      buckets: lengths of the inputs of the encoder and of the decoder, ascending.
      seq2seq: ``f(encoder_inputs, decoder_inputs)`` returns outputs and a state.
      per_example_loss: a loss for each sequence, [batch].
      softmax_loss_function: see `sequence_loss_by_example`.

    Raises:
      ValueError: a list is shorter than the last bucket.
    """
    longest, last = buckets[-1]
    for word, listed, wanted in (
        ("encoder_inputs", encoder_inputs, longest),
        ("targets", targets, last),
        ("weights", weights, last),
    ):
        if len(listed) < wanted:
            raise ValueError(f"Length of {word} ({len(listed)}) must be at least that of last bucket ({wanted}).")
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    outputs: list[Any] = []
    losses: list[Any] = []
    with name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for index, (longest, last) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if index > 0 else None):
                found, _ = seq2seq(encoder_inputs[:longest], decoder_inputs[:last])
                outputs.append(found)
                losses.append(
                    loss_of(found, targets[:last], weights[:last], softmax_loss_function=softmax_loss_function)
                )
    return outputs, losses
