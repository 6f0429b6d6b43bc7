"""`SaveSliceInfo`: the part of a larger tensor that a variable holds, for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.tensorboard_protos import variable_pb2

if TYPE_CHECKING:
    from headwater.tensorboard_protos import SaveSliceInfoDef


class SaveSliceInfo:
    """A variable as a slice of a tensor that is stored as a whole in checkpoints.

    Attributes:
      full_name: the whole tensor's name.
      full_shape: its shape.
      var_offset: the start of the slice in each dimension.
      var_shape: the slice's shape.
    """

    def __init__(
        self,
        full_name: str | None = None,
        full_shape: Sequence[int] | None = None,
        var_offset: Sequence[int] | None = None,
        var_shape: Sequence[int] | None = None,
        save_slice_info_def: SaveSliceInfoDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        if save_slice_info_def is not None:
            proto = save_slice_info_def
            full_name = f"{import_scope}/{proto.full_name}" if import_scope else str(proto.full_name)
            full_shape, var_offset, var_shape = list(proto.full_shape), list(proto.var_offset), list(proto.var_shape)
        self.full_name: str = full_name or ""
        self.full_shape: list[int] = list(full_shape or ())
        self.var_offset: list[int] = list(var_offset or ())
        self.var_shape: list[int] = list(var_shape or ())

    @property
    def spec(self) -> str:
        """The slice as checkpoint operations write it: ``"7 2 3,2:0,2"``, the whole shape and start,length pairs."""
        whole = " ".join(str(size) for size in self.full_shape)
        slices = ":".join(f"{start},{size}" for start, size in zip(self.var_offset, self.var_shape, strict=True))
        return f"{whole} {slices}"

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns a ``SaveSliceInfoDef``; None if the tensor is outside ``export_scope``."""
        if export_scope is not None and not self.full_name.startswith(export_scope):
            return None
        proto = variable_pb2.SaveSliceInfoDef()
        proto.full_name = self.full_name.removeprefix(f"{export_scope}/") if export_scope else self.full_name
        proto.full_shape.extend(self.full_shape)
        proto.var_offset.extend(self.var_offset)
        proto.var_shape.extend(self.var_shape)
        return proto
