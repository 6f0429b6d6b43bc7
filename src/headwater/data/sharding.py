"""Division of a dataset between workers, as the strategies of `tf.distribute` do automatically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from headwater.data.functions import Interleave
from headwater.data.node import Node, static_value
from headwater.data.options import AutoShardPolicy
from headwater.data.parts import BatchPart, BatchParts
from headwater.data.prefetch import Prefetch
from headwater.data.sources import FixedLengthRecords, Lines, Records, Slices
from headwater.data.spec import is_array
from headwater.data.transforms import SHARD_HINT, Repeat, Shard, Shuffle, Skip, Take
from headwater.errors import InvalidArgumentError, NotFoundError

#: Nodes above a batch that do not depend on its contents.
_LEAVE_BATCHES = (Prefetch, Repeat, Skip, Take)
_READERS = (Records, Lines, FixedLengthRecords)


def sharded(node: Node, count: int, index: int, policy: AutoShardPolicy = AutoShardPolicy.AUTO) -> Node:
    """Returns the part of worker ``index`` of ``count``.

    Args:
      node: the whole pipeline. If it is divided by element, each worker gets every ``count``-th element.
      policy: how to divide it.

    Raises:
      NotFoundError: the policy is FILE and there are no files, or fewer than workers.
      InvalidArgumentError: ``index`` is not below ``count``.
    """
    if not 0 <= index < count:
        raise InvalidArgumentError(f"index must be between 0 and {count - 1}, not {index}")
    if policy is AutoShardPolicy.OFF or (count == 1 and policy is not AutoShardPolicy.HINT):
        return node
    if policy is AutoShardPolicy.HINT:
        return _with_hints(node, count, index)
    if policy in (AutoShardPolicy.AUTO, AutoShardPolicy.FILE):
        files = file_count(node)
        if files is not None and files >= count:
            return _by_file(node, count, index)
        if policy is AutoShardPolicy.FILE:
            what = "the dataset reads no files" if files is None else f"the dataset reads {files} file(s)"
            raise NotFoundError(
                f"auto_shard_policy FILE cannot give each of {count} workers a file: {what}; use more files, or the "
                "policy DATA"
            )
    return _shard(node, count, index)


def distributed(node: Node, count: int, index: int, policy: AutoShardPolicy = AutoShardPolicy.AUTO) -> Node:
    """Returns the part of worker ``index`` of ``count`` in a pipeline whose elements are batches for all workers.

    If the pipeline is divided by element (DATA), the worker gets its part of each batch, so that the workers' parts
    together are the batch of a single worker. If it is divided by file (FILE), or not at all (OFF), the worker gets
    batches of its own, which have the size of such a part.

    Raises:
      NotFoundError: see `sharded`.
    """
    if count == 1:
        return node
    if policy is AutoShardPolicy.AUTO:
        files = file_count(node)
        policy = AutoShardPolicy.FILE if files is not None and files >= count else AutoShardPolicy.DATA
    if policy is AutoShardPolicy.DATA:
        return _divide_batches(node, count, index)
    return BatchParts(input=sharded(node, count, index, policy), count=count)


def _divide_batches(node: Node, count: int, index: int) -> Node:
    """Divides batches as early in the pipeline as is possible without changing the result, because whole batches cost
    more."""
    if isinstance(node, _LEAVE_BATCHES):
        return replace(node, input=_divide_batches(node.input, count, index))
    return BatchPart(input=node, count=count, index=index)


def with_seed(node: Node, seed: int) -> Node:
    """Returns the pipeline with ``seed`` for each shuffle that has none."""
    seeded = map_inputs(node, lambda child: with_seed(child, seed))
    if isinstance(seeded, Shuffle) and static_value(seeded.seed) == 0 and static_value(seeded.seed2) == 0:
        return replace(seeded, seed=np.asarray(seed, np.int64), seed2=np.asarray(1, np.int64))
    return seeded


def _shard(node: Node, count: int, index: int) -> Node:
    return Shard(input=node, count=np.asarray(count, np.int64), index=np.asarray(index, np.int64))


def map_inputs(node: Node, change: Callable[[Node], Node]) -> Node:
    """Returns ``node`` with ``change`` applied to its direct inputs."""
    changed: dict[str, object] = {}
    for name in node.children:
        child = getattr(node, name)
        new = tuple(change(item) for item in child) if isinstance(child, tuple) else change(child)  # pyright: ignore
        if new is not child and new != child:
            changed[name] = new
    return replace(node, **changed) if changed else node  # pyright: ignore[reportArgumentType, reportUnknownVariableType]


def _with_hints(node: Node, count: int, index: int) -> Node:
    if isinstance(node, Shard) and static_value(node.count) == SHARD_HINT:
        return _shard(node.input, count, index)
    return map_inputs(node, lambda child: _with_hints(child, count, index))


def reads_files(node: Node) -> bool:
    """Returns whether some of the elements are read from files."""
    return isinstance(node, _READERS) or any(map(reads_files, node.nodes()))


def file_count(node: Node) -> int | None:
    """Returns the number of input files; None if there are none, or their number is unknown."""
    if isinstance(node, _READERS):
        return int(np.size(node.filenames)) if is_array(node.filenames) else None
    if isinstance(node, Interleave):
        source = _file_names(node)
        return None if source is None else source.cardinality
    counts = [file_count(child) for child in node.nodes()]
    return None if not counts or None in counts else sum(count for count in counts if count is not None)


def _file_names(node: Interleave) -> Slices | None:
    """Returns the source of the file names of an interleave of readers."""
    if not node.reads_files:
        return None
    below: Node = node.input
    while not isinstance(below, Slices):
        children = list(below.nodes())
        if len(children) != 1 or not children[0].specs or children[0].specs != below.specs:
            return None
        below = children[0]
    is_text = len(below.components) == 1 and is_array(below.components[0])
    return below if is_text and below.components[0].dtype == object else None


def _by_file(node: Node, count: int, index: int) -> Node:
    if isinstance(node, _READERS):
        return replace(node, filenames=np.ravel(node.filenames)[index::count])
    if isinstance(node, Interleave):
        return replace(node, input=_shard_names(node.input, count, index))
    return map_inputs(node, lambda child: _by_file(child, count, index))


def _shard_names(node: Node, count: int, index: int) -> Node:
    if isinstance(node, Slices):
        return replace(node, components=tuple(component[index::count] for component in node.components))
    return map_inputs(node, lambda child: _shard_names(child, count, index))
