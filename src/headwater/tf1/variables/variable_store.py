"""The variables of a graph that `get_variable` made, found again by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater.dtypes import DType, as_dtype, float32, string
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const
from headwater.graph.types import TensorLike
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.variables.initializers import GlorotUniform, Zeros
from headwater.tf1.variables.partitioned import PartitionedVariable, PartitionInfo, call_partitioner, slices
from headwater.tf1.variables.save_slice import SaveSliceInfo
from headwater.tf1.variables.variables import Variable, VariableAggregation, VariableSynchronization, init_scope

import numpy as np  # isort: skip

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.types import Structure
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.partitioned import Partitioner
    from headwater.tf1.variables.regularizers import Regularizer
    from headwater.tf1.variables.types import Constraint, InitializerLike, Reuse


_KEY = ("__variable_store",)


class VariableStore:
    """The variables of one graph, by full name; see `default_store`."""

    def __init__(self) -> None:
        self._variables: dict[str, Variable] = {}
        self._partitioned: dict[str, PartitionedVariable] = {}

    def get_variable(
        self,
        name: str,
        shape: TensorLike | ShapeLike | None = None,
        dtype: DTypeLike = float32,
        initializer: InitializerLike | None = None,
        regularizer: Callable[[Any], Any] | None = None,
        reuse: Reuse | None = None,
        trainable: bool | None = None,
        collections: str | Sequence[str] | None = None,
        caching_device: object = None,
        partitioner: Partitioner | None = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Callable[..., Any] | None = None,
        constraint: Constraint | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """The variable ``name``, found or made; see `headwater.tf1.variables.variable_scope.get_variable`."""
        if custom_getter is not None and not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        arguments: dict[str, Any] = {
            "name": name,
            "shape": shape,
            "dtype": as_dtype(dtype).base_dtype,
            "initializer": initializer,
            "regularizer": regularizer,
            "reuse": reuse,
            "trainable": synchronization is not VariableSynchronization.ON_READ if trainable is None else trainable,
            "collections": collections,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "validate_shape": validate_shape,
            "use_resource": use_resource,
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        if custom_getter is None:
            return self._get(**arguments, constraint=constraint)
        if _takes(custom_getter, "constraint"):
            arguments["constraint"] = constraint
        return custom_getter(getter=self._get, **arguments)

    def _get(
        self,
        name: str,
        shape: TensorLike | ShapeLike | None = None,
        dtype: DType = float32,
        initializer: InitializerLike | None = None,
        reuse: Reuse | None = None,
        partitioner: Partitioner | None = None,
        **others: Any,
    ) -> PartitionedVariable | Variable:
        dtype = as_dtype(dtype).base_dtype
        scalar = isinstance(shape, list | tuple | TensorShape) and len(shape) == 0  # pyright: ignore[reportUnknownArgumentType]
        if partitioner is not None and not scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            return self._partitioned_variable(name, partitioner, shape, dtype, initializer, reuse, others)
        if reuse is True and partitioner is None and name in self._partitioned:
            return self._partitioned_variable(name, None, shape, dtype, initializer, reuse, others)
        if f"{name}/part_0" in self._variables:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._single(name, shape, dtype, initializer, reuse, None, **others)

    def _single(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: object,
        reuse: Reuse,
        partition_info: PartitionInfo | None,
        *,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        collections: str | Sequence[str] | None = None,
        caching_device: str | None = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Variable:
        if initializer is not None and not callable(initializer) and shape is not None:
            raise ValueError("If initializer is a constant, do not specify shape.")
        dims = as_shape(shape)
        if name in self._variables:
            return self._shared(name, dims, dtype, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        with init_scope():
            initial, initial_dtype = _initial_value(name, dims, dtype, initializer, partition_info)
            variable = Variable(
                initial_value=initial,
                name=name,
                trainable=trainable,
                collections=collections,
                caching_device=caching_device,
                dtype=initial_dtype,
                validate_shape=validate_shape,
                constraint=constraint,
                use_resource=use_resource,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        self._variables[name] = variable
        if regularizer is not None:
            _regularize(variable, name, regularizer)
        return variable

    def _shared(self, name: str, shape: TensorShape, dtype: DType, reuse: Reuse) -> Variable:
        found = self._variables[name]
        if not reuse:
            source = f" Originally defined at {found.op.source}." if found.op.source else ""
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                f"reuse=tf.AUTO_REUSE in VarScope?{source}"
            )
        if not shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found shape {found.shape}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
                f"{found.dtype.base_dtype.name}."
            )
        return found

    def _partitioned_variable(
        self,
        name: str,
        partitioner: Any,
        shape: Any,
        dtype: DType,
        initializer: object,
        reuse: Reuse,
        others: dict[str, Any],
    ) -> PartitionedVariable:
        from_value = initializer is not None and not callable(initializer)
        whole = as_shape(shape)
        if from_value:
            initializer = convert_to_tensor(cast("TensorLike", initializer))
            whole = whole.merge_with(initializer.shape)
        partitions = call_partitioner(partitioner, whole, dtype) if partitioner is not None else None
        if name in self._partitioned:
            return self._shared_parts(name, whole, dtype, partitions, reuse)
        if reuse is True:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        assert partitions is not None
        graph = get_default_graph()
        sizes = whole.as_list()
        parts: list[Any] = []
        for index, (offset, part_shape) in enumerate(slices([int(d or 0) for d in sizes], partitions)):
            part_name = f"{name}/part_{index}"
            initial = initializer
            if from_value:
                with graph.name_scope(f"{part_name}/PartitionedInitializer"):
                    bounds = [make_const(np.array(bound, np.int32)) for bound in (offset, part_shape)]
                    initial = graph.create_op(
                        "Slice", [convert_to_tensor(cast("TensorLike", initializer)), *bounds]
                    ).outputs[0]
            with graph.name_scope(None):
                info = PartitionInfo([int(d or 0) for d in sizes], offset)
                given = None if from_value else part_shape
                part = self._single(part_name, given, dtype, initial, reuse, info, **others)
            part.set_save_slice_info(SaveSliceInfo(name, info.full_shape, offset, part_shape))
            parts.append(part)
        result = PartitionedVariable(name, whole, dtype, parts, partitions)
        self._partitioned[name] = result
        return result

    def _shared_parts(
        self, name: str, shape: TensorShape, dtype: DType, partitions: Sequence[int] | None, reuse: Reuse
    ) -> PartitionedVariable:
        found = self._partitioned[name]
        if not reuse:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. "
                "Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?"
            )
        if not shape.is_compatible_with(found.shape):
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified shape {shape} and found shape "
                f"{found.shape}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified dtype {dtype.name} and found dtype "
                f"{found.dtype.name}."
            )
        if partitions is not None and list(partitions) != found._get_partitions():  # pyright: ignore[reportPrivateUsage]
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified partitions {list(partitions)} and found "
                f"partitions {found._get_partitions()}."  # pyright: ignore[reportPrivateUsage]
            )
        return found


def default_store() -> VariableStore:
    """The store of the default graph."""
    held = get_default_graph().get_collection_ref(_KEY)
    if not held:
        held.append(VariableStore())
    return held[0]


def _initial_value(
    name: str, shape: TensorShape, dtype: DType, initializer: Any, partition_info: PartitionInfo | None
) -> tuple[Any, DType | None]:
    """The ``initial_value`` and ``dtype`` for `Variable`."""
    if initializer is None:
        initializer = default_initializer(name, dtype)
    if not callable(initializer):
        return initializer, None
    if isinstance(initializer, type):
        initializer = initializer()
    if shape.is_fully_defined():
        arguments: dict[str, object] = {"dtype": dtype}
        if _takes(initializer, "partition_info", by_name=True):
            arguments["partition_info"] = partition_info
        return functools.partial(initializer, shape.as_list(), **arguments), dtype
    if not _required(initializer):
        return initializer, None
    raise ValueError(
        f"The initializer of variable {name} is not valid with shape {shape}: give a fully defined shape, or an "
        "initializer that is a value or a function without arguments."
    )


def default_initializer(name: str, dtype: DType) -> GlorotUniform | Zeros:
    """Returns the default initializer of an element type.

    Raises:
      ValueError: the type has no default.
    """
    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype == string:
        return Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype!r} is required")


def _regularize(variable: Variable, name: str, regularizer: Regularizer) -> None:
    graph = get_default_graph()
    with graph.colocate_with(variable.op), graph.name_scope(f"{name}/Regularizer/"), init_scope():
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _parameters(function: Callable[..., Structure]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return []


def _takes(function: Any, argument: str, by_name: bool = False) -> bool:
    """Returns whether ``function`` can be given ``argument``; ``by_name`` does not count ``**kwargs``."""
    return any(p.name == argument or (p.kind is p.VAR_KEYWORD and not by_name) for p in _parameters(function))


def _required(function: Any) -> list[inspect.Parameter]:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in _parameters(function) if p.default is p.empty and p.kind not in variadic]
