# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
from headwater.tf1.functional.small_functions import sparse_cross as cross
from headwater.tf1.functional.small_functions import sparse_cross_hashed as cross_hashed
from headwater.tf1.functional.sparse import SparseTensor as SparseTensor
from headwater.tf1.functional.sparse import sparse_placeholder as placeholder
from headwater.tf1.functional.sparse import sparse_tensor_dense_matmul as matmul
from headwater.tf1.functional.sparse import sparse_tensor_dense_matmul as sparse_dense_matmul
from headwater.tf1.functional.sparse import sparse_tensor_to_dense as to_dense
from headwater.tf1.functional.sparse_changes import sparse_concat as concat
from headwater.tf1.functional.sparse_changes import sparse_fill_empty_rows as fill_empty_rows
from headwater.tf1.functional.sparse_changes import sparse_reduce_max as reduce_max
from headwater.tf1.functional.sparse_changes import sparse_reduce_max_sparse as reduce_max_sparse
from headwater.tf1.functional.sparse_changes import sparse_reduce_sum as reduce_sum
from headwater.tf1.functional.sparse_changes import sparse_reduce_sum_sparse as reduce_sum_sparse
from headwater.tf1.functional.sparse_changes import sparse_reorder as reorder
from headwater.tf1.functional.sparse_changes import sparse_reshape as reshape
from headwater.tf1.functional.sparse_changes import sparse_retain as retain
from headwater.tf1.functional.sparse_changes import sparse_to_indicator as to_indicator
from headwater.tf1.functional.sparse_changes import sparse_transpose as transpose
from headwater.tf1.functional.sparse_pairs import sparse_add as add
from headwater.tf1.functional.sparse_pairs import sparse_maximum as maximum
from headwater.tf1.functional.sparse_pairs import sparse_merge as merge
from headwater.tf1.functional.sparse_pairs import sparse_minimum as minimum
from headwater.tf1.functional.sparse_pairs import sparse_reset_shape as reset_shape
from headwater.tf1.functional.sparse_pairs import sparse_softmax as softmax
from headwater.tf1.functional.sparse_pairs import sparse_split as split
from headwater.tf1.functional.sparse_parts import sparse_expand_dims as expand_dims
from headwater.tf1.functional.sparse_parts import sparse_eye as eye
from headwater.tf1.functional.sparse_parts import sparse_from_dense as from_dense
from headwater.tf1.functional.sparse_parts import sparse_mask as mask
from headwater.tf1.functional.sparse_parts import sparse_slice as slice

def segment_mean(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The mean of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
def segment_sqrt_n(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The sum, divided by the root of their number, of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
def segment_sum(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The sum of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
__all__ = [
    "SparseConditionalAccumulator",
    "SparseTensor",
    "add",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "mask",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]
