# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.variables.generators import Generator as Generator
from headwater.variables.generators import create_rng_state as create_rng_state
from headwater.variables.generators import get_global_generator as get_global_generator
from headwater.variables.generators import set_global_generator as set_global_generator

__all__ = [
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
]
