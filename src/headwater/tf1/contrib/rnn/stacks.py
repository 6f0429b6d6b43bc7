"""Stacks of bidirectional recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays
from headwater.tf1.rnn.networks import bidirectional_dynamic_rnn, static_bidirectional_rnn
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.scope_settings import VariableScope


def _check(cells_fw: Any, cells_bw: Any, states_fw: object, states_bw: object) -> None:
    for word, cells in (("fw", cells_fw), ("bw", cells_bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {word} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{word} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for word, states in (("fw", states_fw), ("bw", states_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"initial_states_{word} must be a list of state tensors (one per layer).")


def stack_bidirectional_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: Sequence[TensorLike],
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: str | VariableScope | None = None,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Runs layers of `static_bidirectional_rnn`; returns the outputs of the last one, and the last states of each.

    Args:
      cells_fw, cells_bw: for each layer a cell forwards and one backwards.
      initial_states_fw, initial_states_bw: for each layer the states before the first steps.
      inputs, dtype, sequence_length, scope: see `static_bidirectional_rnn`.

    Raises:
      ValueError: the lists are empty or of different lengths.
    """
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states: list[tuple[Any, Any]] = []
    outputs: Any = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            begin = [each[index] if each else None for each in (initial_states_fw, initial_states_bw)]
            with variable_scope(f"cell_{index}") as entered:
                outputs, *last = static_bidirectional_rnn(
                    forward, backward, outputs, *begin, dtype=dtype, sequence_length=sequence_length, scope=entered
                )
            states.append((last[0], last[1]))
    fw, bw = zip(*states, strict=True)
    return outputs, fw, bw


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: TensorLike,
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Runs layers of `bidirectional_dynamic_rnn`; arguments and results as for `stack_bidirectional_rnn`."""
    _check(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states: list[tuple[Any, Any]] = []
    outputs: Any = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            begin = [each[index] if each else None for each in (initial_states_fw, initial_states_bw)]
            with variable_scope(f"cell_{index}"):
                both, last = bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    outputs,
                    sequence_length,
                    *begin,
                    dtype=dtype,
                    parallel_iterations=parallel_iterations,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                outputs = arrays.concat(list(both), 2)
            states.append(last)
    fw, bw = zip(*states, strict=True)
    return outputs, fw, bw


def transpose_batch_time(x: Tensor) -> Tensor:
    """Exchanges the first two dimensions of ``x``.

    Raises:
      ValueError: ``x`` has fewer than two dimensions.
    """
    dims = x.dims
    if dims is None:
        return x
    if len(dims) < 2:
        raise ValueError(f"Expected input tensor {x.name} to have rank at least 2, but saw shape: {x.shape}")
    return arrays.transpose(x, [1, 0, *range(2, len(dims))])


def best_effort_input_batch_size(flat_input: Sequence[Tensor]) -> Any:
    """Returns the batch size of inputs [time, batch, …]: a number if one of them has it, else a tensor.

    Raises:
      ValueError: an input has fewer than two dimensions.
    """
    for each in flat_input:
        if each.dims is not None and len(each.dims) < 2:
            raise ValueError(f"Input tensor should have rank >= 2. Saw: {each.shape}")
        if each.dims is not None and each.dims[1] is not None:
            return each.dims[1]
    return arrays.shape(flat_input[0])[1]
