"""Updates of variables by gradients, in place: the rules of `headwater.graph.ops.optimizers`, in the same order.

Each rule changes its arguments in place. Its sparse version applies it to the rows at ``indices``, in their order; an
index outside of the variable updates nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.compiled_loops import compiled_loops_pay
from headwater.graph.kernels.registry import NoKernel, update_kernel
from headwater.graph.kernels.rows import add_rows, outside, turns

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

Rule = Callable[..., None]


def _require(same: bool, what: str) -> None:
    if not same:
        raise InvalidArgumentError(None, None, what)


def _checked(var: HostArray, others: Sequence[HostArray], grad: HostArray) -> None:
    """Checks that all arrays have the variable's shape, before any of them is changed."""
    for other in others:
        _require(other.shape == var.shape, f"var and a slot do not have the same shape {var.shape} {other.shape}")
    _require(grad.shape == var.shape, f"var and grad do not have the same shape {var.shape} {grad.shape}")


def _define(
    name: str,
    *,
    slots: int,
    sparse: Sequence[str] | None = None,
    after_rows: Callable[..., None] | None = None,
    loop: Callable[..., bool] | None = None,
) -> Callable[[Rule], Rule]:
    """Registers ``Apply<name>``, and ``SparseApply<name>`` if ``sparse`` has the order of its inputs.

    Args:
      slots: number of variables among the first inputs, which the rule changes.
      sparse: names of the inputs of the sparse version, including ``indices``.
      after_rows: called in the sparse version with the rows that the rule has changed.
      loop: called with the rule's inputs and the indices, updates the rows with the same results in a compiled loop;
        returns False, without a change, where that does not pay.
    """

    def define(rule: Rule) -> Rule:
        parameters = inspect.signature(rule).parameters
        order = [key for key, parameter in parameters.items() if parameter.kind is not parameter.KEYWORD_ONLY]
        place = order.index("grad")

        @update_kernel(f"Apply{name}")
        def apply(*inputs: Any, use_locking: bool = False, **attrs: object) -> None:  # pyright: ignore[reportUnusedFunction]
            del use_locking
            _checked(inputs[0], inputs[1:slots], inputs[place])
            if not inputs[0].ndim:  # NumPy's operators turn scalar arrays into numbers, which rules cannot change
                inputs = tuple(x.reshape(1) if i < slots or i == place else x for i, x in enumerate(inputs))
            rule(*inputs, **attrs)

        if sparse is not None:
            names = tuple(sparse)

            @update_kernel(f"SparseApply{name}")
            def apply_rows(*inputs: Any, use_locking: bool = False, **attrs: Any) -> None:  # pyright: ignore[reportUnusedFunction]
                del use_locking
                given = dict(zip(names, inputs, strict=True))
                whole = [given[key] for key in order[:slots]]
                given["grad"], at = rows_inside(whole[0], whole[1:], given["grad"], given.pop("indices"))
                grad = given["grad"]
                if not at.size or (loop is not None and loop(*(given[key] for key in order), at, **attrs)):
                    return
                for places in turns(at):
                    given["grad"], now = grad[places], at[places]
                    taken = [array.take(now, 0) for array in whole]
                    rule(*taken, *(given[key] for key in order[slots:]), **attrs)
                    if after_rows is not None:
                        after_rows(*taken)
                    for array, rows in zip(whole, taken, strict=True):
                        array[now] = rows

        return rule

    return define


def rows_inside(
    var: HostArray, slots: Sequence[HostArray], grad: HostArray, indices: HostArray
) -> tuple[HostArray, HostArray]:
    """Checks all shapes; returns the rows of a gradient within the variable, and their indices."""
    at = indices.reshape(-1)
    for slot in slots:
        _require(slot.shape == var.shape, f"var and a slot do not have the same shape {var.shape} {slot.shape}")
    _require(
        grad.shape == (at.size, *var.shape[1:]),
        f"grad must have shape {[at.size, *var.shape[1:]]} for {at.size} rows of var of shape {list(var.shape)}, not "
        f"{list(grad.shape)}",
    )
    bad = outside(at, len(var))
    return (grad, at) if bad is None else (grad[~bad], at[~bad])


@_define("GradientDescent", slots=1)
def gradient_descent(var: HostArray, alpha: HostArray, grad: HostArray) -> None:
    """var - alpha grad."""
    var -= alpha * grad


@_define("Momentum", slots=2, sparse=("var", "accum", "lr", "grad", "indices", "momentum"))
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
"""The time of NumPy's calls that update rows."""
_NUMBER_NS: Final = 15
"""The time in which NumPy updates one number of a row."""


def _loop_arguments(arrays: Sequence[HostArray], grad: HostArray, at: HostArray) -> tuple[Any, ...] | None:
    """Returns the elements of ``arrays`` and ``grad``, the places and the width of rows, for a compiled loop, which
    takes contiguous arrays of float32; None where NumPy updates the rows."""
    if not all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays):
        return None
    if not compiled_loops_pay(_CALL_NS + _NUMBER_NS * grad.size):
        return None
    from headwater.tables.row_loops import flat  # noqa: PLC0415  with numba: only for programs that need it

    whole = (array.reshape(-1) for array in arrays)
    return *whole, flat(grad, np.float32), flat(at, np.int64), grad.size // at.size


def _adagrad_loop(
    var: HostArray, accum: HostArray, lr: HostArray, grad: HostArray, at: HostArray, *, update_slots: bool = True
) -> bool:
    arguments = _loop_arguments((var, accum), grad, at) if update_slots else None
    if arguments is None:
        return False
    from headwater.tables import row_loops  # noqa: PLC0415  see `_loop_arguments`

    row_loops.adagrad(*arguments, np.float32(lr))
    return True


@_define("Adagrad", slots=2, sparse=("var", "accum", "lr", "grad", "indices"), loop=_adagrad_loop)
def adagrad(var: HostArray, accum: HostArray, lr: HostArray, grad: HostArray, *, update_slots: bool = True) -> None:
    """accum + grad²; var - grad lr / √accum."""
    if update_slots:
        accum += grad * grad
    step = grad * lr
    step /= np.sqrt(accum)
    var -= step


@_define(
    "AdagradDA",
    slots=3,
    sparse=(
        "var",
        "gradient_accumulator",
        "gradient_squared_accumulator",
        "grad",
        "indices",
        "lr",
        "l1",
        "l2",
        "global_step",
    ),
)
def adagrad_da(
    var: HostArray,
    gradient_accumulator: HostArray,
    gradient_squared_accumulator: HostArray,
    grad: HostArray,
    lr: HostArray,
    l1: HostArray,
    l2: HostArray,
    global_step: HostArray,
) -> None:
    """Computes the variable from the sum of all gradients so far."""
    gradient_accumulator += grad
    gradient_squared_accumulator += grad * grad
    step = global_step.astype(var.dtype)
    total = gradient_accumulator
    if l1 > 0:
        total = np.sign(total) * np.maximum(np.abs(total) - l1 * step, var.dtype.type(0))
    var[...] = -lr * total / (l2 * step * lr + np.sqrt(gradient_squared_accumulator))


@_define("Adadelta", slots=3, sparse=("var", "accum", "accum_update", "lr", "rho", "epsilon", "grad", "indices"))
def adadelta(
    var: HostArray,
    accum: HostArray,
    accum_update: HostArray,
    lr: HostArray,
    rho: HostArray,
    epsilon: HostArray,
    grad: HostArray,
) -> None:
    """Scales the gradient by the root mean square of earlier steps over the root mean square of gradients."""
    accum *= rho
    accum += grad * grad * (1 - rho)
    update = np.sqrt(accum_update + epsilon) * (1 / np.sqrt(accum + epsilon)) * grad
    accum_update *= rho
    accum_update += update * update * (1 - rho)
    var -= update * lr


def _adam_rate(lr: Any, beta1_power: Any, beta2_power: Any) -> Any:
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
    """Steps by the mean of gradients over the root of the mean of their squares."""
    step = np.asarray(grad - m)  # NumPy makes scalars of arrays without dimensions
    step *= 1 - beta1
    m += step
    np.multiply(grad, grad, out=step)
    step -= v
    step *= 1 - beta2
    v += step
    if use_nesterov:
        np.add(grad * (1 - beta1), beta1 * m, out=step)
        step *= _adam_rate(lr, beta1_power, beta2_power)
    else:
        np.multiply(m, _adam_rate(lr, beta1_power, beta2_power), out=step)
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
    """Unlike the other sparse updates, this one moves all rows: the averages of rows without a gradient decay."""
    del use_locking
    if not (m.flags.c_contiguous and v.flags.c_contiguous):
        raise NoKernel
    grad, at = rows_inside(var, (m, v), grad, indices)
    m *= beta1
    v *= beta2
    add_rows(m, at, grad * (1 - beta1))
    add_rows(v, at, grad * grad * (1 - beta2))
    step = m * _adam_rate(lr, beta1_power, beta2_power)
    root = np.sqrt(v)
    root += epsilon
    step /= root
    var -= step


@_define("RMSProp", slots=3, sparse=("var", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"))
def rmsprop(
    var: HostArray,
    ms: HostArray,
    mom: HostArray,
    lr: HostArray,
    rho: HostArray,
    momentum: HostArray,
    epsilon: HostArray,
    grad: HostArray,
) -> None:
    """Steps by the gradient over the root of the mean of its squares."""
    ms += (grad * grad - ms) * (1 - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt(ms + epsilon)
    var -= mom


@_define(
    "CenteredRMSProp",
    slots=4,
    sparse=("var", "mg", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"),
)
def centered_rmsprop(
    var: HostArray,
    mg: HostArray,
    ms: HostArray,
    mom: HostArray,
    lr: HostArray,
    rho: HostArray,
    momentum: HostArray,
    epsilon: HostArray,
    grad: HostArray,
) -> None:
    """As `rmsprop`, with the variance in place of the mean of squares."""
    ms += (grad * grad - ms) * (1 - rho)
    mg += (grad - mg) * (1 - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt((ms - mg * mg) + epsilon)
    var -= mom


def _ftrl(
    var: HostArray,
    accum: HostArray,
    linear: HostArray,
    grad: HostArray,
    shrunk_grad: HostArray,
    lr: HostArray,
    l1: HostArray,
    l2: HostArray,
    lr_power: HostArray,
) -> None:
    def power(x: HostArray) -> HostArray:
        return np.sqrt(x) if lr_power == -0.5 else np.power(x, -lr_power)

    before = power(accum)
    accum += grad * grad
    after = power(accum)
    linear += shrunk_grad - (after - before) / lr * var
    moved = (l1 * np.sign(linear) - linear) / (after / lr + 2 * l2)
    var[...] = np.where(np.abs(linear) > l1, moved, var.dtype.type(0))


def _keep_nan(var: HostArray, _accum: HostArray, linear: HostArray) -> None:
    """Sets rows to NaN where their linear terms are, as TensorFlow's sparse version does; its dense version sets 0."""
    var[np.isnan(linear)] = np.nan


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
    arguments = _loop_arguments((var, accum, linear), grad, at) if lr_power == -0.5 else None
    if arguments is None:
        return False
    from headwater.tables import row_loops  # noqa: PLC0415  see `_loop_arguments`

    row_loops.ftrl(*arguments, np.float32(lr), np.float32(l1), np.float32(l2))
    return True


@_define(
    "Ftrl",
    slots=3,
    sparse=("var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "lr_power"),
    after_rows=_keep_nan,
    loop=_ftrl_loop,
)
def ftrl(
    var: HostArray,
    accum: HostArray,
    linear: HostArray,
    grad: HostArray,
    lr: HostArray,
    l1: HostArray,
    l2: HostArray,
    lr_power: HostArray,
) -> None:
    """Follows the regularised leader."""
    _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power)


@_define(
    "FtrlV2",
    slots=3,
    sparse=("var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "l2_shrinkage", "lr_power"),
    after_rows=_keep_nan,
)
def ftrl_v2(
    var: HostArray,
    accum: HostArray,
    linear: HostArray,
    grad: HostArray,
    lr: HostArray,
    l1: HostArray,
    l2: HostArray,
    l2_shrinkage: HostArray,
    lr_power: HostArray,
) -> None:
    """As `ftrl`, with a loss that shrinks variables."""
    _ftrl(var, accum, linear, grad, grad + 2 * l2_shrinkage * var, lr, l1, l2, lr_power)


def _proximal(moved: HostArray, rate: HostArray, l1: HostArray, l2: HostArray) -> HostArray:
    if l1 > 0:
        moved = np.sign(moved) * np.maximum(np.abs(moved) - rate * l1, moved.dtype.type(0))
    return moved / (1 + l2 * rate)


@_define("ProximalGradientDescent", slots=1, sparse=("var", "alpha", "l1", "l2", "grad", "indices"))
def proximal_gradient_descent(var: HostArray, alpha: HostArray, l1: HostArray, l2: HostArray, grad: HostArray) -> None:
    """A step of gradient descent, then of the regularisation."""
    var[...] = _proximal(var - alpha * grad, alpha, l1, l2)


@_define("ProximalAdagrad", slots=2, sparse=("var", "accum", "lr", "l1", "l2", "grad", "indices"))
def proximal_adagrad(
    var: HostArray, accum: HostArray, lr: HostArray, l1: HostArray, l2: HostArray, grad: HostArray
) -> None:
    """As `proximal_gradient_descent`, at the rates of Adagrad."""
    accum += grad * grad
    rate = lr / np.sqrt(accum)
    var[...] = _proximal(var - grad * rate, rate, l1, l2)
