"""`gather_tree`: reconstructs sequences from the beams of each step and their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def gather_tree(
    step_ids: TensorLike,
    parent_ids: TensorLike,
    max_sequence_lengths: TensorLike,
    end_token: TensorLike,
    name: str | None = None,
) -> Tensor:
    """The sequence of each final beam, int32 [time, batch, beams].

    Args:
      step_ids: the classes chosen in each step, int32 [time, batch, beams].
      parent_ids: the beams of the previous step that they continue, int32 [time, batch, beams].
      max_sequence_lengths: the number of steps of each example, int32 [batch].
      end_token: fills sequences after its first occurrence and after their last step.

    Raises:
      InvalidArgumentError: a parent is not a beam.
    """
    return one("GatherTree", step_ids, parent_ids, max_sequence_lengths, end_token, name=name)


def gather_tree_from_array(t: Tensor, parent_ids: Tensor, sequence_length: Tensor) -> Tensor:
    """The elements [time, batch · beams or batch, beams, …] of all steps in the order of the final beams.

    Args:
      parent_ids: see `gather_tree`.
      sequence_length: the length of each beam, [batch, beams].
    """
    sizes = arrays.shape(parent_ids)
    time, batch, beams = sizes[0], sizes[1], sizes[2]
    own = arrays.broadcast_to(arrays.range(beams), sizes)
    longest = math.cast(reductions.reduce_max(sequence_length, axis=1), dtypes.int32)
    found = gather_tree(own, parent_ids, longest, beams + 1)
    within = arrays.transpose(indexing.sequence_mask(sequence_length, maxlen=time), [2, 0, 1])
    found = indexing.where(within, found, own)
    elements = arrays.reshape(t, arrays.stack([time, batch, beams, convert_to_tensor(-1)]))
    ordered = arrays.reshape(indexing.gather(elements, found, batch_dims=2), arrays.shape(t))
    ordered.set_shape(t.shape)
    return ordered
