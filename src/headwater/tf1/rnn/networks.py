"""Cells applied along sequences: `dynamic_rnn` as one compiled scan, `static_rnn` step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape
from headwater.tf1.functional import arrays, indexing, math, nest
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.scans import scan_over
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.rnn.cells import RNNCell
    from headwater.tf1.variables.scope_settings import VariableScope


def require_cell(name: str, cell: RNNCell) -> None:
    kind = cell.__class__
    words = ("output_size", "state_size", "zero_state")
    missing = [word for word in words if not hasattr(kind, word) and word not in vars(cell)]
    if missing or not callable(cell):
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: it lacks {', '.join(missing)}")


def _exchange_axes(tensor: Tensor) -> Tensor:
    """Exchanges the first two dimensions."""
    dims = tensor.dims
    if dims is None:
        raise ValueError(f"Expected tensor {tensor.name} to have known rank")
    return arrays.transpose(tensor, [1, 0, *range(2, len(dims))])


def _lengths(sequence_length: object) -> Tensor | None:
    if sequence_length is None:
        return None
    lengths = math.to_int32(sequence_length)
    if lengths.dims is not None and len(lengths.dims) != 1:
        raise ValueError(f"sequence_length must be a vector of length batch_size, but saw shape: {lengths.shape}")
    return arrays.identity(lengths, name="sequence_length")


def _initial_state(
    cell: RNNCell, initial_state: Structure, first: Tensor, axis: int, dtype: DTypeLike | None
) -> Structure:
    """Returns the state before the first step."""
    if initial_state is not None:
        return nest.map_structure(convert_to_tensor, initial_state)
    if dtype is None:
        raise ValueError("If there is no initial_state, you must give a dtype.")
    known = None if first.dims is None else first.dims[axis]
    batch = arrays.shape(first)[axis] if known is None else known
    return cell.zero_state(batch, dtype)


def _select_rows(active: Tensor, new: Structure, old: Structure) -> Structure:
    """Returns ``new`` in the rows where ``active`` is true, elsewhere ``old``."""

    def chosen(a: Tensor, b: Tensor) -> Tensor:
        if a.dims == ():  # a state that does not belong to an example
            return a
        result = one("Select", active, a, b)
        result.set_shape(a.dims)
        return result

    return nest.map_structure(chosen, new, old)


def _zeros_like(output: Structure) -> Structure:
    return nest.map_structure(arrays.zeros_like, output)


def dynamic_rnn(
    cell: RNNCell,
    inputs: TensorLike,
    sequence_length: TensorLike | None = None,
    initial_state: Structure = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any]:
    """Runs a cell along sequences, and returns the outputs of all steps and the last state.

    The steps are one scan: one executable for any number of steps, with a gradient that stores intermediate values.

    Args:
      cell: an `RNNCell`.
      inputs: [batch, time, …], or [time, batch, …] with ``time_major``; or a nested structure of such tensors.
      sequence_length: number of steps of each example, after which outputs are 0 and states stay; None for all.
      initial_state: the state before the first step; zeros of type ``dtype`` if None.
      dtype: see ``initial_state``.
      parallel_iterations, swap_memory: accepted.
      time_major: see ``inputs``; also for outputs.
      scope: variable scope; ``rnn`` if None.

    Raises:
      TypeError: ``cell`` is not a cell.
      ValueError: neither ``initial_state`` nor ``dtype`` is given, or shapes do not match.
    """
    del parallel_iterations, swap_memory
    require_cell("cell", cell)
    with variable_scope(scope or "rnn"):
        leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(inputs)]
        if not time_major:
            leaves = [_exchange_axes(leaf) for leaf in leaves]
        lengths = _lengths(sequence_length)
        state = _initial_state(cell, initial_state, leaves[0], 1, dtype)
        pattern: list[object] = []

        def step(states: Sequence[Tensor], slices: Sequence[Tensor]) -> Structure:
            before = nest.pack(state, states[1:])
            output, after = cell(nest.pack(inputs, slices), before)
            if lengths is not None:
                active = math.less(states[0], lengths)
                output, after = _select_rows(active, output, _zeros_like(output)), _select_rows(active, after, before)
            pattern.append(output)
            return [states[0] + 1, *nest.flatten(after)], nest.flatten(output)

        time = convert_to_tensor(0, dtypes.int32, name="time")
        last, stacked = scan_over(step, [time, *nest.flatten(state)], leaves)
        outputs = [leaf if time_major else _exchange_axes(leaf) for leaf in stacked]
        return nest.pack(pattern[0], outputs), nest.pack(state, last[1:])


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: TensorLike,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Structure = None,
    initial_state_bw: Structure = None,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: str | VariableScope | None = None,
) -> tuple[Any, Any]:
    """Runs a cell forwards and another backwards along sequences; returns both outputs, and both last states."""
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    time = 0 if time_major else 1

    def reverse_steps(x: TensorLike) -> Tensor:
        if sequence_length is None:
            return arrays.reverse(x, [time])
        return indexing.reverse_sequence(x, sequence_length, seq_axis=time, batch_axis=1 - time)

    def backwards(value: TensorLike) -> Structure:
        return nest.map_structure(reverse_steps, value)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            output_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope=fw
            )
        with variable_scope("bw") as bw:
            reversed_inputs = backwards(nest.map_structure(convert_to_tensor, inputs))
            found, state_bw = dynamic_rnn(
                cell_bw, reversed_inputs, sequence_length, initial_state_bw, dtype, time_major=time_major, scope=bw
            )
    return (output_fw, backwards(found)), (state_fw, state_bw)


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[TensorLike],
    initial_state: Structure = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """Runs a cell along a list of inputs, unrolled in the graph; returns the list of outputs, and the last state.

    Args:
      inputs: for each step [batch, …], or a nested structure of such tensors.
      cell, initial_state, dtype, sequence_length, scope: see `dynamic_rnn`.

    Raises:
      TypeError: ``cell`` is not a cell, or ``inputs`` is not a list.
      ValueError: there are no inputs, or neither ``initial_state`` nor ``dtype``.
    """
    require_cell("cell", cell)
    if not isinstance(inputs, list | tuple):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")
    outputs: list[Any] = []
    with variable_scope(scope or "rnn") as entered:
        steps = [nest.map_structure(convert_to_tensor, item) for item in inputs]
        lengths = _lengths(sequence_length)
        state = _initial_state(cell, initial_state, nest.flatten(steps[0])[0], 0, dtype)
        for time, item in enumerate(steps):
            if time > 0:
                entered.reuse_variables()
            output, after = cell(item, state)
            if lengths is not None:
                active = math.less(convert_to_tensor(time), lengths)
                output, after = _select_rows(active, output, _zeros_like(output)), _select_rows(active, after, state)
            outputs.append(output)
            state = after
    return outputs, state


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: object,
    sequence_length: TensorLike | None = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any]:
    """Runs `static_rnn` from the state in ``state_saver``, and saves the last state there.

    Args:
      cell, inputs, sequence_length, scope: see `static_rnn`.
      state_saver: an object with ``state(name)`` and ``save_state(name, value)``, which returns an operation.
      state_name: the name of the state, or a tuple of names, one for each part of a state that is a tuple.

    Raises:
      ValueError: the numbers of names and of the state's parts differ.
    """
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(cell.state_size)):
        raise ValueError(
            f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(nest.flatten(cell.state_size))}"
        )
    begin = nest.pack(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, begin, sequence_length=sequence_length, scope=scope)
    saved = [state_saver.save_state(name, part) for name, part in zip(names, nest.flatten(state), strict=True)]
    with control_dependencies(saved):
        outputs[-1] = nest.map_structure(arrays.identity, outputs[-1])
        return outputs, nest.map_structure(arrays.identity, state)


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[TensorLike],
    initial_state_fw: Structure = None,
    initial_state_bw: Structure = None,
    dtype: DTypeLike | None = None,
    sequence_length: TensorLike | None = None,
    scope: str | VariableScope | None = None,
) -> tuple[list[Any], Any, Any]:
    """Runs a cell forwards and another backwards along a list; returns concatenated outputs, and both last states."""
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            output_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, fw)
        with variable_scope("bw") as bw:
            turned = _reverse_list(inputs, sequence_length)
            found, state_bw = static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length, bw)
    outputs = [arrays.concat([a, b], 1) for a, b in zip(output_fw, _reverse_list(found, sequence_length), strict=True)]
    return outputs, state_fw, state_bw


def _reverse_list(steps: Sequence[Any], lengths: object) -> list[Any]:
    """Returns the steps in reverse order, for each example within its length."""
    if lengths is None:
        return list(reversed(steps))
    whole = indexing.reverse_sequence(arrays.stack(list(steps)), math.to_int64(lengths), seq_axis=0, batch_axis=1)
    found = arrays.unstack(whole, len(steps))
    for tensor, step in zip(found, steps, strict=True):
        tensor.set_shape(as_shape(step.get_shape()))
    return found
