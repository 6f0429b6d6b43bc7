# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.runtime.device_settings import get_intra_op_parallelism_threads as get_intra_op_parallelism_threads
from headwater.graph.runtime.device_settings import set_intra_op_parallelism_threads as set_intra_op_parallelism_threads
from headwater.graph.session.default_config import get_inter_op_parallelism_threads as get_inter_op_parallelism_threads
from headwater.graph.session.default_config import set_inter_op_parallelism_threads as set_inter_op_parallelism_threads

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]
