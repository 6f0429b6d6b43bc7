"""Remapping of checkpoint values whose rows or columns correspond to words, for a variable with another vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headwater import dtypes
from headwater.data.io import files
from headwater.graph.convert import constant
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, indexing, script
from headwater.tf1.training.checkpoint_reader import load_checkpoint


class VocabInfo(NamedTuple):
    """Vocabularies of the rows or columns of a variable, and of its values in a checkpoint.

    Attributes:
      new_vocab: path of a file with the variable's words, one a line.
      new_vocab_size: number of its lines to use.
      num_oov_buckets: number of further rows or columns, which correspond to no word.
      old_vocab: path of the file with the words of the checkpoint.
      old_vocab_size: number of its lines to use; -1 for all.
      backup_initializer: ``f(shape, dtype)`` returns the values of new words; zeros if None.
      axis: 0 if rows correspond to words, 1 if columns do.
    """

    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Callable[..., object] | None = None
    axis: int = 0


def words_of(path: str, count: int) -> list[bytes]:
    """The first ``count`` lines of a file; all for -1.

    Raises:
      ValueError: it has fewer.
    """
    with files.open_file(path, "rb") as file:
        words = [line.rstrip(b"\r\n") for line in file.readlines()]
    if count > len(words):
        raise ValueError(f"{path} has {len(words)} words, not {count}")
    return words if count < 0 else words[:count]


def places(info: VocabInfo) -> np.ndarray[Any, Any]:
    """Returns, for each row or column of the variable, its index in the checkpoint; -1 for new words."""
    old = {word: place for place, word in enumerate(words_of(info.old_vocab, info.old_vocab_size))}
    found = [old.get(word, -1) for word in words_of(info.new_vocab, info.new_vocab_size)]
    return np.array(found + [-1] * info.num_oov_buckets, np.int64)


def remapped(path: str, name: str, info: VocabInfo, shape: Sequence[int], dtype: dtypes.DType) -> Tensor:
    """Returns the value of a variable of ``shape``: from the checkpoint for its words, else from the initializer.

    Raises:
      ValueError: the shape does not match the vocabulary.
    """
    where = places(info)
    if info.axis not in (0, 1) or len(shape) <= info.axis or shape[info.axis] != len(where):
        raise ValueError(
            f"Dimension {info.axis} of shape {list(shape)} should be {len(where)}: new_vocab_size + num_oov_buckets"
        )

    def read() -> np.ndarray[Any, Any]:
        """Returns the checkpoint's rows or columns in the new order, with its first as a placeholder for new words."""
        stored = load_checkpoint(path).get_tensor(name)
        return np.take(stored, np.maximum(where, 0), info.axis)

    stored = script.py_func(read, [], dtype)
    stored.set_shape(shape)
    backup = info.backup_initializer
    new = arrays.zeros(shape, dtype) if backup is None else backup(shape, dtype=dtype)
    along = [-1 if axis == info.axis else 1 for axis in range(len(shape))]
    known = arrays.broadcast_to(constant((where >= 0).reshape(along)), list(shape))
    return indexing.where(known, stored, new)
