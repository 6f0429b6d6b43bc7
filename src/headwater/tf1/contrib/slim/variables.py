"""Variables with devices and collections, and lists of existing variables."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.types import FeedDict
from headwater.shapes import ShapeLike
from headwater.tf1.contrib.slim.arg_scope import add_arg_scope
from headwater.tf1.functional.arrays import placeholder
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import get_collection
from headwater.tf1.variables.scope_settings import VariableScope
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope
from headwater.tf1.variables.variables import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import DeviceLike
    from headwater.tf1.variables.types import InitializerLike


@add_arg_scope
def variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: object = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: object = None,
    device: DeviceLike | None = None,
    partitioner: object = None,
    custom_getter: Callable[..., object] | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Like `get_variable`, on ``device`` if given; ``GLOBAL_VARIABLES`` is always among the collections."""
    arguments = dict(locals())
    name = arguments.pop("name")
    del arguments["device"], arguments["custom_getter"]
    listed = collections if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
    arguments["collections"] = list(dict.fromkeys(listed))
    getter: Callable[..., Any] = get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=get_variable_scope().reuse)
    with get_default_graph().device(device or _as_asked):
        return getter(name, **arguments)


def _as_asked(op: Operation) -> str:
    return op.device


@add_arg_scope
def model_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    initializer: InitializerLike | None = None,
    regularizer: object = None,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    caching_device: object = None,
    device: DeviceLike | None = None,
    partitioner: object = None,
    custom_getter: Callable[..., object] | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Like `variable`, in the collection ``MODEL_VARIABLES`` too."""
    arguments = dict(locals())
    arguments["collections"] = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(**arguments)


def local_variable(
    initial_value: object, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """Returns a variable of this task alone, which checkpoints do not contain."""
    del use_resource
    return _untrained(initial_value, GraphKeys.LOCAL_VARIABLES, validate_shape, name)


def global_variable(
    initial_value: object, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Variable:
    """Returns a variable that optimizers do not change."""
    del use_resource
    return _untrained(initial_value, GraphKeys.GLOBAL_VARIABLES, validate_shape, name)


def _untrained(value: object, collection: str, validate_shape: bool, name: str | None) -> Variable:
    return Variable(value, trainable=False, collections=[collection], validate_shape=validate_shape, name=name)


def add_model_variable(var: Variable) -> None:
    """Adds a variable to ``MODEL_VARIABLES`` unless it is already there."""
    if all(var is not other for other in get_collection(GraphKeys.MODEL_VARIABLES)):
        get_default_graph().add_to_collection(GraphKeys.MODEL_VARIABLES, var)


# Lists --------------------------------------------------------------------------------------------------------------


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """Returns the variables of a collection with names that begin with ``scope`` and end with ``suffix``."""
    begin = scope.name if isinstance(scope, VariableScope) else scope
    if suffix is not None:
        suffix = suffix if ":" in suffix else f"{suffix}:"
        begin = f"{begin or ''}.*{suffix}"
    return get_collection(collection, begin)


def get_model_variables(scope: object = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of ``MODEL_VARIABLES``."""
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: object = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of ``LOCAL_VARIABLES``."""
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: object = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of ``TRAINABLE_VARIABLES``."""
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: object = None) -> list[Any]:
    """`get_variables` with the scope last."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: object = None) -> list[Any]:
    """The variables called ``given_name`` in ``scope`` or in a scope within it."""
    return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """Returns the variable with this operation name.

    Raises:
      ValueError: there is none.
    """
    found = get_variables(var_op_name)
    exact = [item for item in found if item.op.name == var_op_name]
    if len(exact) != 1:
        raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")
    return exact[0]


def get_variable_full_name(var: Variable) -> str:
    """Returns a variable's name in checkpoints; for a part, the name of the whole variable."""
    info = getattr(var, "_save_slice_info", None)
    return var.op.name if info is None else info.full_name


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """Returns all global variables, or those in the scopes ``include``, except for variables in scopes ``exclude``.

    Raises:
      TypeError: one of the two is not a list.
    """
    for name, value in (("include", include), ("exclude", exclude)):
        if value is not None and not isinstance(value, list | tuple):
            raise TypeError(f"{name} is provided but is not a list or a tuple.")
    chosen = get_variables() if include is None else [item for scope in include for item in get_variables(scope)]
    left_out = {id(item) for scope in exclude or () for item in get_variables(scope)}
    return [item for item in chosen if id(item) not in left_out]


def filter_variables(
    var_list: Sequence[Variable],
    include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None,
    reg_search: bool = True,
) -> list[Variable]:
    """Returns variables whose operation names match some of ``include_patterns`` and none of ``exclude_patterns``.

    Args:
      reg_search: search for the patterns anywhere in the names, not just at the beginning.
    """
    matches = re.search if reg_search else re.match
    included = [
        item
        for item in var_list
        if include_patterns is None or any(matches(pattern, item.op.name) for pattern in include_patterns)
    ]
    return [
        item
        for item in included
        if exclude_patterns is None or not any(matches(pattern, item.op.name) for pattern in exclude_patterns)
    ]


# Values from outside ------------------------------------------------------------------------------------------------


def assign_from_values(var_names_to_values: Mapping[str, object]) -> tuple[Any, dict[Any, Any]]:
    """Returns an operation that assigns values to variables, and the values to feed to it.

    Raises:
      ValueError: there is no variable with a name.
    """
    feeds: FeedDict = {}
    updates: list[object] = []
    for name, value in var_names_to_values.items():
        target = get_unique_variable(name)
        array = np.asarray(value)
        fed = placeholder(target.dtype.base_dtype, array.shape, name=f"{target.op.name}_value")
        updates.append(target.assign(fed))
        feeds[fed] = array
    return group(*updates), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, object]) -> Callable[[Any], None]:
    """Returns a function of a session that assigns values to variables."""
    operation, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(operation, feeds)
