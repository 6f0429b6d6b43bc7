"""Scopes for new operations: names, devices, control dependencies."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from headwater.cluster.devices import merge_device_names
from headwater.graph.operation import Operation, Tensor

DeviceFunction = Callable[[Operation], "str | None"]

_TOP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./-]*")
_NAME = re.compile(r"[A-Za-z0-9_./-]*")


def valid_name(name: str, at_top: bool) -> bool:
    """Returns whether an operation may be called ``name``; at the top, a name must start with a letter, a digit or a
    dot."""
    return bool((_TOP_NAME if at_top else _NAME).fullmatch(name))


valid_scope = valid_name


class NameScope:
    """The names in use, and the prefix of new names."""

    def __init__(self) -> None:
        self.current = ""
        self._used: dict[str, int] = {}

    def claim(self, full_name: str) -> None:
        """Marks ``full_name`` as taken."""
        self._used.setdefault(full_name.lower(), 1)

    def unique(self, name: str, mark_as_used: bool) -> str:
        """Returns an unused variant of ``name`` in the current scope. Names are case-insensitive, as in TensorFlow."""
        if self.current:
            name = f"{self.current}/{name}"
        key = name.lower()
        count = self._used.get(key, 0)
        if mark_as_used:
            self._used[key] = count + 1
        if count == 0:
            return name
        base = key
        while key in self._used:
            key = f"{base}_{count}"
            count += 1
        if mark_as_used:
            self._used[base] = count
            self._used[key] = 1
        return f"{name}_{count - 1}"


class DeviceScopes:
    """The stacks of ``device`` and ``colocate_with`` blocks.

    Args:
      start: stacks to copy the present blocks from.
    """

    def __init__(self, start: DeviceScopes | None = None) -> None:
        self._devices: list[str | DeviceFunction | None] = [] if start is None else start._devices
        self._colocation: list[Operation | str | None] = [] if start is None else start._colocation

    @contextmanager
    def device(self, entry: str | DeviceFunction | None) -> Generator[None]:
        """Adds a device: a canonical name, a function, or None, which hides all outer devices."""
        saved = self._devices
        self._devices = [*saved, entry]
        try:
            yield
        finally:
            self._devices = saved

    def functions(self) -> list[DeviceFunction]:
        """Returns the functions among the devices of the current blocks, the innermost last."""
        return [entry for entry in self._devices if callable(entry)]

    @contextmanager
    def colocated(self, target: Operation | str | None, ignore_existing: bool) -> Generator[None]:
        """Adds a colocation target, and hides all outer devices."""
        saved = self._colocation, self._devices
        self._colocation = [target] if ignore_existing else [*self._colocation, target]
        self._devices = []
        try:
            yield
        finally:
            self._colocation, self._devices = saved

    def place(self, op: Operation, fixed: str | None) -> None:
        """Sets a new operation's device from the current blocks, or to ``fixed``."""
        if fixed is not None:
            op._set_device(fixed)  # pyright: ignore[reportPrivateUsage]
        else:
            self._apply_devices(op)
        groups: list[bytes] = []
        for target in reversed(self._colocation):  # the outermost target with a device takes precedence
            if isinstance(target, str):
                groups.append(f"loc:@{target}".encode())
            elif target is not None:
                groups.extend(target.colocation_groups())
                if fixed is None and target.device:
                    op._set_device(target.device)  # pyright: ignore[reportPrivateUsage]
        if groups:
            op.attrs["_class"] = sorted(set(groups) | set(op.attrs.get("_class", ())))

    def _apply_devices(self, op: Operation) -> None:
        for entry in reversed(self._devices):
            if entry is None:
                return
            wanted = (entry(op) or "") if callable(entry) else merge_device_names(entry, op.device)
            op._set_device(wanted)  # pyright: ignore[reportPrivateUsage]


class ControlDependencies:
    """The stack of ``control_dependencies`` blocks.

    An operation that is created in a block runs after the block's inputs. It needs no control inputs if one of its own
    inputs was created in the block, because that input already runs after the block's inputs.

    Args:
      start: a stack to copy the present blocks from.
    """

    def __init__(self, start: ControlDependencies | None = None) -> None:
        self._blocks: list[tuple[list[Operation], set[Operation]]] = [] if start is None else start._blocks
        self._changed: tuple[list[Operation], dict[Operation, list[Operation]]] = ([], {})

    @contextmanager
    def scope(self, ops: list[Operation] | None) -> Generator[None]:
        """Adds a block; None hides all outer blocks."""
        saved = self._blocks
        self._blocks = [] if ops is None else [*saved, (ops, set())]
        try:
            yield
        finally:
            self._blocks = saved

    def inputs_for(self, inputs: Sequence[Tensor], more: Sequence[Operation]) -> list[Operation]:
        """Returns the control inputs for an operation that takes ``inputs``."""
        producers = {tensor.op for tensor in inputs}
        found: dict[Operation, None] = dict.fromkeys(more)
        for ops, members in self._blocks:
            if not producers & members:
                found.update(dict.fromkeys(op for op in ops if op not in producers))
        return list(found)

    def may_change(self, variable: Operation, initializer: Operation | None) -> bool:
        """Returns whether new operations wait for a change of ``variable`` other than by its ``initializer``."""
        ops = [op for block, _ in self._blocks for op in block]
        # A cache of the last result: programs often open a block for the same operations again, for example once for
        # each variable.
        if ops and ops != self._changed[0]:
            self._changed = ops, _changes_of(ops)
        return bool(ops) and any(op is not initializer for op in self._changed[1].get(variable, ()))

    def register_operation(self, op: Operation) -> None:
        """Registers ``op`` as created in the current blocks."""
        for _, members in self._blocks:
            members.add(op)


def _changes_of(ops: list[Operation]) -> dict[Operation, list[Operation]]:
    """Returns, for each variable, the operations that change it, among ``ops`` and operations that these need."""
    seen: set[Operation] = set(ops)
    waiting = list(ops)
    changes: dict[Operation, list[Operation]] = {}
    while waiting:
        op = waiting.pop()
        for at in op.definition.ref_positions(op.attrs):
            changes.setdefault(op.inputs[at].op, []).append(op)
        new = {*(tensor.op for tensor in op.inputs), *op.control_inputs} - seen
        seen |= new
        waiting += new
    return changes


class Scopes:
    """A graph's stacks of blocks, shared by all threads."""

    def __init__(self) -> None:
        self.places = DeviceScopes()
        self.control = ControlDependencies()


class ScopesOfThreads(threading.local):
    """Thread-local stacks, which start with the blocks that were open when this object was created.

    The creating thread continues with the stacks of ``shared``, since it will close their open blocks.
    """

    def __init__(self, places: DeviceScopes, control: ControlDependencies) -> None:
        self.places = DeviceScopes(places)
        self.control = ControlDependencies(control)

    @classmethod
    def of(cls, shared: Scopes) -> ScopesOfThreads:
        made = cls(DeviceScopes(shared.places), ControlDependencies(shared.control))
        made.places, made.control = shared.places, shared.control
        return made
