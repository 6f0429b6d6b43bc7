"""Which copy of a shard serves, and when it may acknowledge. Pure: no threads, no clocks.

A *shard* is what one ``ps`` holds of a set of parameters. It has two *copies*, on two ``ps``. A *view* says which copy
serves workers (the *primary*) and which one follows it (the *second*, where there is one). Views are numbered by
*terms*. The *witness*, on the chief, is the only one that makes views; `judge` is all of it.

- A primary acknowledges an update when the second of its view has it too, or when its view has no second.
- A copy of a view with two that cannot reach the other asks to be *alone*. The first that asks gets the next term; the
  other one is outside then, and finds that out before it can acknowledge anything: it lacks the other's confirmation.
- A copy that is outside drops what it has and has another *life* from then on. So a copy that a view names has all that
  was acknowledged in it.
- A primary without a second fills another copy up. From the moment it asks for the *pair* it acknowledges nothing
  that the other does not have. A primary with a second may fill up a third copy, which takes the second's place: from
  the moment it asks for that it acknowledges nothing that one of both does not have, until it has heard who is second.
- A primary may *hand over*: its second, which has confirmed all that there is, serves in the next term, and it follows.
  It has changed nothing since that was confirmed, and acknowledges nothing before it has an answer.

Copies may be on more than two ``ps``; those that no view names have nothing. A *witness that was started anew* knows
nothing, and the newest view of those that it is told need not be the newest there is. It takes that one for it

- where each copy that this view names, and each that one of these may have as its second without having heard so, has
  told that it knows no newer one. Views that follow on one another are made at the wish of a copy of the view before,
  so nobody can know a newer one then;
- or where every ``ps`` has told what it knows: those that any of them knows of, and those of the views that were told.
  The copies of the newest view are among these.

Before there is any view, every ``ps`` has to tell that it knows none.

*Lives* of a ``ps`` grow. So a copy is lost of which the witness has heard a later life. One whose process ends asks to
*go*: it is lost, too, where the other copy of its view is not; else it is alone, as the last one. That *leaves* what it
has with the chief, says so, and is lost. No primary hands over to one that is lost, or has it as its second. Where all
copies of a view are lost, no ``ps`` has the shard: the first serves in the next term that has nothing of it, and gets
from the chief what that has; see `headwater.state.left_copies`, too.

The model test (``tests/pure/state/test_views.py``) runs random histories of it.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class Copy(NamedTuple):
    """One copy of a shard: the number of its ``ps``, and the life of what it has: a number that grows with each."""

    ps: int
    life: int


class View(NamedTuple):
    """Who serves a shard, and who follows; None where no copy does."""

    term: int
    primary: Copy
    second: Copy | None

    def __contains__(self, copy: object) -> bool:
        return copy is not None and copy in (self.primary, self.second)

    def __str__(self) -> str:
        second = "no second copy" if self.second is None else f"second on ps {self.second.ps}"
        return f"term {self.term}, primary on ps {self.primary.ps}, {second}"


class Wants(enum.Enum):
    """What a copy asks the witness for: only to hear the view; to be alone; to have another one as its second; to have
    its second serve in its place; to be lost, as its process ends and the chief has what it had; to go, as its process
    ends: to be lost, or to be alone where no other copy is left."""

    VIEW = 0
    ALONE = 1
    PAIR = 2
    HAND_OVER = 3
    LEAVE = 4
    GO = 5


class Request(NamedTuple):
    """What a copy says to the witness.

    Attributes:
      me: the copy.
      view: the newest view that it knows; None before the first.
      wants: what it asks for.
      other: the copy that is to be its second, for `Wants.PAIR`; or that may be, see `Standing.pairing`.
      home: the number of the ``ps`` that serves the shard at the beginning.
      among: the numbers of all ``ps`` that may have a copy, as far as is known there.
    """

    me: Copy
    view: View | None
    wants: Wants = Wants.VIEW
    other: Copy | None = None
    home: int = 0
    among: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """What the witness knows of a shard.

    Attributes:
      view: the present one; None before it knows which one that is.
      heard: by ``ps`` what its copy has told since.
      lost: the copies of the view that are lost, and of those that it does not name the last of each ``ps``.
    """

    view: View | None = None
    heard: Mapping[int, Request] = field(default_factory=dict[int, Request])
    lost: frozenset[Copy] = frozenset()

    def without(self, copies: Collection[Copy]) -> Witness:
        """This, when copies of one ``ps`` are lost."""
        numbers = {copy.ps for copy in copies}
        known = {copy for copy in self.lost if copy.ps not in numbers or (self.view is not None and copy in self.view)}
        return replace(self, lost=frozenset(known.union(copies)))


def judge(witness: Witness, request: Request) -> Witness:
    """What the witness knows after ``request``; its answer is the view then. What came twice is answered alike."""
    me, view = request.me, witness.view
    if view is None:
        heard = {**witness.heard, me.ps: request}
        view = _present(heard)
        if view is None:
            return replace(witness, heard=heard)
        witness = replace(witness, view=view, heard={})
    both = {copy for copy in (view.primary, view.second) if copy is not None}
    gone = {copy for copy in both if copy.ps == me.ps and copy.life < me.life}
    witness = witness.without(gone)
    if me in witness.lost:
        return witness
    if request.wants is Wants.LEAVE or (request.wants is Wants.GO and _is_spared(witness, request)):
        return witness.without({me})
    after = view
    if me in view:
        if request.view == view:
            after = _granted(view, request, witness.lost)
    elif both <= witness.lost and request.wants is Wants.VIEW and (gone or request.view in (None, view)):
        after = View(view.term + 1, me, None)
    return replace(witness, view=after)


def _is_spared(witness: Witness, request: Request) -> bool:
    """Whether another copy is left where one goes: it is none, or knows that it is one of two, and not the last."""
    me, view = request.me, witness.view
    if view is None or me not in view:
        return True
    other = view.second if me == view.primary else view.primary
    return request.view == view and other is not None and other not in witness.lost


def _granted(view: View, request: Request, lost: Collection[Copy]) -> View:
    """The view after ``view``, as a copy of it wishes; those that are ``lost`` are not to serve, or to follow."""
    me, other = request.me, request.other
    match request.wants:
        case Wants.ALONE | Wants.GO if view.second is not None:
            return View(view.term + 1, me, None)
        case Wants.PAIR if me == view.primary and other is not None and other not in {view.second, *lost}:
            return View(view.term + 1, me, other)
        case Wants.HAND_OVER if me == view.primary and view.second is not None and view.second not in lost:
            return View(view.term + 1, view.second, me)
        case _:
            return view


def _present(heard: Mapping[int, Request]) -> View | None:
    """The present view, from what ``ps`` have told; None while that does not say it."""
    told = list(heard.values())
    views = [each.view for each in told if each.view is not None]
    named = {copy.ps for view in views for copy in (view.primary, view.second) if copy is not None}
    all_told = named.union(*(each.among for each in told), [each.home for each in told]) <= heard.keys()
    if not views:
        return View(1, heard[told[0].home].me, None) if all_told else None
    newest = max(views, key=_term)
    know = [each for each in told if each.view == newest and each.me in newest]
    concerned = {newest.primary, newest.second, *(each.other for each in know)} - {None}
    settled = {each.me for each in know} >= {newest.primary, newest.second} - {None}
    return newest if all_told or (settled and concerned <= {each.me for each in told}) else None


def _term(view: View) -> int:
    return view.term


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What a copy knows of itself.

    Attributes:
      me: this copy.
      view: the newest that it knows; None before the first.
      pairing: the copy that it has asked to have as its second, where it has not heard what became of that.
      resigned: whether the second of its view has dropped what it had for good, so that it can never serve.
    """

    me: Copy
    view: View | None = None
    pairing: Copy | None = None
    resigned: bool = False

    @property
    def serves(self) -> bool:
        """Whether it is the primary, as far as it knows."""
        return self.view is not None and self.view.primary == self.me

    @property
    def follows(self) -> bool:
        """Whether it is the second, as far as it knows."""
        return self.view is not None and self.view.second == self.me

    @property
    def acknowledges_alone(self) -> bool:
        """Whether an update counts that no other copy has confirmed."""
        return self.serves and self.pairing is None and (self.resigned or self.view is None or self.view.second is None)

    def needs(self, copy: Copy) -> bool:
        """Whether an update counts only once ``copy`` has confirmed it, as far as is known."""
        return copy == self.pairing or (self.view is not None and copy == self.view.second)


def learn(standing: Standing, view: View, life: int) -> Standing:
    """What a copy knows once it has heard of ``view``. One that is outside begins a new ``life``, without anything."""
    if standing.view is not None and view.term <= standing.view.term:
        return standing
    was_in = standing.view is not None and standing.me in standing.view
    if standing.me in view or not was_in:
        return Standing(me=standing.me, view=view)
    return Standing(me=Copy(standing.me.ps, life), view=view)


def begins_anew(standing: Standing, view: View) -> bool:
    """Whether a copy that hears of ``view`` serves in it since all copies of the view before are lost."""
    known = standing.view
    was_in = known is not None and standing.me in known
    newer = known is None or view.term > known.term
    return newer and not was_in and view.primary == standing.me and view.second is None


def accepts(standing: Standing, view: View) -> bool:
    """Whether a copy takes updates from the primary of ``view``: never from one of an older term than it knows of."""
    if view.primary.ps == standing.me.ps:
        return False
    return standing.view is None or view.term > standing.view.term or (view == standing.view and not standing.serves)


def as_words(view: View | None) -> tuple[Any, ...] | None:
    """A view as a frame's header has it."""
    return None if view is None else (view.term, tuple(view.primary), view.second and tuple(view.second))


def from_words(words: Any) -> View | None:
    """The view that `as_words` wrote.

    Raises:
      ValueError: it is none.
    """
    match words:
        case None:
            return None
        case (int(term), (int(ps), int(life)), None):
            return View(term, Copy(ps, life), None)
        case (int(term), (int(ps), int(life)), (int(other), int(its_life))):
            return View(term, Copy(ps, life), Copy(other, its_life))
        case _:
            raise ValueError(f"no view: {words!r}")
