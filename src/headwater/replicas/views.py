"""Which copy of a shard serves, and when it may acknowledge. Pure: no threads, no clocks.

A *shard* is what one ``ps`` holds of a set of parameters. It has two *copies*, on two ``ps``. A *view* says which copy
serves workers (the *primary*) and which one follows it (the *second*, where there is one). Views are numbered by
*terms*. The *witness*, on the chief, is the only one that makes views; `judge` is all of it.

- A primary acknowledges an update when the second of its view has it too, or when its view has no second.
- A copy of a view with two that cannot reach the other asks to be *alone*. The first that asks gets the next term; the
  other one is outside then, and finds that out before it can acknowledge anything: it lacks the other's confirmation.
- A copy that is outside drops what it has and has another *life* from then on. So a copy that a view names has all that
  was acknowledged in it.
- A primary without a second fills the other copy up. From the moment it asks for the *pair* it acknowledges nothing
  that the other does not have.
- A witness that was started anew knows nothing. It decides once both copies have told what they know.

The model test (``tests/pure/parameters/test_views.py``) runs random histories of it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class Copy(NamedTuple):
    """One copy of a shard: the number of its ``ps``, and the life of what it has: a random number."""

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
    """What a copy asks the witness for: only to hear the view; to be alone; to have the other one as its second."""

    VIEW = 0
    ALONE = 1
    PAIR = 2


class Request(NamedTuple):
    """What a copy says to the witness.

    Attributes:
      me: the copy.
      view: the newest view that it knows; None before the first.
      wants: what it asks for.
      other: the copy that is to be its second, for `Wants.PAIR`.
    """

    me: Copy
    view: View | None
    wants: Wants = Wants.VIEW
    other: Copy | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """What the witness knows of a shard.

    Attributes:
      home: the number of the ``ps`` that serves the shard at the beginning.
      view: the present one; None before both copies have told what they know.
      heard: by ``ps`` what its copy has told since.
    """

    home: int
    view: View | None = None
    heard: Mapping[int, Request] = field(default_factory=dict[int, Request])


def judge(witness: Witness, request: Request) -> Witness:
    """What the witness knows after ``request``; its answer is the view then. What came twice is answered alike."""
    me, view = request.me, witness.view
    if view is None:
        heard = {**witness.heard, me.ps: request}
        if len(heard) < 2:
            return replace(witness, heard=heard)
        known = [told.view for told in heard.values() if told.view is not None]
        view = max(known, key=_term) if known else View(1, heard[witness.home].me, None)
        witness = replace(witness, view=view, heard={})
    if me in view:
        if request.wants is Wants.ALONE and view.second is not None and request.view == view:
            view = View(view.term + 1, me, None)
        elif request.wants is Wants.PAIR and view.second is None and request.view == view:
            view = View(view.term + 1, me, request.other)
    elif view.second is None and me.ps == view.primary.ps:
        # The only copy was lost with its task, which was started anew: nothing is left of the shard.
        view = View(view.term + 1, me, None)
    return replace(witness, view=view)


def _term(view: View) -> int:
    return view.term


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What a copy knows of itself.

    Attributes:
      me: this copy.
      view: the newest that it knows; None before the first.
      pairing: whether it has asked for a pair and has not heard what became of that.
      resigned: whether the second of its view has dropped what it had for good, so that it can never serve.
    """

    me: Copy
    view: View | None = None
    pairing: bool = False
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
        return self.serves and not self.pairing and (self.resigned or self.view is None or self.view.second is None)


def learn(standing: Standing, view: View, life: int) -> Standing:
    """What a copy knows once it has heard of ``view``. One that is outside begins a new ``life``, without anything."""
    if standing.view is not None and view.term <= standing.view.term:
        return standing
    was_in = standing.view is not None and standing.me in standing.view
    if standing.me in view or not was_in:
        return Standing(me=standing.me, view=view)
    return Standing(me=Copy(standing.me.ps, life), view=view)


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
