"""Finds the kernel of an operation or of its gradient, and the attributes that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from headwater.graph.kernels.random import DRAWS
from headwater.graph.kernels.registry import gradient_kernel_of, kernel_of
from headwater.graph.passes.plan import Node
from headwater.graph.registry import FunctionAttr, lookup
from headwater.graph.runtime.compiled_draws import drawn


class WithoutKernel(Exception):
    """Raised if operations cannot run on kernels because one of them has none.

    Args:
      op_type: the type without a kernel.
    """

    def __init__(self, op_type: str) -> None:
        super().__init__(op_type)
        self.op_type = op_type


Wanted = tuple[bool, ...]
"""For each input, whether its gradient is needed."""
Maker = Callable[..., Callable[..., Any]]
#: Factories of kernels, and of their vector-Jacobian products, for operations with subgraphs in their attributes. A
#: kernel factory takes the attributes and, for each input, whether its gradient is wanted; the kernel's outputs then
#: have the tape for these gradients. If the second argument is None, no gradient follows, and no tape is kept.
KERNEL_MAKERS: Final[dict[str, Maker]] = {}
GRADIENT_MAKERS: Final[dict[str, Maker]] = {}


@dataclass(frozen=True, slots=True)
class Repeat:
    """Describes an operation that repeats the computation of another operation, so that it can use the results of the
    other operation. It has the inputs of the other operation and one more.

    Attributes:
      op_type: the type of the other operation.
      attrs: names of the attributes that must be equal in both operations.
      convert: converts the results of the other operation to results of this one.
    """

    op_type: str
    attrs: tuple[str, ...]
    convert: Callable[[Any], Any]


REPEATS: Final[dict[str, Repeat]] = {}


def function_of(op_type: str, attrs: Mapping[str, Any], wanted: Wanted | None = None) -> Callable[..., Any]:
    """Returns the kernel of an operation; raises WithoutKernel if there is none."""
    if op_type in KERNEL_MAKERS:
        return KERNEL_MAKERS[op_type](attrs, wanted)
    found = kernel_of(op_type)
    if found is None:
        raise WithoutKernel(op_type)
    return found


def draw_of(op_type: str, attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """Returns the kernel of a random operation; raises WithoutKernel if there is none.

    Draws of float32 have kernels of their own. Draws of other types are compiled, for sizes rounded up to powers of
    two.
    """
    run, dtype = function_of(op_type, attrs), attrs.get("dtype")
    if op_type not in DRAWS or dtype is None or dtype.numpy_dtype == np.float32:
        return run
    return partial(drawn, op_type)


def gradient_function_of(op_type: str, attrs: Mapping[str, Any]) -> Callable[..., Any]:
    """Returns the vector-Jacobian product of an operation; raises WithoutKernel if there is none."""
    if op_type in GRADIENT_MAKERS:
        return GRADIENT_MAKERS[op_type](attrs)
    found = gradient_kernel_of(op_type)
    if found is None:
        raise WithoutKernel(f"the gradient of {op_type}")
    return found


def own_attrs(node: Node) -> dict[str, Any]:
    """Returns the attributes that the operation's lowering takes."""
    taken = node.definition.attrs
    return {key: value for key, value in node.attrs.items() if key in taken}


def forward_attrs(forward: FunctionAttr) -> dict[str, Any]:
    """Returns the attributes of the forward operation of a ``Vjp``."""
    taken = lookup(forward.name).attrs
    return {key: value for key, value in forward.attrs if key in taken}
