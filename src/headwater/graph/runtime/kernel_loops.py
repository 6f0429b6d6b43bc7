"""Scans, loops and branches on kernels. Their compiled forms are in `headwater.graph.ops.scans` and
`headwater.graph.ops.control_flow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType
from headwater.graph.kernels.registry import NoKernel, kernel
from headwater.graph.ops.bodies import decode_body
from headwater.graph.registry import FunctionAttr
from headwater.graph.runtime.kernel_bodies import added, body_function, body_gradient
from headwater.graph.runtime.kernel_lookup import GRADIENT_MAKERS, KERNEL_MAKERS, REPEATS, Repeat, Wanted
from headwater.graph.runtime.mode_choice import Work

Attrs = Mapping[str, Any]
Values = Sequence[Any]
Tape = list[tuple[Any, ...]]


class Taped(tuple[Any, ...]):
    """The outputs of a loop or branch, with the values that its gradient needs.

    Attributes:
      tape: a tuple for each iteration: the values that the gradient of the iteration needs.
      back: the gradient of an iteration, see `headwater.graph.runtime.kernel_bodies.Gradient`.
    """

    tape: Tape
    back: Callable[..., tuple[Any, ...]]


def _with_tape(outputs: Values, tape: Tape, back: Callable[..., tuple[Any, ...]]) -> Taped:
    found = Taped(outputs)
    found.tape, found.back = tape, back
    return found


def _is_real(value: Any) -> bool:
    return value.dtype.kind in "fc" or value.dtype.name == "bfloat16"


def _typed(values: Values, types: Sequence[DType]) -> list[Any]:
    found: list[Any] = []
    for value, dtype in zip(values, types, strict=False):
        wanted = dtype.base_dtype.numpy_dtype
        found.append(value if value.dtype == wanted else np.asarray(value, wanted))
    return found


def _zeros_for(grads: Values, wanted: Sequence[bool], inputs: Values) -> list[Any]:
    """Returns ``grads`` with zeros in place of each None for which a gradient is wanted."""
    return [
        np.zeros(value.shape, value.dtype) if want and grad is None else grad
        for grad, want, value in zip(grads, wanted, inputs, strict=True)
    ]


class _Sums:
    """Sums of gradients over the iterations of a loop; None represents zeros.

    Attributes:
      values: the sums.
    """

    def __init__(self, count: int) -> None:
        self.values: list[Any] = [None] * count
        self._owned = [False] * count

    def add(self, terms: Values) -> None:
        """Adds a term to each sum."""
        for index, term in enumerate(terms):
            if term is None:
                continue
            if self._owned[index]:
                # Add in place only to an array that was allocated here: the first term may be an array that other code
                # uses.
                self.values[index] += term
            else:
                self._owned[index] = self.values[index] is not None
                self.values[index] = added(self.values[index], term)


# Scans ------------------------------------------------------------------------------------------------------------


def _real_among(wanted: Wanted, inputs: Values) -> Wanted:
    """Returns which of the ``wanted`` gradients exist."""
    return tuple([want and _is_real(value) for want, value in zip(wanted, inputs, strict=False)])


def _with_carried(wanted: Wanted | None, count: int) -> Wanted | None:
    """Adds the gradients of the first ``count`` inputs to ``wanted``: in the backward pass, each iteration passes them
    to the previous iteration."""
    return None if wanted is None else (True,) * count + wanted[count:]


def _make_scan(attrs: Attrs, wanted: Wanted | None) -> Callable[..., Any]:
    function: FunctionAttr = attrs["body"]
    states, sequences = attrs["states"], attrs["sequences"]
    types: Sequence[DType] = attrs["Tout"]
    run, needed = body_function(function, carried=states), _with_carried(wanted, states)

    def scan(*inputs: Any, **unused: object) -> tuple[Any, ...]:
        del unused
        values: Values = inputs[:states]
        xs, fixed = inputs[states : states + sequences], inputs[states + sequences :]
        turns = len(xs[0])
        if not turns:
            # If no iteration runs, kernels cannot determine the shapes of the results. An executable can.
            raise NoKernel("a scan without iterations has results of unknown shapes")
        forward, back = (None, None) if needed is None else body_gradient(function, _real_among(needed, inputs), states)
        tape = Tape()
        stacked: list[Any] = []
        for turn in range(turns):
            given = (*values, *[x[turn] for x in xs], *fixed)
            if forward is None:
                results: Values = run(*given, turn=turn)
            else:
                results, kept = forward(*given, turn=turn)
                tape.append(kept)
            results = _typed(results, types)
            values = results[:states]
            if not turn:
                # Allocate the arrays of all iterations after the first iteration, which shows the shapes. Stacking a
                # list of results at the end would copy all of them.
                stacked = [np.empty((turns, *value.shape), value.dtype) for value in results[states:]]
            for rows, value in zip(stacked, results[states:], strict=True):
                rows[turn] = value
        outputs = (*values, *stacked)
        return outputs if back is None else _with_tape(outputs, tape, back)

    return scan


def _make_scan_gradient(attrs: Attrs) -> Callable[..., Sequence[Any]]:
    states, sequences = attrs["states"], attrs["sequences"]

    def gradient(inputs: Values, grads: Values, wanted: Sequence[bool], attrs: Attrs, outputs: Any) -> Sequence[Any]:
        del attrs
        tape, back = outputs.tape, outputs.back
        carried: list[Any] = list(grads[:states])
        row_gradients: list[Any] = [None] * sequences
        sums = _Sums(len(inputs) - states - sequences)
        last = len(tape) - 1
        for turn in range(last, -1, -1):
            output_gradients = (*carried, *[None if grad is None else grad[turn] for grad in grads[states:]])
            input_gradients = back(tape[turn], output_gradients, turn < last)
            carried = list(input_gradients[:states])
            for index in range(sequences):
                row_gradient = input_gradients[states + index]
                if row_gradient is not None and wanted[states + index]:
                    if row_gradients[index] is None:
                        row_gradients[index] = np.zeros(inputs[states + index].shape, row_gradient.dtype)
                    row_gradients[index][turn] = row_gradient
            sums.add(input_gradients[states + sequences :])
        return _zeros_for([*carried, *row_gradients, *sums.values], wanted, inputs)

    return gradient


KERNEL_MAKERS["StatelessScan"] = _make_scan
GRADIENT_MAKERS["StatelessScan"] = _make_scan_gradient


# Loops ------------------------------------------------------------------------------------------------------------


def _make_loop(attrs: Attrs, wanted: Wanted | None) -> Callable[[Values, int | None], tuple[Values, int, Taped | None]]:
    """Returns a function that runs a loop.

    The function takes the loop's inputs and the maximum number of iterations (None for no limit). It returns the final
    values, the number of iterations, and the tape, which is None if no gradient is wanted.
    """
    body: FunctionAttr = attrs["body"]
    types: Sequence[DType] = attrs["Tout"]
    count = len(decode_body(body).outputs)
    condition, run = body_function(attrs["cond"]), body_function(body, carried=count)
    needed = _with_carried(wanted, count)

    def loop(inputs: Values, limit: int | None) -> tuple[Values, int, Taped | None]:
        values: Values = _typed(inputs[:count], types)
        fixed, tape, turns = inputs[count:], Tape(), 0
        forward, back = (None, None) if needed is None else body_gradient(body, _real_among(needed, inputs), count)
        while (limit is None or turns < limit) and condition(*values, *fixed, turn=turns)[0]:
            if forward is None:
                results: Values = run(*values, *fixed, turn=turns)
            else:
                results, kept = forward(*values, *fixed, turn=turns)
                tape.append(kept)
            values = _typed(results, types)
            turns += 1
        return values, turns, None if back is None else _with_tape((), tape, back)

    return loop


def _make_while(attrs: Attrs, wanted: Wanted | None) -> Callable[..., Any]:
    loop = _make_loop(attrs, wanted)

    def stateless_while(*inputs: object, **unused: object) -> tuple[Any, ...]:
        del unused
        values, turns, kept = loop(inputs, None)
        outputs = (*values, np.array(turns, np.int32))
        return outputs if kept is None else _with_tape(outputs, kept.tape, kept.back)

    return stateless_while


def _make_while_scan(attrs: Attrs, wanted: Wanted | None) -> Callable[..., Any]:
    loop = _make_loop(attrs, None if wanted is None else wanted[:-1])

    def while_scan(*inputs: Any, **unused: object) -> tuple[Any, ...]:
        del unused
        values, _, kept = loop(inputs[:-1], int(inputs[-1][0]))
        return tuple(values) if kept is None else _with_tape(values, kept.tape, kept.back)

    return while_scan


def _make_while_gradient(attrs: Attrs) -> Callable[..., Sequence[Any]]:
    body = decode_body(attrs["body"])
    count, input_count = len(body.outputs), len(body.inputs)

    def gradient(inputs: Values, grads: Values, wanted: Sequence[bool], attrs: Attrs, outputs: Any) -> Sequence[Any]:
        del attrs
        carried: Values = grads[:count]
        sums = _Sums(input_count - count)
        for turn, kept in enumerate(reversed(outputs.tape)):
            input_gradients = outputs.back(kept, carried, turn > 0)
            carried = input_gradients[:count]
            sums.add(input_gradients[count:])
        return _zeros_for([*carried, *sums.values, *[None] * (len(inputs) - input_count)], wanted, inputs)

    return gradient


def _make_trips(attrs: Attrs, wanted: Wanted | None) -> Callable[..., Any]:
    del wanted
    cond, body = attrs["cond"], attrs["body"]
    used: Sequence[int] = attrs["used"]
    changing: Sequence[int] = attrs["loop"]
    decoded = decode_body(body)
    condition = body_function(cond)
    step = body_function(body, tuple(decoded.outputs[i] for i in changing))

    def while_trips(*inputs: object, **unused: object) -> Any:
        del unused
        given: list[Any] = [None] * len(decoded.inputs)
        for index, value in zip(used, inputs, strict=True):
            given[index] = value
        turns = 0
        while condition(*given)[0]:
            for index, value in zip(changing, step(*given), strict=True):
                given[index] = np.asarray(value, given[index].dtype)
            turns += 1
        return _rounded(turns)

    return while_trips


def _rounded(turns: int) -> Any:
    """Rounds a number of iterations as `headwater.graph.ops.control_flow.while_trips`: an executable may use the
    result."""
    return np.array([1 << (turns - 1).bit_length() if turns else 0, 0], np.int32)


@kernel("RoundedTrips")
def rounded_trips(turns: Any) -> Any:
    """Converts a number of iterations to the form of ``WhileTrips``."""
    return _rounded(int(turns))


def _without_turns(outputs: Taped) -> Taped:
    """Converts the results of ``StatelessWhile`` to the results of ``WhileScan``."""
    return _with_tape(outputs[:-1], outputs.tape, outputs.back)


# The gradient of a loop is computed by a `WhileScan` with the same inputs, which can reuse the results of the loop.
REPEATS["WhileScan"] = Repeat("StatelessWhile", ("cond", "body"), _without_turns)
KERNEL_MAKERS.update(StatelessWhile=_make_while, WhileScan=_make_while_scan, WhileTrips=_make_trips)
GRADIENT_MAKERS.update(StatelessWhile=_make_while_gradient, WhileScan=_make_while_gradient)


# Branches ---------------------------------------------------------------------------------------------------------


def _make_if(attrs: Attrs, wanted: Wanted | None) -> Callable[..., Any]:
    branches = attrs["else_branch"], attrs["then_branch"]
    functions = [body_function(branch) for branch in branches]
    types: Sequence[DType] = attrs["Tout"]

    def stateless_if(predicate: object, *inputs: object, **unused: object) -> tuple[Any, ...]:
        del unused
        taken = bool(predicate)
        if wanted is None:
            return tuple(_typed(functions[taken](*inputs), types))
        forward, back = body_gradient(branches[taken], _real_among(wanted[1:], inputs))
        results, kept = forward(*inputs)
        return _with_tape(_typed(results, types), [kept], back)

    return stateless_if


def _make_if_gradient(attrs: Attrs) -> Callable[..., Sequence[Any]]:
    del attrs

    def gradient(inputs: Values, grads: Values, wanted: Sequence[bool], attrs: Attrs, outputs: Any) -> Sequence[Any]:
        del attrs
        return _zeros_for([None, *outputs.back(outputs.tape[0], grads)], wanted, inputs)

    return gradient


KERNEL_MAKERS["StatelessIf"] = _make_if
GRADIENT_MAKERS["StatelessIf"] = _make_if_gradient


def turns_of(op_type: str, inputs: Values, outputs: Values, attrs: Attrs) -> Work:
    """Estimates the cost of the operations in all iterations of a loop, or in a branch.

    The cost is zero for other operations. It does not include reading the inputs and writing the outputs.
    """
    if op_type == "StatelessIf":
        # One branch runs, and both are compiled.
        return Work(sum(len(decode_body(attrs[branch]).nodes) for branch in ("then_branch", "else_branch")) // 2)
    if op_type == "StatelessScan":
        turns, states = len(inputs[attrs["states"]]), attrs["states"]
    elif op_type == "WhileScan":
        turns, states = int(inputs[len(decode_body(attrs["body"]).inputs)][0]), len(attrs["Tout"])
    elif op_type == "StatelessWhile" and outputs and not outputs[-1].ndim:
        turns, states = int(outputs[-1]), len(attrs["Tout"]) - 1
    else:
        return Work()
    body = decode_body(attrs["body"])
    # A rough estimate: assume that each iteration multiplies the rows of the state by all matrices among the inputs.
    rows = max((value.shape[0] for value in inputs[:states] if value.ndim > 1), default=1)
    matrices = sum(value.size for value in inputs[states : len(body.inputs)] if value.ndim == 2)
    operations = len(body.nodes)
    return Work(operations, products=turns * rows * matrices, repeated=max(turns - 1, 0) * operations)
