"""The resources of a task that outlive steps: variables, queues and others, in containers.

Containers belong to the task, not to a session: sessions share them by name, and they last until the process ends or
`Resources.clear` is called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from headwater.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np

    from headwater.graph.server.replicas.changes import Changes

R = TypeVar("R")
Signature = Mapping[str, object]
"""The properties of a shared resource that all its operations must agree on, by name: type, element types, shapes, …"""


class Cell:
    """The storage of a variable.

    Attributes:
      name: its name in the container.
      value: the current value (a ``jax.Array``), or None before the first assignment. Read and replaced under
        `Resources.lock`, because an update donates the old value's buffer.
      counts: an array in which entry ``slot`` is the variable's number of updates. It may be mapped to a file; see
        `headwater.graph.resources.update_counts`. Changed under `Resources.lock`.
      slot: the variable's index in ``counts``.
    """

    __slots__ = ("counts", "name", "slot", "value")

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.value: Any = None
        # An array entry instead of an integer attribute: the array can be replaced by one that is mapped to a file, and
        # the code that counts an update stays the same and costs as little.
        self.counts: list[int] | memoryview[int] = [0]
        self.slot: int = 0

    @property
    def updates(self) -> int:
        """Number of times that the value was replaced."""
        return self.counts[self.slot]

    @property
    def initialized(self) -> bool:
        return self.value is not None

    def install(self, value: np.ndarray[Any, Any], updates: int) -> None:
        """Installs the state of a replicated or saved variable: a value, which belongs to the cell from now on, and the
        variable's number of updates. The caller holds `Resources.lock`."""
        value.flags.writeable = False  # a program that fetches it gets a copy
        self.value = value
        self.counts[self.slot] = updates


class Resources:
    """The containers of one task.

    Attributes:
      lock: held while values are read from cells, passed to an executable, and replaced; never while waiting.
      recorder: records changes of variables for the backup; None without replication. Compiled plans keep a reference,
        so it must be set before plans are compiled.
    """

    def __init__(self) -> None:
        # One lock for all variables: the part of a step on a ps usually updates all of them, so a lock for each would
        # be taken in every step anyway (docs/decisions/one-lock.md).
        self.lock: threading.RLock = threading.RLock()
        self.recorder: Changes | None = None
        self._cells: dict[tuple[str, str], Cell] = {}
        self._others: dict[tuple[str, type, str], Any] = {}
        self._signatures: dict[tuple[str, type, str], Signature] = {}

    def cell(self, container: str, name: str) -> Cell:
        """Returns the variable ``name``; creates it if missing."""
        with self.lock:
            key = (container, name)
            if key not in self._cells:
                self._cells[key] = Cell(name)
            return self._cells[key]

    def cells(self) -> dict[tuple[str, str], Cell]:
        """Returns all variables by container and name."""
        with self.lock:
            return dict(self._cells)

    def get_or_make(
        self, container: str, name: str, kind: type[R], make: Callable[[], R], signature: Signature | None = None
    ) -> R:
        """Returns the resource ``name`` of class ``kind`` (a queue, a table …); creates it if missing.

        Args:
          container, name, kind: the resource's key.
          make: creates the resource.
          signature: properties on which all operations that share the resource must agree; None if there are none.

        Raises:
          InvalidArgumentError: the resource was created with another signature.
        """
        key = (container, kind, name)
        resource = self._others.get(key)
        if resource is not None and self._signatures.get(key) == signature:  # no lock: an update may hold it for long
            return resource
        with self.lock:
            if key not in self._others:
                self._others[key] = make()
            if signature is not None:
                _check_signature(kind, name, self._signatures.setdefault(key, signature), signature)
            return self._others[key]

    def find(self, container: str, name: str, kind: type[R]) -> R | None:
        """Returns the resource ``name`` of class ``kind``; None if there is none."""
        return self._others.get((container, kind, name))

    def kinds(self) -> set[type]:
        """Returns the classes of the existing resources other than variables."""
        return {kind for _, kind, _ in self.others()}

    def others(self) -> dict[tuple[str, type, str], Any]:
        """Returns all resources other than variables, by container, class and name."""
        with self.lock:
            return dict(self._others)

    def add(self, container: str, kind: type, name: str, made: object) -> None:
        """Adds a resource of class ``kind`` under a key that is not in use."""
        with self.lock:
            self._others[container, kind, name] = made

    def of_kind(self, kind: type[R]) -> dict[str, R]:
        """Returns all resources of a class by name."""
        with self.lock:
            return {name: resource for (_, its, name), resource in self._others.items() if its is kind}

    def end_session(self, session: str, reason: str) -> None:
        """Discards the resources of one session: those in the container `session_container`."""
        self._drop(lambda key: key[0] == session_container(session))
        self.notify_session_ended(session, reason)
        for other in self._all_others():
            forget_session = getattr(other, "forget_session", None)
            if forget_session is not None:
                forget_session(session)

    def notify_session_ended(self, session: str, reason: str) -> None:
        """Calls ``session_ended`` on the resources that have such a method: the session's client is lost, and may
        reconnect. If the client does not reconnect, `end_session` later calls ``forget_session`` of these resources."""
        for other in self._all_others():
            session_ended = getattr(other, "session_ended", None)
            if session_ended is not None:
                session_ended(session, reason)

    def job_over(self, reason: str) -> None:
        """Calls ``job_over`` on the resources that have such a method: the chief's program has ended without an
        error."""
        for other in self._all_others():
            job_over = getattr(other, "job_over", None)
            if job_over is not None:
                job_over(reason)

    def _all_others(self) -> list[object]:
        with self.lock:
            return list(self._others.values())

    def _drop(self, ended: Callable[[tuple[str, type, str]], bool]) -> None:
        with self.lock:
            for key in [key for key in self._others if ended(key)]:
                # Otherwise a later resource of this name would have to agree with the signature of this one.
                self._signatures.pop(key, None)
                closing = getattr(self._others.pop(key), "close_now", None)
                if closing is not None:
                    closing()

    def clear(self, containers: list[str] | None = None) -> None:
        """Discards the contents of ``containers`` (all if None or empty; ``""`` is the default container).

        Compiled plans hold references to cells, so cells are kept and only lose their values.
        """
        with self.lock:
            for (container, _), cell in self._cells.items():
                if not containers or container in containers:
                    cell.value = None
        self._drop(lambda key: not containers or key[0] in containers)


def _check_signature(kind: type, name: str, made: Signature, asked: Signature) -> None:
    for what in {**made, **asked}:
        if made.get(what) != asked.get(what):
            raise InvalidArgumentError(
                f"Shared {kind.__name__.lower()} '{name}' has {what} {_shown(made.get(what))} that does not match "
                f"{_shown(asked.get(what))}, which this operation asks for"
            )


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_shown, cast('Sequence[object]', value)))}]"
    return str(getattr(value, "name", value))


_OF_SESSION: Final = "session "


def session_container(session: str) -> str:
    """Returns the name of the container for resources of one session only."""
    return f"{_OF_SESSION}{session}"


def is_of_session(container: str) -> bool:
    """Returns whether a container belongs to one session."""
    return container.startswith(_OF_SESSION)
