"""Consistency of training: when a worker may begin its next step, and when gradients become an update.

Four choices, from the strictest to the most relaxed:

- `Synchronous`: an update is the mean of one gradient from every member, all of the same version of the variables. When
  workers join or leave, the next update is made with the members at that time. If workers share each batch, so that
  a gradient covers a part of it (`Part`), an update needs the gradients of the whole batch: if a worker leaves, the
  other workers compute its part.
- `KOfN`: an update is the mean of the first k gradients of a version; later gradients of that version are stale and
  dropped. As in TensorFlow, gradients that arrive after the k-th, but before the update is made, are part of the mean.
- `BoundedStaleness`: each gradient is an update of its own, and no worker is more than s steps ahead of the slowest one
  (stale synchronous parallel: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter
  Server", NeurIPS 2013).
- `Asynchronous`: each gradient is an update of its own, and no worker waits for another.

`decide` takes a state, an event and the time, and returns the next state, the actions, and a reason. It is a pure
function: the task that holds the variables executes the actions. Graphs, Keras and JAX share it.

Terms: a *version* of the variables is the number of updates applied to them. A worker's *clock* is the number of steps
it has completed. The *staleness* of a gradient is the number of updates applied since its values were read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

# The choices ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Consistency:
    """One of the four choices.

    Attributes:
      patience_s: how long other workers wait for the gradient of a worker, in seconds. After that the worker counts as
        lost, until its next gradient arrives. None: a worker counts as lost only if its loss is known, such as when its
        connection ended.
    """

    patience_s: float | None = None

    def __post_init__(self) -> None:
        if self.patience_s is not None and self.patience_s <= 0:
            raise ValueError(f"patience_s must be positive, but is {self.patience_s:g}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Synchronous(Consistency):
    """Every update is the mean of one gradient from each worker.

    Attributes:
      workers: number of workers that must have joined before the first update. Later updates need the current members.
    """

    workers: int

    def __post_init__(self) -> None:
        Consistency.__post_init__(self)
        _at_least("workers", self.workers, 1)

    def __str__(self) -> str:
        return "synchronous"


@dataclass(frozen=True, kw_only=True, slots=True)
class KOfN(Consistency):
    """Every update is the mean of the first k gradients of a version.

    k is a minimum, like ``num_required`` of an accumulator's ``take_grad`` in TensorFlow: an update uses all gradients
    that are gathered when it is made. A gradient of the same version that arrives after the k-th, but before the update
    is made, is therefore part of the mean, although the counter of dropped gradients includes it.

    Attributes:
      k: number of gradients. With fewer workers, some of them contribute more than one.
      n: number of workers expected at the beginning; None for k workers. Until they have joined, no worker contributes
        more than one gradient to an update.
    """

    k: int
    n: int | None = None

    def __post_init__(self) -> None:
        Consistency.__post_init__(self)
        _at_least("k", self.k, 1)
        if self.n is not None:
            _at_least("n", self.n, 1)

    def __str__(self) -> str:
        return f"{self.k} of n"


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundedStaleness(Consistency):
    """Every gradient is an update of its own; the fastest worker waits for the slowest.

    Attributes:
      steps: number of steps by which a worker may be ahead of the slowest one and still begin another; 0: all workers
        take their steps in lockstep.
    """

    steps: int

    def __post_init__(self) -> None:
        Consistency.__post_init__(self)
        _at_least("steps", self.steps, 0)

    def __str__(self) -> str:
        return f"at most {self.steps} steps ahead"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asynchronous(Consistency):
    """Every gradient is an update of its own, and no worker waits."""

    def __str__(self) -> str:
        return "asynchronous"


def from_text(setting: str | Consistency, workers: int | None = None) -> Consistency:
    """Parses a choice of consistency.

    ``async``, ``sync``, ``sync=3`` (the first update waits for three workers), ``k=3``, ``k=3 of 5`` (five workers are
    expected at the beginning) or ``staleness=4``; optionally followed by ``patience=30`` (see
    `Consistency.patience_s`). The texts of `to_text` are read, too.

    >>> from_text("k=3 of 5")
    KOfN(patience_s=None, k=3, n=5)
    >>> from_text("sync patience=30", workers=4)
    Synchronous(patience_s=30.0, workers=4)
    >>> from_text("eventually")
    Traceback (most recent call last):
    ValueError: 'eventually' is not a choice of consistency ...

    Args:
      setting: a text, or a choice, which is returned unchanged.
      workers: number of workers of the job, for ``sync`` without a number; None if it is unknown.

    Raises:
      ValueError: the text names no choice, or an invalid one.
    """
    if isinstance(setting, Consistency):
        return setting
    words = setting.replace("=", " ").replace(" of ", " ").split()
    try:
        patience_s = float(words[-1]) if words[-2:-1] == ["patience"] else None
        kind, *amount = (words if patience_s is None else words[:-2]) or [""]
        numbers = [int(word) for word in amount]
        if kind == "sync" and not numbers and workers is not None:
            numbers = [workers]
        match _SHORT_NAMES.get(kind, kind), numbers:
            case "sync", [count]:
                return Synchronous(workers=count, patience_s=patience_s)
            case "sync", []:
                raise ValueError("the number of workers is unknown: write 'sync=2' for two")
            case "k", [k]:
                return KOfN(k=k, patience_s=patience_s)
            case "k", [k, n]:
                return KOfN(k=k, n=n, patience_s=patience_s)
            case "staleness", [steps]:
                return BoundedStaleness(steps=steps, patience_s=patience_s)
            case "async", []:
                return Asynchronous(patience_s=patience_s)
            case _:
                raise ValueError("unknown name, or wrong number of values")
    except ValueError as error:
        raise ValueError(
            f"{setting!r} is not a choice of consistency ({error}); consistency must be 'async', 'sync', 'k=3', "
            "'k=3 of 5' or 'staleness=4', optionally followed by ' patience=30'"
        ) from None


#: Maximum number of workers that a text lists by name.
_LISTED = 5
_SHORT_NAMES = {"asynchronous": "async", "synchronous": "sync", "k-of-n": "k", "bounded-staleness": "staleness"}
"""The short form of each name. `to_text` writes the long forms, which are in names of graphs and checkpoints."""


def to_text(choice: Consistency) -> str:
    """Returns a choice as a text that `from_text` reads."""
    match choice:
        case Synchronous(workers=workers):
            text = f"synchronous {workers}"
        case KOfN(k=k, n=n):
            text = f"k-of-n {k}" if n is None else f"k-of-n {k} {n}"
        case BoundedStaleness(steps=steps):
            text = f"bounded-staleness {steps}"
        case _:
            text = "asynchronous"
    return text if choice.patience_s is None else f"{text} patience {choice.patience_s!r}"


def without_count(choice: Consistency) -> str:
    """Returns a choice as a text without the number of workers at the beginning.

    Tasks that join later know a different number of workers, but their choices must compare equal.
    """
    if isinstance(choice, Synchronous):
        return "sync" if choice.patience_s is None else f"sync patience={choice.patience_s!r}"
    return to_text(choice)


def _at_least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, but is {value}")


# State ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingMember:
    """A worker that takes part in the training.

    Attributes:
      clock: number of steps completed.
      gave: number of gradients that it has contributed to the current version.
      waits_since: the time at which it began to wait for its next step, by the caller's clock; None during a step.
      busy_since: the time at which its current or latest step began.
    """

    clock: int
    gave: int = 0
    waits_since: float | None = None
    busy_since: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingState:
    """The membership and the counters of the training of a group of variables.

    Attributes:
      choice: the consistency between workers.
      version: the version of the variables.
      members: the workers that take part, by name.
      gathered: number of gradients of this version gathered for the next update.
      formed: whether the workers that the first update needs have joined.
      updating: whether an update was requested and has not been reported yet.
      dropped: number of gradients dropped so far.
      started: whether a `Restarted` event has started the training.
      held: whether updates of several gradients have to wait until ``started`` is true. The chief starts the training
        on one task after the other. Without the wait, an update could precede the start on some tasks and follow it on
        other tasks, so their versions would differ.
      arriving: workers that may be in their first step, and are not members yet.
      void: workers whose current step began before training was restarted. The gradient of that step does not count.
      batch: the batch whose gradients are being gathered; None if workers do not share batches.
      lacks: number of positions of ``batch`` that no gathered gradient covers.
      last: the batch of the latest update.
      stopped: whether synchronous training was stopped, so that no further update is made.
    """

    choice: Consistency
    version: int = 0
    members: Mapping[str, TrainingMember] = field(default_factory=dict[str, TrainingMember])
    gathered: int = 0
    formed: bool = False
    updating: bool = False
    dropped: int = 0
    started: bool = False
    held: bool = False
    arriving: frozenset[str] = frozenset()
    void: frozenset[str] = frozenset()
    batch: tuple[int, int] | None = None
    lacks: int = 0
    last: tuple[int, int] | None = None
    stopped: bool = False

    @property
    def gathers(self) -> bool:
        """Whether an update is made of several gradients."""
        return isinstance(self.choice, Synchronous | KOfN)


# Events ---------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """The part of a batch from which a gradient was computed.

    Attributes:
      incarnation, number: the batch: the incarnation of the first ``ps``, and the number of updates there when it
        assigned the batch. Each update is made of one batch.
      size: number of positions of the part; 0 for a worker without a part of this batch, which waits for the update, so
        that it reads the same values as the other workers.
      whole: number of positions of the batch.
    """

    incarnation: int
    number: int
    size: int
    whole: int


@dataclass(frozen=True, slots=True)
class Joined:
    """``worker`` takes part, and is in a step. (The first gradient of a worker implies this event, too.)"""

    worker: str


@dataclass(frozen=True, slots=True)
class Announced:
    """``worker`` is about to begin its first step. It is not a member yet: no worker waits for its first gradient."""

    worker: str


@dataclass(frozen=True, slots=True)
class Left:
    """``worker`` has left or is lost, for ``reason``."""

    worker: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Contributed:
    """``worker`` has completed a step and asks for the next; its gradient, of variables at ``version``, has arrived.

    ``void``: whether the step began before training was restarted. None if the worker does not report this; then
    `TrainingState.void` decides. ``part``: the part of the batch, in synchronous training on examples that are
    accounted for. An update then needs the gradients of a whole batch: if a worker is lost, other workers compute its
    part.
    """

    worker: str
    version: int
    void: bool | None = None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Updated:
    """The requested update is complete."""


@dataclass(frozen=True, slots=True)
class MembershipComplete:
    """Only the members and the workers in ``arriving`` will take part, so the members do not wait for further
    workers."""


@dataclass(frozen=True, slots=True)
class Restarted:
    """Training begins, or begins again, and the variables are at ``version``.

    When training begins again, earlier gradients do not count: the variables from which they were computed may be lost,
    or only some of the accumulators may have received them. Workers that wait continue with the present variables. A
    worker that is in a step completes it, and the gradient of that step is dropped.

    ``again``: whether the training had begun before. Required if the task of this state was restarted since, because
    the state then has no record of the first beginning.
    """

    version: int
    again: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class Rejoined:
    """``worker`` has returned, after it contributed a gradient of the current version and then counted as lost.

    The gradient counts, and the worker waits for the update.
    """

    worker: str


@dataclass(frozen=True, slots=True)
class Released:
    """``worker`` continues without waiting for the update that contains its gradient.

    Another task, which holds other variables, has dropped the worker's gradient of the same step as stale. There, other
    workers may be waiting for the next gradient of ``worker``. If ``worker`` in turn waited here for those workers,
    none of them could continue.
    """

    worker: str


@dataclass(frozen=True, slots=True)
class DataEnd:
    """No worker has data for another gradient of this version: the gathered gradients become an update, even if there
    are fewer than k."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A worker has stopped the training after its latest step. In synchronous training, no update follows that step."""


Event = (
    Joined
    | Announced
    | Left
    | Rejoined
    | Contributed
    | Released
    | Updated
    | MembershipComplete
    | Restarted
    | Tick
    | DataEnd
    | Stopped
)


# Actions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Go:
    """Lets ``worker`` begin its next step; it reads the variables at ``version`` or later."""

    worker: str
    version: int


@dataclass(frozen=True, slots=True)
class Apply:
    """Performs an update with ``gradients`` gradients.

    If `TrainingState.gathers`, the update uses all gathered gradients of the version, and the caller reports `Updated`
    afterwards. Otherwise it uses only the gradient that was just contributed, which is ``staleness`` updates old, and
    the caller reports nothing.
    """

    gradients: int
    staleness: int = 0


@dataclass(frozen=True, slots=True)
class Drop:
    """Drops the gradient that ``worker`` just contributed, because it is ``staleness`` updates old."""

    worker: str
    staleness: int


@dataclass(frozen=True, slots=True)
class Discard:
    """Discards all gathered gradients, for ``reason``."""

    reason: str


_BATCH_USED: Final = Discard("another ps has used the rest of their batch")

Action = Go | Apply | Drop | Discard


@dataclass(frozen=True, slots=True)
class ConsistencyDecision:
    """The next state, the actions in order, and the reason, which is empty if there is nothing to log."""

    state: TrainingState
    actions: tuple[Action, ...] = ()
    reason: str = ""


# The decision ---------------------------------------------------------------------------------------------------


def decide(state: TrainingState, event: Event, now: float) -> ConsistencyDecision:
    """Decides on ``event`` at time ``now`` (seconds)."""
    match event:
        case Joined(worker):
            if worker in state.members:
                return ConsistencyDecision(state)
            return _decide_progress(
                _with_member(state, worker, _new_member(state, now)), now, (), _joining_reason(state, worker)
            )
        case Announced(worker):
            return ConsistencyDecision(replace(state, arriving=state.arriving | {worker}, void=state.void - {worker}))
        case Left(worker, reason):
            state = replace(state, arriving=state.arriving - {worker}, void=state.void - {worker})
            if worker not in state.members:
                return ConsistencyDecision(state)
            return _decide_progress(_without_member(state, worker), now, (), _leaving_reason(state, worker, reason))
        case Rejoined(worker):
            if worker in state.members:
                return ConsistencyDecision(state)
            # `gave` is 1 without a new gradient: the earlier one is still among the gathered gradients.
            member = replace(_new_member(state, now), gave=1, waits_since=now)
            return _decide_progress(_with_member(state, worker, member), now, (), _joining_reason(state, worker))
        case Contributed():
            return _count_gradient(state, event, now)
        case Released(worker):
            member = state.members.get(worker)
            if member is None or member.waits_since is None:
                return ConsistencyDecision(state)
            state = _with_member(state, worker, replace(member, waits_since=None, busy_since=now))
            return ConsistencyDecision(state, (Go(worker, state.version),))
        case Updated():
            last = state.batch or state.last
            state = replace(
                state, version=state.version + 1, gathered=0, updating=False, batch=None, lacks=0, last=last
            )
            return _decide_progress(_without_gradients(state), now)
        case Restarted(version, again):
            return _handle_restart(state, version, again, now)
        case MembershipComplete():
            return _decide_progress(replace(state, formed=True), now)
        case Tick():
            return _remove_late_worker(state, now)
        case DataEnd():
            # A running update already contains the gathered gradients. Without gathered gradients there is nothing to
            # apply.
            if not state.gathers or not state.gathered or state.updating or state.lacks or _waits_for_start(state):
                return ConsistencyDecision(state)
            return ConsistencyDecision(replace(state, updating=True), (Apply(state.gathered),), "the data end")
        case Stopped():
            if not isinstance(state.choice, Synchronous):
                return ConsistencyDecision(state)
            actions = (Discard("the training was stopped"),) if state.gathered else ()
            state = replace(_without_gradients(state), gathered=0, batch=None, lacks=0, stopped=True)
            return _decide_progress(state, now, actions)


def waited_for(state: TrainingState) -> tuple[str, ...]:
    """Returns the workers for whose gradients other workers wait; empty if no worker waits."""
    if not any(member.waits_since is not None for member in state.members.values()) or state.updating:
        return ()
    choice = state.choice
    behind = [name for name, member in state.members.items() if member.waits_since is None]
    # With bounded staleness, workers wait only for the slowest workers, not for all that are in a step.
    if isinstance(choice, BoundedStaleness):
        slowest = min(member.clock for member in state.members.values())
        behind = [name for name in behind if state.members[name].clock == slowest]
    return tuple(sorted(behind))


def waiting_text(state: TrainingState, now: float) -> str:
    """Describes the waits: the workers that wait, for how long, and for which workers; empty without waits."""
    since = [member.waits_since for member in state.members.values() if member.waits_since is not None]
    if not since:
        return ""
    missing = _missing(state)
    if state.updating:
        awaited = "the update to be made"
    elif _waits_for_start(state) and _complete(state):
        awaited = "the chief to start the training"
    elif missing > 0:
        awaited = f"{missing} more worker{'s' if missing > 1 else ''} to connect"
    else:
        awaited = _listed(waited_for(state)) or "more gradients"
    waiting = _listed(sorted(name for name, member in state.members.items() if member.waits_since is not None))
    return f"{waiting} ({state.choice}) for {awaited}, {now - min(since):.0f} s so far"


def _listed(names: Sequence[str]) -> str:
    """Joins names; of many names, joins the first ones and appends the number of the remaining names."""
    others = len(names) - _LISTED
    return ", ".join(names) if others <= 1 else f"{', '.join(names[:_LISTED])} and {others} others"


def _count_gradient(state: TrainingState, event: Contributed, now: float) -> ConsistencyDecision:
    worker, version = event.worker, event.version
    known = state.members.get(worker)
    reason = "" if known else _joining_reason(state, worker)
    member = known or _new_member(state, now)
    # The worker's own report of the start of its step is exact; the state is the fallback.
    void = worker in state.void if event.void is None else event.void
    if worker in state.arriving or worker in state.void:
        state = replace(state, arriving=state.arriving - {worker}, void=state.void - {worker})
    if not state.started and not state.gathered and state.gathers:
        # The first worker may connect before the chief has reported the version.
        state = replace(state, version=max(state.version, version))
    staleness = max(0, state.version - version)
    # A new worker is level with the slowest member. Its step before it joined does not count: otherwise the worker
    # would be ahead of the slowest member immediately, and might have to wait.
    clock = member.clock if known is None and state.members else member.clock + 1
    member = replace(member, clock=clock, waits_since=now)
    if not state.gathers:
        # The caller applies this gradient before the next event.
        state = replace(state, members={**state.members, worker: member}, version=state.version + 1)
        return _decide_progress(state, now, (Apply(1, staleness),), reason)
    # If the gradient's version is above the current one, the gradient was computed before a restart, after which older
    # values were restored: drop it.
    past, empty = state.stopped or _is_batch_over(state, event.part), event.part is not None and not event.part.size
    # A worker without a part of the batch contributes nothing, so its late gradient does not count as dropped.
    if empty and past:
        return _decide_progress(_with_member(state, worker, member), now, (), reason, worker)
    if not empty and (void or staleness or state.updating or version > state.version or past):
        state = replace(_with_member(state, worker, member), dropped=state.dropped + 1)
        return _decide_progress(state, now, (Drop(worker, max(1, staleness)),), reason, worker)
    actions: tuple[Action, ...] = ()
    if event.part is not None:
        batch, lacks = event.part[:2], event.part.whole
        if state.batch == batch:
            lacks = state.lacks
        elif state.gathered:
            # This gradient belongs to a later batch, so another ps has already applied the batch that is gathered here.
            # The missing gradients of that batch will never arrive.
            state, actions = (
                replace(_without_gradients(state), gathered=0, dropped=state.dropped + state.gathered),
                (_BATCH_USED,),
            )
        state = replace(state, batch=batch, lacks=lacks - event.part.size)
    state = replace(_with_member(state, worker, replace(member, gave=member.gave + 1)), gathered=state.gathered + 1)
    return _decide_progress(state, now, actions, reason, None if actions else worker)


def _is_batch_over(state: TrainingState, part: Part | None) -> bool:
    """Returns whether the update of the batch of ``part`` is complete or was skipped here."""
    current = _current_batch(state)
    return part is not None and current is not None and part.incarnation == current[0] and part.number < current[1]


def is_early(state: TrainingState, worker: str, part: Part) -> bool:
    """Returns whether the gradient of a joining worker belongs to a later batch than the current round on this task.

    This happens if the worker joined another ``ps`` after that ``ps`` had made the update of this round. The worker
    has to wait until the members have completed the update here, too.
    """
    current = _current_batch(state)
    joins = state.formed and bool(state.members) and worker not in state.members
    return joins and current is not None and part.incarnation == current[0] and part.number > current[1]


def _current_batch(state: TrainingState) -> tuple[int, int] | None:
    """Returns the batch of the current round; None if it is not known."""
    return state.batch or (None if state.last is None else (state.last[0], state.last[1] + 1))


def _decide_progress(
    state: TrainingState, now: float, actions: tuple[Action, ...] = (), reason: str = "", contributor: str | None = None
) -> ConsistencyDecision:
    """Requests an update if one is due, and releases the workers that may continue.

    A gradient that does not complete an update can release only the worker that pushed it, ``contributor``, so only
    this worker is checked. If all workers were checked at every gradient, the time of a round would be quadratic in
    their number.
    """
    # When the last of the initial workers has joined, every waiting worker may continue, not only the contributor.
    if not state.formed and _missing(state) <= 0:
        state, contributor = replace(state, formed=True), None
    if state.gathers and not state.updating and not _waits_for_start(state) and _complete(state):
        actions += (Apply(state.gathered),)
        state = replace(state, updating=True)
    elif state.lacks > 0 and state.formed and all(member.gave for member in state.members.values()):
        # A worker was lost before its part of the batch arrived: other workers compute it, as part of the same update.
        state, contributor = _without_gradients(state), None
    names = sorted(state.members) if contributor is None or not state.gathers else [contributor]
    may_go = _release_condition(state)
    waiting = [name for name in names if state.members[name].waits_since is not None]
    if free := [name for name in waiting if may_go(state.members[name])]:
        released = {name: replace(state.members[name], waits_since=None, busy_since=now) for name in free}
        state = replace(state, members={**state.members, **released})
        actions += tuple(Go(name, state.version) for name in free)
    return ConsistencyDecision(state, actions, reason)


def _missing(state: TrainingState) -> int:
    """Returns the number of workers still missing at the beginning."""
    if state.formed:
        return 0
    match state.choice:
        case Synchronous(workers=workers):
            return workers - len(state.members)
        case KOfN(k=k, n=n):
            return (n or k) - len(state.members)
        case _:
            return 0


def _waits_for_start(state: TrainingState) -> bool:
    return state.held and not state.started


def _complete(state: TrainingState) -> bool:
    if isinstance(state.choice, KOfN):
        return state.gathered >= state.choice.k
    # Gathered gradients may include gradients of workers that have left, so their number alone is not enough.
    enough = state.formed and 0 < len(state.members) <= state.gathered and state.lacks <= 0
    return enough and all(member.gave for member in state.members.values())


def _release_condition(state: TrainingState) -> Callable[[TrainingMember], bool]:
    """Returns the condition under which a waiting member may continue."""
    members = state.members.values()
    match state.choice:
        case Synchronous():
            return lambda member: not member.gave and not state.updating
        case KOfN(k=k):
            # With fewer than k workers left, some must contribute more than one gradient, or the update would never be
            # made.
            too_few = state.formed and state.gathered + sum(not member.gave for member in members) < k
            return lambda member: not state.updating and (not member.gave or too_few)
        case BoundedStaleness(steps=steps):
            slowest = min((member.clock for member in members), default=0)
            return lambda member: member.clock - slowest <= steps
        case _:
            return lambda member: True


def _handle_restart(state: TrainingState, version: int, again: bool, now: float) -> ConsistencyDecision:
    first, state = not (state.started or again), replace(state, started=True)
    # If this is the first start, and at the known version, the gradients gathered so far stay valid.
    if first and version == state.version and not state.updating:
        return _decide_progress(state, now)
    reason = ""
    if state.members and (version != state.version + state.updating or (state.gathered and not state.updating)):
        reason = f"the variables are at version {version}, after {state.version}; {state.gathered} gradients are lost"
    # Steps in progress have read the variables before the restart, so their gradients must not count.
    busy = {name for name, member in state.members.items() if member.waits_since is None}
    void = state.arriving | busy if state.gathers else state.void
    state = replace(state, version=version, gathered=0, updating=False, void=void, batch=None, lacks=0, last=None)
    return _decide_progress(_without_gradients(state), now, (), reason)


def _without_gradients(state: TrainingState) -> TrainingState:
    """Returns the state at the beginning of a version: no worker has contributed a gradient."""
    return replace(state, members={name: replace(member, gave=0) for name, member in state.members.items()})


def _remove_late_worker(state: TrainingState, now: float) -> ConsistencyDecision:
    patience = state.choice.patience_s
    if patience is None:
        return ConsistencyDecision(state)
    since = [member.waits_since for member in state.members.values() if member.waits_since is not None]
    late = [
        name
        for name in waited_for(state)
        # The patience is counted from the time when the first worker began to wait, or when the awaited worker began
        # its step, whichever is later.
        if now - max(min(since), state.members[name].busy_since) >= patience and len(state.members) > 1
    ]
    if not late:
        return ConsistencyDecision(state)
    # Remove one worker at a time: without it, the update may no longer need the other late workers.
    reason = _leaving_reason(state, late[0], f"no gradient for {patience:g} s")
    return _decide_progress(_without_member(state, late[0]), now, (), reason)


def _new_member(state: TrainingState, now: float) -> TrainingMember:
    """Returns the record of a joining worker: level with the slowest, so that no worker waits for it to catch up."""
    return TrainingMember(clock=min((member.clock for member in state.members.values()), default=0), busy_since=now)


def _with_member(state: TrainingState, name: str, member: TrainingMember) -> TrainingState:
    return replace(state, members={**state.members, name: member})


def _without_member(state: TrainingState, name: str) -> TrainingState:
    members = {other: member for other, member in state.members.items() if other != name}
    return replace(state, members=members)


def _joining_reason(state: TrainingState, worker: str) -> str:
    return f"{worker} joins: {_count(len(state.members) + 1)} now" if state.formed else ""


def _leaving_reason(state: TrainingState, worker: str, reason: str) -> str:
    why = f" ({reason})" if reason else ""
    return f"{worker} left{why}: continuing with {_count(len(state.members) - 1)}"


def _count(workers: int) -> str:
    return f"{workers} worker{'' if workers == 1 else 's'}"
