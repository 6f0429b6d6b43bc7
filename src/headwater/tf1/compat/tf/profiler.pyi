# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.io.tfprof_protos import AdviceProto as AdviceProto
from headwater.data.io.tfprof_protos import GraphNodeProto as GraphNodeProto
from headwater.data.io.tfprof_protos import MultiGraphNodeProto as MultiGraphNodeProto
from headwater.data.io.tfprof_protos import OpLogProto as OpLogProto
from headwater.tf1.training.op_log import write_op_log as write_op_log
from headwater.tf1.training.profiler import ProfileOptionBuilder as ProfileOptionBuilder
from headwater.tf1.training.profiler import Profiler as Profiler
from headwater.tf1.training.profiler import advise as advise
from headwater.tf1.training.profiler import profile as profile

__all__ = [
    "AdviceProto",
    "GraphNodeProto",
    "MultiGraphNodeProto",
    "OpLogProto",
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
    "write_op_log",
]
