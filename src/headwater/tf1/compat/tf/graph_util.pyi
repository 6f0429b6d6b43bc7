# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.importer import import_graph_def as import_graph_def
from headwater.tf1.training.graph_util import convert_variables_to_constants as convert_variables_to_constants
from headwater.tf1.training.graph_util import extract_sub_graph as extract_sub_graph
from headwater.tf1.training.graph_util import must_run_on_cpu as must_run_on_cpu
from headwater.tf1.training.graph_util import remove_training_nodes as remove_training_nodes
from headwater.tf1.training.graph_util import tensor_shape_from_node_def_name as tensor_shape_from_node_def_name

__all__ = [
    "convert_variables_to_constants",
    "extract_sub_graph",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]
