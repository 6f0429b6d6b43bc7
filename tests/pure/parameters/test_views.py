"""Views of a shard's copies: single rules, and random histories of crashes, stops, cuts and lost answers."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from headwater.replicas.views import (
    Copy,
    Request,
    Standing,
    View,
    Wants,
    Witness,
    accepts,
    as_words,
    from_words,
    judge,
    learn,
)

HOME, OTHER = Copy(0, 10), Copy(1, 20)
PAIR = View(4, HOME, OTHER)


def test_the_first_view_waits_for_both_copies() -> None:
    witness = judge(Witness(home=0), Request(OTHER, None))
    assert witness.view is None
    assert judge(witness, Request(HOME, None)).view == View(1, HOME, None)


def test_the_first_that_asks_to_be_alone_is() -> None:
    witness = judge(Witness(home=0, view=PAIR), Request(OTHER, PAIR, Wants.ALONE))
    assert witness.view == View(5, OTHER, None)
    assert judge(witness, Request(HOME, PAIR, Wants.ALONE)).view == View(5, OTHER, None)
    assert judge(witness, Request(OTHER, PAIR, Wants.ALONE)).view == View(5, OTHER, None)


def test_a_copy_of_an_older_term_gets_nothing() -> None:
    witness = Witness(home=0, view=View(5, OTHER, None))
    assert judge(witness, Request(HOME, PAIR, Wants.PAIR, OTHER)).view == witness.view


def test_a_witness_that_was_started_anew_believes_the_newest_view() -> None:
    witness = judge(Witness(home=0), Request(HOME, PAIR, Wants.ALONE))
    assert witness.view is None
    assert judge(witness, Request(OTHER, View(5, OTHER, None))).view == View(5, OTHER, None)


def test_the_only_copy_begins_anew_when_its_task_does() -> None:
    witness = Witness(home=0, view=View(5, OTHER, None))
    assert judge(witness, Request(Copy(0, 11), None)).view == View(5, OTHER, None)
    assert judge(witness, Request(Copy(1, 21), None)).view == View(6, Copy(1, 21), None)


def test_who_is_outside_begins_another_life() -> None:
    standing = learn(Standing(me=HOME, view=PAIR), View(5, OTHER, None), 11)
    assert standing == Standing(me=Copy(0, 11), view=View(5, OTHER, None))
    assert not standing.serves


def test_updates_of_older_terms_are_refused() -> None:
    second = Standing(me=OTHER, view=PAIR)
    assert accepts(second, PAIR)
    assert not accepts(second, View(3, HOME, None))
    assert not accepts(learn(second, View(5, OTHER, None), 21), PAIR)
    assert accepts(Standing(me=OTHER), PAIR)


@pytest.mark.parametrize("view", [None, PAIR, View(5, OTHER, None)])
def test_views_travel(view: View | None) -> None:
    assert from_words(as_words(view)) == view


@pytest.mark.parametrize("words", [(1,), (1, (0, 1), (0,)), "view", (None, (0, 1), None)])
def test_what_is_no_view_is_refused(words: object) -> None:
    with pytest.raises(ValueError, match="no view"):
        from_words(words)


# Random histories -----------------------------------------------------------------------------------------------------


class _Process:
    """A copy with what it has: the pushes that it has applied, in order."""

    def __init__(self, me: Copy) -> None:
        self.standing = Standing(me=me)
        self.log: list[int] = []
        self.stopped = False


class _Feed:
    """From a primary to the other copy: what is on its way in both directions. The first record is all it has."""

    def __init__(self, source: _Process, view: View, target: Copy) -> None:
        self.source, self.view, self.target = source, view, target
        self.records: list[list[int]] = [list(source.log)]
        self.sent, self.acks, self.confirmed = 1, list[int](), 0
        self.taken = 0


class _World:
    """Two copies, a witness, a worker that repeats each push until it is acknowledged, and a network that loses."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.lives = itertools.count(100)
        self.copies = [_Process(Copy(ps, next(self.lives))) for ps in (0, 1)]
        self.witness = Witness(home=0)
        self.newest: View | None = None
        self.feeds: dict[int, _Feed] = {}
        self.answers: list[tuple[int, Copy, View]] = []
        self.acknowledged: list[int] = []
        self.push = 0
        self.moves = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            move = self.chance.choice(
                [self.works, self.delivers, self.confirms, self.acknowledges, self.goes_on] * 24
                + [self.asks, self.hears, self.dials] * 12
                + [self.is_cut, self.crashes, self.forgets]
                + [self.stops] * 3
            )
            move(self.chance.randrange(2))
            self.check()

    def check(self) -> None:
        if self.newest is None:
            return
        primary = self.of(self.newest.primary)
        if primary is not None:
            assert set(self.acknowledged) <= set(primary.log), "an acknowledged update is lost"
        for copy in self.copies:
            assert len(set(copy.log)) == len(copy.log), "a push was applied twice"
            if copy.standing.acknowledges_alone:
                assert copy.standing.me == self.newest.primary, "two primaries acknowledge"

    def of(self, copy: Copy) -> _Process | None:
        found = self.copies[copy.ps]
        return found if found.standing.me == copy else None

    def learns(self, ps: int, view: View) -> None:
        copy, before = self.copies[ps], self.copies[ps].standing
        copy.standing = learn(before, view, next(self.lives))
        if copy.standing.me != before.me:
            copy.log.clear()
        if copy.standing.view != before.view:
            feed = self.feeds.get(ps)
            if feed is not None and not (copy.standing.serves and view.second in (None, feed.target)):
                del self.feeds[ps]
            elif feed is not None:
                feed.view = view
            if copy.standing.serves:
                self.feeds.pop(1 - ps, None)

    # What may happen

    def works(self, ps: int) -> None:
        """The worker brings its push to a copy that says it serves."""
        copy = self.copies[ps]
        if copy.stopped or not copy.standing.serves or self.push in copy.log:
            return
        copy.log.append(self.push)
        if ps in self.feeds:
            self.feeds[ps].records.append([self.push])
            self.feeds[ps].sent += 1

    def acknowledges(self, ps: int) -> None:
        copy, feed = self.copies[ps], self.feeds.get(ps)
        if copy.stopped or not copy.standing.serves or self.push not in copy.log:
            return
        if copy.standing.acknowledges_alone or (feed is not None and feed.confirmed == feed.sent):
            self.acknowledged.append(self.push)
            self.push += 1

    def delivers(self, ps: int) -> None:
        """A record arrives at the other copy."""
        feed, copy = self.feeds.get(ps), self.copies[1 - ps]
        if feed is None or not feed.records or copy.stopped:
            return
        if copy.standing.me != feed.target:
            del self.feeds[ps]
            return
        record = feed.records.pop(0)
        if not feed.taken:
            copy.log.clear()
        copy.log += record
        feed.taken += 1
        feed.acks.append(feed.taken)

    def confirms(self, ps: int) -> None:
        feed = self.feeds.get(ps)
        if feed is not None and feed.acks and not self.copies[ps].stopped:
            feed.confirmed = feed.acks.pop(0)

    def asks(self, ps: int) -> None:
        """A copy asks the witness; the answer comes later, or never."""
        copy, feed = self.copies[ps], self.feeds.get(ps)
        standing = copy.standing
        if copy.stopped:
            return
        wants, other = Wants.VIEW, None
        if standing.view is not None and standing.me in standing.view:
            if standing.view.second is not None and (ps if standing.serves else 1 - ps) not in self.feeds:
                wants = Wants.ALONE
            elif standing.serves and standing.view.second is None and feed is not None:
                copy.standing = replace(standing, pairing=True)
                if feed.confirmed < feed.sent:
                    return
                wants, other = Wants.PAIR, feed.target
        self.witness = judge(self.witness, Request(standing.me, standing.view, wants, other))
        if self.witness.view is not None:
            self.newest = self.witness.view
            self.answers.append((ps, standing.me, self.witness.view))

    def hears(self, _: int) -> None:
        if not self.answers:
            return
        ps, me, view = self.answers.pop(self.chance.randrange(len(self.answers)))
        copy = self.copies[ps]
        if not copy.stopped and copy.standing.me == me and self.chance.random() < 0.9:
            self.learns(ps, view)

    def dials(self, ps: int) -> None:
        """A primary begins to feed the other copy, with all that it has."""
        source, target = self.copies[ps], self.copies[1 - ps]
        view = source.standing.view
        if source.stopped or target.stopped or not source.standing.serves or view is None or ps in self.feeds:
            return
        if not accepts(target.standing, view):
            return
        self.learns(1 - ps, view)
        if view.second in (None, target.standing.me):
            self.feeds[ps] = _Feed(source, view, target.standing.me)

    def is_cut(self, ps: int) -> None:
        self.feeds.pop(ps, None)

    def crashes(self, ps: int) -> None:
        """One failure at a time: not where the other copy has not what the newest view says that it has."""
        other = self.copies[1 - ps]
        knows = self.witness.view is not None
        if self.newest is None or (self.newest.second is None and self.newest.primary.ps == ps) or not knows:
            return
        if other.standing.me not in self.newest or other.stopped:
            return
        self.copies[ps] = _Process(Copy(ps, next(self.lives)))
        self.feeds.clear()
        self.moves += 1

    def stops(self, ps: int) -> None:
        self.copies[ps].stopped = True

    def goes_on(self, ps: int) -> None:
        self.copies[ps].stopped = False

    def forgets(self, _: int) -> None:
        """The chief is started anew, once every copy of the newest view has heard of that."""
        newest = self.newest
        know = [copy.standing.view == newest for copy in self.copies if newest and copy.standing.me in newest]
        if all(know) and not any(copy.stopped for copy in self.copies):
            self.witness = Witness(home=0)


def test_random_histories() -> None:
    """No acknowledged update is lost with one failure at a time, each push is applied once, and no copy acknowledges
    what the newest primary does not have."""
    acknowledged = crashes = terms = 0
    for seed in range(300):
        world = _World(seed)
        world.run(1000)
        acknowledged += len(world.acknowledged)
        crashes += world.moves
        terms = max(terms, world.newest.term if world.newest else 0)
    assert acknowledged > 1000
    assert crashes > 100
    assert terms > 6
