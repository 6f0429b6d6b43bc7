# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.variables.generators import Generator as Generator
from headwater.tf1.variables.generators import create_rng_state as create_rng_state
from headwater.tf1.variables.generators import get_global_generator as get_global_generator
from headwater.tf1.variables.generators import set_global_generator as set_global_generator

__all__ = [
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
]
