"""Updates of variables by gradients: one operation type per optimizer, with TensorFlow's inputs and arithmetic.

Every rule is written once, as a function of arrays. Its sparse version gathers the rows at ``indices`` from the
variable and its slots, applies the rule to the rows, and scatters them back. Rows with equal indices are applied one
after the other, as in TensorFlow; indices outside the variable update nothing.

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
from headwater.graph.optimizer_rules import RULES
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
"""Input position of the integer step count, for operation types with such an input."""


def _define(
    name: str, *, slots: int, sparse: bool = False, after_rows: Rule | None = None, at_once: Rule | None = None
) -> Callable[[Rule], Rule]:
    """Registers ``Apply<name>``, and if ``sparse`` ``SparseApply<name>``, which has ``indices`` after the gradient.

    Args:
      slots: number of variables, which are the first inputs; the rule returns their new values.
      after_rows: maps the rows that the sparse version has updated to their new values.
      at_once: a faster implementation of the sparse version. It is called with the sparse version and its arguments,
        and returns the result, or None for unsupported arguments.
    """

    def define(rule: Rule) -> Rule:
        signature = _with_locking(inspect.signature(rule))
        order = [key for key, p in signature.parameters.items() if p.kind is not p.KEYWORD_ONLY]
        refs, grad = tuple(range(slots)), order.index("grad")
        counter = order.index("global_step") if "global_step" in order else -1

        def apply_whole(*inputs: jax.Array, use_locking: bool = False, **attrs: object) -> object:
            del use_locking
            return rule(*inputs, **attrs)

        # Set the signature, because the registry reads the operation's attributes from it.
        apply_whole.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
        _COUNTER[f"Apply{name}"] = counter
        stateful(f"Apply{name}", refs=refs, updates=refs, infer=_spec(slots, grad, None))(apply_whole)
        if not sparse:
            return rule
        names = (*order[: grad + 1], "indices", *order[grad + 1 :])
        _COUNTER[f"SparseApply{name}"] = counter + (counter > grad)

        def in_turns(*inputs: jax.Array, **attrs: object) -> tuple[jax.Array, ...]:
            given: dict[str, jax.Array] = dict(zip(names, inputs, strict=True))
            at = rows(given["var"], given.pop("indices"))
            turn = turns(at, given["var"].shape[0])

            def apply(now: jax.Array, whole: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                # For an index outside of the variable, the row that is read does not matter: its update is dropped.
                taken = {key: take_rows(old, now, nearest=True) for key, old in zip(order[:slots], whole, strict=True)}
                updated = rule(**(given | taken), **attrs)
                updated = updated if after_rows is None else after_rows(*updated)
                return tuple(put_rows(old, now, new) for old, new in zip(whole, updated, strict=True))

            def step(now: jax.Array, whole: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
                return apply(jnp.where(turn == now, at, given["var"].shape[0]), whole)

            whole = tuple(given[key] for key in order[:slots])
            return apply(at, whole) if at.size < 2 else lax.fori_loop(0, turn.max() + 1, step, whole)

        def apply_rows(*inputs: jax.Array, use_locking: bool = False, **attrs: object) -> object:
            del use_locking
            done = None if at_once is None else at_once(partial(in_turns, **attrs), *inputs, **attrs)
            return in_turns(*inputs, **attrs) if done is None else done

        apply_rows.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
        stateful(f"SparseApply{name}", refs=refs, updates=refs, infer=_spec(slots, grad, grad + 1))(apply_rows)
        return rule

    return define


def _with_locking(signature: inspect.Signature) -> inspect.Signature:
    """Adds the attribute ``use_locking``, which has no effect: updates are always atomic."""
    locking = inspect.Parameter("use_locking", inspect.Parameter.KEYWORD_ONLY, default=False)
    return signature.replace(parameters=[*signature.parameters.values(), locking])


def _for_jax(rule: Rule) -> Rule:
    """Returns a rule of `headwater.graph.optimizer_rules` for arrays of JAX."""

    def apply(*inputs: jax.Array, **named: jax.Array) -> object:
        return rule(jnp, *inputs, **named)

    _, *parameters = inspect.signature(rule).parameters.values()
    apply.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return apply


for _name, (_rule, _slots, _after) in RULES.items():
    _define(_name, slots=_slots, sparse=True, after_rows=_after and _for_jax(_after))(_for_jax(_rule))


@_define("GradientDescent", slots=1)
def gradient_descent(var: jax.Array, alpha: jax.Array, grad: jax.Array) -> tuple[jax.Array, ...]:
    return (var - alpha * grad,)


@_define("Momentum", slots=2, sparse=True)
def momentum(
    var: jax.Array, accum: jax.Array, lr: jax.Array, grad: jax.Array, momentum: jax.Array, *, use_nesterov: bool = False
) -> tuple[jax.Array, jax.Array]:
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
    update_slots: bool = True,
) -> object:
    return adagrad_rows(in_turns, var, accum, lr, grad, indices) if update_slots else None


@_define("Adagrad", slots=2, sparse=True, at_once=_adagrad_at_once)
def adagrad(
    var: jax.Array, accum: jax.Array, lr: jax.Array, grad: jax.Array, *, update_slots: bool = True
) -> tuple[jax.Array, jax.Array]:
    if update_slots:
        accum = accum + jnp.square(grad)
    return var - grad * lr * lax.rsqrt(accum), accum


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
    use_nesterov: bool = False,
) -> tuple[jax.Array, ...]:
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
    """Updates all rows, unlike the other sparse updates: in rows without a gradient, the moving averages decay, and the
    variable changes accordingly."""
    del use_locking
    at = rows(var, indices)
    alpha = lr * jnp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = add_rows(m * beta1, at, grad * (1 - beta1))
    v = add_rows(v * beta2, at, (grad * grad) * (1 - beta2))
    return var - alpha * m / (jnp.sqrt(v) + epsilon), m, v
