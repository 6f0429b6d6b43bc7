"""The global step, which counts the steps of all workers together, and writing graphs to files."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format

from headwater.data.io import files
from headwater.dtypes import int64
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.variable_scope import get_variable
from headwater.tf1.variables.variables import Variable, VariableAggregation

if TYPE_CHECKING:
    from headwater.graph.types import GraphTensor, TensorLike
    from headwater.tf1.variables.types import AnyVariable


_logger: Final = logging.getLogger(__name__)


def global_step(sess: Any, global_step_tensor: GraphTensor) -> int:
    """The value of the global step in ``sess``."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Any:
    """Returns the graph's global step: the item of ``GLOBAL_STEP``, else the tensor ``global_step:0``, else None.

    Args:
      graph: the graph; the default one if None.

    Raises:
      TypeError: the global step is not an integer scalar.
    """
    graph = graph or get_default_graph()
    collected = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(collected) > 1:
        _logger.error("Multiple tensors in global_step collection.")
        return None
    if collected:
        found = collected[0]
    else:
        try:
            found = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(found)
    return found


def create_global_step(graph: Graph | None = None) -> AnyVariable:
    """Creates the global step of the graph.

    Args:
      graph: the default one if None.

    Raises:
      ValueError: there is one.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            GraphKeys.GLOBAL_STEP,
            shape=[],
            dtype=int64,
            initializer=Zeros(),
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """Returns the graph's global step, created if missing."""
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def assert_global_step(global_step_tensor: TensorLike) -> None:
    """Checks that a tensor or variable is a valid global step.

    Raises:
      TypeError: it is not a variable or tensor, not of an integer type, or not a scalar.
    """
    if not isinstance(global_step_tensor, Variable | Tensor):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype}')
    if global_step_tensor.shape.ndims != 0 and global_step_tensor.shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {global_step_tensor.shape}')


def write_graph(graph_or_graph_def: Any, logdir: str, name: str, as_text: bool = True) -> str:
    """Writes a graph to a file atomically.

    Args:
      graph_or_graph_def: a graph, or a ``GraphDef``.
      logdir: folder, created if missing.
      name: file name.
      as_text: in the text form of protobuf, else binary.

    Returns:
      The file's path.
    """
    proto = graph_or_graph_def.as_graph_def() if isinstance(graph_or_graph_def, Graph) else graph_or_graph_def
    files.makedirs(logdir)
    path = os.path.join(logdir, name)
    with files.atomic_write(path) as file:
        file.write(text_format.MessageToString(proto).encode() if as_text else proto.SerializeToString())
    return path


def global_step_value(asked_by: str) -> Any:
    """Returns the tensor from which hooks read the global step of the default graph.

    Args:
      asked_by: name of the hook, for the error.

    Raises:
      RuntimeError: there is no global step.
    """
    found = get_global_step()
    if found is None:
        raise RuntimeError(f"Global step should be created to use {asked_by}.")
    if not isinstance(found, Variable):
        return found
    # A fetch of the variable itself would have the value after the step.
    graph = get_default_graph()
    held = graph.get_collection_ref("global_step_read_op_cache")
    if not held:
        with graph.name_scope(f"{found.op.name}/"):
            held.append(found + 0)
    return held[0]
