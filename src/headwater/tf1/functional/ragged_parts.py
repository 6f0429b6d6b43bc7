"""Functions of ragged tensors that TensorFlow 2 has in addition, called by `headwater.tf1.functional.ragged_dispatch`.

Each has the arguments of the function of tensors that it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.tf1.functional import arrays, indexing, linalg, math, reductions, resizing, strings
from headwater.tf1.functional.ragged_functions import place_of
from headwater.tf1.functional.ragged_reductions import reduce_join
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike


def reshape(tensor: RaggedTensor, shape: TensorLike, name: str | None = None) -> Tensor:
    """Returns the values of a ragged tensor as a tensor of another shape."""
    return arrays.reshape(tensor.flat_values, shape, name)


def split(
    value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = "split"
) -> list[Any]:
    """Splits the rows, or a dimension of the values.

    Args:
      num_or_size_splits: the number of parts of equal size, or a vector of the sizes.
      axis: 0, or a dimension that is not ragged.
      num: number of sizes, if it is not known statically.

    Raises:
      ValueError: ``axis`` is a ragged dimension, the number of parts is unknown, or it does not divide the rows.
    """
    with name_scope(name, "RaggedSplit"):
        place = place_of(axis, value.shape.ndims)
        if place > value.ragged_rank:
            parts = arrays.split(value.flat_values, num_or_size_splits, place - value.ragged_rank, num)
            return [value.with_flat_values(part) for part in parts]
        if place:
            raise ValueError(f"ragged dimension {place} cannot be split: only rows and dimensions that are not ragged")
        sizes = convert_to_tensor(num_or_size_splits)
        if sizes.dims == ():
            known, rows = constant_value(sizes), value.shape.as_list()[0]
            if known is None:
                raise ValueError("split: the number of parts must be known when the graph is built")
            count = int(known)
            if rows is not None and rows % count:
                raise ValueError(f"cannot split {rows} rows into {count} parts of equal size")
            step = math.floordiv(value.nrows(), count)
            return [value[step * part : step * (part + 1)] for part in range(count)]
        ends = reductions.cumsum(math.cast(sizes, value.row_splits.dtype))
        count = num or sizes.shape.as_list()[0]
        if count is None:
            raise ValueError("split: the number of sizes must be known; set num")
        return [value[(ends[part - 1] if part else 0) : ends[part]] for part in range(count)]


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Multiplies the matrices of a batch whose numbers of rows, or of inner columns, differ.

    Raises:
      ValueError: the first operand is transposed, or the columns of the result would be ragged.
    """
    if transpose_a or adjoint_a:
        raise ValueError("matmul of a ragged tensor: the first operand cannot be transposed")
    left, right = (part.to_tensor() if isinstance(part, RaggedTensor) else convert_to_tensor(part) for part in (a, b))
    if isinstance(b, RaggedTensor) and (b.ragged_rank > 1 or transpose_b or adjoint_b):
        raise ValueError("matmul of a ragged tensor: the number of columns must be equal in the whole batch")
    found = linalg.matmul(left, right, False, transpose_b, False, adjoint_b, *args, **kwargs)
    if not isinstance(a, RaggedTensor):
        return found
    return RaggedTensor.from_tensor(found, a.row_lengths(), row_splits_dtype=a.row_splits.dtype)


def resize_images(images: RaggedTensor, size: TensorLike, *args: Any, **kwargs: Any) -> Tensor:
    """Resizes images of different sizes; the images must have ragged heights and widths."""
    found = [resizing.resize_images_v2(image, size, *args, **kwargs) for image in _dense_rows(images)]
    return arrays.stack(found)


def _dense_rows(value: RaggedTensor) -> list[Tensor]:
    count = value.shape.as_list()[0]
    if count is None:
        raise ValueError("the number of images must be known")
    rows = (value[row] for row in range(count))
    return [row.to_tensor() if isinstance(row, RaggedTensor) else row for row in rows]


def format(
    template: str, inputs: object, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Replaces the placeholders of a text by tensors, also ragged ones, which are shown with all values."""
    given = cast("Sequence[object]", inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(given) + 1:
        raise ValueError(f"{len(parts) - 1} placeholder(s) in template does not match {len(given)} tensor(s)")
    with name_scope(name, "RaggedFormat"):
        joined: list[Any] = [parts[0]]
        for value, text in zip(given, parts[1:], strict=True):
            found = as_ragged_or_tensor(value)
            ragged = isinstance(found, RaggedTensor)
            shown = _shown(found) if ragged else strings.format("{}", found, "{}", summarize)
            joined += [shown, text]
        return strings.string_join(joined)


def _shown(value: RaggedTensor) -> Tensor:
    flat = value.flat_values
    splits = list(value.nested_row_splits)
    if flat.shape.ndims != 1:
        inner = RaggedTensor.from_tensor(flat, ragged_rank=(flat.shape.ndims or 1) - 1)
        flat, splits = inner.flat_values, [*splits, *inner.nested_row_splits]
    text = strings.as_string(flat) if flat.dtype.name != "string" else strings.string_join(['"', flat, '"'])
    for bounds in reversed(splits):
        rows = RaggedTensor.from_row_splits(text, bounds, validate=False)
        text = strings.string_join(["[", reduce_join(rows, axis=1, separator=", "), "]"])
    return strings.string_join(["[", strings.reduce_join(text, 0, separator=", "), "]"])


# Counts ---------------------------------------------------------------------------------------------------------------


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts how often 0, 1, 2 … occur, in total or in each row; or sums the weights of each.

    Args:
      arr: a tensor, sparse matrix or ragged tensor of integers.
      weights: the weight of each value.
      minlength, maxlength: limits of the number of counts.
      dtype: type of the counts.
      axis: None or 0 to count all values; -1 for a row of counts for each row.
      binary_output: whether to return 1 for each number that occurs.
    """
    with name_scope(name, "Bincount"):
        values, rows, count = _values_and_rows(arr)
        given = getattr(weights, "flat_values", getattr(weights, "values", weights))
        if axis in (None, 0):
            found = reductions.bincount(values, given, minlength, maxlength, dtype)
            return math.cast(found > 0, dtype) if binary_output else found
        if axis != -1:
            raise ValueError(f"bincount: axis must be 0 or -1, not {axis}")
        width = arrays.size(reductions.bincount(values, None, minlength, maxlength))
        kept = values < width
        place = indexing.boolean_mask(rows * width + values, kept)
        each = arrays.ones_like(values) if given is None else convert_to_tensor(given)
        total = reductions.unsorted_segment_sum(indexing.boolean_mask(each, kept), place, count * width)
        found = arrays.reshape(total, arrays.stack([count, width]))
        if binary_output:
            found = found > 0
        return math.cast(found, dtype) if given is None or binary_output else found


def sparse_bincount(
    values: object,
    weights: object = None,
    axis: int = 0,
    minlength: TensorLike | None = None,
    maxlength: TensorLike | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Like `bincount`, with the counts that are not 0 as a sparse tensor."""
    counts = bincount(values, weights, minlength, maxlength, "int64", name, axis, binary_output)
    places = indexing.where(math.not_equal(counts, arrays.zeros_like(counts)))
    return SparseTensor(places, indexing.gather_nd(counts, places), arrays.shape(counts, out_type="int64"))


def _values_and_rows(arr: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the values, the row of each, and the number of rows, int32."""
    if isinstance(arr, SparseTensor):
        found = arr.values, arr.indices[:, 0], arr.dense_shape[0]
    elif isinstance(arr, RaggedTensor):
        found = arr.flat_values, arr.value_rowids(), arr.nrows()
    else:
        tensor = convert_to_tensor(arr)
        whole = arrays.reshape(tensor, [1, -1]) if tensor.shape.ndims in (0, 1) else tensor
        sizes = arrays.shape(whole)
        rows = arrays.reshape(arrays.tile(arrays.expand_dims(arrays.range(sizes[0]), 1), [1, sizes[1]]), [-1])
        found = arrays.reshape(whole, [-1]), rows, sizes[0]
    values, rows, count = (math.cast(part, "int32") for part in found)
    return values, rows, count


def map_values(op: Callable[..., Any], *args: object, **kwargs: object) -> SparseTensor:
    """Applies ``op`` to the values of sparse tensors with the same indices; returns a sparse tensor of the results.

    Raises:
      ValueError: no argument is a sparse tensor.
    """
    given = [part for part in (*args, *kwargs.values()) if isinstance(part, SparseTensor)]
    if not given:
        raise ValueError("No SparseTensor in argument list of map_values")

    def values(part: object) -> Any:
        return part.values if isinstance(part, SparseTensor) else part

    found = op(*map(values, args), **{key: values(part) for key, part in kwargs.items()})
    return given[0].with_values(convert_to_tensor(found))


def split_text(input: object, sep: str | None = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Splits strings as Python's ``str.split`` does; returns a ragged tensor with one more dimension than ``input``.

    A string without dimensions gives a vector.
    """
    with name_scope(name, "StringSplit"):
        text = as_ragged_or_tensor(input)
        if isinstance(text, RaggedTensor):
            return text.with_flat_values(split_text(text.flat_values, sep, maxsplit))
        rank = text.shape.ndims
        if rank is None:
            raise ValueError("input must have a known rank")
        flat = arrays.reshape(text, [-1])
        sparse = strings.string_split_v2(flat, sep, maxsplit)
        rows = RaggedTensor.from_value_rowids(sparse.values, sparse.indices[:, 0], sparse.dense_shape[0])
        if rank == 0:
            return rows.values
        for size in reversed(range(1, rank)):
            count = reductions.reduce_prod(arrays.shape(text, out_type="int64")[:size])
            width = arrays.shape(text, out_type="int64")[size]
            rows = RaggedTensor.from_row_splits(rows, arrays.range(count + 1) * width, validate=False)
        return rows


def string_split(
    source: TensorLike,
    sep: str | None = None,
    skip_empty: bool = True,
    delimiter: str | None = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Like `headwater.tf1.functional.strings.string_split`, with the result as ``result_type``: SparseTensor or
    RaggedTensor."""
    return _as_result(strings.string_split(source, sep, skip_empty, delimiter, name), result_type)


def string_split_v2(
    input: TensorLike | None = None,
    sep: str | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Like `headwater.tf1.functional.strings.string_split_v2`, with the result as ``result_type``: SparseTensor or
    RaggedTensor."""
    given = reductions.either(input, source, "input", "source")
    if result_type == "RaggedTensor":
        return split_text(given, sep, maxsplit, name)
    return _as_result(strings.string_split_v2(given, sep, maxsplit, name), result_type)


def _as_result(sparse: SparseTensor, result_type: str) -> Any:
    if result_type == "SparseTensor":
        return sparse
    if result_type != "RaggedTensor":
        raise ValueError("result_type must be SparseTensor or RaggedTensor.")
    return RaggedTensor.from_value_rowids(sparse.values, sparse.indices[:, 0], sparse.dense_shape[0])
