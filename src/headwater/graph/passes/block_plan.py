"""Block plans: plans that queue runners ask for again and again, as ones of which a run stands for many.

A queue runner asks for the same step again and again: take a record, take it apart, add it to a queue. One at a time
that costs as many calls per element as there are operations. Where everything between the taking and the adding is a
function of the one element, a block of elements can go through together, and each comes out as it would have alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.graph.ops.rows import row_form
from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan
from headwater.graph.registry import Kind

_HANDLES = frozenset(
    {
        "FIFOQueueV2",
        "PaddingFIFOQueueV2",
        "RandomShuffleQueueV2",
        "PriorityQueueV2",
        "TFRecordReaderV2",
        "TextLineReaderV2",
        "FixedLengthRecordReaderV2",
        "WholeFileReaderV2",
        "IdentityReaderV2",
    }
)
_SOURCES = frozenset({"ReaderReadV2", "QueueDequeueV2"})
_SINK = "QueueEnqueueV2"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockPlan:
    """A plan, sorted by how often its parts run.

    Attributes:
      setup: what is the same for all elements; runs once for a block.
      source: takes an element from a reader or queue.
      body: works on the elements.
      sink: adds an element to a queue.
      rows: operations that give something else for each element.
    """

    setup: tuple[Compute | Host, ...]
    source: Node
    body: tuple[Compute | Host, ...]
    sink: Node
    rows: frozenset[str]

    def varies(self, tensor: str) -> bool:
        """Whether ``tensor`` is something else for each element."""
        return operation_of(tensor) in self.rows


def operation_of(tensor: str) -> str:
    """The name of the operation that gives ``tensor``."""
    return tensor.rpartition(":")[0]


def in_blocks(plan: TaskPlan) -> BlockPlan | None:
    """``plan`` for blocks of elements; None where its elements can only go through it one by one.

    That is the case where it takes elements from several places, gives results, talks to other tasks, reads or
    changes variables, or does anything else that has to happen once for each element.
    """
    sorter = _Sorter()
    if plan.feeds or plan.fetches or not all(sorter.accepts(item) for item in plan.instructions):
        return None
    return sorter.result()


class _Sorter:
    def __init__(self) -> None:
        self._setup: list[Compute | Host] = []
        self._body: list[Compute | Host] = []
        self._source: Node | None = None
        self._sink: Node | None = None
        self._rows: set[str] = set()

    def accepts(self, item: object) -> bool:
        """Sorts one instruction in; False where the plan cannot go in blocks."""
        if self._sink is not None:
            return False
        match item:
            case Compute():
                return self._compute(item)
            case Host():
                return self._host(item)
            case _:
                return False

    def _varies(self, tensor: str) -> bool:
        return operation_of(tensor) in self._rows

    def _compute(self, item: Compute) -> bool:
        kinds = {node.definition.kind for node in item.nodes}
        if item.static or any(node.refs for node in item.nodes) or not kinds <= {Kind.PURE, Kind.RANDOM}:
            return False
        if any(node.type == "VariableV2" for node in item.nodes):
            return False
        varying = any(map(self._varies, item.inputs))
        if Kind.RANDOM in kinds and not varying:
            return False
        if varying:
            self._body.append(item)
            self._rows.update(map(operation_of, item.outputs))
        else:
            self._setup.append(item)
        return True

    def _host(self, item: Host) -> bool:
        node = item.node
        varying = any(map(self._varies, node.inputs))
        if node.type in _HANDLES:
            self._setup.append(item)
        elif node.type in _SOURCES:
            if self._source is not None:
                return False
            self._source = node
            self._rows.add(node.name)
        elif node.type == _SINK:
            self._sink = node
            return varying and not self._varies(node.inputs[0])
        elif node.refs or row_form(node.type, node.attrs, tuple(map(self._varies, node.inputs))) is None:
            return False
        elif varying:
            self._body.append(item)
            self._rows.add(node.name)
        else:
            self._setup.append(item)
        return True

    def result(self) -> BlockPlan | None:
        if self._source is None or self._sink is None:
            return None
        return BlockPlan(
            setup=tuple(self._setup),
            source=self._source,
            body=tuple(self._body),
            sink=self._sink,
            rows=frozenset(self._rows),
        )
