"""Objects that `headwater.tf1.training.saver` saves as tensors of a checkpoint, and their restoration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.dtypes import DType
from headwater.graph.operation import Operation, Tensor


class SaveSpec:
    """One tensor of a checkpoint.

    Args:
      tensor: the tensor, or a function that makes it.
      slice_spec: which part of a larger tensor it is, e.g. ``"7 2 3,2:0,2"``; empty for a whole one.
      name: its name in the checkpoint.
      dtype: its element type; of the tensor if None.
      device: the device that holds it; the tensor's device if None.
    """

    def __init__(
        self,
        tensor: Tensor | Callable[[], Tensor],
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: str | None = None,
    ) -> None:
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype: DType = self.tensor.dtype if dtype is None else dtype
        self.device: str = self.tensor.device if device is None else device

    @property
    def tensor(self) -> Tensor:
        return self._tensor if isinstance(self._tensor, Tensor) else self._tensor()


class SaveableObject:
    """An object that is saved as one or more tensors. Subclasses define how it is restored.

    Attributes:
      op: the object.
      specs: its tensors.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs: list[SaveSpec] = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        """The device of the first tensor."""
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[object] | None) -> Operation:
        """The operation that puts restored tensors in place.

        Args:
          restored_tensors: one for each of ``specs``.
          restored_shapes: shapes to which to reshape them first, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define how it is restored")
