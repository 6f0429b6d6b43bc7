"""Connectionist temporal classification (Graves et al., 2006), computed on the host in NumPy for whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.dtypes import int64
from headwater.errors import FailedPreconditionError, InvalidArgumentError, OpError
from headwater.graph.kernels.ctc import paths
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import merge_dims

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor

# The loss ---------------------------------------------------------------------------------------------------------


def _time_batch(inference: Inference, lengths: int) -> tuple[int | None, int | None, int | None]:
    """Returns the sizes of time, batch and classes; raises ValueError if the shapes do not fit."""
    dims = inference.inputs[0].dims
    if dims is not None and len(dims) != 3:
        raise ValueError(f"Shape must be rank 3 but is rank {len(dims)}")
    time, batch, classes = dims or (None, None, None)
    given = inference.inputs[lengths].dims
    if given is not None and len(given) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(given)}")
    merged = merge_dims((batch,), given)
    return time, merged[0] if merged else batch, classes


def _loss_spec(inference: Inference) -> Sequence[Spec]:
    time, batch, classes = _time_batch(inference, 3)
    dtype = inference.inputs[0].dtype.base_dtype
    return [Spec(dtype, (batch,)), Spec(dtype, (time, batch, classes))]


def _loss_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    """Scales the gradient of each sequence, which the operation has computed together with the loss, by the gradient of
    its loss."""
    graph = op.graph
    axis = graph.create_op("Const", [], {"value": np.array(1, np.int32)}).outputs[0]
    scale = graph.create_op("ExpandDims", [grads[0], axis]).outputs[0]
    return [graph.create_op("Mul", [scale, op.outputs[1]]).outputs[0], None, None, None]


@host(
    "CTCLoss",
    infer=_loss_spec,
    inputs="inputs:T|floating=float32, labels_indices:int64, labels_values:int32, sequence_length:int32",
    gradient=_loss_gradient,
)
def ctc_loss(
    inputs: HostArray,
    labels_indices: HostArray,
    labels_values: HostArray,
    sequence_length: HostArray,
    *,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
) -> Sequence[HostArray]:
    """Returns -log p(labels | inputs) of each sequence, and its gradient for ``inputs`` [time, batch, classes].

    The last class is the blank. The loss is infinite if no path produces the labels.
    """
    lengths = _checked_lengths(inputs, sequence_length, InvalidArgumentError)
    rows: list[list[int]] = [[] for _ in range(inputs.shape[1])]
    for (row, _), value in zip(labels_indices.tolist(), labels_values.tolist(), strict=True):
        rows[row].append(value)
    labels = [_trimmed(row, inputs.shape[2], preprocess_collapse_repeated, n) for n, row in enumerate(rows)]
    skipped = np.array([len(row) > length for row, length in zip(labels, lengths, strict=True)], bool)
    if skipped.any() and not ignore_longer_outputs_than_inputs:
        first = int(np.argmax(skipped))
        raise InvalidArgumentError(
            f"Not enough time for target transition sequence (required: {len(labels[first])}, available: "
            f"{lengths[first]}) of sequence {first}. ignore_longer_outputs_than_inputs=True skips such sequences"
        )
    labels = [[] if skip else row for row, skip in zip(labels, skipped, strict=True)]
    loss, gradient = _paths(inputs.astype(np.float64), labels, np.where(skipped, 0, lengths), ctc_merge_repeated)
    return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)


def _checked_lengths(
    inputs: HostArray, sequence_length: HostArray, error: type[OpError] = FailedPreconditionError
) -> HostArray:
    if len(sequence_length) != inputs.shape[1]:
        raise InvalidArgumentError(f"len(sequence_length) != batch_size. {len(sequence_length)} vs. {inputs.shape[1]}")
    if (sequence_length > inputs.shape[0]).any():
        raise error(f"sequence_length must be at most {inputs.shape[0]}, the time of inputs, not {sequence_length}")
    return sequence_length.astype(np.int64)


def _trimmed(labels: Sequence[int], classes: int, collapse: bool, row: int) -> list[int]:
    """Returns the labels without blanks at the end; with ``collapse``, also without repetitions."""
    if not labels:
        raise InvalidArgumentError(f"Labels length is zero in sequence {row}")
    found: list[int] = []
    ended = False
    for place, label in enumerate(labels):
        if collapse and place and label == labels[place - 1]:
            continue
        if label < 0:
            raise InvalidArgumentError(f"All labels must be nonnegative, not {label}, in sequence {row}")
        if label >= classes - 1:
            ended = True
        elif ended:
            raise InvalidArgumentError(
                f"Saw a non-null label following a null label ({classes - 1}), in sequence {row}"
            )
        else:
            found.append(label)
    return found


def _paths(
    inputs: HostArray, labels: Sequence[Sequence[int]], lengths: HostArray, merge_repeated: bool
) -> tuple[HostArray, HostArray]:
    """Returns the loss and the gradient of each sequence; both are 0 for a sequence of length 0."""
    counts = np.array([len(row) for row in labels], np.int64)
    path = np.full((len(labels), 2 * int(counts.max(initial=0)) + 1), inputs.shape[2] - 1, np.int64)
    for row, values in enumerate(labels):
        path[row, 1 : 2 * len(values) : 2] = values
    return paths(inputs, path, counts, lengths, merge_repeated)


# Decoding ---------------------------------------------------------------------------------------------------------


def _sparse(rows: Sequence[Sequence[int]]) -> tuple[HostArray, HostArray, HostArray]:
    """Lists of classes as the indices, values and shape of a sparse matrix."""
    indices = [(row, column) for row, values in enumerate(rows) for column in range(len(values))]
    values = np.array([value for row in rows for value in row], np.int64)
    shape = np.array([len(rows), max(map(len, rows), default=0)], np.int64)
    return np.array(indices, np.int64).reshape(-1, 2), values, shape


def _greedy_spec(inference: Inference) -> Sequence[Spec]:
    _, batch, _ = _time_batch(inference, 1)
    score = Spec(inference.inputs[0].dtype.base_dtype, (batch, 1))
    return [Spec(int64, (None, 2)), Spec(int64, (None,)), Spec(int64, (2,)), score]


@host("CTCGreedyDecoder", infer=_greedy_spec, inputs="inputs:T|floating=float32, sequence_length:int32")
def ctc_greedy_decoder(
    inputs: HostArray, sequence_length: HostArray, *, merge_repeated: bool = False
) -> Sequence[HostArray]:
    """Returns the best class at each time step without blanks, and the negative sum of the best logits."""
    lengths = _checked_lengths(inputs, sequence_length)
    blank = inputs.shape[2] - 1
    running = np.arange(inputs.shape[0])[:, None] < lengths
    scores = -np.where(running, inputs.max(2), 0).sum(0, dtype=inputs.dtype)[:, None]
    found: list[list[int]] = []
    for best, length in zip(inputs.argmax(2).T.tolist(), lengths.tolist(), strict=True):
        kept = [
            label
            for place, label in enumerate(best[:length])
            if label != blank and not (merge_repeated and place and label == best[place - 1])
        ]
        found.append(kept)
    return *_sparse(found), scores.astype(inputs.dtype)


def _beam_spec(inference: Inference) -> Sequence[Spec]:
    _, batch, _ = _time_batch(inference, 1)
    paths = inference.attrs["top_paths"]
    parts = [(None, 2), (None,), (2,)]
    score = Spec(inference.inputs[0].dtype.base_dtype, (batch, paths))
    return [*(Spec(int64, dims) for dims in parts for _ in range(paths)), score]


@host("CTCBeamSearchDecoder", infer=_beam_spec, inputs="inputs:T|floating=float32, sequence_length:int32")
def ctc_beam_search_decoder(
    inputs: HostArray, sequence_length: HostArray, *, beam_width: int, top_paths: int, merge_repeated: bool = True
) -> Sequence[HostArray]:
    """Returns the most probable label sequences of a beam search, and the logarithms of their probabilities.

    ``merge_repeated`` merges equal consecutive labels of the result.
    """
    if not 0 < top_paths <= beam_width:
        raise InvalidArgumentError("requested more paths than the beam width.")
    lengths = _checked_lengths(inputs, sequence_length)
    found: list[list[list[int]]] = [[] for _ in range(top_paths)]
    scores = np.zeros((inputs.shape[1], top_paths), inputs.dtype)
    for row, length in enumerate(lengths.tolist()):
        logits = inputs[:length, row].astype(np.float64)
        high = logits.max(1, keepdims=True, initial=-np.inf)
        best = _beam(logits - high - np.log(np.exp(logits - high).sum(1, keepdims=True)), beam_width)
        if len(best) < top_paths:
            raise InvalidArgumentError(f"Less leaves in the beam search than requested: {len(best)}")
        for rank, (labels, score) in enumerate(best[:top_paths]):
            kept = [x for i, x in enumerate(labels) if not (merge_repeated and i and x == labels[i - 1])]
            found[rank].append(kept)
            scores[row, rank] = score
    parts = [_sparse(rows) for rows in found]
    return *(part[place] for place in range(3) for part in parts), scores


_Prefix = tuple[int, ...]


def _beam(scores: HostArray, width: int) -> list[tuple[_Prefix, float]]:
    """Returns at most ``width`` label sequences and the logarithms of their probabilities, best first.

    For each sequence, the search keeps two probabilities: of the paths that end with a blank, and of the paths that end
    with the sequence's last label.
    """
    blank = scores.shape[1] - 1
    beam: dict[_Prefix, tuple[float, float]] = {(): (0.0, -np.inf)}
    for row in scores:
        old = beam
        totals = {prefix: float(np.logaddexp(*pair)) for prefix, pair in old.items()}
        kept: dict[_Prefix, tuple[float, float]] = {}
        for prefix in old:
            ended = -np.inf
            if prefix:
                ended, parent = old[prefix][1], prefix[:-1]
                if parent in old:
                    repeats = bool(parent) and parent[-1] == prefix[-1]
                    ended = float(np.logaddexp(ended, old[parent][0] if repeats else totals[parent]))
                ended += float(row[prefix[-1]])
            kept[prefix] = (totals[prefix] + float(row[blank]), ended)
        grown = dict(kept)
        for prefix, total in totals.items():
            for label in range(blank):
                child = (*prefix, label)
                if child not in kept:
                    before = old[prefix][0] if prefix and prefix[-1] == label else total
                    if before != -np.inf:
                        grown[child] = (-np.inf, before + float(row[label]))
        best = sorted(grown, key=lambda prefix: -np.logaddexp(*grown[prefix]))[:width]
        beam = {prefix: grown[prefix] for prefix in best}
    ordered = ((prefix, float(np.logaddexp(*pair))) for prefix, pair in beam.items())
    return sorted(ordered, key=lambda found: -found[1])
