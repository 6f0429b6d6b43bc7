"""Leaves of the structures that branches and loops carry: tensors, TensorArrays, and values made of several tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.graph.composites import CompositeTensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional.tensor_arrays import TensorArray


def flow_of(leaf: Any) -> Tensor:
    """Returns the tensor that represents a tensor or a TensorArray."""
    return leaf.flow if isinstance(leaf, TensorArray) else leaf


def like_leaf(leaf: object, tensors: Iterator[Tensor]) -> CompositeTensor | TensorArray | Tensor:
    """Returns a replacement for ``leaf``, made of the next of ``tensors``."""
    if isinstance(leaf, CompositeTensor):
        return leaf.with_components([next(tensors) for _ in leaf.components])
    return leaf.with_flow(next(tensors)) if isinstance(leaf, TensorArray) else next(tensors)
