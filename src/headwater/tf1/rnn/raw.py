"""`raw_rnn`: a cell in a loop in which a function of the program controls inputs, outputs and the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, math, nest, reductions
from headwater.tf1.functional.loops import while_loop
from headwater.tf1.functional.tensor_arrays import TensorArray
from headwater.tf1.rnn.networks import require_cell
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure
    from headwater.tf1.rnn.cells import RNNCell


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Structure],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: str | None = None,
) -> tuple[Any, Any, Any]:
    """Runs ``cell`` step after step, until ``loop_fn`` reports that every example is finished.

    Args:
      cell: an `RNNCell`.
      loop_fn: ``f(time, cell_output, cell_state, loop_state)`` returns whether each example is finished, the next
        input, the next state, the value to emit, and its own next state. In the first call output and states are None:
        it returns the initial ones, and, as value to emit, zeros with the shape of emitted values without the batch,
        or None to emit the cell's output.
      parallel_iterations, swap_memory: accepted.
      scope: variable scope; ``rnn`` if None.

    Returns:
      TensorArrays of emitted values, zeros for finished examples; the last state of the cell; and the last state of
      ``loop_fn``.

    Raises:
      TypeError: ``cell`` is not a cell, or ``loop_fn`` is not callable.
      ValueError: the batch dimension of an input is not known in the graph at all.
    """
    del parallel_iterations, swap_memory
    require_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with variable_scope(scope or "rnn"):
        zero = convert_to_tensor(0, dtypes.int32, name="time")
        finished, first_input, state, emit, loop_state = loop_fn(zero, None, None, None)
        inputs = nest.map_structure(convert_to_tensor, first_input)
        first = nest.flatten(inputs)[0]
        batch = arrays.shape(first)[0] if first.dims is None or first.dims[0] is None else first.dims[0]
        state = nest.map_structure(convert_to_tensor, state)
        has_loop_state = loop_state is not None
        carried = loop_state if has_loop_state else convert_to_tensor(0)
        if emit is None:
            pattern, sizes = cell.output_size, [[int(size)] for size in nest.flatten(cell.output_size)]
            types = [nest.flatten(state)[0].dtype.base_dtype] * len(sizes)
            zeros = [arrays.zeros([batch, *size], dtype) for size, dtype in zip(sizes, types, strict=True)]
        else:
            pattern = emit
            leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(emit)]
            types = [leaf.dtype.base_dtype for leaf in leaves]
            zeros = [arrays.zeros(arrays.concat([[batch], arrays.shape(leaf)], 0), leaf.dtype) for leaf in leaves]
        written = [TensorArray(dtype, size=0, dynamic_size=True) for dtype in types]

        def condition(time: Tensor, done: Tensor, *_: object) -> Tensor:
            del time
            return math.logical_not(reductions.reduce_all(done))

        def turn(time: Tensor, done: Tensor, given: Tensor, before: object, emitted: Any, own: object) -> Structure:
            output, after = cell(given, before)
            own = own if has_loop_state else None
            following = time + 1
            over, next_input, next_state, out, next_own = loop_fn(following, output, after, own)
            out = output if out is None else out
            next_own = carried if next_own is None else next_own

            def choose(old: Structure, new: Structure) -> Tensor:
                return indexing.where(done, old, new)

            def kept(old: Structure, new: Structure) -> Structure:
                return nest.map_structure(choose, old, new)

            leaves = nest.flatten(out)
            emitted = [
                array.write(time, indexing.where(done, none, leaf))
                for array, none, leaf in zip(emitted, zeros, leaves, strict=True)
            ]
            return (
                following,
                math.logical_or(convert_to_tensor(over), done),
                next_input,
                kept(before, next_state),
                emitted,
                next_own,
            )

        start = (zero, convert_to_tensor(finished, name="elements_finished"), inputs, state, written, carried)
        _, _, _, last, emitted, own = while_loop(condition, turn, start)
        return nest.pack(pattern, emitted), last, own if has_loop_state else None
