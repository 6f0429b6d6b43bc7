"""Beam search: traces sequences back from the beams of each step, on the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import merge_dims


def _tree_spec(inference: Inference) -> Sequence[Spec]:
    step_ids, parent_ids, lengths, end_token = (tensor.dims for tensor in inference.inputs)
    for dims, rank in ((step_ids, 3), (parent_ids, 3), (lengths, 1), (end_token, 0)):
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    dims = merge_dims(step_ids or (None, None, None), parent_ids)
    if dims is not None and lengths is not None:
        dims = merge_dims(dims, (None, lengths[0], None))
    return [Spec(inference.inputs[0].dtype.base_dtype, dims)]


@host(
    "GatherTree",
    inputs="step_ids:int32, parent_ids:int32, max_sequence_lengths:int32, end_token:int32",
    infer=_tree_spec,
)
def gather_tree(
    step_ids: HostArray, parent_ids: HostArray, max_sequence_lengths: HostArray, end_token: HostArray
) -> HostArray:
    """Returns the sequence of each final beam, [time, batch, beams], traced back from its last step by the parents.

    A sequence is filled with end tokens after its first end token and after its maximum length,
    ``max_sequence_lengths`` [batch].

    Raises:
      InvalidArgumentError: a shape differs, or a parent is not a beam.
    """
    if step_ids.shape != parent_ids.shape or max_sequence_lengths.shape != step_ids.shape[1:2]:
        raise InvalidArgumentError(
            f"step_ids {step_ids.shape}, parent_ids {parent_ids.shape} and max_sequence_lengths "
            f"{max_sequence_lengths.shape} do not fit together"
        )
    time, batch, beams = step_ids.shape
    found = np.full(step_ids.shape, end_token, step_ids.dtype)
    rows = np.arange(batch)[:, None]
    lengths = np.minimum(max_sequence_lengths, time)[:, None]
    parents = np.broadcast_to(np.arange(beams), (batch, beams))
    for step in range(time - 1, -1, -1):
        within = step < lengths
        wrong = within & ((parents < 0) | (parents >= beams))
        if wrong.any():
            row, beam = np.argwhere(wrong)[0]
            raise InvalidArgumentError(
                f"Saw invalid parent id {parents[row, beam]} at (batch, time, beam) == ({row}, {step}, {beam})"
            )
        found[step] = np.where(within, step_ids[step][rows, parents], end_token)
        parents = np.where(within, parent_ids[step][rows, parents], parents)
    ended = np.logical_or.accumulate(found == end_token, axis=0)
    return np.where(ended, np.asarray(end_token, step_ids.dtype), found)
