"""Recurrences along a chain of tags, as cells: forward sums, forward maxima, and backtracking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import dimension_value
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.rnn.cells import RNNCell

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


class _TagsCell(RNNCell):
    """A cell whose state and output have a number for each tag."""

    def __init__(self, transition_params: TensorLike) -> None:
        super().__init__()
        transitions = convert_to_tensor(transition_params)
        self._transition_params = arrays.expand_dims(transitions, 0)
        self._num_tags = dimension_value(transitions.shape[0])

    @property
    def state_size(self) -> Any:
        return self._num_tags

    @property
    def output_size(self) -> Any:
        return self._num_tags

    def _totals(self, state: Tensor) -> Tensor:
        """Returns the scores [batch, previous tags, tags] of all transitions from a state [batch, tags]."""
        return arrays.expand_dims(state, 2) + self._transition_params


class CrfForwardRnnCell(_TagsCell):
    """Computes log-sums over all previous tags, with the transitions ``transition_params`` [tags, tags]."""

    def __call__(self, inputs: Any, state: Any = None, scope: object = None, *args: object, **kwargs: object) -> Any:
        alphas = inputs + reductions.reduce_logsumexp(self._totals(state), [1])
        return alphas, alphas


class CrfDecodeForwardRnnCell(_TagsCell):
    """Computes maxima over all previous tags: the state has the maxima, the output the tags that attain them."""

    def __call__(self, inputs: Any, state: Any = None, scope: object = None, *args: object, **kwargs: object) -> Any:
        totals = self._totals(state)
        parents = math.cast(reductions.argmax(totals, 1), dtypes.int32)
        return parents, inputs + reductions.reduce_max(totals, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """Selects the predecessor of the tag in the state [batch, 1]; inputs have the predecessor of each of ``num_tags``
    tags."""

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    def __call__(self, inputs: Any, state: Any = None, scope: object = None, *args: object, **kwargs: object) -> Any:
        state = convert_to_tensor(state, dtypes.int32)
        tags = indexing.gather(convert_to_tensor(inputs), state, batch_dims=1)
        tags.set_shape(state.shape)
        return tags, tags
