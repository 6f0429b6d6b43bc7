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
        self._name = name
        self._name_scope = name_scope
        self._reuse = reuse
        self._initializer = initializer
        self._regularizer = regularizer
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._dtype = dtype
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        return self._name

    @property
    def original_name_scope(self) -> str:
        return self._name_scope

    @property
    def reuse(self) -> Any:
        return self._reuse

    @property
    def initializer(self) -> Any:
        return self._initializer

    @property
    def regularizer(self) -> Any:
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        return self._custom_getter

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        return self._use_resource

    @property
    def constraint(self) -> Any:
        return self._constraint

    def reuse_variables(self) -> None:
        """Makes later calls of `get_variable` in this scope only find variables."""
        self._reuse = True

    def forbid_reuse(self) -> None:
        """Makes later calls of `get_variable` in this scope only create variables."""
        self._reuse = False

    def set_initializer(self, initializer: InitializerLike) -> None:
        self._initializer = initializer

    def set_regularizer(self, regularizer: object) -> None:
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: DeviceLike) -> None:
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: object) -> None:
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: CustomGetter) -> None:
        self._custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self._use_resource = use_resource

    def get_collection(self, name: str) -> list[Any]:
        """Returns the items of a collection that were made in this scope."""
        return get_default_graph().get_collection(name, f"{self._name}/" if self._name else "")

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
        full_name = f"{self._name}/{name}" if self._name else name
        # Names of variables depend on variable scopes only.
        with get_default_graph().name_scope(None):
            given = (initializer, self._initializer)
            value_dtype = _value_dtype(first(*given))
            if dtype is not None and value_dtype not in (None, as_dtype(dtype).base_dtype):
                raise ValueError(
                    f"Initializer type '{value_dtype}' and explicit dtype '{as_dtype(dtype).name}' don't match."
                )
            return var_store.get_variable(
                full_name,
                shape=shape,
                dtype=next(d for d in (dtype, value_dtype, self._dtype) if d is not None),
                initializer=first(*given),
                regularizer=first(regularizer, self._regularizer),
                reuse=first(reuse, self._reuse),
                trainable=trainable,
                collections=collections,
                caching_device=first(caching_device, self._caching_device),
                partitioner=first(partitioner, self._partitioner),
                validate_shape=validate_shape,
                use_resource=first(use_resource, self._use_resource),
                custom_getter=first(custom_getter, self._custom_getter),
                constraint=first(constraint, self._constraint),
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
