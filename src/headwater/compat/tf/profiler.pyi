# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.training.profiler import ProfileOptionBuilder as ProfileOptionBuilder
from headwater.training.profiler import Profiler as Profiler
from headwater.training.profiler import advise as advise
from headwater.training.profiler import profile as profile

__all__ = [
    "ProfileOptionBuilder",
    "Profiler",
    "advise",
    "profile",
]
