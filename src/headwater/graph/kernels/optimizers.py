"""Updates of variables by gradients, in place: the rules of `headwater.graph.ops.optimizers`, in the same order.

Each rule changes its arguments in place. The sparse version applies the rule to the rows at ``indices``, in the order
of the indices; an index outside of the variable updates nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.pieces import compute_pieces, pieces_of
from headwater.graph.kernels.registry import ElementRule, NoKernel, element_rule, update_kernel
from headwater.graph.kernels.rows import add_rows, inside, turns
from headwater.graph.optimizer_rules import RULES
from headwater.tables import row_loops
from headwater.tables.compiled import Compiled

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

Rule = Callable[..., None]

#: Number of elements from which a variable is updated in pieces.
_LARGE_SIZE: Final = 1 << 17


def _check(var: HostArray, slots: Sequence[HostArray], grad: HostArray, rows: int | None = None) -> None:
    """Checks the shapes of slots and of a gradient, of ``rows`` rows or of the whole variable, before any array is
    changed."""
    # Messages are formatted only for an error, because that takes longer than the comparisons.
    for slot in slots:
        if slot.shape != var.shape:
            raise InvalidArgumentError(f"var and a slot do not have the same shape {var.shape} {slot.shape}")
    expected = var.shape if rows is None else (rows, *var.shape[1:])
    if grad.shape == expected:
        return
    if rows is None:
        raise InvalidArgumentError(f"var and grad do not have the same shape {var.shape} {grad.shape}")
    raise InvalidArgumentError(
        f"grad must have shape {list(expected)} for {rows} rows of var of shape {list(var.shape)}, not "
        f"{list(grad.shape)}"
    )


def _define(
    name: str,
    *,
    slots: int,
    sparse: bool = False,
    after_rows: Rule | None = None,
    loop: Callable[..., bool] | None = None,
) -> Callable[[Rule], Rule]:
    """Registers ``Apply<name>``, and if ``sparse`` ``SparseApply<name>``, which has ``indices`` after the gradient.

    Args:
      slots: number of variables, which are the first inputs and which the rule changes.
      after_rows: called in the sparse version with the rows that the rule has changed.
      loop: function of the rule's inputs and the indices. It updates the rows in a compiled loop, with the same
        results; if the compiled loop would not save time, it changes nothing and returns False.
    """

    def define(rule: Rule) -> Rule:
        parameters = inspect.signature(rule).parameters
        order = [key for key, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]
        place = order.index("grad")

        @update_kernel(f"Apply{name}")
        def apply(*inputs: Any, use_locking: bool = False, **attrs: object) -> None:  # pyright: ignore[reportUnusedFunction]
            del use_locking
            _check(inputs[0], inputs[1:slots], inputs[place])
            if not inputs[0].ndim:  # NumPy's operators turn scalar arrays into numbers, which rules cannot change
                inputs = tuple(x.reshape(1) if i < slots or i == place else x for i, x in enumerate(inputs))
            changed = [x for i, x in enumerate(inputs) if i < slots or i == place]
            if inputs[0].size < _LARGE_SIZE or not all(x.flags.c_contiguous for x in changed):
                rule(*inputs, **attrs)
                return
            flat = [x.reshape(-1) if i < slots or i == place else x for i, x in enumerate(inputs)]

            def update(piece: slice) -> None:
                rule(*(x[piece] if i < slots or i == place else x for i, x in enumerate(flat)), **attrs)

            compute_pieces(update, pieces_of(flat[0].size, flat[0].itemsize))

        element_rule(f"Apply{name}", ElementRule(slots, place))

        if sparse:

            @update_kernel(f"SparseApply{name}")
            def apply_rows(*inputs: Any, use_locking: bool = False, **attrs: Any) -> None:  # pyright: ignore[reportUnusedFunction]
                del use_locking
                given, at = [*inputs[: place + 1], *inputs[place + 2 :]], inputs[place + 1].reshape(-1)
                _check(given[0], given[1:slots], given[place], at.size)
                if not at.size or (loop is not None and loop(*given, at, **attrs)):
                    return
                whole = given[:slots]
                at, grad = inside(at, given[place], len(whole[0]))
                for places in turns(at):
                    now = at[places]
                    taken = [array.take(now, 0) for array in whole]
                    given[place] = grad[places]
                    rule(*taken, *given[slots:], **attrs)
                    if after_rows is not None:
                        after_rows(*taken)
                    for array, rows in zip(whole, taken, strict=True):
                        array[now] = rows

        return rule

    return define


@_define("GradientDescent", slots=1)
def gradient_descent(var: HostArray, alpha: HostArray, grad: HostArray) -> None:
    """var - alpha grad."""
    var -= alpha * grad


@_define("Momentum", slots=2, sparse=True)
def momentum(
    var: HostArray, accum: HostArray, lr: HostArray, grad: HostArray, momentum: HostArray, *, use_nesterov: bool = False
) -> None:
    """accum = accum momentum + grad; var - accum lr."""
    accum *= momentum
    accum += grad
    if use_nesterov:
        var -= grad * lr + accum * momentum * lr
    else:
        var -= accum * lr


_CALL_NS: Final = 30_000
"""The fixed time of the NumPy calls that update rows."""
_NUMBER_NS: Final = 15
"""The additional time of these calls for each number of a row."""


_DENSE_NS: Final = 3
"""The time of NumPy calls that update all numbers by Adam, for each number."""


def _flat(loop: Compiled, arrays: Sequence[HostArray], work_ns: int) -> list[HostArray] | None:
    """Returns the elements of ``arrays`` as vectors for ``loop``, which takes contiguous arrays of float32. Returns
    None if NumPy has to do the work, which takes it ``work_ns`` nanoseconds."""
    if not all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays):
        return None
    return [array.reshape(-1) for array in arrays] if loop.pays(work_ns) else None


def _loop_arguments(
    loop: Compiled, arrays: Sequence[HostArray], grad: HostArray, at: HostArray
) -> tuple[Any, ...] | None:
    """Returns the elements of ``arrays`` and ``grad``, the places and the width of rows, for ``loop``; None if
    NumPy has to update the rows."""
    whole = _flat(loop, arrays, _CALL_NS + _NUMBER_NS * grad.size)
    if whole is None:
        return None
    return *whole, row_loops.flat(grad, np.float32), row_loops.flat(at, np.int64), grad.size // at.size


def _adagrad_loop(
    var: HostArray, accum: HostArray, lr: HostArray, grad: HostArray, at: HostArray, *, update_slots: bool = True
) -> bool:
    arguments = _loop_arguments(row_loops.adagrad, (var, accum), grad, at) if update_slots else None
    if arguments is None:
        return False
    row_loops.adagrad(*arguments, np.float32(lr))
    return True


@_define("Adagrad", slots=2, sparse=True, loop=_adagrad_loop)
def adagrad(var: HostArray, accum: HostArray, lr: HostArray, grad: HostArray, *, update_slots: bool = True) -> None:
    """accum + grad²; var - grad lr / √accum."""
    if update_slots:
        accum += grad * grad
    step = grad * lr
    step /= np.sqrt(accum)
    var -= step


def _adam_rate(lr: HostArray, beta1_power: HostArray, beta2_power: HostArray) -> HostArray:
    return lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)


@_define("Adam", slots=3)
def adam(
    var: HostArray,
    m: HostArray,
    v: HostArray,
    beta1_power: HostArray,
    beta2_power: HostArray,
    lr: HostArray,
    beta1: HostArray,
    beta2: HostArray,
    epsilon: HostArray,
    grad: HostArray,
    *,
    use_nesterov: bool = False,
) -> None:
    """var - lr mean(grad) / √mean(grad²), with exponentially decaying means and their bias correction."""
    rate = _adam_rate(lr, beta1_power, beta2_power)
    if not use_nesterov and (whole := _flat(row_loops.adam, (var, m, v), _DENSE_NS * var.size)):
        rests = np.float32(1 - beta1), np.float32(1 - beta2)
        row_loops.adam(*whole, row_loops.flat(grad, np.float32), np.float32(rate), *rests, np.float32(epsilon))
        return
    step = np.asarray(grad - m)  # NumPy's operators turn arrays without dimensions into scalars
    step *= 1 - beta1
    m += step
    np.multiply(grad, grad, out=step)
    step -= v
    step *= 1 - beta2
    v += step
    if use_nesterov:
        np.add(grad * (1 - beta1), beta1 * m, out=step)
        step *= rate
    else:
        np.multiply(m, rate, out=step)
    root = np.sqrt(v)
    root += epsilon
    step /= root
    var -= step


@update_kernel("SparseApplyAdam")
def sparse_adam(
    var: HostArray,
    m: HostArray,
    v: HostArray,
    beta1_power: HostArray,
    beta2_power: HostArray,
    lr: HostArray,
    beta1: HostArray,
    beta2: HostArray,
    epsilon: HostArray,
    grad: HostArray,
    indices: HostArray,
    *,
    use_locking: bool = False,
) -> None:
    """Updates all rows, unlike the other sparse updates: the averages of rows without a gradient decay, and these rows
    change accordingly."""
    del use_locking
    if not (m.flags.c_contiguous and v.flags.c_contiguous):
        raise NoKernel
    at = indices.reshape(-1)
    _check(var, (m, v), grad, at.size)
    m *= beta1
    v *= beta2
    add_rows(m, at, grad * (1 - beta1))
    add_rows(v, at, grad * grad * (1 - beta2))
    rate = _adam_rate(lr, beta1_power, beta2_power)
    if whole := _flat(row_loops.adam_step, (var, m, v), _DENSE_NS * var.size // 2):
        row_loops.adam_step(*whole, np.float32(rate), np.float32(epsilon))
        return
    step = m * rate
    root = np.sqrt(v)
    root += epsilon
    step /= root
    var -= step


def _ftrl_loop(
    var: HostArray,
    accum: HostArray,
    linear: HostArray,
    grad: HostArray,
    lr: HostArray,
    l1: HostArray,
    l2: HostArray,
    lr_power: HostArray,
    at: HostArray,
) -> bool:
    arguments = _loop_arguments(row_loops.ftrl, (var, accum, linear), grad, at) if lr_power == -0.5 else None
    if arguments is None:
        return False
    row_loops.ftrl(*arguments, np.float32(lr), np.float32(l1), np.float32(l2))
    return True


def _in_place(rule: Callable[..., Sequence[HostArray]], slots: int) -> Rule:
    """Returns a rule of `headwater.graph.optimizer_rules` that changes its arguments in place."""

    def apply(*inputs: HostArray) -> None:
        for array, new in zip(inputs[:slots], rule(np, *inputs), strict=True):
            array[...] = new

    _, *parameters = inspect.signature(rule).parameters.values()
    apply.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return apply


for _name, (_rule, _slots, _after) in RULES.items():
    _define(
        _name,
        slots=_slots,
        sparse=True,
        after_rows=_after and _in_place(_after, _slots),
        loop=_ftrl_loop if _name == "Ftrl" else None,
    )(_in_place(_rule, _slots))
