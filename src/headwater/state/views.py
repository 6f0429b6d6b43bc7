"""Replication protocol: which replica of a shard serves, and when it may acknowledge. Pure: no threads, no clocks.

A *shard* is a part of a set of parameters. It has *replicas*, each on another ``ps``. A *view* names at most two of
them: the replica that serves workers (the *primary*) and, if there is one, the replica that follows it (the *backup*).
Any further replica is empty, still receives the state, or discards its state when it learns of the view. Views are
numbered by *terms*. Only the *witness*, on the chief, makes views; `apply_request` is its whole logic.

- A primary acknowledges an update when the backup of its view has the update, too, or when its view has no backup.
- If the two replicas of a view lose their connection, each asks the witness for a view in which it is *alone*. The
  replica whose request arrives first gets a view with the next term; that view does not name the other replica. The
  other replica may still act on the old view, but it cannot acknowledge anything: in the old view an update needs the
  confirmation of both replicas.
- A replica that the view no longer names discards its data and rejoins with a new *incarnation* number. So a replica
  never returns to a view with outdated state: each replica that the current view names has every update acknowledged
  so far.
- A primary without a backup sends its whole state to another replica, and then asks the witness to make that replica
  its backup (*pair*). The other replica may already be the backup when the witness's answer has not yet reached the
  primary. So from its request on, the primary acknowledges only updates that the other replica has confirmed. A primary
  with a backup may replace the backup by a third replica in the same way. After that request, until it knows which of
  the two other replicas is the backup, it acknowledges only updates that both have confirmed.
- A primary may *hand off*: its backup, which has confirmed all updates, becomes the primary of the next term, and the
  old primary becomes the backup. The old primary changes nothing after the last confirmation, and acknowledges nothing
  until the witness has answered.

A *restarted witness* has lost its knowledge of the views, so the replicas report the views that they know. A newer view
than the newest reported one may exist, known only to replicas that have not reported yet. The witness therefore accepts
the newest reported view as the current one in only two cases:

- All replicas of that view have reported, and know no newer view. If one of them has sent a *pair* request and got no
  answer, the replica named in the request may be the backup already, so that replica must have reported, too, and must
  know no newer view. In this case no newer view can exist, because each view is created at the request of a replica of
  the preceding view.
- Every ``ps`` has reported: each one listed in `WitnessRequest.among` or `WitnessRequest.home` of a report, or named by
  a reported view. The replicas of the newest view are on these ``ps``.

The witness creates the first view after every ``ps`` has reported that it knows no view.

Incarnation numbers of a ``ps`` increase. So the witness marks a replica as *lost* once it has seen a newer incarnation
of its ``ps``. A replica whose process shuts down reports that to the witness (`RequestKind.SHUT_DOWN`). If the other
replica of its view still exists, the witness marks the departing replica as lost. Otherwise the departing replica is
the last one, and gets a view in which it is alone. It deposits its state with the chief and reports that, too
(`RequestKind.DEPOSITED`); the witness then marks it as lost. A lost replica never becomes primary or backup. If all
replicas of a view are lost, no ``ps`` has the shard. Then the first empty replica that asks becomes the primary of the
next term, with the state that the chief has; see `headwater.state.replica_deposits`.

The model test (``tests/pure/state/test_views.py``) runs random histories of the protocol.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class Copy(NamedTuple):
    """A replica of a shard: the number of its ``ps``, and its incarnation number, which increases with each reset."""

    ps: int
    incarnation: int


class View(NamedTuple):
    """The primary and the backup of a shard in one term; ``backup`` is None if there is none."""

    term: int
    primary: Copy
    backup: Copy | None

    def __contains__(self, copy: object) -> bool:
        return copy is not None and copy in (self.primary, self.backup)

    def __str__(self) -> str:
        backup = "no backup" if self.backup is None else f"backup on ps {self.backup.ps}"
        return f"term {self.term}, primary on ps {self.primary.ps}, {backup}"


class RequestKind(enum.Enum):
    """Kinds of a replica's request to the witness."""

    VIEW = 0
    """Only reads the view."""
    ALONE = 1
    """Removes the other replica from the view."""
    PAIR = 2
    """Appoints another replica as the backup."""
    HAND_OFF = 3
    """Swaps primary and backup."""
    DEPOSITED = 4
    """The sender, alone in its view, has deposited its state with the chief: marks the sender as lost."""
    SHUT_DOWN = 5
    """The sender's process shuts down: marks the sender as lost if the view's other replica remains; otherwise gives
    the sender a view in which it is alone."""


class WitnessRequest(NamedTuple):
    """A request of a replica to the witness. It also reports the newest view that the replica knows.

    Attributes:
      me: the replica that asks.
      view: the newest view that this replica knows; None before the first view.
      kind: the kind of the request.
      other: for `RequestKind.PAIR`, the replica to make the backup. For other kinds, the replica that an earlier `PAIR`
        request named, if that request got no answer: it may be the backup already; see `Standing.pairing`.
      home: the number of the ``ps`` that serves the shard when the job starts.
      among: the numbers of all ``ps`` that may have a replica, as far as the sender knows.
    """

    me: Copy
    view: View | None
    kind: RequestKind = RequestKind.VIEW
    other: Copy | None = None
    home: int = 0
    among: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """The witness's knowledge of a shard.

    Attributes:
      view: the current view; None before it is known.
      reports: the last request of each ``ps`` while the view is not known; empty afterwards.
      lost: the lost replicas that the view names, and the latest lost replica of each ``ps``.
    """

    view: View | None = None
    reports: Mapping[int, WitnessRequest] = field(default_factory=dict[int, WitnessRequest])
    lost: frozenset[Copy] = frozenset()

    def with_lost(self, copies: Collection[Copy]) -> Witness:
        """Returns the knowledge with ``copies`` marked as lost.

        Earlier lost replicas of the same ``ps`` are forgotten, unless the view names them.
        """
        numbers = {copy.ps for copy in copies}
        known = {copy for copy in self.lost if copy.ps not in numbers or (self.view is not None and copy in self.view)}
        return replace(self, lost=frozenset(known.union(copies)))


def apply_request(witness: Witness, request: WitnessRequest) -> Witness:
    """Returns the witness's knowledge after a request. Its view is the answer to the request. Requests are
    idempotent."""
    me, view = request.me, witness.view
    if view is None:
        reports = {**witness.reports, me.ps: request}
        view = _current_view(reports)
        if view is None:
            return replace(witness, reports=reports)
        witness = replace(witness, view=view, reports={})
    both = {copy for copy in (view.primary, view.backup) if copy is not None}
    # A newer incarnation of the same ``ps`` asks, so the state of the older one is lost.
    gone = {copy for copy in both if copy.ps == me.ps and copy.incarnation < me.incarnation}
    witness = witness.with_lost(gone)
    # Requests of a lost replica, such as a repeated DEPOSITED, change nothing.
    if me in witness.lost:
        return witness
    if request.kind is RequestKind.DEPOSITED or (
        request.kind is RequestKind.SHUT_DOWN and _state_survives(witness, request)
    ):
        return witness.with_lost({me})
    after = view
    if me in view:
        # Only a replica that knows the current view may change the view. Other replicas first learn the view from the
        # answer.
        if request.view == view:
            after = _grant(view, request, witness.lost)
    # All replicas of the view are lost, so an empty replica may serve. The sender is empty if it is a new incarnation,
    # knows no view, or knows the current view (it discarded its state when it learned that the view does not name it).
    # A replica that knows only an older view may still have outdated state, which it discards when it learns the
    # current view from this answer.
    elif both <= witness.lost and request.kind is RequestKind.VIEW and (gone or request.view in (None, view)):
        after = View(view.term + 1, me, None)
    return replace(witness, view=after)


def _state_survives(witness: Witness, request: WitnessRequest) -> bool:
    """Returns whether the shard keeps its state when the sender of ``request`` shuts down.

    This is true if the view does not name the sender, or if the view's other replica is not lost and the sender knows
    the current view. A sender with an older view learns the current one from the answer, and asks again.
    """
    me, view = request.me, witness.view
    if view is None or me not in view:
        return True
    other = view.backup if me == view.primary else view.primary
    return request.view == view and other is not None and other not in witness.lost


def _grant(view: View, request: WitnessRequest, lost: Collection[Copy]) -> View:
    """Returns the view after the request of a replica of ``view``. No ``lost`` replica becomes primary or backup."""
    me, other = request.me, request.other
    match request.kind:
        # The replica that asks first stays; the other replica is outside the view from the next term on.
        case RequestKind.ALONE | RequestKind.SHUT_DOWN if view.backup is not None:
            return View(view.term + 1, me, None)
        # No new term if ``other`` is the backup already, or is lost: a lost replica has no state.
        case RequestKind.PAIR if me == view.primary and other is not None and other not in {view.backup, *lost}:
            return View(view.term + 1, me, other)
        case RequestKind.HAND_OFF if me == view.primary and view.backup is not None and view.backup not in lost:
            return View(view.term + 1, view.backup, me)
        case _:
            return view


def _current_view(reports: Mapping[int, WitnessRequest]) -> View | None:
    """Returns the current view, from the reports of the ``ps``; None while the reports do not determine it."""
    requests = list(reports.values())
    views = [each.view for each in requests if each.view is not None]
    named = {copy.ps for view in views for copy in (view.primary, view.backup) if copy is not None}
    all_reported = named.union(*(each.among for each in requests), [each.home for each in requests]) <= reports.keys()
    if not views:
        return View(1, reports[requests[0].home].me, None) if all_reported else None
    newest = max(views, key=_term)
    # The two cases of the module's docstring: the replicas of the newest view, and the replicas that they have asked to
    # pair with, have all reported; or all ``ps`` have reported.
    members = [each for each in requests if each.view == newest and each.me in newest]
    concerned = {newest.primary, newest.backup, *(each.other for each in members)} - {None}
    view_reported = {each.me for each in members} >= {newest.primary, newest.backup} - {None}
    return newest if all_reported or (view_reported and concerned <= {each.me for each in requests}) else None


def _term(view: View) -> int:
    return view.term


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A replica's knowledge of its role.

    Attributes:
      me: this replica.
      view: the newest view that this replica knows; None before the first view.
      pairing: the replica named in its `PAIR` request, as long as the witness's answer is not known; otherwise None.
      resigned: whether the view's backup has announced its shutdown, so that the backup can never serve.
    """

    me: Copy
    view: View | None = None
    pairing: Copy | None = None
    resigned: bool = False

    @property
    def serves(self) -> bool:
        """Whether this replica is the primary, as far as it knows."""
        return self.view is not None and self.view.primary == self.me

    @property
    def follows(self) -> bool:
        """Whether this replica is the backup, as far as it knows."""
        return self.view is not None and self.view.backup == self.me

    @property
    def acknowledges_alone(self) -> bool:
        """Whether this replica may acknowledge an update that no other replica has confirmed."""
        return self.serves and self.pairing is None and (self.resigned or self.view is None or self.view.backup is None)

    def needs(self, copy: Copy) -> bool:
        """Returns whether ``copy`` has to confirm an update before it may be acknowledged."""
        return copy == self.pairing or (self.view is not None and copy == self.view.backup)


def standing_after(standing: Standing, view: View, incarnation: int) -> Standing:
    """Returns the standing of a replica that has learned of ``view``.

    A replica that ``view`` removes continues with the incarnation number ``incarnation``.
    """
    if standing.view is not None and view.term <= standing.view.term:
        return standing
    was_in = standing.view is not None and standing.me in standing.view
    if standing.me in view or not was_in:
        return Standing(me=standing.me, view=view)
    return Standing(me=Copy(standing.me.ps, incarnation), view=view)


def starts_empty(standing: Standing, view: View) -> bool:
    """Returns whether ``view`` promotes this empty replica, because all replicas of the last view are lost."""
    known = standing.view
    was_in = known is not None and standing.me in known
    newer = known is None or view.term > known.term
    return newer and not was_in and view.primary == standing.me and view.backup is None


def accepts(standing: Standing, view: View) -> bool:
    """Returns whether a replica accepts updates from the primary of ``view``.

    It accepts the primary of a newer term, and the primary of the view that it knows. It refuses the primary of an
    older term, and any primary on its own ``ps``.
    """
    if view.primary.ps == standing.me.ps:
        return False
    return standing.view is None or view.term > standing.view.term or (view == standing.view and not standing.serves)


def as_words(view: View | None) -> tuple[Any, ...] | None:
    """Returns a view as plain values for a frame's header."""
    return None if view is None else (view.term, tuple(view.primary), view.backup and tuple(view.backup))


def from_words(words: object) -> View | None:
    """Returns the view that `as_words` has encoded.

    Raises:
      ValueError: the values encode no view.
    """
    match words:
        case None:
            return None
        case (int(term), (int(ps), int(incarnation)), None):
            return View(term, Copy(ps, incarnation), None)
        case (int(term), (int(ps), int(incarnation)), (int(other), int(its_incarnation))):
            return View(term, Copy(ps, incarnation), Copy(other, its_incarnation))
        case _:
            raise ValueError(f"malformed view: {words!r}")
