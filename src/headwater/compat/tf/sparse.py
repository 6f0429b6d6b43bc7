"""``tf.sparse``: sparse tensors."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.sparse": """
        SparseTensor matmul=sparse_tensor_dense_matmul placeholder=sparse_placeholder
        sparse_dense_matmul=sparse_tensor_dense_matmul to_dense=sparse_tensor_to_dense""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
