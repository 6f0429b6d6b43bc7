"""Requests of workers on several tables of a ``ps``: their validation, and the arrays of requests and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.task import kinds
from headwater.cluster.transport.frames import Frame
from headwater.errors import InvalidArgumentError
from headwater.ps.tables.protocol import Array, arrived_keys, flat_rows, split_array
from headwater.ps.tables.requests import BagsPart, decode_bags, pool_part, spread_part
from headwater.tables.kernels import all_finite
from headwater.tables.policies import ALWAYS
from headwater.tables.row_formats import Format, decode, encode, require_format
from headwater.tables.table import Keys, Table


@dataclass(frozen=True, kw_only=True, slots=True)
class TableKeys:
    """Keys of several tables.

    Attributes:
      words: the first words of the keys, concatenated over the tables.
      checks: the second words of the keys; empty if no keys are strings.
      counts: number of keys of each table.
    """

    tables: Sequence[Table]
    words: NDArray[np.int64]
    checks: NDArray[np.int64]
    counts: Sequence[int]

    def pairs(self) -> list[tuple[Table, Keys]]:
        """Returns each table with its keys."""
        words = split_array(self.words, self.counts)
        checks = split_array(self.checks, self.counts) if len(self.checks) else [self.checks] * len(words)
        return [(table, Keys(*both)) for table, *both in zip(self.tables, words, checks, strict=True)]

    def admitted(self) -> list[tuple[Table, Keys]]:
        """Returns each table that gives a row to every key, with its keys."""
        return [pair for pair in self.pairs() if pair[0].config.admission.kind == ALWAYS]

    def element_counts(self) -> list[int]:
        """Returns the number of elements of the rows of each table's keys."""
        return [count * table.config.dim for table, count in zip(self.tables, self.counts, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked(TableKeys):
    """A validated request on several tables.

    Attributes:
      forms: encoding of the rows or gradients of each table.
      bags: for each table, the code of the pooling of its rows into bags.
      parts: for each table, this task's part of the bags; None if rows are not pooled.
      left: the remaining tensors of the request, which have not been read yet.
    """

    forms: Sequence[Format]
    bags: Sequence[int]
    parts: Sequence[BagsPart | None]
    left: list[Array]


def read_request(
    table_of: Callable[[str], Table],
    names: Sequence[Any],
    forms: Sequence[Any],
    bags: Sequence[Any],
    counts: Sequence[Any],
    sizes: Sequence[Any],
    tensors: Sequence[Array],
) -> Asked:
    """Validates a request for rows of tables.

    Args:
      table_of: returns the table with a name, or raises NotFoundError.
      names, forms, bags, counts, sizes: words of the header; see `headwater.ps.tables.protocol`.
      tensors: the tensors of the request, the keys first.

    Raises:
      InvalidArgumentError, NotFoundError: the request is invalid, or there is no such table.
    """
    # Everything is validated before any table changes, so that a rejected request has no effect.
    try:
        named: list[Format] = [require_format(form, "a form") for form in forms]
        hows = [int(how) for how in bags]
        if not len(names) == len(named) == len(hows) or not names:
            raise ValueError(f"{len(names)} tables have {len(named)} forms and {len(hows)} bags")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"malformed request for tables: {error}") from error
    tables, arrays = [table_of(str(name)) for name in names], list(tensors)
    words = arrived_keys(_next_array(tables[0], arrays), counts, sizes, len(tables))
    checks = words[:0]
    if any(table.config.strings for table in tables):
        checks = _checks(tables, counts, _next_array(tables[0], arrays))
    parts = [
        decode_bags(arrays, how, count, _where(table)) if how else None
        for table, how, count in zip(tables, hows, counts, strict=True)
    ]
    return Asked(
        tables=tables, forms=named, bags=hows, words=words, checks=checks, counts=counts, parts=parts, left=arrays
    )


def _next_array(table: Table, arrays: list[Array]) -> Array:
    if not arrays:
        raise InvalidArgumentError(f"table {table.name!r} on {table.task}: an array is missing")
    return arrays.pop(0)


def _checks(tables: Sequence[Table], counts: Sequence[int], arrived: Array) -> NDArray[np.int64]:
    """Returns the second words of all tables' keys: the received ones, and zeros where keys are not strings."""
    total = sum(count for table, count in zip(tables, counts, strict=True) if table.config.strings)
    if arrived.dtype != np.int64 or arrived.shape != (total,):
        raise InvalidArgumentError(
            f"tables on {tables[0].task}: {total} keys are strings; their second words arrived as {arrived.dtype} of "
            f"shape {arrived.shape}"
        )
    # Only keys that are strings have second words, to distinguish strings with the same first word.
    parts_of_tables = split_array(
        arrived, [count if table.config.strings else 0 for table, count in zip(tables, counts, strict=True)]
    )
    parts = [
        part if table.config.strings else np.zeros(count, np.int64)
        for table, count, part in zip(tables, counts, parts_of_tables, strict=True)
    ]
    return np.concatenate(parts)


def answer_rows(asked: Asked, flat: NDArray[np.float32]) -> Frame:
    """Returns the answer to a lookup, given the rows that were found, in one flat array."""
    # Without encoding and pooling, the rows of all tables are adjacent in one array, which is sent without a copy.
    if flat_rows(asked.forms, asked.bags):
        return Frame(kinds.DONE, (), [flat])
    rows: list[Array] = []
    parts = split_array(flat, asked.element_counts())
    for table, form, bags, part in zip(asked.tables, asked.forms, asked.parts, parts, strict=True):
        of_keys = part.reshape(-1, table.config.dim)
        rows.append(encode(of_keys if bags is None else pool_part(bags, of_keys), form))
    return Frame(kinds.DONE, (), rows)


def _where(table: Table) -> str:
    return f"table {table.name!r} on {table.task}"


def arrived_gradients(asked: Asked, rates: Sequence[float | None]) -> NDArray[np.float32]:
    """Returns the gradients of an update in one flat array, table by table; checks that all are finite."""
    if len(rates) != len(asked.tables):
        raise InvalidArgumentError(f"{len(asked.tables)} tables have {len(rates)} learning rates")
    sizes = asked.element_counts()
    if flat_rows(asked.forms, asked.bags):
        flat = _next_array(asked.tables[0], asked.left)
        if flat.dtype != np.float32 or flat.shape != (sum(sizes),):
            raise InvalidArgumentError(
                f"tables on {asked.tables[0].task}: {sum(sizes)} numbers of gradients arrived as {flat.dtype} of shape "
                f"{flat.shape}"
            )
    else:
        flat = np.concatenate([_gradients_of(asked, at).reshape(-1) for at in range(len(asked.tables))])
    # One pass over all numbers first; the key that the error names is determined only if there is an error.
    if int(all_finite(flat.reshape(1, -1))) >= 0:
        first = 0
        for table, count, part in zip(asked.tables, asked.counts, split_array(flat, sizes), strict=True):
            bad = int(all_finite(part.reshape(-1, table.config.dim)))
            if bad >= 0:
                raise InvalidArgumentError(
                    f"{_where(table)}: the gradient of key {int(asked.words[first + bad])} is not finite"
                )
            first += count
    return flat


def _gradients_of(asked: Asked, at: int) -> NDArray[np.float32]:
    """Returns the gradients of one table's keys from a tensor of its own, perhaps of bags."""
    table, part, count = asked.tables[at], asked.parts[at], asked.counts[at]
    dim = table.config.dim
    try:
        gradients = np.ascontiguousarray(decode(_next_array(table, asked.left), dim, asked.forms[at]))
    except ValueError as error:
        raise InvalidArgumentError(f"{_where(table)}: gradients: {error}") from error
    expected, what = (count, "keys") if part is None else (len(part.bag_numbers), "bags")
    if len(gradients) != expected:
        raise InvalidArgumentError(
            f"{_where(table)}: gradients of {expected} {what} have shape {gradients.shape}, not ({expected}, {dim})"
        )
    return gradients if part is None else spread_part(part, gradients, count)
