"""JAX, imported at its first use: a task whose plans run on kernels, such as most parameter servers, never uses it.

The import takes 0.6 s and 100 MB. Modules of the graph engine import JAX from here instead:

    from headwater.lazy_jax import jax, jnp

Types in annotations are not evaluated. Functions with their own derivatives are made by `custom_jvp` and `custom_vjp`,
since JAX's decorators of these names would import it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["export", "jax", "jnp", "lax", "scipy_linalg", "special", "xla_metadata"]

if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    from jax import export as export
    from jax import lax as lax
    from jax.experimental import xla_metadata as xla_metadata
    from jax.scipy import linalg as scipy_linalg
    from jax.scipy import special as special

else:

    class _Module:
        """A module that is imported when an attribute is first read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self._name), name)
            setattr(self, name, value)
            return value

    jax = _Module("jax")
    jnp = _Module("jax.numpy")
    export = _Module("jax.export")
    lax = _Module("jax.lax")
    xla_metadata = _Module("jax.experimental.xla_metadata")
    scipy_linalg = _Module("jax.scipy.linalg")
    special = _Module("jax.scipy.special")


def is_loaded() -> bool:
    """Returns whether this process has imported JAX."""
    return "jax" in sys.modules


def is_jax_array(value: object) -> bool:
    """Returns whether ``value`` is an array of JAX, without importing it."""
    # While another thread imports JAX, the class may be missing, and no array exists.
    return isinstance(value, getattr(sys.modules.get("jax"), "Array", ()))


def deferred(module: object, name: str) -> Callable[..., Any]:
    """Returns the function of a module above whose dotted name is ``name``, looked up when it is called."""
    find = attrgetter(name)
    return lambda *args, **kwargs: find(module)(*args, **kwargs)


class _Differentiated:
    """A function with its own derivative; JAX's object is made at the first call."""

    def __init__(self, kind: str, function: Callable[..., Any], nondiff_argnums: Sequence[int]) -> None:
        self._kind = kind
        self._function = function
        self._nondiff_argnums = tuple(nondiff_argnums)
        self._rules: tuple[Callable[..., Any], ...] = ()
        self._made: Any = None

    def defjvp(self, rule: Callable[..., object]) -> Callable[..., object]:
        """Sets the Jacobian-vector product, as the method of `jax.custom_jvp`."""
        self._rules = (rule,)
        return rule

    def defvjp(self, forward: Callable[..., object], backward: Callable[..., object]) -> None:
        """Sets the vector-Jacobian product, as the method of `jax.custom_vjp`."""
        self._rules = (forward, backward)

    def __call__(self, *args: object) -> Any:
        if self._made is None:
            made = getattr(jax, self._kind)(self._function, nondiff_argnums=self._nondiff_argnums)
            (made.defjvp if self._kind == "custom_jvp" else made.defvjp)(*self._rules)
            self._made = made
        return self._made(*args)


def custom_jvp(function: Callable[..., object], nondiff_argnums: Sequence[int] = ()) -> Any:
    """Returns ``function`` as `jax.custom_jvp` does."""
    return _Differentiated("custom_jvp", function, nondiff_argnums)


def custom_vjp(function: Callable[..., object], nondiff_argnums: Sequence[int] = ()) -> Any:
    """Returns ``function`` as `jax.custom_vjp` does."""
    return _Differentiated("custom_vjp", function, nondiff_argnums)
