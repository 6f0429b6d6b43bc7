"""The table of kernels: functions of host arrays with the same results as operations' lowerings in an executable.

A kernel takes the lowering's positional inputs, as NumPy arrays, and its attributes, as keyword arguments. It returns
one array or a tuple of arrays. Only the kernel of an update changes an input; an output may be one of the inputs, or a
view of one. Results equal the lowering's: integers and booleans exactly, other numbers up to rounding. Kernels do not
import JAX.

Example:
  A kernel, its gradient, and an update of a variable::

      @kernel("Tanh")
      def tanh(x): return np.tanh(x)

      @gradient_kernel("Tanh")
      def tanh_gradient(inputs, output_gradients, needed, attrs):
          y = np.tanh(inputs[0])
          return (output_gradients[0] * (1 - y * y),)

      @update_kernel("AssignAdd")
      def assign_add(ref, value, *, use_locking=False): ref += value
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from headwater.graph.kernels import KERNEL_MODULES

F = TypeVar("F", bound=Callable[..., Any])
Kernel = Callable[..., Any]
GradientKernel = Callable[..., Sequence[Any]]


class ElementRule(NamedTuple):
    """Describes an update that computes each element independently.

    The arrays of several variables can therefore be concatenated and updated in one call.

    Attributes:
      variables: number of variables; they are the first inputs, and all have the same shape.
      gradient: position of the gradient, which has the same shape.
    """

    variables: int
    gradient: int


_kernels: Final[dict[str, Kernel]] = {}
_gradients: Final[dict[str, GradientKernel]] = {}
_using_outputs: Final[set[str]] = set()
_updates: Final[dict[str, Kernel]] = {}
_element_rules: Final[dict[str, ElementRule]] = {}
_load_lock: Final = threading.RLock()
_loaded = False


class NoKernel(Exception):
    """Raised by a kernel before it changes anything, for element types or attributes that it does not implement."""


def kernel(*names: str) -> Callable[[F], F]:
    """Registers ``f(*inputs, **attrs)``, which returns an array or a tuple of arrays, as the kernel of operation types.

    The function has the attributes of `headwater.graph.registry.OpDef.attrs` as keyword-only parameters. The kernel of
    a random operation takes a key of `headwater.graph.kernels.generator` first.
    """
    return _registrar(_kernels, names)


def gradient_kernel(*names: str, outputs: bool = False) -> Callable[[F], F]:
    """Registers the vector-Jacobian product of operation types.

    The function is called as ``f(inputs, output_gradients, needed, attrs)``: the forward operation's inputs; for each
    of its outputs the gradient, or None; for each input whether its gradient is needed; the forward operation's
    attributes. It returns, for each input, an array of the input's shape and type, or None if the input is not
    ``needed`` or has no gradient; the result for an input that is not ``needed`` is ignored.

    Args:
      names: the names of the forward operation types.
      outputs: whether the function takes the tuple of the forward operation's outputs as a fifth argument. They are
        computed once for the operation and its gradient.
    """
    if outputs:
        _using_outputs.update(names)
    return _registrar(_gradients, names)


def update_kernel(*names: str) -> Callable[[F], F]:
    """Registers an update of variables in place: ``f(*inputs, **attrs)``, which returns None.

    Inputs at the positions of `headwater.graph.registry.OpDef.updates` are writable arrays to which nothing else
    refers. The function changes the elements of these arrays, and must not keep references to them. It must not change
    any other input, and it checks shapes before it changes anything. ``Assign``, which may change the shape, is
    implemented by the runtime instead.
    """
    return _registrar(_updates, names)


def element_rule(name: str, rule: ElementRule) -> None:
    """Registers the element rule of an update."""
    _element_rules[name] = rule


def element_rule_of(name: str) -> ElementRule | None:
    """Returns the element rule of an update; None if it has none."""
    _load()
    return _element_rules.get(name)


def kernel_of(name: str) -> Kernel | None:
    """Returns the kernel of an operation type; None if there is none."""
    _load()
    return _kernels.get(name)


def gradient_kernel_of(name: str) -> GradientKernel | None:
    """Returns the vector-Jacobian product of an operation type; None if there is none."""
    _load()
    return _gradients.get(name)


def takes_outputs(name: str) -> bool:
    """Returns whether the vector-Jacobian product of an operation type takes the operation's outputs."""
    return name in _using_outputs


def update_kernel_of(name: str) -> Kernel | None:
    """Returns the in-place update of an operation type; None if there is none."""
    _load()
    return _updates.get(name)


def kernel_names() -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The operation types that have a kernel, a vector-Jacobian product, and an update in place, each sorted."""
    _load()
    return sorted(_kernels), sorted(_gradients), sorted(_updates)


def _registrar(table: dict[str, Any], names: Sequence[str]) -> Callable[[F], F]:
    """Returns a decorator that registers a function in ``table`` under all of ``names``."""

    def add(function: F) -> F:
        for name in names:
            if name in table:
                raise ValueError(f"operation type {name!r} has two kernels")
            table[name] = function
        return function

    return add


def _load() -> None:
    """Imports all modules of kernels, at the first look-up."""
    global _loaded
    if not _loaded:
        with _load_lock:
            if not _loaded:
                for module in KERNEL_MODULES:
                    importlib.import_module(f"headwater.graph.kernels.{module}")
                _loaded = True
