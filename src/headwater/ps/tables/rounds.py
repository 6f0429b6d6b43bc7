"""Gradients of rows in rounds of synchronous training: gathered, and applied as one update when their round is over.

In each step, a worker first sends the gradients of its rows and then its other gradients. The round is complete when
the other gradients of all workers have arrived; all gradients of rows have then arrived, too. All lookups and gradients
of rows name the round of the worker's step. The first request that names a later round shows that the present round is
complete, and only then are its gradients of rows applied. As a result, no worker reads a row that was changed in its
own round.

A round is a pair: the incarnation of the ``ps`` from which the worker has read the values of its step, and the number
of updates of these values (``version``). If a ``ps`` is restarted with values of an earlier version, the gradients of
the interrupted round are dropped, because the workers compute them again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headwater.errors import InvalidArgumentError
from headwater.ps.tables.arrivals import Asked, TableKeys
from headwater.ps.tables.protocol import Array, split_array
from headwater.tables.hashing import distinct
from headwater.tables.table import Table


class Round(NamedTuple):
    """A round; see the module's docstring."""

    incarnation: int
    version: int


#: Identifies gradients within a round: the number of a worker or, if workers share batches, the first position of its
#: part of the batch. If the same worker or another one repeats a step, the new gradients replace the earlier gradients
#: with the same number.
Worker: TypeAlias = int


@dataclass(frozen=True, kw_only=True, slots=True)
class RowGradients:
    """Gradients of rows of several tables.

    Attributes:
      names: the names of the tables.
      rates: the new learning rate of each table; None leaves the rate unchanged.
      counts: the number of keys of each table.
      words: the first words of the keys, [sum(counts)], table by table; distinct within a table.
      checks: the second words of the keys, [sum(counts)]; empty if no keys are strings.
      gradients: the gradients of all keys, in one flat array: ``dim`` numbers of the table for each key.
    """

    names: Sequence[str]
    rates: Sequence[float | None]
    counts: Sequence[int]
    words: NDArray[np.int64]
    checks: NDArray[np.int64]
    gradients: NDArray[np.float32]

    @staticmethod
    def of(asked: Asked, rates: Sequence[float | None], gradients: NDArray[np.float32]) -> RowGradients:
        """Returns the gradients of a request."""
        return RowGradients(
            names=[table.name for table in asked.tables],
            rates=rates,
            counts=asked.counts,
            words=asked.words,
            checks=asked.checks,
            gradients=gradients,
        )


@dataclass(kw_only=True, slots=True)
class TableRounds:
    """The gradients of the present round of a ``ps``.

    Attributes:
      version: the version of the round.
      incarnation: the incarnation of the round. When a request names an incarnation that no request has named before,
        this becomes that incarnation.
      past: earlier values of ``incarnation``. A request that names one of these is outdated.
      gradients: the gradients that each worker has sent in this round.
    """

    version: int = -1
    incarnation: int = 0
    past: set[int] = field(default_factory=set[int])
    gradients: dict[Worker, RowGradients] = field(default_factory=dict[Worker, RowGradients])

    def is_later(self, named: Round) -> bool:
        """Returns whether the named round follows the present one: its version is later, or its incarnation is new."""
        if named.incarnation == self.incarnation:
            return named.version > self.version
        # Incarnations are random numbers without an order: an unknown one is new, unless it is a past one.
        return named.incarnation not in self.past

    def complete_round_gradients(self, named: Round) -> list[RowGradients]:
        """Returns the gradients of the present round, to apply as one update, if ``named`` shows that it is complete.

        Empty unless ``named`` has a later version. The gradients are kept until `start` is called.
        """
        ends = self.is_later(named) and named.version > self.version
        # Sort by worker: otherwise the last bits of the sums would depend on the order of arrival.
        return [self.gradients[worker] for worker in sorted(self.gradients)] if ends else []

    def start(self, named: Round) -> None:
        """Begins the named round if it follows the present one. If its version differs, the present gradients are
        dropped: apply the result of `complete_round_gradients` first."""
        if not self.is_later(named):
            return
        if named.version != self.version:
            self.gradients, self.version = {}, named.version
        if named.incarnation != self.incarnation:
            self.past.add(self.incarnation)
            self.incarnation = named.incarnation

    def gather(self, named: Round, worker: Worker, gradients: RowGradients) -> None:
        """Stores gradients of the present round. Gradients of another version are too late, and are dropped."""
        if named.version == self.version:
            self.gradients[worker] = gradients

    # State of a ps that a backup, or its next incarnation, receives -----------------------------------------------

    def to_parts(self) -> tuple[tuple[Any, ...], list[Array]]:
        """Returns the state as words for a header and tensors, three for each worker."""
        contributions = [
            (worker, one.names, list(one.rates), list(one.counts)) for worker, one in self.gradients.items()
        ]
        tensors = [array for one in self.gradients.values() for array in (one.words, one.checks, one.gradients)]
        return (self.version, self.incarnation, sorted(self.past), contributions), tensors

    @staticmethod
    def from_parts(words: Any, tensors: Sequence[Any]) -> TableRounds:
        """Restores the state from the results of `to_parts`.

        Raises:
          InvalidArgumentError: the words and tensors do not encode such a state.
        """
        try:
            version, incarnation, past, contributions = words
            arrays = iter(tensors)
            gradients = {
                int(worker): RowGradients(
                    names=names,
                    rates=rates,
                    counts=counts,
                    words=next(arrays),
                    checks=next(arrays),
                    gradients=next(arrays),
                )
                for worker, names, rates, counts in contributions
            }
            return TableRounds(version=int(version), incarnation=int(incarnation), past=set(past), gradients=gradients)
        except (TypeError, ValueError, StopIteration) as error:
            raise InvalidArgumentError(f"malformed gradients of a round: {str(words)[:80]}") from error


def as_round(word: object) -> Round:
    """Decodes a round of a header.

    Raises:
      InvalidArgumentError: ``word`` does not encode a round.
    """
    match word:
        case (int(incarnation), int(version)):
            return Round(incarnation, version)
        case _:
            raise InvalidArgumentError(f"malformed round: {str(word)[:80]}")


def combine_gradients(
    contributions: Sequence[RowGradients], table_of: Callable[[str], Table]
) -> tuple[TableKeys, NDArray[np.float32], list[float | None]]:
    """Adds up the gradients of several workers.

    Args:
      contributions: the gradients of each worker, in the order in which they are summed.
      table_of: returns the table with a name.

    Returns:
      The distinct keys of all tables; the sums of their gradients, in one flat array, as in `RowGradients`; and the new
      learning rate of each table, or None.
    """
    names = list(dict.fromkeys(name for one in contributions for name in one.names))
    tables = [table_of(name) for name in names]
    by_table: dict[str, list[_OfTable]] = {name: [] for name in names}
    for one in contributions:
        for name, part in _split(one, {table.name: table for table in tables}).items():
            by_table[name].append(part)
    summed = [_sum_by_key(by_table[table.name], table) for table in tables]
    some_strings = any(table.config.strings for table in tables)
    checks = [
        one.checks if table.config.strings else np.zeros(len(one.words), np.int64)
        for one, table in zip(summed, tables, strict=True)
    ]
    words = np.concatenate([one.words for one in summed])
    keys = TableKeys(
        tables=tables,
        words=words,
        checks=np.concatenate(checks) if some_strings else words[:0],
        counts=[len(one.words) for one in summed],
    )
    return keys, np.concatenate([one.gradients.reshape(-1) for one in summed]), [one.rate for one in summed]


class _OfTable(NamedTuple):
    """Keys of a table, their gradients [n, dim], and its learning rate or None."""

    words: NDArray[np.int64]
    checks: NDArray[np.int64]
    gradients: NDArray[np.float32]
    rate: float | None


def _split(one: RowGradients, tables: Mapping[str, Table]) -> dict[str, _OfTable]:
    dims = [tables[name].config.dim for name in one.names]
    words = split_array(one.words, one.counts)
    checks = split_array(one.checks, one.counts) if len(one.checks) else [one.checks] * len(words)
    sizes = [count * dim for count, dim in zip(one.counts, dims, strict=True)]
    rows = [part.reshape(-1, dim) for part, dim in zip(split_array(one.gradients, sizes), dims, strict=True)]
    return dict(zip(one.names, map(_OfTable, words, checks, rows, one.rates), strict=True))


def _sum_by_key(parts: Collection[_OfTable], table: Table) -> _OfTable:
    """Sums the gradients of equal keys, in the order of the parts; each part has distinct keys."""
    words = np.concatenate([part.words for part in parts])
    checks = np.concatenate([part.checks for part in parts]) if table.config.strings else words[:0]
    first, inverse = distinct(words, checks)
    sums, start = np.zeros((len(first), table.config.dim), np.float32), 0
    for part in parts:
        sums[inverse[start : start + len(part.words)]] += part.gradients
        start += len(part.words)
    # All workers run one program, so they set the same rate.
    rates = [part.rate for part in parts if part.rate is not None]
    return _OfTable(words[first], checks[first] if len(checks) else checks, sums, rates[0] if rates else None)
