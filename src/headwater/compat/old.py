"""Spellings and orders of arguments before TensorFlow 1.0."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.functional import arrays, linalg, losses, searching
from headwater.functional.apply import one
from headwater.graph.operation import Tensor
from headwater.shapes import Dimension

_INTEGERS = (int, np.integer, Dimension)


def _is_axis(value: Any) -> bool:
    return isinstance(value, _INTEGERS) and not isinstance(value, bool)


def concat(values: Any, axis: Any = None, name: str = "concat", concat_dim: Any = None) -> Tensor:
    """``concat(values, axis)``, or ``concat(axis, values)`` as before 1.0."""
    axis = concat_dim if axis is None else axis
    if _is_axis(values) and not _is_axis(axis):
        values, axis = axis, values
    return arrays.concat(values, axis, name)


def split(
    value: Any = None,
    num_or_size_splits: Any = None,
    axis: Any = 0,
    num: int | None = None,
    name: str = "split",
    split_dim: Any = None,
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


def pack(values: Any, axis: int = 0, name: str = "pack") -> Tensor:
    """``stack``."""
    return arrays.stack(values, axis, name)


def unpack(value: Any, num: int | None = None, axis: int = 0, name: str = "unpack") -> list[Tensor]:
    """``unstack``."""
    return arrays.unstack(value, num, axis, name)


def reverse(tensor: Any, axis: Any = None, name: str | None = None, dims: Any = None) -> Tensor:
    """``reverse(tensor, axis)``, or with a truth value for each dimension as before 1.0."""
    flags = axis if dims is None else dims
    if not isinstance(flags, Tensor) and np.asarray(flags).dtype == np.bool_:
        return arrays.reverse(tensor, np.flatnonzero(flags).astype(np.int32), name)
    return arrays.reverse(tensor, flags, name)


def batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Tensor:
    """``matmul`` of batches."""
    return linalg.batch_matmul(x, y, adj_x, adj_y, name)


def inv(x: Any, name: str | None = None) -> Tensor:
    """``reciprocal``."""
    return one("Inv", x, name=name)


def listdiff(x: Any, y: Any, out_idx: Any = None, name: str | None = None) -> searching.ListDiff:
    """``setdiff1d``."""
    return searching.setdiff1d(x, y, name=name) if out_idx is None else searching.setdiff1d(x, y, out_idx, name)


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """Accepted; programs built their ``__all__`` with it."""
    del module_name, doc_string_modules
    return []


def softmax_cross_entropy_with_logits(*args: Any, **kwargs: Any) -> Tensor:
    """With ``labels=`` and ``logits=``, or ``(logits, labels)`` in order as before 1.0."""
    if args and args[0] is not None:
        return losses.softmax_cross_entropy_with_logits(**_named(args, kwargs, ("logits", "labels", "dim", "name")))
    return losses.softmax_cross_entropy_with_logits(*args, **kwargs)


def sparse_softmax_cross_entropy_with_logits(*args: Any, **kwargs: Any) -> Tensor:
    """With ``labels=`` and ``logits=``, or ``(logits, labels)`` in order as before 1.0."""
    if args and args[0] is not None:
        return losses.sparse_softmax_cross_entropy_with_logits(**_named(args, kwargs, ("logits", "labels", "name")))
    return losses.sparse_softmax_cross_entropy_with_logits(*args, **kwargs)


def sigmoid_cross_entropy_with_logits(*args: Any, **kwargs: Any) -> Tensor:
    """With ``labels=`` and ``logits=``, or ``(logits, targets)`` in order as before 1.0."""
    if "targets" in kwargs:
        kwargs["labels"] = kwargs.pop("targets")
    if args and args[0] is not None:
        return losses.sigmoid_cross_entropy_with_logits(**_named(args, kwargs, ("logits", "labels", "name")))
    return losses.sigmoid_cross_entropy_with_logits(*args, **kwargs)


def _named(args: tuple[Any, ...], kwargs: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return dict(zip(names, args, strict=False)) | kwargs
