"""Resources other than variables on a replicated task, and the execution of operations on them.

An operation runs atomically under the lock of the resources. If it has to wait, the attempt ends without effects, the
step waits without the lock, and then tries the operation again. So all effects of an operation form one change, with
one place in the order of all changes that the backup applies. While a step waits, its operation has changed nothing; so
after a failover, the step can wait on the new primary.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import numpy as np

from headwater.cluster.variables import REPLICAS
from headwater.errors import FailedPreconditionError, OpError
from headwater.graph.resources.containers import Resources, Signature
from headwater.graph.resources.recording import InstructionPlace, Outcome, ResourceOperation
from headwater.graph.resources.replicable import Key, ReplicableResource, ResourceState, StillWaitsError, is_handle
from headwater.graph.resources.replicable_kinds import (
    ensure_replicable,
    find_replicable,
    handle_of,
    is_replicable,
    replicable_resources,
)
from headwater.graph.resources.training_note import Note
from headwater.graph.runtime.step import Step

R = TypeVar("R")

_REFUSED: Final = {
    "IteratorState": "an iterator, whose place in its dataset cannot be sent",
    "Mutex": "the lock of a CriticalSection, which a step holds while other operations are carried out",
}


class CopiedResources(Resources):
    """The containers of a replicated task.

    Args:
      task: the full name of the task.
    """

    def __init__(self, task: str) -> None:
        super().__init__()
        self._task = task
        self._touched: dict[Key, ReplicableResource] | None = None
        self.on_change: Callable[[], None] = lambda: None

    @contextmanager
    def record_touched(self) -> Generator[dict[Key, ReplicableResource]]:
        """Collects the resources used within the context. The caller holds the lock."""
        before, self._touched = self._touched, {}
        try:
            yield self._touched
        finally:
            self._touched = before

    def get_or_make(
        self, container: str, name: str, kind: type[R], make: Callable[[], R], signature: Signature | None = None
    ) -> R:
        """See `Resources.get_or_make`.

        Raises:
          FailedPreconditionError: the resource cannot be replicated.
        """
        if kind is Note:
            return super().get_or_make(container, name, kind, make, signature)
        touched = self._touched
        if not is_replicable(kind):
            what = _REFUSED.get(kind.__name__, f"a {kind.__name__}")
            raise self._refusal(f"{name!r} is {what}, which cannot be replicated")
        # `touched` is None outside of an attempt. Only an operation that is an instruction of its own is attempted
        # under the lock. An operation inside a branch or loop is not, so its changes cannot be recorded for the backup.
        if touched is None:
            raise self._refusal(
                f"{kind.__name__} {name!r} is used inside a branch or loop, where its changes cannot be replicated"
            )
        is_new = self.find(container, name, kind) is None
        resource = super().get_or_make(container, name, kind, make, signature)
        assert isinstance(resource, ReplicableResource)
        if is_new:
            resource.share(self.lock)
        touched[Key(container, kind.__name__, name)] = resource
        return resource

    def find(self, container: str, name: str, kind: type[R]) -> R | None:
        resource = super().find(container, name, kind)
        self._record_touch(container, name, kind, resource)
        return resource

    def of_kind(self, kind: type[R]) -> dict[str, R]:
        with self.lock:
            for (container, its, name), resource in self._others.items():
                if its is kind:
                    self._record_touch(container, name, kind, resource)
            return super().of_kind(kind)

    def _record_touch(self, container: str, name: str, kind: type[object], resource: object) -> None:
        """Records that an operation uses a resource. `Changes` checks later whether the operation has changed the
        resource."""
        touched = self._touched
        if touched is not None and isinstance(resource, ReplicableResource):
            touched[Key(container, kind.__name__, name)] = resource

    def _refusal(self, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"the resources of {self._task} are replicated ({REPLICAS}=2), but {why}: place it on a worker with "
            f"tf.device, or unset {REPLICAS}"
        )

    def resources_of_handles(self, inputs: Sequence[Any]) -> dict[Key, ReplicableResource]:
        """Returns the existing resources to which handles among an operation's inputs refer, by key."""
        handled = {id(inputs[index].item()) for index in _handles(inputs)}
        return {key: its for key, its in replicable_resources(self).items() if id(its) in handled} if handled else {}

    def install_state(self, key: Key, called: str, state: ResourceState) -> None:
        """Installs ``state`` in the resource at ``key``, of the class ``called``; creates the resource if missing. The
        caller holds the lock."""
        resource, is_new = ensure_replicable(self, key, called, state)
        if is_new:
            resource.share(self.lock)
        resource.install_state(state)

    # Changes outside of steps -----------------------------------------------------------------------------------------

    def notify_session_ended(self, session: str, reason: str) -> None:
        with self.lock:
            super().notify_session_ended(session, reason)
            self.on_change()

    def end_session(self, session: str, reason: str) -> None:
        with self.lock:
            super().end_session(session, reason)
            self.on_change()


class Attempt(Step):
    """A step for an operation that is tried: waits raise `StillWaitsError` instead of blocking.

    Args:
      step: the step itself.
      place: the operation's place.
      notes: notes of the operation from earlier tries, see `headwater.graph.resources.replicable.first_value`.
      error: the error that ended the wait after the previous attempt; None if there is none.

    Attributes:
      notes: the argument.
      operation: the step and the place, which identify the effects of the operation's earlier attempts.
    """

    def __init__(
        self, step: Step, place: InstructionPlace, notes: dict[str, Any], error: OpError | None = None
    ) -> None:
        super().__init__(step.number, step.session, step.deadline)
        self.operation: tuple[object, ...] = (step.session, step.number, *place)
        self.notes: dict[str, object] = notes
        self.follows = step.follows
        self._step = step
        self._error = error

    def wait_until(self, condition: Any, ready: Callable[[], bool], what: str) -> None:
        # The wait between two attempts has failed, for example by the deadline. Raise its error inside the operation,
        # which may convert it or release reservations first.
        if self._error is not None:
            raise self._error
        if not ready():
            raise StillWaitsError(condition, ready, what)

    def at_end(self, call: Callable[[], object]) -> None:
        self._step.at_end(call)

    def check(self) -> None:
        self._step.check()

    def commit(self) -> None:
        self._step.commit()
        self.committed = True


class TryResult:
    """The result of one try of an operation.

    Args:
      resources: the task's resources; the caller holds their lock.
      attempt: the step of the try.
      inputs: the operation's inputs.

    Attributes:
      waits: the wait that has ended the try; None if the operation has completed.
      outcome: the operation's outcome, if the operation has completed.
      touched: the resources that the operation has used.
      cells: the variables among the operation's inputs that it has changed.
      failure: an exception other than `OpError`, after which the effects of the operation are unknown.
    """

    def __init__(
        self, resources: CopiedResources, operation: ResourceOperation, attempt: Attempt, inputs: Sequence[Any]
    ) -> None:
        self.waits: StillWaitsError | None = None
        self.outcome: Outcome = Outcome()
        self.failure: Exception | None = None
        before = [cell.updates for cell in operation.cells]
        with resources.record_touched() as self.touched:
            self.touched.update(resources.resources_of_handles(inputs))
            try:
                outputs = operation.perform(attempt, inputs)
                self.outcome = Outcome(outputs, commits=attempt.committed)
            except StillWaitsError as waits:
                self.waits = waits
            except OpError as error:
                self.outcome = Outcome(error=error)
            except Exception as failure:  # noqa: BLE001 - raised by `Changes`, which first has to handle its effects
                self.failure = failure
        self.cells = [cell for cell, was in zip(operation.cells, before, strict=True) if cell.updates != was]

    @property
    def returns_handles(self) -> bool:
        """Whether its outputs include handles of resources."""
        return bool(_handles(self.outcome.outputs))


def _handles(values: Sequence[object]) -> list[int]:
    """Returns the indices of the values that are handles of resources."""
    return [index for index, value in enumerate(values) if is_handle(value)]


def without_handles(resources: CopiedResources, inputs: Sequence[Any]) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """Encodes an operation's inputs for a frame: (position, key) of each handle of a resource, and the other values."""
    handles = _handles(inputs)
    if not handles:
        return [], [np.asarray(value) for value in inputs]
    keys = {id(its): key for key, its in resources.resources_of_handles(inputs).items()}
    handle_words = [(index, *keys[id(inputs[index].item())]) for index in handles]
    return handle_words, [np.asarray(value) for index, value in enumerate(inputs) if index not in handles]


def with_handles(resources: CopiedResources, handles: Sequence[Sequence[Any]], tensors: Sequence[Any]) -> list[Any]:
    """Restores the inputs encoded by `without_handles`, on the backup."""
    inputs = list(tensors)
    for index, *key in handles:
        inputs.insert(index, handle_of(find_replicable(resources, Key(*key))))
    return inputs
