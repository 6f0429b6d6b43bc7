"""Spellings and orders of arguments before TensorFlow 1.0."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import Dimension
from headwater.tf1.functional import arrays, linalg, losses, reductions, searching
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.ragged_dispatch import dispatching
from headwater.tf1.variables import sampled_losses

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Ints, TensorLike


_INTEGERS = (int, np.integer, Dimension)


def _is_axis(value: object) -> bool:
    return isinstance(value, _INTEGERS) and not isinstance(value, bool)


_concat = dispatching(arrays.concat, arrays.__name__, "concat")


def concat(values: object, axis: object = None, name: str = "concat", concat_dim: int | None = None) -> Tensor:
    """``concat(values, axis)``, or ``concat(axis, values)`` as before 1.0."""
    axis = concat_dim if axis is None else axis
    if _is_axis(values) and not _is_axis(axis):
        values, axis = axis, values
    return _concat(values, axis, name)


def split(
    value: Any = None,
    num_or_size_splits: Any = None,
    axis: TensorLike = 0,
    num: int | None = None,
    name: str = "split",
    split_dim: int | None = None,
    num_split: int | None = None,
) -> list[Tensor]:
    """``split(value, parts, axis)``, or ``split(axis, parts, value)`` as before 1.0."""
    if num_split is not None:
        num_or_size_splits = num_split
    if split_dim is not None:
        axis = split_dim
    if _is_axis(value) and not _is_axis(axis):
        value, axis = axis, value
    return arrays.split(value, num_or_size_splits, axis, num, name)


def pack(values: TensorLike, axis: int = 0, name: str = "pack") -> Tensor:
    """Old name of `stack`."""
    return arrays.stack(values, axis, name)


def unpack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unpack") -> list[Tensor]:
    """Old name of `unstack`."""
    return arrays.unstack(value, num, axis, name)


def reverse(tensor: Any, axis: Any = None, name: str | None = None, dims: Ints | None = None) -> Tensor:
    """``reverse(tensor, axis)``, or with a truth value for each dimension as before 1.0."""
    flags: Any = axis if dims is None else dims
    if not isinstance(flags, Tensor | int) and all(isinstance(flag, bool | np.bool_) for flag in flags):
        return arrays.reverse(tensor, np.flatnonzero(flags).astype(np.int32), name)
    return arrays.reverse(tensor, flags, name)


def batch_matmul(
    x: TensorLike, y: TensorLike, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Tensor:
    """``matmul`` of batches."""
    return linalg.batch_matmul(x, y, adj_x, adj_y, name)


def inv(x: TensorLike, name: str | None = None) -> Tensor:
    """``reciprocal``."""
    return one("Inv", x, name=name)


def listdiff(x: TensorLike, y: TensorLike, out_idx: Any = None, name: str | None = None) -> searching.ListDiff:
    """Old name of `setdiff1d`."""
    return searching.setdiff1d(x, y, name=name) if out_idx is None else searching.setdiff1d(x, y, out_idx, name)


def make_all(module_name: str, doc_string_modules: object = None) -> list[str]:
    """Accepted; programs built their ``__all__`` with it."""
    del module_name, doc_string_modules
    return []


def _logits_first(loss: Callable[..., Tensor], older: tuple[str, ...], **renamed: str) -> Callable[..., Tensor]:
    """Returns ``loss`` in a form that also accepts the arguments of programs before 1.0: logits first, not by name."""

    def function(*args: object, **kwargs: object) -> Tensor:
        named = {renamed.get(name, name): value for name, value in kwargs.items()}
        if args and args[0] is not None:
            return loss(**dict(zip(older, args, strict=False)), **named)
        return loss(*args, **named)

    function.__signature__ = inspect.signature(loss)  # pyright: ignore[reportFunctionMemberAccess]
    function.__doc__ = f"{loss.__doc__}\n    Before 1.0 it took ``({', '.join(older)})`` in order."
    return function


softmax_cross_entropy_with_logits: Callable[..., Tensor] = _logits_first(
    losses.softmax_cross_entropy_with_logits, ("logits", "labels", "dim", "name")
)
sparse_softmax_cross_entropy_with_logits: Callable[..., Tensor] = _logits_first(
    losses.sparse_softmax_cross_entropy_with_logits, ("logits", "labels", "name")
)
sigmoid_cross_entropy_with_logits: Callable[..., Tensor] = _logits_first(
    losses.sigmoid_cross_entropy_with_logits, ("logits", "labels", "name"), targets="labels"
)


def _inputs_first(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns ``loss`` in a form that also accepts the arguments of programs before 1.0: floating inputs before the
    labels."""

    def function(*args: Any, **kwargs: object) -> Tensor:
        given = list(args)
        if len(given) > 3:
            labels, inputs = (convert_to_tensor(value).dtype.base_dtype for value in given[2:4])
            if labels.is_floating and inputs.is_integer:
                given[2:4] = given[3], given[2]
        return loss(*given, **kwargs)

    function.__signature__ = inspect.signature(loss)  # pyright: ignore[reportFunctionMemberAccess]
    function.__doc__ = f"{loss.__doc__}\n    Before 1.0 the inputs were before the labels."
    return function


nce_loss: Callable[..., Tensor] = _inputs_first(sampled_losses.nce_loss)
sampled_softmax_loss: Callable[..., Tensor] = _inputs_first(sampled_losses.sampled_softmax_loss)


def arg_max(
    input: TensorLike, dimension: object, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """Old name of `argmax`."""
    return reductions.argmax(input, dimension, name, output_type=output_type)


def arg_min(
    input: TensorLike, dimension: object, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """Old name of `argmin`."""
    return reductions.argmin(input, dimension, name, output_type=output_type)
