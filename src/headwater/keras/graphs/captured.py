"""Tensors of a program's graph in computations on arrays, such as a constant in a loss function of `fit`."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from headwater.graph.ancestry import needed_operations
from headwater.graph.operation import Operation, Tensor
from headwater.keras.backend.sessions import get_session
from headwater.keras.types import Tree
from headwater.tf1.variables.variables import Variable

_owned: WeakKeyDictionary[Operation, str] = WeakKeyDictionary()
"""Variables of graphs that are attributes of layers, and the layer's name."""


def note_owner(layer: Tree, variable: Variable) -> None:
    """Notes that ``variable`` is an attribute of ``layer``, which `fit` would have to train."""
    if variable.trainable:
        _owned[variable.op] = layer.name


def array_of(tensor: Tensor) -> Tree:
    """Returns the value of ``tensor`` in the session of its graph as an array; JAX's compiled functions read it in each
    call.

    Raises:
      ValueError: the shape is not fully known.
      NotImplementedError: it is a variable of a layer.
    """
    for op in (tensor.op, *(each.op for each in tensor.op.inputs[:1])):
        if op in _owned:
            raise NotImplementedError(
                f"the variable {op.name!r} of the layer {_owned[op]!r} belongs to sessions, and fit cannot train it: "
                "create it with add_weight"
            )
    if not tensor.shape.is_fully_defined():
        raise ValueError(f"{tensor.name!r} is used in a computation of Keras, which needs its shape: {tensor.shape}")
    dtype = tensor.dtype.base_dtype.numpy_dtype

    def read() -> Tree:
        with tensor.graph.as_default():
            session: Tree = get_session()
        return np.asarray(session.run(tensor), dtype)

    if not isinstance(jnp.ones(()), jax.core.Tracer):
        return jnp.asarray(read())
    kind = jax.ShapeDtypeStruct(tuple(tensor.shape.as_list()), dtype)
    # A read may be omitted or repeated; an assignment may not.
    return io_callback(read, kind, ordered=True) if _changes(tensor.op) else jax.pure_callback(read, kind)


def run_in_session(op: Operation) -> None:
    """Runs an operation of a program's graph in each call of the function that is being computed or compiled."""

    def run() -> None:
        with op.graph.as_default():
            session: Tree = get_session()
        session.run(op)

    if isinstance(jnp.ones(()), jax.core.Tracer):
        io_callback(run, None, ordered=True)
    else:
        run()


def _changes(op: Operation) -> bool:
    """Returns whether an operation, or one that it needs, changes a variable."""
    return any(each.definition.updates for each in needed_operations([op]))
