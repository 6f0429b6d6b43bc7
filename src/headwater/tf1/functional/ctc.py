"""Connectionist temporal classification: label sequences without an alignment of labels to time steps.

Graves et al., Connectionist Temporal Classification, 2006.
"""

from __future__ import annotations

from typing import Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import apply
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.sparse import SparseTensor, SparseTensorValue


def ctc_loss(
    labels: object,
    inputs: TensorLike | None = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: TensorLike | None = None,
) -> Tensor:
    """Returns -log p(labels | inputs) of each sequence. The last class is the blank between labels.

    Args:
      labels: int32 sparse tensor [batch, labels].
      inputs, logits: [time, batch, classes], or [batch, time, classes] if not ``time_major``.
      sequence_length: int32 [batch].
      preprocess_collapse_repeated: count equal adjacent labels as one.
      ctc_merge_repeated: several consecutive time steps may represent one label.
      ignore_longer_outputs_than_inputs: sequences with more labels than time steps cost 0; else they are an error.

    Raises:
      TypeError: ``labels`` is not a sparse tensor.
    """
    if not isinstance(labels, SparseTensor | SparseTensorValue):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    labels = SparseTensor.from_value(labels)
    inputs = convert_to_tensor(either(inputs, logits, "inputs", "logits"))
    if not time_major:
        inputs = arrays.transpose(inputs, [1, 0, 2])
    attrs = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated,
        "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }
    return apply("CTCLoss", inputs, labels.indices, labels.values, sequence_length, name=None, **attrs).outputs[0]


def ctc_loss_v2(
    labels: Any,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: TensorLike | None = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Like `ctc_loss`, but also accepts a matrix of labels, and any class as the blank.

    Args:
      labels: int32 [batch, labels], or a sparse tensor.
      label_length: how many labels each row of a matrix has.
      unique: result of `tf.nn.ctc_unique_labels`, an optimisation in TensorFlow; not used here.
      blank_index: the class of the blank, from the end if negative; 0 if None.

    Raises:
      ValueError: ``blank_index`` is None with sparse labels, or no class.
    """
    del unique
    sparse = isinstance(labels, SparseTensor)
    if sparse and blank_index is None:
        raise ValueError("blank_index must be given when using SparseTensor labels.")
    with name_scope(name, "ctc_loss" if sparse else "ctc_loss_dense", []):
        logits = convert_to_tensor(logits, name="logits")
        classes = None if logits.dims is None else logits.dims[-1]
        if classes is None:
            raise ValueError("ctc_loss_v2 needs logits whose number of classes is known")
        blank = blank_index or 0
        if not -classes <= blank < classes:
            raise ValueError(f"blank_index must be in [{-classes}, {classes}), not {blank_index}")
        blank %= classes
        if not isinstance(labels, SparseTensor):
            labels = convert_to_tensor(labels, name="labels")
            there = indexing.sequence_mask(label_length, arrays.shape(labels)[1])
            places = indexing.where(there)
            shape = arrays.shape(labels, out_type=dtypes.int64)
            labels = SparseTensor(places, indexing.gather_nd(labels, places), shape)
        values = math.cast(labels.values, dtypes.int32)
        if blank != classes - 1:
            logits = arrays.concat(
                [logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank : blank + 1]], 2
            )
            values = indexing.where(math.less(values, blank), values, values - 1)
        return ctc_loss(
            SparseTensor(labels.indices, values, labels.dense_shape), logits, logit_length, time_major=logits_time_major
        )


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the best class of each time step, without blanks, and minus the sum of the best logits [batch, 1].

    Args:
      inputs: logits [time, batch, classes]; the last class is the blank.
      merge_repeated: count equal classes of consecutive time steps once.
    """
    *decoded, score = apply("CTCGreedyDecoder", inputs, sequence_length, merge_repeated=merge_repeated).outputs
    return [SparseTensor(*decoded)], score


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The ``top_paths`` most probable label sequences, and the logarithms of their probabilities [batch, top_paths].

    Args:
      inputs: logits [time, batch, classes]; the last class is the blank.
      beam_width: number of sequences to follow at a time.
      merge_repeated: remove labels that equal the previous label, from the sequences that were found.
    """
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    *parts, scores = apply("CTCBeamSearchDecoder", inputs, sequence_length, name=None, **attrs).outputs
    decoded = [SparseTensor(*parts[rank::top_paths]) for rank in range(top_paths)]
    return decoded, scores


def ctc_beam_search_decoder_v2(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Like `ctc_beam_search_decoder`, but keeps equal adjacent labels."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Merges equal adjacent labels of each row, pads with 0, and returns the new lengths.

    Args:
      labels: [batch, labels].
      seq_length: how many labels each row has.
    """
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels, seq_length = convert_to_tensor(labels, name="labels"), convert_to_tensor(seq_length, name="seq_length")
        changes = arrays.concat(
            [arrays.ones_like(labels[:, :1], dtypes.bool_), math.not_equal(labels[:, 1:], labels[:, :-1])], 1
        )
        kept = math.logical_and(changes, indexing.sequence_mask(seq_length, arrays.shape(labels)[1]))
        counts = reductions.reduce_sum(math.cast(kept, dtypes.int32), 1)
        places = reductions.cumsum(math.cast(kept, dtypes.int64), 1) - 1
        found = indexing.where(kept)
        rows = found[:, 0]
        target = arrays.stack([rows, indexing.gather_nd(places, found)], 1)
        shape = arrays.stack([arrays.shape(labels)[0], reductions.reduce_max(counts)])
        collapsed = indexing.scatter_nd(target, indexing.gather_nd(labels, found), math.cast(shape, dtypes.int64))
        return collapsed, math.cast(counts, seq_length.dtype.base_dtype)
