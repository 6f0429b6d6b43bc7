"""Operations that every graph has: constants, placeholders, identities, and the vector-Jacobian product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.dtypes import DType, from_numpy
from headwater.graph.ops.define import no_outputs, pure, unary
from headwater.graph.ops.inner_faults import noting
from headwater.graph.registry import Attrs, FunctionAttr, Inference, OpDef, Spec, as_outputs, lookup
from headwater.lazy_jax import jax, jnp
from headwater.shapes import as_shape, merge_dims


def _const_spec(inference: Inference) -> Sequence[Spec]:
    value = inference.attrs["value"]
    return [Spec(inference.attrs.get("dtype") or from_numpy(value.dtype), tuple(value.shape))]


@pure("Const", infer=_const_spec, differentiable=False, types={}, string_lower=lambda value, dtype=None: value)
def const(*, value: jax.Array, dtype: object = None) -> jax.Array:
    del dtype
    return value


def _placeholder_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], as_shape(inference.attrs.get("shape")).as_dims)]


@pure("Placeholder", infer=_placeholder_spec, types={})
def placeholder(*, dtype: DType, shape: object = None) -> jax.Array:
    raise AssertionError(f"a placeholder of {dtype} and shape {shape} reached the compiler without a feed")


def _default_spec(inference: Inference) -> Sequence[Spec]:
    shape = as_shape(inference.attrs["shape"]).as_dims
    merge_dims(shape, inference.inputs[0].dims)
    return [Spec(inference.inputs[0].dtype.base_dtype, shape)]


@pure(
    "PlaceholderWithDefault",
    inputs="input:dtype",
    infer=_default_spec,
    gradient=lambda op, grad: [grad],
    string_lower=lambda value, shape=None: value,
)
def placeholder_with_default(value: jax.Array, *, shape: object) -> jax.Array:
    del shape
    return value


@pure("Identity", inputs="input:T", infer=unary, gradient=lambda op, grad: [grad], string_lower=lambda value: value)
def identity(value: jax.Array) -> jax.Array:
    return value


def _identity_n_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(spec.dtype.base_dtype, spec.dims) for spec in inference.inputs]


@pure(
    "IdentityN",
    inputs="input:T**",
    infer=_identity_n_specs,
    gradient=lambda op, *grads: list(grads),
    string_lower=lambda *values: values,
)
def identity_n(*values: Any) -> tuple[jax.Array, jax.Array]:
    return values


@pure("StopGradient", inputs="input:T", infer=unary, differentiable=False, string_lower=lambda value: value)
def stop_gradient(value: jax.Array) -> jax.Array:
    return value


def _prevented(op: Any, *grads: object) -> Sequence[object]:
    del grads
    raise LookupError(f"Gradient explicitly disabled. Reason: {op.get_attr('message')}")


@pure("PreventGradient", inputs="input:T", infer=unary, gradient=_prevented)
def prevent_gradient(value: jax.Array, *, message: str = "") -> jax.Array:
    del message  # used by the gradient function, which raises it
    return value


@pure("NoOp", infer=no_outputs, differentiable=False, types={}, string_lower=lambda: ())
def no_op() -> tuple[jax.Array, ...]:
    return ()


# The vector-Jacobian product ------------------------------------------------------------------------------------


def _forward(f: FunctionAttr) -> OpDef:
    return lookup(f.name)


def _vjp_specs(inference: Inference) -> Sequence[Spec]:
    wanted = inference.attrs["wanted"]
    return [
        Spec(spec.dtype.base_dtype, spec.dims)
        for spec, want in zip(inference.inputs[: len(wanted)], wanted, strict=True)
        if want
    ]


def _vjp_static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    f: FunctionAttr = attrs["f"]
    return _forward(f).static_positions(dict(f.attrs), len(attrs["wanted"]))


@pure("Vjp", infer=_vjp_specs, static_of=_vjp_static, types={})
def vjp(*inputs: object, f: FunctionAttr, wanted: Sequence[bool], given: Sequence[bool]) -> tuple[jax.Array, ...]:
    """Returns the gradients of a forward operation's inputs, given its outputs' gradients.

    For outputs ``y = F(x)`` with gradients ``g`` it returns ``gᵀ · dF/dx`` for every wanted input. Complex gradients
    are the conjugates of JAX's, for inputs and outputs: TensorFlow's gradient points in the direction in which the real
    part of ``y`` increases.

    Args:
      inputs: the forward operation's inputs, then the given gradients of outputs.
      f: the forward operation's type and attributes.
      wanted: for every forward input, whether its gradient is an output.
      given: for every forward output, whether its gradient is among the inputs.
    """
    definition = _forward(f)
    attrs = dict(f.attrs)
    forward_inputs, grads = list(inputs[: len(wanted)]), inputs[len(wanted) :]
    positions = [index for index, want in enumerate(wanted) if want]

    def forward(*variable: jax.Array) -> tuple[jax.Array, ...]:
        values = list(forward_inputs)
        for index, value in zip(positions, variable, strict=True):
            values[index] = value
        # A gradient of zero for the other outputs would not change the results, and XLA would compute with the zeros.
        return tuple(y for y, has in zip(as_outputs(definition.lower(*values, **attrs)), given, strict=True) if has)

    with noting(None):  # the forward operation has already recorded its failures
        outputs, pull = jax.vjp(forward, *(jnp.asarray(forward_inputs[index]) for index in positions))
        cotangents = tuple(
            jnp.conj(jnp.asarray(grad, y.dtype).reshape(y.shape)) for y, grad in zip(outputs, grads, strict=True)
        )
        return tuple(jnp.conj(grad) for grad in pull(cotangents))
