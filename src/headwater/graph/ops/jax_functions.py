"""Functions of JAX as operations: ``JaxFunction``, a Python function, and ``XlaCallModule``, an exported function."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from headwater.dtypes import DType
from headwater.errors import InvalidArgumentError, UnimplementedError
from headwater.graph.ops.define import pure
from headwater.graph.registry import Inference, Spec, as_outputs, function_of
from headwater.lazy_jax import jax, jnp
from headwater.shapes import TensorShape


def _specs(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    return [Spec(dtype, shape.as_dims) for dtype, shape in zip(attrs["Tout"], attrs["output_shapes"], strict=True)]


@pure("JaxFunction", inputs="input:Tin**", infer=_specs)
def jax_function(
    *input: jax.Array, token: str, label: str, Tout: Sequence[DType] = (), output_shapes: Sequence[TensorShape] = ()
) -> tuple[Any, ...]:
    """Calls the function of this process that has the ``token``.

    Args:
      label: the name of the function, for errors.

    Raises:
      InvalidArgumentError: this process has not registered the function.
    """
    del output_shapes
    function = function_of(token)
    if function is None:
        raise InvalidArgumentError(
            f"{label} is a Python function of another process: it runs only in the task that has built the graph, so "
            "place it there, and do not export it"
        )
    outputs = as_outputs(function(*map(jnp.asarray, input)))
    return tuple(jnp.asarray(value, dtype.numpy_dtype) for value, dtype in zip(outputs, Tout, strict=True))


def _module_specs(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    return [Spec(dtype, shape.as_dims) for dtype, shape in zip(attrs["Tout"], attrs["Sout"], strict=True)]


@pure("XlaCallModule", inputs="args:Tin**", infer=_module_specs)
def xla_call_module(*args: jax.Array, _exported: str | bytes = b"") -> tuple[Any, ...]:
    """Calls an exported JAX function.

    Args:
      _exported: the function, serialised by `jax.export`. TensorFlow ignores this attribute, and uses the StableHLO in
        the attribute ``module``.

    Raises:
      UnimplementedError: another program than Headwater wrote the operation, without this attribute.
    """
    if not _exported:
        raise UnimplementedError(
            "XlaCallModule without the attribute _exported: only functions that Headwater exported can run"
        )
    data = _exported.encode() if isinstance(_exported, str) else _exported
    return as_outputs(_deserialized(data).call(*map(jnp.asarray, args)))


@functools.lru_cache(maxsize=64)
def _deserialized(data: bytes) -> Any:
    return jax.export.deserialize(bytearray(data))
