# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.random import stateless_multinomial as stateless_multinomial
from headwater.tf1.functional.random import stateless_random_normal as stateless_random_normal
from headwater.tf1.functional.random import stateless_random_uniform as stateless_random_uniform
from headwater.tf1.functional.random import stateless_truncated_normal as stateless_truncated_normal

__all__ = [
    "stateless_multinomial",
    "stateless_random_normal",
    "stateless_random_uniform",
    "stateless_truncated_normal",
]
