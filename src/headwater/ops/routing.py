"""Lookups in a table that is divided into parts: each id goes to the part that has its row, and to no other.

``RouteIds`` divides the ids, ``GatherRouted`` reads the rows of one part, and a gather puts them in the ids' order. An
executable is compiled for each size of its inputs, and how many ids fall to a part differs from step to step. So as
many places go to a part as its largest share so far, and some more; places that are left over hold `NO_ROW`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from headwater.dtypes import int32
from headwater.ops.common import AnyArray, array_module
from headwater.ops.define import host, pure
from headwater.ops.indexing import require_rows
from headwater.registry import HostArray, Inference, Spec

NO_ROW: Final = -1
"""Stands in a place that no id was routed to. It reads any row, which nothing uses, and updates none."""

_HEADROOM = 1.25
"""A part gets this multiple of the places of its largest share: shares that vary as chance has it rarely outgrow it."""


class Capacities:
    """How many places the parts of a table get, which never becomes less: each growth has executables compiled anew."""

    def __init__(self) -> None:
        self._by_size: dict[int, list[int]] = {}

    def fitting(self, counts: Sequence[int]) -> list[int]:
        """Places for each part, at least ``counts``. They are kept apart for batches of different orders of size."""
        total = sum(counts)
        found = self._by_size.get(total.bit_length())
        if found is None:
            found = [_roomy(max(counts), total)] * len(counts)
        elif any(count > places for count, places in zip(counts, found, strict=True)):
            found = [
                places if count <= places else _roomy(count, total) for count, places in zip(counts, found, strict=True)
            ]
        self._by_size[total.bit_length()] = found
        return found


def _roomy(count: int, total: int) -> int:
    return min(total, -(-int(count * _HEADROOM) // 8) * 8) if count else 0


def _routed_spec(inference: Inference) -> Sequence[Spec]:
    ids = inference.inputs[0]
    parts = inference.attrs["parts"]
    return [*[Spec(ids.dtype.base_dtype, (None,))] * parts, Spec(int32, ids.dims)]


def _owners(ids: Any, total: Any, parts: int, strategy: str, module: Any) -> tuple[Any, Any]:
    """For every id the part that has its row, and which of its rows that is.

    Args:
      total: how many rows all parts have.
      strategy: ``mod`` or ``div``; see `headwater.variables.embedding.embedding_lookup`.
    """
    if strategy == "mod":
        return ids % parts, ids // parts
    short, longer = total // parts, total % parts
    less = module.maximum(short, 1)
    part = module.maximum(ids // (short + 1), (ids - longer) // less)
    return part, module.where(part < longer, ids % (short + 1), (ids - longer) % less)


def route_traced(ids: jax.Array, sizes: jax.Array, *, parts: int, strategy: str) -> tuple[jax.Array, ...]:
    """`route` within an executable, where sizes cannot depend on values: each part has a place for every id."""
    flat = jnp.ravel(ids)
    part, row = _owners(flat, jnp.sum(sizes).astype(flat.dtype), parts, strategy, jnp)
    count = flat.shape[0]
    routed = tuple(jnp.where(part == index, row, NO_ROW) for index in range(parts))
    return *routed, (part * count + jnp.arange(count)).astype(np.int32).reshape(ids.shape)


@host("RouteIds", inputs="ids:Tids|index, sizes:int64", infer=_routed_spec, traced=route_traced)
def route(context: Any, ids: Any, sizes: Any, *, parts: int, strategy: str) -> Any:
    """Divides ids among the parts of a table.

    Args:
      ids: row numbers of the whole.
      sizes: int64 ``[parts]``, how many rows each part has.

    Returns:
      For each part the rows that it is asked for, ``[places]``, with `NO_ROW` in places left over; then, in the shape
      of ``ids``, the place that each id got when the parts' places are put one after the other, as int32.

    Raises:
      IndexError: the table has no row of an id; the message names the id and its place.
    """
    flat = ids.ravel()
    total = int(sizes.sum())
    part, row = _owners(flat, np.asarray(total, flat.dtype), parts, strategy, np)
    short, longer = divmod(total, parts)
    if all(size == short + (index < longer) for index, size in enumerate(sizes.tolist())):
        require_rows(ids, total)
    else:
        _require_parts(ids, part.reshape(ids.shape), row.reshape(ids.shape), sizes)
    counts = np.bincount(part, minlength=parts)
    places = context.resource("", "", Capacities, Capacities).fitting(counts.tolist())
    ends = np.cumsum(places)
    # Numbers of 16 bits are sorted digit by digit, which is several times as fast as by comparison.
    order = part.astype(np.uint16 if parts < 1 << 16 else np.int64).argsort(kind="stable")
    place = np.empty(flat.size, np.int32)
    place[order] = np.arange(flat.size) + np.repeat(ends - places - (np.cumsum(counts) - counts), counts)
    routed = np.full(ends[-1], NO_ROW, flat.dtype)
    routed[place] = row
    return *np.split(routed, ends[:-1]), place.reshape(ids.shape)


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
    return [Spec(params.dtype.base_dtype, known)]


@pure("GatherRouted", inputs="params:Tparams, routed:Tids|index", infer=_rows_spec, strings=True)
def gather_routed(params: AnyArray, routed: AnyArray) -> AnyArray:
    """The rows of one part that ``RouteIds`` asks for, ``[places, …]``; the first row for `NO_ROW`.

    ``RouteIds`` has seen to it that the rows exist.
    """
    if array_module(params, routed) is np:
        return params[np.maximum(routed, 0)]
    return jnp.asarray(params).at[jnp.maximum(routed, 0)].get(mode="clip")


@pure("UpdateRows", inputs="indices:Tids|index", differentiable=False)
def update_rows(indices: jax.Array) -> jax.Array:
    """Indices of an update some of which are left over: these lie outside the variable, and change nothing.

    An update whose indices come from elsewhere fails where one is outside.
    """
    return indices
