# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.functional.sparse import SparseTensor as SparseTensor
from headwater.functional.sparse import sparse_placeholder as placeholder
from headwater.functional.sparse import sparse_tensor_dense_matmul as matmul
from headwater.functional.sparse import sparse_tensor_dense_matmul as sparse_dense_matmul
from headwater.functional.sparse import sparse_tensor_to_dense as to_dense

__all__ = [
    "SparseTensor",
    "matmul",
    "placeholder",
    "sparse_dense_matmul",
    "to_dense",
]
