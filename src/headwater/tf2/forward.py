"""Forward-mode derivatives, and functions whose gradients compute intermediate values again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from headwater.tf2.tape import GradientTape

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class ForwardAccumulator:
    """Records operations, for `jvp`: the derivative of their results in one direction.

    Args:
      primals: tensors or variables, in a structure.
      tangents: the direction: for each primal a tensor of its shape, in the same structure.

    Raises:
      ValueError: the structures differ.
    """

    def __init__(self, primals: object, tangents: object) -> None:
        self._primals = jax.tree.leaves(primals)
        self._tangents = jax.tree.leaves(tangents)
        if jax.tree.structure(primals) != jax.tree.structure(tangents):
            raise ValueError(f"primals and tangents have different structures: {primals!r} and {tangents!r}")
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)
        self._tape.watch(self._primals)

    def __enter__(self) -> ForwardAccumulator:
        self._tape.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._tape.__exit__(*exception)

    def jvp(self, primals: object, unconnected_gradients: object = "none") -> Tree:
        """Returns the derivative of each of ``primals`` in the direction of the tangents, in the same structure.

        Args:
          primals: tensors or variables, in a structure.
          unconnected_gradients: ``none`` or ``zero``: the result for a tensor that does not depend on the accumulator's
            primals.
        """
        zero = str(getattr(unconnected_gradients, "value", unconnected_gradients)) == "zero"
        return jax.tree.map(lambda target: self._derivative(target, zero), primals)

    def _derivative(self, target: object, zero: bool) -> jax.Array | None:
        return self._tape.derivative(target, self._primals, self._tangents, zero)


def recompute_grad(f: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns ``f`` with a gradient that computes the intermediate values of ``f`` again instead of keeping them."""

    @functools.wraps(f)
    def decorated(*args: Tree, **kwargs: Tree) -> Tree:
        return jax.checkpoint(functools.partial(f, **kwargs))(*map(jnp.asarray, args))

    return decorated
