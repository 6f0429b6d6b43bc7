"""`BeamSearchDecoder`: the most probable sequences, several at a time.

In each step every beam of a sequence proposes all classes; the ``beam_width`` proposals with the highest scores become
the next beams. With the log probability p of a proposal, its length n and the accumulated attention a_j (at most 1) of
each step j of the memory, the score is p / ((5 + n) / 6)^length_penalty_weight + coverage_penalty_weight Σ_j log a_j
(Wu et al., 2016); as in TensorFlow 1.15, the coverage counts for finished beams only.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape, dimension_value
from headwater.tf1.contrib.seq2seq.basic import require_layer, size_after
from headwater.tf1.contrib.seq2seq.decoding import Decoder
from headwater.tf1.contrib.seq2seq.helpers import lookup, tokens
from headwater.tf1.contrib.seq2seq.trees import gather_tree, gather_tree_from_array
from headwater.tf1.contrib.seq2seq.wrapper import AttentionWrapperState
from headwater.tf1.functional import arrays, indexing, math, nest, nn, reductions
from headwater.tf1.functional.tensor_arrays import TensorArray
from headwater.tf1.rnn.networks import require_cell

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.layers.base import Layer
    from headwater.tf1.rnn.cells import RNNCell

_log: Final = logging.getLogger(__name__)


class BeamSearchDecoderState(NamedTuple):
    """The state of a `BeamSearchDecoder`.

    Attributes:
      cell_state: the cell's, [batch, beams, …].
      log_probs: the log probabilities of each beam, [batch, beams].
      finished: bool [batch, beams].
      lengths: int64 [batch, beams].
      accumulated_attention_probs: [batch, beams, time of the memory]; () without a coverage penalty.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """One step's scores, chosen classes, and the beams that the classes continue: each [batch, beams]."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The sequences, the best beam first, [batch, time, beams], and the outputs of all steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: Structure, multiplier: int, name: str | None = None) -> Any:
    """Repeats each row ``multiplier`` times: [batch, …] becomes [batch · multiplier, …].

    Args:
      t: a tensor or a nested structure of tensors, such as an encoder's state.

    Raises:
      ValueError: the rank of a tensor is not known.
    """

    def tiled(each: Any) -> Tensor:
        tensor = convert_to_tensor(each, name="t")
        if not tensor.dims:
            raise ValueError("t must have statically known rank")
        wide = arrays.tile(arrays.expand_dims(tensor, 1), [1, multiplier, *[1] * (len(tensor.dims) - 1)])
        shape = arrays.shape(tensor)
        found = arrays.reshape(wide, arrays.concat([[shape[0] * multiplier], shape[1:]], 0))
        batch = tensor.dims[0]
        found.set_shape(TensorShape([None if batch is None else batch * multiplier, *tensor.dims[1:]]))
        return found

    with name_scope(name, "tile_batch", [*nest.flatten(t), multiplier]):
        return nest.map_structure(tiled, t)


class BeamSearchDecoder(Decoder):
    """Decodes ``beam_width`` sequences for each example of a batch.

    Args:
      cell: an `RNNCell`. The memory of an `AttentionWrapper` must be tiled with `tile_batch`.
      embedding: ``f(ids)``, or the parameters of `embedding_lookup`.
      start_tokens: the first ids, int32 [batch].
      end_token: the id that finishes a sequence.
      initial_state: the cell's state, tiled: [batch · beam_width, …].
      beam_width: the number of beams.
      output_layer: makes logits of the cell's outputs.
      length_penalty_weight, coverage_penalty_weight: see the module.
      reorder_tensor_arrays: return TensorArrays in the cell's state, such as alignments, as tensors in the order of the
        final beams.

    Raises:
      TypeError: an argument has the wrong type.
      ValueError: the ranks of the tokens differ, or a state's shape does not fit.
    """

    def __init__(
        self,
        cell: RNNCell,
        embedding: object,
        start_tokens: TensorLike,
        end_token: TensorLike,
        initial_state: Structure,
        beam_width: int,
        output_layer: Layer | None = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        require_cell("cell", cell)
        require_layer(output_layer)
        self._cell = cell
        self._output_layer = output_layer
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._embedding_fn = lookup(embedding)
        start, self._end_token = tokens(start_tokens, end_token)
        self._batch_size = arrays.size(start)
        self._static_batch = constant_value(self._batch_size)
        self._initial_cell_state = self._split_all(initial_state)
        self._start_tokens = arrays.tile(arrays.expand_dims(start, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(*[TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        dtype = nest.flatten(self._initial_cell_state)[0].dtype.base_dtype
        size = size_after(self._output_layer, self._cell.output_size)
        scores = nest.pack(size, [dtype] * len(nest.flatten(size)))
        return BeamSearchDecoderOutput(scores, dtypes.int32, dtypes.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        dtype = nest.flatten(self._initial_cell_state)[0].dtype.base_dtype
        shape = arrays.shape(self._start_tokens)
        first = arrays.broadcast_to(convert_to_tensor([[True] + [False] * (self._beam_width - 1)]), shape)
        first.set_shape(self._start_tokens.shape)
        log_probs = indexing.where(
            first, arrays.zeros(shape, dtype), arrays.fill(shape, convert_to_tensor(-np.inf, dtype))
        )
        attention = self._attention_probs(self._initial_cell_state)
        finished = math.logical_not(first)
        lengths = arrays.zeros_like(self._start_tokens, dtypes.int64)
        start = BeamSearchDecoderState(
            self._initial_cell_state, log_probs, finished, lengths, () if attention is None else attention
        )
        return finished, self._start_inputs, start

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Tensor) -> tuple[Any, Any]:
        """Follows each final beam back through its parents."""
        longest = math.cast(reductions.reduce_max(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            pairs = zip(nest.flatten(final_state.cell_state), nest.flatten(self._initial_cell_state), strict=True)
            leaves = [self._sorted(*pair, outputs.parent_ids, final_state.lengths) for pair in pairs]
            final_state = final_state._replace(cell_state=nest.pack(final_state.cell_state, leaves))
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def step(self, time: Tensor, inputs: Structure, state: Any, name: str | None = None) -> Any:
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            merged = nest.map_structure(self._merged, inputs)
            cell_outputs, cell_state = self._cell(merged, nest.map_structure(self._merged_state, state.cell_state))
            logits = nest.map_structure(self._split, cell_outputs)
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            output, after = self._search(logits, self._split_all(cell_state), state)
            return output, after, self._embedding_fn(output.predicted_ids), after.finished

    # The search ---------------------------------------------------------------------------------------------------

    def _search(self, logits: Tensor, cell_state: Any, state: Any) -> tuple[Any, Any]:
        """Returns the best proposals, and the state after them."""
        finished, unfinished = state.finished, math.logical_not(state.finished)
        proposals = arrays.expand_dims(state.log_probs, 2) + self._log_probs(logits, finished)
        classes = dimension_value(logits.shape[-1])
        classes = arrays.shape(logits)[-1] if classes is None else classes
        attention = self._attention_probs(cell_state)
        if attention is not None:
            counted = attention * arrays.expand_dims(math.cast(unfinished, dtypes.float32), 2)
            attention = state.accumulated_attention_probs + counted
        scores = self._scores(proposals, self._lengths(state, unfinished, classes), finished, attention)
        best, places = nn.top_k(arrays.reshape(scores, [self._batch_size, -1]), k=self._beam_width)
        best.set_shape([self._static_batch, self._beam_width])
        places.set_shape([self._static_batch, self._beam_width])
        ids, parents = math.floormod(places, classes), math.floordiv(places, classes)
        flat = arrays.reshape(proposals, [self._batch_size, -1])
        over = self._chosen(parents, finished)
        after = BeamSearchDecoderState(
            cell_state=nest.map_structure(partial(self._chosen, parents), cell_state),
            log_probs=indexing.gather(flat, places, batch_dims=1),
            finished=math.logical_or(over, math.equal(ids, self._end_token)),
            lengths=self._chosen(parents, state.lengths) + math.cast(math.logical_not(over), dtypes.int64),
            accumulated_attention_probs=() if attention is None else self._chosen(parents, attention),
        )
        return BeamSearchDecoderOutput(best, ids, parents), after

    def _log_probs(self, logits: Tensor, finished: Tensor) -> Tensor:
        """Log probabilities; a finished beam continues with the end token only."""
        found = nn.log_softmax(logits)
        dtype = found.dtype.base_dtype
        lowest = convert_to_tensor(np.finfo(dtype.numpy_dtype).min, dtype)
        row = indexing.one_hot(
            self._end_token, arrays.shape(found)[2], convert_to_tensor(0, dtype), lowest, dtype=dtype
        )
        ended = arrays.broadcast_to(arrays.reshape(row, [1, 1, -1]), arrays.shape(found))
        mask = arrays.broadcast_to(arrays.expand_dims(finished, 2), arrays.shape(found))
        return indexing.where(mask, ended, found)

    def _lengths(self, state: Any, unfinished: Tensor, classes: Any) -> Tensor:
        """Returns the length with each proposal: one more, except for the end token."""
        added = indexing.one_hot(
            self._end_token,
            classes,
            convert_to_tensor(0, dtypes.int64),
            convert_to_tensor(1, dtypes.int64),
            dtype=dtypes.int64,
        )
        more = arrays.expand_dims(math.cast(unfinished, dtypes.int64), 2) * arrays.reshape(added, [1, 1, -1])
        return arrays.expand_dims(state.lengths, 2) + more

    def _scores(self, log_probs: Tensor, lengths: Tensor, finished: Tensor, attention: Tensor | None) -> Tensor:
        scores = log_probs
        penalty = convert_to_tensor(self._length_penalty_weight, name="penalty_factor")
        known = constant_value(penalty)
        if known is None or known != 0:
            ratio = (5.0 + math.cast(lengths, dtypes.float32)) / 6.0
            scores = log_probs / math.cast(
                math.pow(ratio, math.cast(penalty, dtypes.float32)), log_probs.dtype.base_dtype
            )
        if attention is None:
            return scores
        seen = indexing.where(math.equal(attention, 0.0), arrays.ones_like(attention), attention)
        coverage = reductions.reduce_sum(math.log(math.minimum(seen, 1.0)), 2) * math.cast(finished, dtypes.float32)
        return scores + arrays.expand_dims(coverage * self._coverage_penalty_weight, 2)

    def _attention_probs(self, cell_state: object) -> Any:
        """The alignments in a state, the mean of several; None without a coverage penalty.

        Raises:
          ValueError: there are none.
        """
        weight = constant_value(convert_to_tensor(self._coverage_penalty_weight, name="coverage_penalty_weight"))
        if weight is not None and weight.ndim:
            raise ValueError(f"coverage_penalty_weight should be a scalar, but saw shape: {weight.shape}")
        if weight is not None and weight == 0:
            return None
        states: Any = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
        states = states if nest.is_nested(states) else []
        found = [_mean(state.alignments) for state in states if isinstance(state, AttentionWrapperState)]
        if not found:
            raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
        return _mean(tuple(found)) if len(found) > 1 else found[0]

    # Shapes -------------------------------------------------------------------------------------------------------

    def _chosen(self, parents: Tensor, leaf: Any) -> Any:
        """Selects the rows of the chosen beams of [batch, beams, …]; arrays and scalars stay."""
        if isinstance(leaf, TensorArray) or not _rank(leaf):
            return leaf
        found = indexing.gather(leaf, parents, batch_dims=1)
        found.set_shape(leaf.shape)
        return found

    def _merged(self, tensor: Tensor) -> Tensor:
        """[batch, beams, …] as [batch · beams, …]."""
        count = None if self._static_batch is None else int(self._static_batch) * self._beam_width
        rows = [self._batch_size * self._beam_width]
        found = arrays.reshape(tensor, arrays.concat([rows, arrays.shape(tensor)[2:]], 0))
        found.set_shape(TensorShape([count]).concatenate(tensor.shape[2:]))
        return found

    def _merged_state(self, leaf: Any) -> Any:
        return leaf if isinstance(leaf, TensorArray) or _rank(leaf) < 2 else self._merged(leaf)

    def _split(self, tensor: Tensor) -> Tensor:
        """[batch · beams, …] as [batch, beams, …].

        Raises:
          ValueError: the static shape does not fit.
        """
        rows = [self._batch_size, self._beam_width]
        found = arrays.reshape(tensor, arrays.concat([rows, arrays.shape(tensor)[1:]], 0))
        batch = None if self._static_batch is None else int(self._static_batch)
        wanted = as_shape([batch, self._beam_width]).concatenate(tensor.shape[1:])
        if not found.shape.is_compatible_with(wanted):
            raise ValueError(
                f"Unexpected shape {found.shape} of {tensor.name} by batch and beam; expected {wanted}. The zero_state "
                "must have batch_size * beam_width rows"
            )
        found.set_shape(wanted)
        return found

    def _split_all(self, state: object) -> Any:
        def split(leaf: Any) -> Any:
            return leaf if isinstance(leaf, TensorArray) or not _rank(leaf) else self._split(leaf)

        return nest.map_structure(split, state)

    def _sorted(self, leaf: Any, first: Any, parents: Tensor, lengths: Tensor) -> Any:
        """Returns an array in a state as a tensor [time, batch · beams, …] in the order of the final beams.

        As in TensorFlow 1.15, an array with elements of known shape stays, unless it is [batch, beams, …] or a vector.
        """
        if not isinstance(leaf, TensorArray):
            return leaf
        dims = first.element_shape.as_dims
        if self._static_batch is not None and dims and None not in dims:
            batch, beams = int(self._static_batch), self._beam_width
            if dims[0] != batch * beams if len(dims) == 1 else dims[:2] != (batch, beams):
                _log.warning(
                    "A TensorArray in the state of a BeamSearchDecoder is not put into the order of the final beams: "
                    "the known shape of its elements, %s, is not [%d, %d, ...]",
                    dims,
                    batch,
                    beams,
                )
                return leaf
        return gather_tree_from_array(leaf.stack(), parents, lengths)


def _rank(leaf: Any) -> int:
    if leaf.dims is None:
        raise ValueError(f"Expected tensor ({leaf}) to have known rank, but ndims == None.")
    return len(leaf.dims)


def _mean(alignments: object) -> Any:
    if not isinstance(alignments, tuple):
        return alignments
    return reductions.reduce_mean(arrays.stack(list(alignments), -1), -1)  # pyright: ignore[reportUnknownArgumentType]
