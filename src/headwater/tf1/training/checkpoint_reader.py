"""Reads checkpoints without a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.data.io import files
from headwater.data.io.files import Path, as_path
from headwater.data.io.old_checkpoint import open_checkpoint
from headwater.data.io.tensor_bundle import index_path
from headwater.dtypes import DType
from headwater.errors import NotFoundError
from headwater.tensorboard_protos import types_pb2
from headwater.tf1.training.checkpoint_state import checkpoint_exists, latest_checkpoint

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


class CheckpointReader:
    """The tensors of one checkpoint.

    Args:
      filepattern: path of the checkpoint, as returned by `latest_checkpoint`.

    Raises:
      NotFoundError: there is no such checkpoint.
      DataLossError: it is damaged.
    """

    def __init__(self, filepattern: Path) -> None:
        prefix = as_path(filepattern)
        if not checkpoint_exists(prefix):
            raise NotFoundError(f"{prefix}: there is no such checkpoint ({index_path(prefix)} is missing)")
        self._reader = open_checkpoint(prefix)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shape of each tensor."""
        return {name: list(shape) for name, shape in self._reader.shapes.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Element type of each tensor."""
        return dict(self._reader.dtypes)

    def has_tensor(self, tensor_str: str) -> bool:
        """Returns whether there is a tensor of that name."""
        return tensor_str in self._reader

    def get_tensor(self, tensor_str: str) -> Any:
        """Returns a tensor: an array, or a NumPy scalar for rank 0.

        Raises:
          NotFoundError: there is no tensor of that name.
          DataLossError: it is damaged.
        """
        return self._reader.read(tensor_str)[()]

    def debug_string(self) -> bytes:
        """A line for each tensor: name, element type, shape."""
        shapes = self._reader.shapes
        return "".join(
            f"{name} ({_type_name(dtype)}) [{','.join(map(str, shapes[name]))}]\n"
            for name, dtype in self._reader.dtypes.items()
        ).encode()


def _type_name(dtype: DType) -> str:
    return types_pb2.DataType.Name(dtype.as_datatype_enum)


def load_checkpoint(ckpt_dir_or_file: Path) -> CheckpointReader:
    """A reader of a checkpoint, or of the newest in a folder.

    Raises:
      ValueError: the folder has no checkpoint.
      NotFoundError, DataLossError: see `CheckpointReader`.
    """
    path: str | None = as_path(ckpt_dir_or_file)
    if files.isdir(path):
        path = latest_checkpoint(path)
    if path is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {ckpt_dir_or_file}")
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file: Path, name: str) -> HostArray:
    """Returns a tensor of a checkpoint; ``name`` may end in ``:0``."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Path) -> list[tuple[str, list[int]]]:
    """Names and shapes of the tensors of a checkpoint, sorted."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
