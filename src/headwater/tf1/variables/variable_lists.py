"""Variables of the default graph by collection, and operations that initialise them or report missing values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.arrays import stack
from headwater.tf1.functional.control_flow import group
from headwater.tf1.variables.state import is_variable_initialized
from headwater.tf1.variables.variables import Variable

CPU = "/device:CPU:0"


def global_variables(scope: str | None = None) -> list[Variable]:
    """Returns variables shared by all tasks; with ``scope`` only names that match this regular expression."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Variable]:
    """Older spelling of `global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Variable]:
    """Variables of one task, which checkpoints do not contain; see `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """Variables in ``MODEL_VARIABLES``; see `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Variables that optimizers change; see `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """Variables that have moving averages; see `global_variables`."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Iterable[Variable], name: str = "init") -> Operation:
    """An operation that runs the initializers of ``var_list``."""
    return group(*[variable.initializer for variable in var_list], name=name)


def initialize_variables(var_list: Iterable[Variable], name: str = "init") -> Operation:
    """Older spelling of `variables_initializer`."""
    return variables_initializer(var_list, name)


def global_variables_initializer() -> Operation:
    """Returns an operation that initialises all global variables of the graph so far."""
    return variables_initializer(global_variables())


def initialize_all_variables() -> Operation:
    """Older spelling of `global_variables_initializer`."""
    return global_variables_initializer()


def local_variables_initializer() -> Operation:
    """Returns an operation that initialises all local variables of the graph so far."""
    return variables_initializer(local_variables())


def initialize_local_variables() -> Operation:
    """Older spelling of `local_variables_initializer`."""
    return local_variables_initializer()


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of variables that have no value yet.

    Args:
      var_list: variables to check; all global and local ones if None.

    Returns:
      A vector of strings.
    """
    if var_list is None:
        var_list = global_variables() + local_variables()
    graph = get_default_graph()
    with graph.name_scope(name):
        flags = [is_variable_initialized(variable) for variable in var_list]
        names = [variable.op.name for variable in var_list]
        with graph.device(CPU):
            if not names:
                return constant([], "string")
            return graph.create_op("UninitializedNames", flags, {"names": names}).outputs[0]


def assert_variables_initialized(var_list: Sequence[Variable | Tensor] | None = None) -> Tensor | None:
    """An operation that fails with `FailedPreconditionError` while a variable has no value; None without variables.

    Args:
      var_list: variables to check; all global and local ones if None.
    """
    if var_list is None:
        var_list = global_variables() + local_variables()
    if not var_list:
        return None
    graph = get_default_graph()
    ranks: list[Tensor] = []
    for variable in var_list:
        with graph.colocate_with(variable.op):
            value = variable.read_value() if isinstance(variable, Variable) else variable
            ranks.append(graph.create_op("Rank", [value]).outputs[0])
    return stack(ranks)
