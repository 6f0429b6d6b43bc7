"""The graph of a program's objects in an object-based checkpoint: which object has which variable, by which name.

Nodes are objects: variables, optimizers, layers, modules, lists, dicts and other objects with parts (`Trackable`).
Edges are the attribute names by which objects refer to others. A variable's value is stored under the names on the
shortest path to it; the value of an optimizer's slot is stored beside the slot's variable.

Source: the protocol message ``TrackableObjectGraph`` of TensorFlow, and checkpoints that TensorFlow 1.15 wrote.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from headwater.graph.tensor_names import operation_of
from headwater.tensorboard_protos import trackable_object_graph_pb2
from headwater.tf1.layers.base import Layer
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.variables.module import Module
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.tensorboard_protos import NodeDef


OBJECT_GRAPH_KEY: Final = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The key of the serialised graph in a checkpoint."""

VARIABLE_VALUE: Final = "VARIABLE_VALUE"
_STATE: Final = "py_state"
_ATTRIBUTES: Final = ".ATTRIBUTES"
_SLOTS: Final = ".OPTIMIZER_SLOT"


class Trackable(ABC):
    """Base of objects with parts that are saved."""

    @abstractmethod
    def _parts(self) -> Iterable[tuple[str, Any]]:
        """Returns the parts of an object, with their names."""


class PythonState(ABC):
    """State of a program's own that a `Checkpoint` saves as text and restores."""

    @abstractmethod
    def serialize(self) -> bytes:
        """The state as bytes."""

    @abstractmethod
    def deserialize(self, string_value: bytes) -> None:
        """Restores the state returned by `serialize`."""


Parts: TypeAlias = Callable[[Any], list[tuple[str, Any]]]
"""Returns the parts of an object, with the names by which the object has them."""

KindOf: TypeAlias = Callable[[Any], "tuple[str, str] | None"]

_KINDS: Final = (Variable, PartitionedVariable, Optimizer, Layer, Module, Trackable, PythonState)


def is_trackable(value: object) -> bool:
    """Returns whether ``value`` is an object with declared parts; see `parts_of` for lists and dicts of these."""
    return isinstance(value, _KINDS)


def parts_of(value: object) -> list[tuple[str, Any]]:
    """The parts of an object, with the names by which it has them."""
    found: Iterable[tuple[str, Any]]
    match value:
        case Trackable():
            found = value._parts()  # pyright: ignore[reportPrivateUsage]
        case Optimizer():
            non_slots = cast("dict[tuple[str, Any], Any]", value._non_slots)  # pyright: ignore[reportPrivateUsage]
            found = sorted((name, variable) for (name, _), variable in non_slots.items())
        case Layer() | Module():
            found = ((name, part) for name, part in vars(value).items() if not name.startswith("_"))
        case list():
            found = ((str(index), part) for index, part in enumerate(cast("list[Any]", value)))
        case dict():
            found = cast("dict[str, Any]", value).items()
        case _:
            found = ()
    return [(name, part) for name, part in found if is_trackable(part) or isinstance(part, list | dict)]


def kind_of(value: object) -> tuple[str, str] | None:
    """Returns the kind of a value to save, and its name in the program; None for an object without a value."""
    if isinstance(value, Variable | PartitionedVariable):
        return VARIABLE_VALUE, operation_of(value.name)
    return (_STATE, "") if isinstance(value, PythonState) else None


@dataclass(kw_only=True)
class ObjectGraph:
    """Objects reachable from a root object.

    Attributes:
      objects: in breadth-first order; slots of optimizers are last.
      values: variables and `PythonState` objects to save, by their names in the checkpoint.
      proto: the message.
    """

    objects: list[Any] = field(default_factory=list[Any])
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    proto: Any = None


def object_graph(root: object, parts_of: Parts = parts_of, kind_of: KindOf = kind_of) -> ObjectGraph:
    """The objects that can be reached from ``root``."""
    found = ObjectGraph(proto=trackable_object_graph_pb2.TrackableObjectGraph())
    paths: dict[int, tuple[str, ...]] = {id(root): ()}
    numbers: dict[int, int] = {}
    waiting = deque([root])
    while waiting:
        each = waiting.popleft()
        numbers[id(each)] = len(found.objects)
        found.objects.append(each)
        for name, part in parts_of(each):
            if id(part) not in paths:
                paths[id(part)] = (*paths[id(each)], _escaped(name))
                waiting.append(part)
    plain = list(found.objects)
    for each in plain:
        node = found.proto.nodes.add()
        for name, part in parts_of(each):
            node.children.add(node_id=numbers[id(part)], local_name=name)
        _add_value(found, node, each, "/".join(paths[id(each)]), kind_of)
    for number, each in enumerate(plain):
        if isinstance(each, Optimizer):
            _add_slots(found, number, plain, paths)
    return found


def _add_value(found: ObjectGraph, node: NodeDef, value: object, path: str, kind_of: KindOf) -> None:
    stored = kind_of(value)
    if stored is None:
        return
    kind, full_name = stored
    key = f"{path}/{_ATTRIBUTES}/{kind}" if path else f"{_ATTRIBUTES}/{kind}"
    node.attributes.add(name=kind, full_name=full_name, checkpoint_key=key)
    found.values[key] = value


def _add_slots(found: ObjectGraph, number: int, plain: list[Any], paths: Mapping[int, tuple[str, ...]]) -> None:
    optimizer = plain[number]
    for slot_name in optimizer.get_slot_names():
        for original, variable in enumerate(plain):
            slot = optimizer.get_slot(variable, slot_name) if isinstance(variable, Variable) else None
            if slot is None:
                continue
            found.proto.nodes[number].slot_variables.add(
                original_variable_node_id=original, slot_name=slot_name, slot_variable_node_id=len(found.objects)
            )
            found.objects.append(slot)
            way = (*paths[id(variable)], _SLOTS, *paths[id(optimizer)], _escaped(slot_name))
            _add_value(found, found.proto.nodes.add(), slot, "/".join(way), kind_of)


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def keys_by_name(path: str) -> dict[str, str]:
    """Returns an object checkpoint's keys by variable names; empty for other checkpoints."""
    reader = CheckpointReader(path)
    if not reader.has_tensor(OBJECT_GRAPH_KEY):
        return {}
    proto = trackable_object_graph_pb2.TrackableObjectGraph.FromString(reader.get_tensor(OBJECT_GRAPH_KEY))
    return {each.full_name: each.checkpoint_key for node in proto.nodes for each in node.attributes if each.full_name}


def matches(root: object, proto: Any, parts_of: Parts = parts_of, number: int = 0) -> Iterator[tuple[Any, int]]:
    """Returns pairs of existing objects and the numbers of the corresponding nodes of ``proto``; ``root`` is the node
    ``number``."""
    seen: dict[int, Any] = {}
    waiting = deque([(root, number)])
    while waiting:
        each, number = waiting.popleft()
        if number in seen:
            continue
        seen[number] = each
        yield each, number
        parts = dict(parts_of(each))
        for child in proto.nodes[number].children:
            if child.local_name in parts:
                waiting.append((parts[child.local_name], child.node_id))
    for number, optimizer in list(seen.items()):
        if not isinstance(optimizer, Optimizer):
            continue
        for slot in proto.nodes[number].slot_variables:
            original = seen.get(slot.original_variable_node_id)
            variable = optimizer.get_slot(original, slot.slot_name) if original is not None else None
            if variable is not None:
                yield variable, slot.slot_variable_node_id
