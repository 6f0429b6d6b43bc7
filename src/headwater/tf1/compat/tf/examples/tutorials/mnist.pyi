# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data import mnist_data as input_data
from headwater.tf1.training import mnist_model as mnist

__all__ = [
    "input_data",
    "mnist",
]
