"""Types of arguments that functions which create variables share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.initializers import Initializer
    from headwater.tf1.variables.partitioned import PartitionedVariable
    from headwater.tf1.variables.scope_settings import ReuseMode
    from headwater.tf1.variables.variables import Variable

AnyVariable: TypeAlias = "Variable | PartitionedVariable"
"""A variable, whole or in parts."""

Reuse: TypeAlias = "bool | ReuseMode | None"
"""Whether `get_variable` finds variables, or makes them, or does either (``AUTO_REUSE``); None: as the scope does."""

InitializerLike: TypeAlias = "Callable[..., TensorLike] | type[Initializer] | TensorLike"
"""Initial value of a variable: a function of a shape and element type, a class of such functions, or the value."""

Constraint: TypeAlias = "Callable[[Tensor], Tensor]"
"""Projection that an optimizer applies to a variable after its update."""

CustomGetter: TypeAlias = "Callable[..., AnyVariable | Tensor]"
"""Function that `get_variable` calls in place of its own implementation, which is passed as the first argument."""
