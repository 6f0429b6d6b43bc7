"""Protocol of a worker and a ``ps`` for embedding tables.

A worker keeps one channel to each ``ps``, and sends a frame only after the answer to the previous one::

    OPEN_TABLES  (client, tables)           ``client`` is a number that a worker draws once; ``tables`` has for each
                                            table its name, configuration (`pack`), and a folder with saves or None.
                                            Answered by DONE. A table that exists already is unchanged. Where parts have
                                            two replicas or move, a third word is the part's number, a fourth the number
                                            of parts, or None if parts do not move and each ``ps`` has one, and a fifth
                                            the number of replicas; ERROR means that this replica is not the primary,
                                            and WAIT (reason) may precede any answer
    LOOK_UP      (training, names, forms, bags, counts, sizes, round)   the distinct keys that belong to this task, of
                                            all tables in one tensor (`headwater.tables.flat.pack_keys`): of each table
                                            ``counts`` keys, in ``sizes`` bytes. Then second words of the tables
                                            whose keys are strings, and parts of bags where rows are pooled
                                            (`headwater.ps.tables.requests`). Answered by DONE with the rows, in
                                            the form (`headwater.tables.row_formats`) that is named for each table: a
                                            tensor for each, or one flat one for all (`flat_rows`). ``round`` is None,
                                            or (incarnation, version), see `headwater.ps.tables.rounds`
    UPDATE       (number, names, rates, forms, bags, counts, sizes, round)   the tensors of LOOK_UP, and then the
                                            gradients of keys or bags, in the form of the rows in an answer to LOOK_UP;
                                            ``rates`` are learning rates, or None. Answered by DONE. Idempotent: an
                                            update whose number the task has seen from this client is answered, not
                                            applied again. ``round`` is None, or (incarnation, version, worker)
    SETTLE       (incarnation, version)     names a round, as LOOK_UP does; the ``ps`` applies the gradients of earlier
    rounds. Answered by DONE SAVE_TABLE   (name, folder, number, delta)   answered by DONE (file, rows, gone, nbytes,
    step)
    DESCRIBE_TABLE   (name, keys)               answered by DONE (statistics, most used keys with their numbers of uses)
    READ_TABLE   (name, shard)              answered by DONE (step, shards) with the rows of one shard: words (key, use
                                            and, where keys are strings, second word), and values with optimizer's state
    WRITE_TABLE  (name, step)               the same two arrays: rows to store. ``step`` is None, or the number of
                                            updates, and the table loses all other rows. Answered by DONE
    ERROR        (0, code, message)         as in `headwater.cluster.task.answers`

Frames carry only data, so an optimizer is one of `headwater.tables.optimizers`, given by its numbers. An optimizer that
is a function of the program is sent by name, and the ``ps`` waits until its own program makes the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from headwater.errors import InvalidArgumentError
from headwater.tables.description import TableConfig
from headwater.tables.flat import unpack_keys
from headwater.tables.hashing import extent
from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import RowOptimizer
from headwater.tables.policies import Admission, Age, Eviction, LeastFrequent, LeastRecent

Array = NDArray[Any]
_Number = TypeVar("_Number", bound=np.generic)

_PLAIN = ("dim", "seed", "strings", "max_rows", "max_bytes", "memory_rows", "folder", "shards")


def pack(config: TableConfig) -> dict[str, Any]:
    """Encodes the configuration of a table for a header.

    Raises:
      ValueError: the optimizer is a function of the program, or the eviction policy a class of the program: neither can
        be sent.
    """
    packed: dict[str, object] = {name: getattr(config, name) for name in _PLAIN}
    optimizer = config.optimizer
    if isinstance(optimizer, RowOptimizer):
        packed["optimizer"] = asdict(optimizer)
    elif optimizer.name:
        packed["optimizer"] = {"name": optimizer.name, "slots": optimizer.slots}
    else:
        raise ValueError("optimizer: a function cannot be sent to a ps; use an optimizer of headwater.tables")
    packed["initializer"] = asdict(config.initializer)
    packed["admission"] = asdict(config.admission)
    packed["eviction"] = pack_eviction(config.eviction)
    return packed


def pack_eviction(eviction: Eviction | None) -> tuple[str, int] | None:
    """Encodes an eviction policy for a header.

    Raises:
      ValueError: the policy is a class of the program, which cannot be sent.
    """
    match eviction:
        case None:
            return None
        case LeastRecent():
            return ("least recent", 0)
        case LeastFrequent():
            return ("least frequent", 0)
        case Age(steps):
            return ("age", steps)
        case _:
            raise ValueError("eviction: a class cannot be sent to a ps; use a policy of headwater.tables")


def names_function(packed: object) -> bool:
    """Returns whether the optimizer of a packed table is a function, which only the program can make."""
    return isinstance(packed, Mapping) and "name" in cast(Mapping[str, Any], packed).get("optimizer", ())


def are_equal(packed: object, other: object) -> bool:
    """Returns whether two packed tables are equal, whether they were sent over a connection or not."""
    return _listed(packed) == _listed(other)


def _listed(packed: object) -> object:
    # msgpack turns lists into tuples: compare both as lists.
    if isinstance(packed, Mapping):
        return {name: _listed(value) for name, value in cast(Mapping[str, object], packed).items()}
    return [_listed(value) for value in cast(Sequence[object], packed)] if isinstance(packed, (list, tuple)) else packed


def unpack(packed: Mapping[str, Any]) -> TableConfig:
    """Decodes the result of `pack`.

    Raises:
      InvalidArgumentError: ``packed`` is malformed.
    """
    try:
        optimizer = dict(packed["optimizer"])
        optimizer["slots"], optimizer["hyper"] = _reals(optimizer["slots"]), _reals(optimizer["hyper"])
        row_optimizer = RowOptimizer(**optimizer)
        # A compiled function would read beyond an array that is shorter than its kind implies.
        if (row_optimizer.kind, len(row_optimizer.slots), len(row_optimizer.hyper)) not in _KINDS:
            raise ValueError(
                f"there is no optimizer of kind {row_optimizer.kind} with {len(row_optimizer.slots)} parts of state"
            )
        if row_optimizer.kind == _RMSPROP and row_optimizer.hyper[1] and len(row_optimizer.slots) == 1:
            raise ValueError("RMSProp with momentum keeps two parts of state")
        return TableConfig(
            **{name: packed[name] for name in _PLAIN},
            optimizer=row_optimizer,
            initializer=Initializer(**packed["initializer"]),
            admission=Admission(**packed["admission"]),
            eviction=eviction_of(packed["eviction"]),
        )
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidArgumentError(f"a table cannot be made: {error}") from error


_RMSPROP = 3
#: Kind, number of parts of state, and number of hyperparameters of each optimizer: compiled functions rely on these.
_KINDS = {(0, 0, 1), (1, 1, 2), (2, 1, 1), (3, 1, 3), (3, 2, 3), (4, 2, 4), (5, 2, 4)}


def _reals(values: Sequence[float]) -> tuple[float, ...]:
    reals = tuple(float(value) for value in values)
    if not all(math.isfinite(value) for value in reals):
        raise ValueError(f"an optimizer's numbers must be finite, not {reals}")
    return reals


def eviction_of(packed: Any) -> Eviction | None:
    """Decodes the result of `pack_eviction`.

    Raises:
      ValueError: ``packed`` is malformed.
    """
    match packed:
        case None:
            return None
        case ("least recent", _):
            return LeastRecent()
        case ("least frequent", _):
            return LeastFrequent()
        case ("age", int(steps)):
            return Age(steps)
        case _:
            raise ValueError(f"unknown eviction policy {packed!r}")


_LIMITS = (np.uint8, 0, 1 << 8), (np.uint16, 0, 1 << 16), (np.int32, -(1 << 31), 1 << 31)


def smallest(numbers: NDArray[np.int64]) -> Array:
    """Encodes whole numbers with 1, 2, 4 or 8 bytes each: the smallest size that suffices for all."""
    least, most = extent(numbers)
    for kind, low, high in _LIMITS:
        if low <= least and most < high:
            return numbers.astype(kind)
    return numbers


def flat_rows(forms: Sequence[str], bags: Sequence[int]) -> bool:
    """Returns whether the numbers of all tables' rows, or gradients, are sent as one tensor: this is the case if all
    are float32 and belong to keys.

    Otherwise each table has a tensor of its own.
    """
    return all(form == "float32" for form in forms) and not any(bags)


def split_array(flat: NDArray[_Number], sizes: Sequence[int]) -> list[NDArray[_Number]]:
    """Splits an array into consecutive parts of these sizes."""
    parts: list[NDArray[_Number]] = []
    first = 0
    for size in sizes:
        parts.append(flat[first : first + size])
        first += size
    return parts


_SIZES = frozenset((1, 2, 4, 8))


def arrived_keys(packed: Array, counts: Sequence[Any], sizes: Sequence[object], tables: int) -> NDArray[np.int64]:
    """Decodes received keys of several tables, see `headwater.tables.flat.pack_keys`.

    Raises:
      InvalidArgumentError: the tensor does not hold such keys.
    """
    fit = (
        packed.dtype == np.int64
        and packed.ndim == 1
        and len(counts) == len(sizes) == tables
        and all(isinstance(count, int) and 0 <= count <= 8 * len(packed) for count in counts)
        and _SIZES.issuperset(sizes)
    )
    keys = unpack_keys(packed, np.array(counts, np.int64), np.array(sizes, np.int64)) if fit else None
    if keys is None or len(keys) != sum(counts):
        raise InvalidArgumentError(
            f"keys of {tables} tables arrived as {packed.dtype} of shape {packed.shape}, which is inconsistent"
        )
    return keys
