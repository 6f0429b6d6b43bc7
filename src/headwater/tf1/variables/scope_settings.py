"""`VariableScope`: settings of the variables that `get_variable` makes."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, as_dtype, float32, from_numpy
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import to_array
from headwater.tf1.variables.variable_store import VariableStore
from headwater.tf1.variables.variables import VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import DeviceLike, Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.partitioned import Partitioner
    from headwater.tf1.variables.regularizers import Regularizer
    from headwater.tf1.variables.types import Constraint, CustomGetter, InitializerLike, Reuse


class ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = ReuseMode.AUTO_REUSE
"""Value of ``reuse``: find the variable, or make it if it does not exist."""


def no_regularizer(_: object) -> None:
    """A regularizer that adds no loss; disables an enclosing scope's regularizer."""
    return


class VariableScope:
    """Name prefix and defaults of `get_variable`.

    Attributes:
      name: prefix of the variables' names, without a trailing ``/``.
      original_name_scope: the name scope that was entered with it first, with a trailing ``/``.
      reuse: None, True, or ``AUTO_REUSE``.
      initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint: defaults
        for the arguments of `get_variable`.
    """

    def __init__(
        self,
        reuse: object,
        name: str = "",
        initializer: InitializerLike | None = None,
        regularizer: Regularizer | None = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        custom_getter: CustomGetter | None = None,
        name_scope: str = "",
        dtype: DTypeLike = float32,
        use_resource: bool | None = None,
        constraint: Constraint | None = None,
    ) -> None:
        self.name: str = name
        self.original_name_scope: str = name_scope
        self.reuse: Any = reuse
        self.initializer: Any = initializer
        self.regularizer: Any = regularizer
        self.caching_device: Any = caching_device
        self.partitioner: Any = partitioner
        self.custom_getter: Any = custom_getter
        self.dtype: Any = dtype
        self.use_resource: bool | None = use_resource
        self.constraint: Any = constraint

    def reuse_variables(self) -> None:
        """Makes later calls of `get_variable` in this scope only find variables."""
        self.reuse = True

    def forbid_reuse(self) -> None:
        """Makes later calls of `get_variable` in this scope only create variables."""
        self.reuse = False

    def set_initializer(self, initializer: InitializerLike) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: object) -> None:
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: DeviceLike) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: object) -> None:
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: CustomGetter) -> None:
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self.use_resource = use_resource

    def get_collection(self, name: str) -> list[Any]:
        """Returns the items of a collection that were made in this scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: VariableStore,
        name: str,
        shape: TensorLike | ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        initializer: InitializerLike | None = None,
        regularizer: object = None,
        reuse: Reuse | None = None,
        trainable: bool | None = None,
        collections: str | Sequence[str] | None = None,
        caching_device: object = None,
        partitioner: Partitioner | None = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: object = None,
        constraint: Constraint | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """`get_variable` with this scope's prefix and defaults."""
        full_name = f"{self.name}/{name}" if self.name else name
        # Names of variables depend on variable scopes only.
        with get_default_graph().name_scope(None):
            given = (initializer, self.initializer)
            value_dtype = _value_dtype(first(*given))
            if dtype is not None and value_dtype not in (None, as_dtype(dtype).base_dtype):
                raise ValueError(
                    f"Initializer type '{value_dtype}' and explicit dtype '{as_dtype(dtype).name}' don't match."
                )
            return var_store.get_variable(
                full_name,
                shape=shape,
                dtype=next(d for d in (dtype, value_dtype, self.dtype) if d is not None),
                initializer=first(*given),
                regularizer=first(regularizer, self.regularizer),
                reuse=first(reuse, self.reuse),
                trainable=trainable,
                collections=collections,
                caching_device=first(caching_device, self.caching_device),
                partitioner=first(partitioner, self.partitioner),
                validate_shape=validate_shape,
                use_resource=first(use_resource, self.use_resource),
                custom_getter=first(custom_getter, self.custom_getter),
                constraint=first(constraint, self.constraint),
                synchronization=synchronization,
                aggregation=aggregation,
            )


def first(given: Structure, default: object) -> Any:
    """Returns ``given``, or ``default`` if it is None."""
    return default if given is None else given


def _value_dtype(initializer: Any) -> DType | None:
    """The element type of an initializer that is a value."""
    if initializer is None or callable(initializer):
        return None
    if isinstance(getattr(initializer, "dtype", None), DType):
        return initializer.dtype.base_dtype
    try:
        return from_numpy(to_array(initializer).dtype)
    except (TypeError, ValueError):  # a list that contains tensors: its conversion to a tensor determines the type
        return None
