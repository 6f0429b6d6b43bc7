"""Configuration and statistics of tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import SGD, AnyOptimizer
from headwater.tables.policies import Admission, Eviction


@dataclass(frozen=True, kw_only=True, slots=True)
class TableConfig:
    """Configuration of a table.

    Attributes:
      dim: the length of a row.
      optimizer: the optimizer, which updates rows from gradients.
      initializer: the initializer of new rows.
      seed: the seed of the initializer, and of admission by chance.
      strings: whether keys are strings; otherwise they are 64-bit integers.
      admission: selects the keys that get a row.
      eviction: selects the rows to remove when there are too many. None: no rows are removed, and a full table is an
        error.
      max_rows: maximum number of rows, or None.
      max_bytes: maximum size of rows, state and index, in bytes, or None.
      memory_rows: maximum number of rows in memory; further rows are stored in a file. None: all rows are in memory.
      folder: the folder of that file. The file has no name, and the system frees it when the process ends.
      shards: the number of shards, each with its own lock.
    """

    dim: int
    optimizer: AnyOptimizer = field(default_factory=SGD)
    initializer: Initializer = field(default_factory=Initializer)
    seed: int = 0
    strings: bool = False
    admission: Admission = field(default_factory=Admission)
    eviction: Eviction | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    memory_rows: int | None = None
    folder: str | None = None
    shards: int = 32

    def __post_init__(self) -> None:
        for name in ("dim", "max_rows", "max_bytes", "memory_rows", "shards"):
            value: object = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value >= 1):
                raise ValueError(f"{name} must be a whole number from 1 on, not {value!r}")
        if self.shards > 1024:
            raise ValueError(f"shards must be at most 1024, not {self.shards}")
        if (self.memory_rows is None) != (self.folder is None):
            raise ValueError("memory_rows and folder must be given together: folder is for rows beyond memory_rows")
        if self.max_bytes is not None and self.row_limit is not None and self.row_limit < 1:
            raise ValueError(f"max_bytes: {self.max_bytes} bytes are less than one row of {self.row_bytes} bytes")

    @property
    def width(self) -> int:
        """Length of a row with its optimizer's state."""
        return self.dim * (1 + len(self.optimizer.slots))

    @property
    def words(self) -> int:
        """Number of 64-bit words for a row's key and use."""
        return 3 if self.strings else 2

    @property
    def row_bytes(self) -> int:
        """Maximum size of a row in a large table, with key, counters and index, in bytes."""
        return 4 * self.width + 8 * self.words + 8

    @property
    def row_limit(self) -> int | None:
        """Maximum number of rows, or None."""
        by_bytes = None if self.max_bytes is None else self.max_bytes // self.row_bytes
        limits = [limit for limit in (self.max_rows, by_bytes) if limit is not None]
        return min(limits) if limits else None


@dataclass(frozen=True, kw_only=True, slots=True)
class TableStatistics:
    """Statistics of a table.

    Attributes:
      rows: the number of rows.
      nbytes: bytes in memory for rows, state, keys and index, as far as they are in use.
      file_bytes: size of the file, in bytes.
      hits: lookups of rows that were in memory.
      misses: lookups of rows that were in the file.
      made: the number of rows ever made.
      evicted: the number of evicted rows.
      refused: lookups of keys that had not been admitted.
      dropped: gradients of keys that had not been admitted.
      step: the number of updates.
    """

    rows: int
    nbytes: int
    file_bytes: int
    hits: int
    misses: int
    made: int
    evicted: int
    refused: int
    dropped: int
    step: int

    @property
    def hit_rate(self) -> float:
        """The fraction of lookups that found their row in memory; 1 before the first lookup."""
        return self.hits / (self.hits + self.misses) if self.hits + self.misses else 1.0
