# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.layers.naming import keras_style_scope as keras_style_scope
from headwater.tf1.layers.naming import set_keras_style as set_keras_style

__all__ = [
    "keras_style_scope",
    "set_keras_style",
]
