# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.session.default_config import get_experimental_options as get_experimental_options
from headwater.graph.session.default_config import get_jit as get_jit
from headwater.graph.session.default_config import set_experimental_options as set_experimental_options
from headwater.graph.session.default_config import set_jit as set_jit

__all__ = [
    "get_experimental_options",
    "get_jit",
    "set_experimental_options",
    "set_jit",
]
