# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.estimator.inputs import numpy_input_fn as numpy_input_fn
from headwater.tf1.training.estimator.inputs import pandas_input_fn as pandas_input_fn

__all__ = [
    "numpy_input_fn",
    "pandas_input_fn",
]
