"""Block plans: plans of queue runners, changed to process many elements in one run.

A queue runner runs the same step in a loop: read a record, parse it, add it to a queue. If elements are processed one
by one, each costs a call for every operation. If the operations between reading and adding depend on the element only,
a block of elements can be processed together with the same results.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.graph.ops.rows import row_form
from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan
from headwater.graph.registry import Kind
from headwater.graph.tensor_names import operation_of

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
    """A plan, divided by how often its parts run.

    Attributes:
      setup: instructions that do not depend on the element; run once per block.
      source: the operation that takes an element from a reader or queue.
      body: instructions that process the elements.
      sink: the operation that adds an element to a queue.
      rows: names of operations with results that depend on the element.
    """

    setup: tuple[Compute | Host, ...]
    source: Node
    body: tuple[Compute | Host, ...]
    sink: Node
    rows: frozenset[str]

    def varies(self, tensor: str) -> bool:
        """Returns whether ``tensor`` depends on the element."""
        return operation_of(tensor) in self.rows


def in_blocks(plan: TaskPlan) -> BlockPlan | None:
    """Converts ``plan`` for blocks of elements; returns None if its elements have to be processed one by one.

    That is the case if it takes elements from several sources, returns results, communicates with other tasks, reads or
    changes variables, or has other operations that have to run once for each element.
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
        """Assigns one instruction to a part; returns False if the plan cannot be run in blocks."""
        # A block adds all its elements at its end, so an instruction after the sink could not run once per element.
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
        # As part of the setup, a random operation would draw once for a block instead of once for each element.
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
            # The first input is the queue, which must be the same for all elements.
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
