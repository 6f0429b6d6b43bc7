"""Sets in the rows of tensors (TensorFlow 1.15's ``tf.sets``), and edit distances of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.operation import Tensor
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.sparse import SparseTensor, SparseTensorValue, convert_to_tensor_or_sparse_tensor

if TYPE_CHECKING:
    from headwater.graph.types import SparseLike, TensorLike


_ALLOWED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint16, dtypes.string)


def set_size(a: SparseLike, validate_indices: bool = True) -> Tensor:
    """Returns the number of distinct values in each row, along the last dimension, of a sparse tensor.

    Args:
      validate_indices: check that the values are in order.

    Raises:
      TypeError: ``a`` is not sparse, or its values are neither integers nor strings.
    """
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a}.")
    _require_allowed(a)
    return one("SetSize", a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def _require_allowed(a: Any) -> None:
    if a.dtype.base_dtype not in _ALLOWED:
        raise TypeError(f"'a' invalid dtype {a.dtype!r}.")


def _combined(a: Tensor, b: Tensor, operation: str, validate_indices: bool) -> SparseTensor:
    a = convert_to_tensor_or_sparse_tensor(a, name="a")
    _require_allowed(a)
    b = convert_to_tensor_or_sparse_tensor(b, name="b")
    if b.dtype.base_dtype != a.dtype.base_dtype:
        raise TypeError(f"Types don't match, {a.dtype!r} vs {b.dtype!r}.")
    if isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        a, b = b, a
        operation = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
    kinds = ["Sparse" if isinstance(value, SparseTensor) else "Dense" for value in (a, b)]
    parts = [
        part
        for value in (a, b)
        for part in ((value.indices, value.values, value.dense_shape) if isinstance(value, SparseTensor) else (value,))
    ]
    op = apply(
        f"{kinds[0]}To{kinds[1]}SetOperation", *parts, set_operation=operation, validate_indices=validate_indices
    )
    return SparseTensor(*op.outputs)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Returns, for each row along the last dimension, the values in both tensors, sorted.

    Args:
      a, b: tensors or sparse tensors of integers or strings that agree in all dimensions but the last.
      validate_indices: check that the values of sparse tensors are in order.

    Raises:
      TypeError: other types, or types that differ.
    """
    return _combined(a, b, "intersection", validate_indices)


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Like `set_intersection`, but returns the values of a that are not in b; of b not in a unless ``aminusb``."""
    return _combined(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Like `set_intersection`, but returns the values in a or b."""
    return _combined(a, b, "union", validate_indices)


def edit_distance(
    hypothesis: TensorLike, truth: TensorLike, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Returns, for each row, the number of insertions, deletions and replacements from the hypothesis to the truth.

    Args:
      hypothesis, truth: sparse tensors; the last dimension is the sequence.
      normalize: divide by the number of values of the truth; infinity if only the truth is empty.

    Raises:
      TypeError: one of the two is not sparse.
    """
    for value, what in ((hypothesis, "Hypothesis"), (truth, "Truth")):
        if not isinstance(value, SparseTensor | SparseTensorValue):
            raise TypeError(f"{what} must be a SparseTensor.")
    first, second = SparseTensor.from_value(hypothesis), SparseTensor.from_value(truth)
    parts = (part for each in (first, second) for part in (each.indices, each.values, each.dense_shape))
    return one("EditDistance", *parts, normalize=normalize, name=name)
