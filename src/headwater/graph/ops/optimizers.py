"""Updates of variables by gradients: one operation type per optimizer, with TensorFlow's inputs and arithmetic.

Every rule is written once, as a function of arrays. Its sparse version gathers the rows at ``indices`` from the
variable and its slots, applies the rule to them, and scatters them back. Rows with equal indices are applied one after
the other, as in TensorFlow; indices outside the variable update nothing.

The order of operations within a rule is the same as in TensorFlow 1.15's CPU kernels, so that values agree almost to
the last bit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headwater.dtypes import as_ref
from headwater.graph.ops.define import stateful
from headwater.graph.ops.state import rows
from headwater.graph.ops.table_rows import adagrad_rows, add_rows, put_rows, take_rows, turns
from headwater.graph.registry import Infer, Inference, Spec
from headwater.lazy_jax import jax, jnp, lax
from headwater.shapes import merge_dims

Rule = Callable[..., Any]


def _spec(slots: int, grad: int, indices: int | None) -> Infer:
    def infer(inference: Inference) -> Sequence[Spec]:
        var = inference.inputs[0]
        dims = var.dims
        for slot in inference.inputs[1:slots]:
            dims = merge_dims(dims, slot.dims)
        given = inference.inputs[grad].dims
        if indices is None:
            dims = merge_dims(dims, given)
        elif dims is not None and given is not None:
            merge_dims(dims[1:], given[1:])
            merge_dims(inference.inputs[indices].dims, given[:1])
        integers = (indices, _COUNTER.get(inference.op_type))
        for index, spec in enumerate(inference.inputs):
            if index not in integers and spec.dtype.base_dtype != var.dtype.base_dtype:
                raise TypeError(
                    f"Input {index} of '{inference.op_type}' Op has type {spec.dtype.base_dtype.name} that does not "
                    f"match type {var.dtype.base_dtype.name} of argument 'var'."
                )
        return [Spec(as_ref(var.dtype), dims)]

    return infer


_COUNTER: dict[str, int] = {}
"""Position of the integer step count, for the types that have one."""


def _define(
    name: str,
    *,
    slots: int,
    sparse: Sequence[str] | None = None,
    after_rows: Rule | None = None,
    at_once: Rule | None = None,
) -> Callable[[Rule], Rule]:
    """Registers ``Apply<name>``, and ``SparseApply<name>`` if ``sparse`` has the order of its inputs.

    Args:
      slots: number of variables among the first inputs; the rule returns their new values.
      sparse: names of the inputs of the sparse version, including ``indices``.
      after_rows: maps the rows that the sparse version has updated to their new values.
      at_once: a faster form of the sparse version: takes the sparse version and its arguments, and returns the result,
        or None if it does not support them.
    """

    def define(rule: Rule) -> Rule:
        parameters = inspect.signature(rule).parameters
        order = [key for key, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
        refs = tuple(range(slots))
        if "global_step" in order:
            _COUNTER[f"Apply{name}"] = order.index("global_step")
        stateful(f"Apply{name}", refs=refs, updates=refs, infer=_spec(slots, order.index("grad"), None))(rule)
        if sparse is None:
            return rule
        if "global_step" in sparse:
            _COUNTER[f"SparseApply{name}"] = sparse.index("global_step")

        names = tuple(sparse)

        def in_turns(*inputs: jax.Array, **attrs: object) -> tuple[jax.Array, ...]:
            given: dict[str, jax.Array] = dict(zip(names, inputs, strict=True))
            at = rows(given["var"], given.pop("indices"))
            turn = turns(at, given["var"].shape[0])

            def apply(now: jax.Array, whole: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                # Rows outside the variable read anything; they are dropped when written.
                taken = {key: take_rows(old, now, nearest=True) for key, old in zip(order[:slots], whole, strict=True)}
                updated = rule(**(given | taken), **attrs)
                updated = updated if after_rows is None else after_rows(*updated)
                return tuple(put_rows(old, now, new) for old, new in zip(whole, updated, strict=True))

            def step(now: jax.Array, whole: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                return apply(jnp.where(turn == now, at, given["var"].shape[0]), whole)

            whole = tuple(given[key] for key in order[:slots])
            return apply(at, whole) if at.size < 2 else lax.fori_loop(0, turn.max() + 1, step, whole)

        def apply_rows(*inputs: jax.Array, **attrs: object) -> object:
            done = None if at_once is None else at_once(partial(in_turns, **attrs), *inputs, **attrs)
            return in_turns(*inputs, **attrs) if done is None else done

        # The registry reads attributes from the signature, so the sparse version gets the rule's signature.
        apply_rows.__signature__ = inspect.signature(rule)  # pyright: ignore[reportFunctionMemberAccess]
        infer = _spec(slots, sparse.index("grad"), sparse.index("indices"))
        stateful(f"SparseApply{name}", refs=refs, updates=refs, infer=infer)(apply_rows)
        return rule

    return define


@_define("GradientDescent", slots=1)
def gradient_descent(
    var: jax.Array, alpha: jax.Array, grad: jax.Array, *, use_locking: bool = False
) -> tuple[jax.Array, ...]:
    del use_locking
    return (var - alpha * grad,)


@_define("Momentum", slots=2, sparse=("var", "accum", "lr", "grad", "indices", "momentum"))
def momentum(
    var: jax.Array,
    accum: jax.Array,
    lr: jax.Array,
    grad: jax.Array,
    momentum: jax.Array,
    *,
    use_locking: bool = False,
    use_nesterov: bool = False,
) -> tuple[jax.Array, jax.Array]:
    del use_locking
    accum = accum * momentum + grad
    if use_nesterov:
        return var - (grad * lr + accum * momentum * lr), accum
    return var - accum * lr, accum


def _adagrad_at_once(
    in_turns: Callable[..., object],
    var: object,
    accum: object,
    lr: object,
    grad: jax.Array,
    indices: jax.Array,
    *,
    use_locking: bool = False,
    update_slots: bool = True,
) -> object:
    del use_locking
    return adagrad_rows(in_turns, var, accum, lr, grad, indices) if update_slots else None


@_define("Adagrad", slots=2, sparse=("var", "accum", "lr", "grad", "indices"), at_once=_adagrad_at_once)
def adagrad(
    var: jax.Array,
    accum: jax.Array,
    lr: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
    update_slots: bool = True,
) -> tuple[jax.Array, jax.Array]:
    del use_locking
    if update_slots:
        accum = accum + jnp.square(grad)
    return var - grad * lr * lax.rsqrt(accum), accum


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
    var: jax.Array,
    gradient_accumulator: jax.Array,
    gradient_squared_accumulator: jax.Array,
    grad: jax.Array,
    lr: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
    global_step: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    total = gradient_accumulator + grad
    squares = gradient_squared_accumulator + jnp.square(grad)
    step = jnp.asarray(global_step).astype(var.dtype)
    shrunk = jnp.where(l1 > 0, jnp.sign(total) * jnp.maximum(jnp.abs(total) - l1 * step, 0), total)
    return -lr * shrunk / (l2 * step * lr + jnp.sqrt(squares)), total, squares


@_define("Adadelta", slots=3, sparse=("var", "accum", "accum_update", "lr", "rho", "epsilon", "grad", "indices"))
def adadelta(
    var: jax.Array,
    accum: jax.Array,
    accum_update: jax.Array,
    lr: jax.Array,
    rho: jax.Array,
    epsilon: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    accum = accum * rho + jnp.square(grad) * (1 - rho)
    update = jnp.sqrt(accum_update + epsilon) * lax.rsqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + jnp.square(update) * (1 - rho)


@_define("Adam", slots=3)
def adam(
    var: jax.Array,
    m: jax.Array,
    v: jax.Array,
    beta1_power: jax.Array,
    beta2_power: jax.Array,
    lr: jax.Array,
    beta1: jax.Array,
    beta2: jax.Array,
    epsilon: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
    use_nesterov: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    alpha = lr * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (jnp.square(grad) - v) * (1 - beta2)
    step = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return var - (step * alpha) / (jnp.sqrt(v) + epsilon), m, v


@stateful("SparseApplyAdam", refs=(0, 1, 2), updates=(0, 1, 2), infer=_spec(3, 9, 10))
def sparse_adam(
    var: jax.Array,
    m: jax.Array,
    v: jax.Array,
    beta1_power: jax.Array,
    beta2_power: jax.Array,
    lr: jax.Array,
    beta1: jax.Array,
    beta2: jax.Array,
    epsilon: jax.Array,
    grad: jax.Array,
    indices: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    """Unlike the other sparse updates, this one moves all rows: the averages of rows without a gradient decay."""
    del use_locking
    at = rows(var, indices)
    alpha = lr * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = add_rows(m * beta1, at, grad * (1 - beta1))
    v = add_rows(v * beta2, at, (grad * grad) * (1 - beta2))
    return var - alpha * m / (jnp.sqrt(v) + epsilon), m, v


@_define("RMSProp", slots=3, sparse=("var", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"))
def rmsprop(
    var: jax.Array,
    ms: jax.Array,
    mom: jax.Array,
    lr: jax.Array,
    rho: jax.Array,
    momentum: jax.Array,
    epsilon: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    ms = ms + (jnp.square(grad) - ms) * (1 - rho)
    mom = mom * momentum + (grad * lr) / jnp.sqrt(ms + epsilon)
    return var - mom, ms, mom


@_define(
    "CenteredRMSProp",
    slots=4,
    sparse=("var", "mg", "ms", "mom", "lr", "rho", "momentum", "epsilon", "grad", "indices"),
)
def centered_rmsprop(
    var: jax.Array,
    mg: jax.Array,
    ms: jax.Array,
    mom: jax.Array,
    lr: jax.Array,
    rho: jax.Array,
    momentum: jax.Array,
    epsilon: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    ms = ms + (jnp.square(grad) - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * momentum + (grad * lr) / jnp.sqrt((ms - jnp.square(mg)) + epsilon)
    return var - mom, mg, ms, mom


def _ftrl(
    var: jax.Array,
    accum: jax.Array,
    linear: jax.Array,
    grad: jax.Array,
    shrunk_grad: jax.Array,
    lr: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
    lr_power: jax.Array,
) -> tuple[jax.Array, ...]:
    def power(x: jax.Array) -> jax.Array:
        return jnp.where(lr_power == -0.5, jnp.sqrt(x), jnp.power(x, -lr_power))

    total = accum + jnp.square(grad)
    linear = linear + shrunk_grad - (power(total) - power(accum)) / lr * var
    quadratic = power(total) / lr + 2 * l2
    var = jnp.where(jnp.abs(linear) > l1, (l1 * jnp.sign(linear) - linear) / quadratic, jnp.zeros_like(var))
    return var, total, linear


def _keep_nan(var: jax.Array, accum: jax.Array, linear: jax.Array) -> tuple[jax.Array, ...]:
    """Sets rows to NaN where their linear terms are, as TensorFlow's sparse version does; its dense version sets 0."""
    return jnp.where(jnp.isnan(linear), linear, var), accum, linear


@_define(
    "Ftrl",
    slots=3,
    sparse=("var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "lr_power"),
    after_rows=_keep_nan,
)
def ftrl(
    var: jax.Array,
    accum: jax.Array,
    linear: jax.Array,
    grad: jax.Array,
    lr: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
    lr_power: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    return _ftrl(var, accum, linear, grad, grad, lr, l1, l2, lr_power)


@_define(
    "FtrlV2",
    slots=3,
    sparse=("var", "accum", "linear", "grad", "indices", "lr", "l1", "l2", "l2_shrinkage", "lr_power"),
    after_rows=_keep_nan,
)
def ftrl_v2(
    var: jax.Array,
    accum: jax.Array,
    linear: jax.Array,
    grad: jax.Array,
    lr: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
    l2_shrinkage: jax.Array,
    lr_power: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, ...]:
    del use_locking
    return _ftrl(var, accum, linear, grad, grad + 2 * l2_shrinkage * var, lr, l1, l2, lr_power)


def _proximal(moved: jax.Array, rate: jax.Array, l1: jax.Array, l2: jax.Array) -> jax.Array:
    shrunk = jnp.where(l1 > 0, jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - rate * l1, 0), moved)
    return shrunk / (1 + l2 * rate)


@_define("ProximalGradientDescent", slots=1, sparse=("var", "alpha", "l1", "l2", "grad", "indices"))
def proximal_gradient_descent(
    var: jax.Array, alpha: jax.Array, l1: jax.Array, l2: jax.Array, grad: jax.Array, *, use_locking: bool = False
) -> tuple[jax.Array, ...]:
    del use_locking
    return (_proximal(var - alpha * grad, alpha, l1, l2),)


@_define("ProximalAdagrad", slots=2, sparse=("var", "accum", "lr", "l1", "l2", "grad", "indices"))
def proximal_adagrad(
    var: jax.Array,
    accum: jax.Array,
    lr: jax.Array,
    l1: jax.Array,
    l2: jax.Array,
    grad: jax.Array,
    *,
    use_locking: bool = False,
) -> tuple[jax.Array, jax.Array]:
    del use_locking
    accum = accum + jnp.square(grad)
    rate = lr * lax.rsqrt(accum)
    return _proximal(var - grad * rate, rate, l1, l2), accum
