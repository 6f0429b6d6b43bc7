"""Scores, likelihoods and most probable tags of a linear chain (Lafferty et al., 2001).

The score of the tags y of a sequence is Σ_t inputs[t, y_t] + Σ_t transitions[y_{t-1}, y_t]; its log likelihood is the
score minus the log norm, the logarithm of the sum of exp(score) over all sequences of tags. In all functions

- ``inputs`` [batch, time, tags] has the score of each tag in each step;
- ``sequence_lengths`` [batch] has the number of steps of each sequence;
- ``transition_params`` [tags, tags] has the score of each pair of successive tags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import dimension_value
from headwater.tf1.contrib.crf.cells import CrfDecodeBackwardRnnCell, CrfDecodeForwardRnnCell, CrfForwardRnnCell
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.rnn.networks import dynamic_rnn
from headwater.tf1.variables.variable_scope import get_variable

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import TensorLike


def crf_sequence_score(
    inputs: TensorLike, tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> Tensor:
    """The scores [batch] of the tags ``tag_indices`` [batch, time]."""
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def crf_multitag_sequence_score(
    inputs: TensorLike, tag_bitmap: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> Tensor:
    """The logarithm [batch] of the sum of exp(score) over all sequences of allowed tags.

    Args:
      tag_bitmap: bool [batch, time, tags], the tags that each step allows.
    """
    inputs = convert_to_tensor(inputs)
    lowest = arrays.fill(arrays.shape(inputs), convert_to_tensor(-np.inf, inputs.dtype.base_dtype))
    allowed = indexing.where(convert_to_tensor(tag_bitmap), inputs, lowest)
    allowed.set_shape(inputs.shape)
    if inputs.dims is not None and inputs.dims[1] == 1:
        return reductions.reduce_logsumexp(allowed, [1, 2])  # as in TensorFlow, independently of the lengths
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(inputs: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike) -> Tensor:
    """The log norms [batch]; 0 for empty sequences."""
    inputs, lengths = convert_to_tensor(inputs), convert_to_tensor(sequence_lengths)
    cell = CrfForwardRnnCell(transition_params)
    _, alphas = dynamic_rnn(cell, inputs[:, 1:], math.maximum(lengths - 1, 0), initial_state=inputs[:, 0])
    norm = reductions.reduce_logsumexp(alphas, [1])
    return indexing.where(lengths <= 0, arrays.zeros_like(norm), norm)


def crf_log_likelihood(
    inputs: TensorLike,
    tag_indices: TensorLike,
    sequence_lengths: TensorLike,
    transition_params: TensorLike | None = None,
) -> tuple[Tensor, Any]:
    """The log likelihoods [batch] of the tags ``tag_indices`` [batch, time], and the transitions.

    Args:
      transition_params: the variable ``transitions`` of the current variable scope if None.
    """
    inputs = convert_to_tensor(inputs)
    transitions: Any = transition_params
    if transitions is None:
        tags = dimension_value(inputs.shape[2])
        transitions = get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transitions)
    return score - crf_log_norm(inputs, sequence_lengths, transitions), transitions


def _mask(tags: Tensor, sequence_lengths: TensorLike) -> Tensor:
    return indexing.sequence_mask(sequence_lengths, maxlen=arrays.shape(tags)[1], dtype=dtypes.float32)


def crf_unary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, inputs: TensorLike) -> Tensor:
    """Σ_t inputs[t, y_t] for the tags y, ``tag_indices`` [batch, time]."""
    tags = convert_to_tensor(tag_indices)
    inputs = convert_to_tensor(inputs)
    sizes = arrays.shape(inputs)
    rows = arrays.range(sizes[0] * sizes[1]) * sizes[2]
    places = math.cast(arrays.reshape(rows, sizes[:2]), tags.dtype.base_dtype) + tags
    scores = indexing.gather(arrays.reshape(inputs, [-1]), places)
    return reductions.reduce_sum(scores * _mask(tags, sequence_lengths), 1)


def crf_binary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike) -> Tensor:
    """Σ_t transitions[y_{t-1}, y_t] for the tags y, ``tag_indices`` [batch, time]."""
    tags, transitions = convert_to_tensor(tag_indices), convert_to_tensor(transition_params)
    count = int(transitions.shape[0])
    pairs = tags[:, :-1] * count + tags[:, 1:]
    scores = indexing.gather(arrays.reshape(transitions, [-1]), pairs)
    return reductions.reduce_sum(scores * _mask(tags, sequence_lengths)[:, 1:], 1)


def viterbi_decode(score: HostArray, transition_params: HostArray) -> tuple[list[Any], Any]:
    """The most probable tags of one sequence, and their score.

    Args:
      score: an array [time, tags].
      transition_params: an array [tags, tags].
    """
    best = score[0]
    parents: list[HostArray] = []
    for row in score[1:]:
        totals = best[:, None] + transition_params
        parents.append(totals.argmax(0))
        best = row + totals.max(0)
    tags = [best.argmax()]
    for parent in reversed(parents):
        tags.append(parent[tags[-1]])
    return tags[::-1], best.max()


def crf_decode(
    potentials: TensorLike, transition_params: TensorLike, sequence_length: TensorLike
) -> tuple[Tensor, Tensor]:
    """The most probable tags, int32 [batch, time], and their scores [batch].

    Args:
      potentials: the scores of the tags, [batch, time, tags].
      sequence_length: see ``sequence_lengths``; after it tags are 0.
    """
    potentials, lengths = convert_to_tensor(potentials), convert_to_tensor(sequence_length)
    transitions = math.maximum(lengths - 1, 0)
    forward = CrfDecodeForwardRnnCell(transition_params)
    parents, last = dynamic_rnn(forward, potentials[:, 1:], transitions, initial_state=potentials[:, 0])
    parents = indexing.reverse_sequence(parents, transitions, seq_axis=1)
    end = arrays.expand_dims(math.cast(reductions.argmax(last, axis=1), dtypes.int32), -1)
    backward = CrfDecodeBackwardRnnCell(int(potentials.shape[2]))
    tags, _ = dynamic_rnn(backward, parents, transitions, initial_state=end)
    tags = arrays.concat([end, arrays.squeeze(tags, [2])], 1)
    return indexing.reverse_sequence(tags, lengths, seq_axis=1), reductions.reduce_max(last, 1)
