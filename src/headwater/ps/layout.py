"""Placement of the parts of variables on the ``ps``. Pure: every task computes the same layout by itself.

A variable is one *block*, or several when a partitioner splits it along its first dimension. Blocks are placed, in the
order of the variables, on the ``ps`` with the fewest bytes so far.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class VariableSpec:
    """Properties of a variable that determine its placement.

    Attributes:
      name: unique among the variables of a layout.
      shape: the shape of the whole variable.
      dtype: NumPy's name of its element type.
      optimized: whether the optimizer updates it. Workers add changes to the other variables, such as moving
          statistics.
      table: whether workers read and update only some of its rows in a step. A table is divided among all tasks. The
        optimizer updates it, but ``optimized`` blocks do not include it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    optimized: bool = True
    table: bool = False

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A variable, or some of its rows, on one task.

    Attributes:
      variable: index of the variable.
      start: first row; 0 for a whole variable.
      stop: row after the last; -1 for a whole variable.
      task: index of the ``ps``.
    """

    variable: int
    start: int
    stop: int
    task: int

    def of(self, value: Any) -> Any:
        """Returns this block's part of the variable's ``value``."""
        return value if self.stop < 0 else value[self.start : self.stop]


class Partitioner(Protocol):
    """Chooses the number of parts of a variable."""

    def __call__(self, spec: VariableSpec) -> int:
        """Returns the number of parts for ``spec``, at least 1. `make_layout` limits this number to the number of
        rows."""
        ...


def _positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"{name} must be positive, not {value}")


@dataclass(frozen=True, slots=True)
class FixedShardsPartitioner:
    """Divides every variable into ``num_shards`` parts, or into its rows if it has fewer rows."""

    num_shards: int

    def __post_init__(self) -> None:
        _positive("num_shards", self.num_shards)

    def __call__(self, spec: VariableSpec) -> int:
        return self.num_shards


@dataclass(frozen=True, slots=True)
class MinSizePartitioner:
    """Divides variables into as many parts of at least ``min_shard_bytes`` bytes as possible, up to ``max_shards``.

    As in TensorFlow, nothing is divided unless ``max_shards`` is given.
    """

    min_shard_bytes: int = 256 << 10
    max_shards: int = 1

    def __post_init__(self) -> None:
        _positive("min_shard_bytes", self.min_shard_bytes)
        _positive("max_shards", self.max_shards)

    def __call__(self, spec: VariableSpec) -> int:
        return min(max(1, spec.nbytes // self.min_shard_bytes), self.max_shards)


@dataclass(frozen=True, slots=True)
class MaxSizePartitioner:
    """Divides variables into as few parts of at most ``max_shard_bytes`` bytes as possible, up to ``max_shards`` if
    given."""

    max_shard_bytes: int
    max_shards: int | None = None

    def __post_init__(self) -> None:
        _positive("max_shard_bytes", self.max_shard_bytes)
        _positive("max_shards", self.max_shards)

    def __call__(self, spec: VariableSpec) -> int:
        parts = max(1, -(-spec.nbytes // self.max_shard_bytes))
        return parts if self.max_shards is None else min(parts, self.max_shards)


#: Used by programs that choose no partitioner: parts of at most 64 MiB.
DEFAULT_PARTITIONER = MaxSizePartitioner(64 << 20)


@dataclass(frozen=True, slots=True)
class Layout:
    """The placement of all blocks on all ``ps``.

    Attributes:
      variables: all of them, in order.
      blocks: the blocks of each ``ps``, in the order of the variables; at most one of each variable.
    """

    variables: tuple[VariableSpec, ...]
    blocks: tuple[tuple[Block, ...], ...]

    def signature(self) -> str:
        """Returns a digest, equal for equal layouts, by which tasks recognise a different program."""
        return hashlib.sha256(repr((self.variables, self.blocks)).encode()).hexdigest()

    def nbytes(self, task: int) -> int:
        """Returns the number of bytes of values on a ``ps``."""
        return sum(block_bytes(self.variables[block.variable], block) for block in self.blocks[task])

    def split(self, values: Sequence[object], task: int) -> list[Any]:
        """Returns the parts of ``values`` (one for each variable) that belong to the blocks of a ``ps``."""
        return [block.of(values[block.variable]) for block in self.blocks[task]]

    def join(self, parts: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
        """Assembles the variables' values from all blocks; ``parts`` has for each ``ps`` one array for each block."""
        pieces_of: list[list[tuple[int, NDArray[Any]]]] = [[] for _ in self.variables]
        for blocks, arrays in zip(self.blocks, parts, strict=True):
            for block, array in zip(blocks, arrays, strict=True):
                pieces_of[block.variable].append((block.start, array))
        return [concatenate_parts(pieces) for pieces in pieces_of]


def concatenate_parts(pieces: Sequence[tuple[int, NDArray[Any]]]) -> NDArray[Any]:
    """Concatenates the parts of a variable; returns an empty array if there are none.

    Args:
      pieces: the number of the first row, and the rows, of each part, in any order.
    """
    if len(pieces) == 1:
        return pieces[0][1]
    return np.concatenate([array for _, array in sorted(pieces, key=_start)]) if pieces else np.empty(0)


def _start(piece: tuple[int, object]) -> int:
    return piece[0]


def block_shape(spec: VariableSpec, block: Block) -> tuple[int, ...]:
    """Returns the shape of a block of ``spec``."""
    return spec.shape if block.stop < 0 else (block.stop - block.start, *spec.shape[1:])


def block_bytes(spec: VariableSpec, block: Block) -> int:
    """Returns the size of a block of ``spec``, in bytes."""
    return math.prod(block_shape(spec, block)) * np.dtype(spec.dtype).itemsize


def make_layout(variables: Sequence[VariableSpec], tasks: int, partitioner: Partitioner | None = None) -> Layout:
    """Divides variables among ``tasks`` tasks by bytes.

    Args:
      variables: the variables, in an order that all tasks share.
      tasks: the number of ``ps``.
      partitioner: returns the number of parts of a variable; None splits only tables. A variable has at most one part
        on each task, so there are no more parts than tasks.

    Raises:
      ValueError: there is no task, or two variables have the same name.
    """
    if tasks < 1:
        raise ValueError("the cluster has no ps task to store variables on")
    if len({spec.name for spec in variables}) != len(variables):
        raise ValueError("two variables have the same name")
    blocks: list[list[Block]] = [[] for _ in range(tasks)]
    load = [0] * tasks
    for number, spec in enumerate(variables):
        parts = tasks if spec.table else partitioner(spec) if partitioner is not None and spec.shape else 1
        parts = min(parts, tasks, max(1, spec.shape[0] if spec.shape else 1))
        # Break ties by number, because every task must compute the same layout.
        emptiest = sorted(range(tasks), key=lambda task: (load[task], task))[:parts]
        for part, task in enumerate(emptiest):
            rows = spec.shape[0] if parts > 1 else 0  # a whole variable has start 0 and stop -1
            block = Block(
                variable=number,
                start=rows * part // parts,
                stop=rows * (part + 1) // parts if parts > 1 else -1,
                task=task,
            )
            blocks[task].append(block)
            load[task] += block_bytes(spec, block)
    return Layout(tuple(variables), tuple(tuple(held) for held in blocks))
