"""Names in use, and the control dependencies of the current block."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from headwater.graph.operation import Operation, Tensor

_TOP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./-]*")
_NAME = re.compile(r"[A-Za-z0-9_./-]*")


def valid_name(name: str, at_top: bool) -> bool:
    """Whether an operation may be called ``name``; at the top a name may not start with ``_`` and its like."""
    return bool((_TOP_NAME if at_top else _NAME).fullmatch(name))


valid_scope = valid_name


class NameScope:
    """Which names are taken, and the scope that new ones are prefixed with."""

    def __init__(self) -> None:
        self.current = ""
        self._used: dict[str, int] = {}

    def claim(self, full_name: str) -> None:
        """Marks ``full_name`` as taken."""
        self._used.setdefault(full_name.lower(), 1)

    def unique(self, name: str, mark_as_used: bool) -> str:
        """A free name for ``name`` in the current scope. Upper and lower case count as the same, as in TensorFlow."""
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


class ControlDependencies:
    """The stack of ``control_dependencies`` blocks.

    An operation of a block runs after the block's inputs, unless one of its own inputs is of the block already and so
    runs after them anyway.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[list[Operation], set[Operation]]] = []

    @contextmanager
    def scope(self, ops: list[Operation] | None) -> Generator[None]:
        """Adds a block; None leaves all outer ones."""
        saved = self._blocks
        self._blocks = [] if ops is None else [*saved, (ops, set())]
        try:
            yield
        finally:
            self._blocks = saved

    def inputs_for(self, inputs: Sequence[Tensor], more: Sequence[Operation]) -> list[Operation]:
        """Control inputs for an operation that takes ``inputs``."""
        producers = {tensor.op for tensor in inputs}
        found: dict[Operation, None] = dict.fromkeys(more)
        for ops, members in self._blocks:
            if not producers & members:
                found.update(dict.fromkeys(op for op in ops if op not in producers))
        return list(found)

    def note_new(self, op: Operation) -> None:
        """Says that ``op`` was made in the current blocks."""
        for _, members in self._blocks:
            members.add(op)
