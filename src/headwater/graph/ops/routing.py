"""Lookups in a partitioned table: each id is sent once, to the part that has its row.

``RouteIds`` divides the ids, ``GatherRouted`` reads the rows of one part, and ``JoinRouted`` restores the ids' order.
The number of ids of a part differs from step to step, but a separate executable is compiled for each size of its
inputs. So the array for a part has a fixed number of places: its largest number of ids so far, plus headroom. Unused
places contain `NO_ROW` (docs/decisions/indices.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import bfloat16, float32, int32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.common import AnyArray, array_module
from headwater.graph.ops.define import host, pure, unary
from headwater.graph.ops.indexing import require_rows
from headwater.graph.ops.table_rows import add_rows, take_rows
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp
from headwater.tables import routing

NO_ROW: Final = -1
"""Marks an unused place. The row that is read for it is ignored, and its update changes no row."""

_HEADROOM = 1.25
"""Headroom factor: if shares vary at random, a later share rarely exceeds the largest share so far by more than this
factor."""


class Capacities:
    """The numbers of places in the arrays for the parts of tables. They never shrink, since each change compiles new
    executables.

    Batches whose numbers of ids differ in their order of magnitude have separate numbers of places.

    Args:
      parts: number of parts of each table.
      headroom: the number of places of a part is its largest share so far, times this factor.
    """

    def __init__(self, parts: int, headroom: float = _HEADROOM) -> None:
        self._parts = parts
        self._headroom = headroom
        self._by_size: dict[tuple[int, ...], HostArray] = {}
        self._sizes: tuple[Sequence[HostArray], HostArray] = ((), np.empty((0, parts), np.int64))

    def of(self, ids: Sequence[int]) -> HostArray:
        """Returns the number of places for each part, ``[lookups, parts]``, if lookup ``i`` has ``ids[i]`` ids."""
        key = _orders(ids)
        found = self._by_size.get(key)
        if found is None:
            found = self._by_size[key] = np.zeros((len(ids), self._parts), np.int64)
        return found

    def fitting(self, ids: Sequence[int], counts: HostArray) -> HostArray:
        """Raises the numbers of places to at least ``counts``, ``[lookups, parts]``, and returns them in the same
        shape."""
        found = self.of(ids).copy()
        for room, needed, total in zip(found, counts, ids, strict=True):
            if not room.any():
                room[:] = self._roomy(int(needed.max()), total)
            for part in np.flatnonzero(needed > room):
                room[part] = self._roomy(int(needed[part]), total)
        self._by_size[_orders(ids)] = found
        return found

    def _roomy(self, count: int, total: int) -> int:
        return min(total, -(-int(count * self._headroom) // 8) * 8) if count else 0

    def sizes(self, sizes: Sequence[HostArray]) -> HostArray:
        """Stacks the numbers of rows of the parts of all tables, ``[lookups, parts]``; the last result is cached."""
        known, stacked = self._sizes
        if len(known) != len(sizes) or any(one is not other for one, other in zip(known, sizes, strict=True)):
            stacked = np.stack(sizes).astype(np.int64)
            self._sizes = tuple(sizes), stacked
        return stacked


def _orders(ids: Sequence[int]) -> tuple[int, ...]:
    return tuple([count.bit_length() for count in ids])


def _routed_spec(inference: Inference) -> Sequence[Spec]:
    ids = inference.inputs[0]
    parts = inference.attrs["parts"]
    return [*[Spec(ids.dtype.base_dtype, (None,))] * parts, Spec(int32, ids.dims)]


def _owners(ids: Any, total: Any, parts: int, strategy: str, module: Any) -> tuple[Any, Any]:
    """Returns, for every id, the part that has its row, and the row's index in the part.

    Args:
      total: number of rows of all parts.
      strategy: ``mod`` or ``div``; see `headwater.tf1.variables.embedding.embedding_lookup`.
    """
    if strategy == "mod":
        return ids % parts, ids // parts
    short, longer = total // parts, total % parts
    less = module.maximum(short, 1)
    part = module.maximum(ids // (short + 1), (ids - longer) // less)
    return part, module.where(part < longer, ids % (short + 1), (ids - longer) % less)


def route_traced(ids: jax.Array, sizes: jax.Array, *, parts: int, strategy: str) -> tuple[jax.Array, ...]:
    """Like `route`, within an executable. Sizes cannot depend on values there, so each part has as many places as there
    are ids."""
    flat = jnp.ravel(ids)
    part, row = _owners(flat, jnp.sum(sizes).astype(flat.dtype), parts, strategy, jnp)
    count = flat.shape[0]
    place = jnp.arange(count)
    first = _first_of_equals(flat) if count else place
    routed = tuple(jnp.where((part == index) & (first == place), row, NO_ROW) for index in range(parts))
    return *routed, (part * count + first).astype(np.int32).reshape(ids.shape)


def _first_of_equals(ids: jax.Array) -> jax.Array:
    """Returns, for each id, the position of its first occurrence."""
    order = jnp.argsort(ids, stable=True)
    ordered = ids[order]
    begins = jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])
    start = jax.lax.cummax(jnp.where(begins, jnp.arange(ids.size), 0))
    return jnp.zeros_like(order).at[order].set(order[start])


@host("RouteIds", inputs="ids:Tids|index, sizes:int64", infer=_routed_spec, traced=route_traced)
def route(context: object, ids: HostArray, sizes: HostArray, *, parts: int, strategy: str) -> Any:
    """Divides ids among the parts of a table.

    Args:
      ids: row numbers of the whole table.
      sizes: int64 ``[parts]``, the number of rows of each part.

    Returns:
      For each part, the requested rows, ``[places]``, padded with `NO_ROW`; then, as int32 in the shape of ``ids``, the
      index of each id's row in the concatenation of the results of all parts.

    Raises:
      IndexError: the table has no row for an id; the message has the id and its position.
    """
    found = _route(context, [ids], [sizes], parts, [strategy])
    return *found[:parts], found[-1]


def _routes_spec(inference: Inference) -> Sequence[Spec]:
    parts, ids = inference.attrs["parts"], inference.inputs[::2]
    asked = [Spec(ids[0].dtype.base_dtype, (None,))] * parts
    return [*asked, *[Spec(int64, (len(ids), 1))] * parts, *[Spec(int32, each.dims) for each in ids]]


@host("RouteTables", infer=_routes_spec)
def route_tables(
    context: object, *inputs: HostArray, parts: int, strategies: Sequence[str], names: Sequence[str]
) -> Sequence[HostArray]:
    """Runs several ``RouteIds`` at once, joined by `headwater.graph.passes.lookups`.

    Args:
      inputs: for each lookup, the ids, and the sizes of the parts of the table.
      strategies: the strategy of each lookup.
      names: names of the operations that this operation replaces.

    Returns:
      For each part, the requested rows, lookup by lookup; for each part, the number of these rows by lookup,
      ``[lookups, 1]``; and for each lookup, the place of each id.

    Raises:
      InvalidArgumentError: a table has no row for an id; the message has the operation, the id and its position.
    """
    return _route(context, inputs[::2], inputs[1::2], parts, strategies, names)


def route_once(
    capacities: Capacities, ids: Sequence[HostArray], sizes: Sequence[HostArray], strategies: Sequence[str]
) -> tuple[int, HostArray, HostArray, HostArray, HostArray]:
    """Calls `headwater.tables.routing.route` with enough places for all requests.

    Returns:
      The position of the first id without a row, or -1; the number of requests and the number of places of each part,
      ``[lookups, parts]`` each; the requested rows; the place of each id.
    """
    lengths = [each.size for each in ids]
    flat = np.concatenate([each.ravel() for each in ids], dtype=np.int64)
    ends = np.array(list(itertools.accumulate(lengths)), np.int64)
    all_sizes = capacities.sizes(sizes)
    by_ranges = np.array([strategy == "div" for strategy in strategies])
    room = capacities.of(lengths)
    bad, counts, routed, places = routing.route(flat, ends, all_sizes, by_ranges, room, NO_ROW)
    if bad < 0 and (counts > room).any():
        room = capacities.fitting(lengths, counts)
        _, _, routed, places = routing.route(flat, ends, all_sizes, by_ranges, room, NO_ROW)
    return bad, counts, room, routed, places


def _route(
    context: Any,
    ids: Sequence[HostArray],
    sizes: Sequence[HostArray],
    parts: int,
    strategies: Sequence[str],
    names: Sequence[str] = (),
) -> list[HostArray]:
    capacities = context.resource("", "", Capacities, lambda: Capacities(parts))
    bad, _, room, routed, places = route_once(capacities, ids, sizes, strategies)
    lengths = [each.size for each in ids]
    if bad >= 0:
        lookup = int(np.searchsorted(np.cumsum(lengths), bad, side="right"))
        refuse(ids[lookup], capacities.sizes(sizes)[lookup], parts, strategies[lookup], names[lookup] if names else "")
    routed = routed.astype(ids[0].dtype, copy=False)
    columns = list(np.ascontiguousarray(room.T)[..., np.newaxis])
    found, end = list[HostArray](), 0
    for column in columns:
        found.append(routed[end : (end := end + int(column.sum()))])
    first = 0
    for each, length in zip(ids, lengths, strict=True):
        columns.append(places[first : first + length].reshape(each.shape))
        first += length
    return found + columns


def refuse(ids: HostArray, sizes: HostArray, parts: int, strategy: str, name: str = "") -> None:
    """Raises IndexError for the first id that no part has, with the operation's name if given."""
    total = int(sizes.sum())
    short, longer = divmod(total, parts)
    try:
        if all(size == short + (index < longer) for index, size in enumerate(sizes.tolist())):
            require_rows(ids, total)
        part, row = _owners(ids, np.asarray(total, ids.dtype), parts, strategy, np)
        _require_parts(ids, part, row, sizes)
    except IndexError as error:
        if not name:
            raise
        raise InvalidArgumentError(f"{error} [in RouteIds operation {name!r}]") from error


def _require_parts(ids: HostArray, part: HostArray, row: HostArray, sizes: HostArray) -> None:
    known = (ids >= 0) & (part < len(sizes))
    bad = ~known | (row >= sizes[np.where(known, part, 0)])
    if bad.any():
        place = np.unravel_index(int(np.argmax(bad)), ids.shape)
        raise IndexError(
            f"indices[{','.join(map(str, place))}] = {ids[place]} is row {row[place]} of part {part[place]}; the parts "
            f"have {sizes.tolist()} rows"
        )


def _rows_spec(inference: Inference) -> Sequence[Spec]:
    params, places = inference.inputs[0], inference.inputs[1].dims
    known = None if params.dims is None or places is None else (*places, *params.dims[1:])
    return [Spec(bfloat16 if inference.attrs.get("halves") else params.dtype.base_dtype, known)]


@pure("GatherRouted", inputs="params:Tparams, routed:Tids|index", infer=_rows_spec, strings=True)
def gather_routed(params: AnyArray, routed: AnyArray, *, halves: bool = False) -> AnyArray:
    """Returns the rows of one part that ``RouteIds`` requests, ``[places, …]``; the first row for `NO_ROW`.

    ``RouteIds`` has checked that the rows exist. With ``halves``, rows are converted to bfloat16 for sending.
    """
    if array_module(params, routed) is np:
        rows = params[np.maximum(routed, 0)]
    else:
        rows = take_rows(params, routed, nearest=True)
    return rows.astype(jnp.bfloat16) if halves else rows


@pure("UpdateRows", inputs="indices:Tids|index", infer=unary, differentiable=False)
def update_rows(indices: jax.Array) -> jax.Array:
    """Marks the indices of an update as possibly including padding. Such an update skips indices that are out of range,
    whereas an update with unmarked indices fails.
    """
    return indices


def _joined_spec(inference: Inference) -> Sequence[Spec]:
    places, first = inference.inputs[0].dims, inference.inputs[1]
    known = None if places is None or first.dims is None else (*places, *first.dims[1:])
    return [Spec(float32 if inference.attrs.get("halves") else first.dtype.base_dtype, known)]


@pure("JoinRouted", inputs="places:int32, found:T*", infer=_joined_spec, strings=True)
def join_routed(places: AnyArray, *found: AnyArray, halves: bool = False) -> AnyArray:
    """Joins the rows of all parts in the order of the ids, with the shape of ``places`` and of a row; float32 if rows
    were sent as ``halves``."""
    if array_module(places, *found) is np:
        return np.concatenate(found)[places].astype(np.float32 if halves else found[0].dtype, copy=False)
    every = jnp.concatenate(found)
    return take_rows(every.astype(np.float32) if halves else every, places)


def _split_spec(inference: Inference) -> Sequence[Spec]:
    grad, _, *routed = inference.inputs
    tail = None if grad.dims is None or inference.inputs[1].dims is None else grad.dims[len(inference.inputs[1].dims) :]
    dtype = bfloat16 if inference.attrs.get("halves") else grad.dtype.base_dtype
    return [Spec(dtype, None if tail is None or each.dims is None else (*each.dims[:1], *tail)) for each in routed]


@pure("SplitRouted", inputs="grad:T, places:int32, routed:Tids*", infer=_split_spec)
def split_routed(grad: jax.Array, places: jax.Array, *routed: Any, halves: bool = False) -> tuple[jax.Array, ...]:
    """Returns the gradients of `join_routed` for each part's rows; gradients of the same place are added up.

    Args:
      grad: the gradient of the rows in the order of the ids.
      routed: the request to each part; only its number of places is used.
      halves: whether to convert the sums to bfloat16 for sending.
    """
    sizes = [each.shape[0] for each in routed]
    tail = grad.shape[places.ndim :]
    rows = add_rows(jnp.zeros((sum(sizes), *tail), grad.dtype), jnp.ravel(places), grad.reshape((places.size, *tail)))
    return tuple(jnp.split(rows.astype(jnp.bfloat16) if halves else rows, np.cumsum(sizes)[:-1]))


def _one_part_spec(inference: Inference) -> Sequence[Spec]:
    grad, places, first = inference.inputs[:3]
    if grad.dims is None or places.dims is None:
        return [Spec(grad.dtype.base_dtype, None), Spec(first.dtype.base_dtype, (None,))]
    known = None if None in places.dims else math.prod(dim or 0 for dim in places.dims)
    tail = grad.dims[len(places.dims) :]
    return [Spec(grad.dtype.base_dtype, (known, *tail)), Spec(first.dtype.base_dtype, (known,))]


@pure("RowsOfPart", inputs="grad:T, places:int32, routed:Tids*", infer=_one_part_spec)
def rows_of_part(grad: jax.Array, places: jax.Array, *routed: Any, part: int) -> tuple[object, object]:
    """Returns the result of `split_routed` for one part before equal ids are added up, and the indices of rows.

    Each id has a row; rows of other parts are zeros, with the index `NO_ROW`.
    """
    sizes = [each.shape[0] for each in routed]
    place = jnp.ravel(places) - sum(sizes[:part])
    rows = grad.reshape((places.size, *grad.shape[places.ndim :]))
    inside = (place >= 0) & (place < sizes[part])
    values = jnp.where(inside.reshape((-1,) + (1,) * (rows.ndim - 1)), rows, 0)
    if not sizes[part]:
        return values, jnp.full(place.shape, NO_ROW, routed[part].dtype)
    return values, jnp.where(inside, routed[part][jnp.clip(place, 0, sizes[part] - 1)], NO_ROW)


@pure("PackRows", infer=lambda inference: [Spec(inference.inputs[0].dtype.base_dtype, None)], differentiable=False)
def pack_rows(*tensors: jax.Array) -> jax.Array:
    """Concatenates the rows of several tensors."""
    return jnp.concatenate(tensors)


def _unpacked_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.inputs[0].dtype.base_dtype, None)] * len(inference.attrs["numbers"])


@pure("UnpackRows", infer=_unpacked_spec, static=(1,), differentiable=False)
def unpack_rows(
    packed: jax.Array, sizes: HostArray, *, numbers: Sequence[int], columns: Sequence[int] = (0,)
) -> tuple[jax.Array, ...]:
    """Restores the tensors that ``PackRows`` has concatenated.

    Args:
      sizes: sizes of each tensor, ``[tensors, n]``.
      numbers: indices in ``sizes`` of the tensors that were packed.
      columns: the column of ``sizes`` with the number of rows. With a second column, which has the size of a row, the
        tensors were flattened before.
    """
    shapes = [[int(sizes[number, column]) for column in columns] for number in numbers]
    found = jnp.split(packed, list(itertools.accumulate(map(math.prod, shapes)))[:-1])
    if len(columns) == 1:
        return tuple(found)
    return tuple(each.reshape(shape) for each, shape in zip(found, shapes, strict=True))
