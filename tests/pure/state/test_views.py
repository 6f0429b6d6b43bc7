"""Views of a shard's copies: single rules, and random histories of crashes, stops, cuts and lost answers."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from headwater.state.aims import Move, Placement, next_step
from headwater.state.views import (
    Copy,
    RequestKind,
    Standing,
    View,
    Witness,
    WitnessRequest,
    accepts,
    apply_request,
    as_words,
    from_words,
    standing_after,
    starts_empty,
)

HOME, OTHER = Copy(0, 10), Copy(1, 20)
PAIR = View(4, HOME, OTHER)


_BOTH = (0, 1)


def _request_of(
    me: Copy, view: View | None, kind: RequestKind = RequestKind.VIEW, other: Copy | None = None
) -> WitnessRequest:
    return WitnessRequest(me, view, kind, other, 0, _BOTH)


def test_the_first_view_waits_for_both_copies() -> None:
    witness = apply_request(Witness(), _request_of(OTHER, None))
    assert witness.view is None
    assert apply_request(witness, _request_of(HOME, None)).view == View(1, HOME, None)


def test_the_first_view_waits_for_all_that_may_have_copies() -> None:
    witness = apply_request(Witness(), WitnessRequest(HOME, None, home=0, among=(0, 1, 2)))
    witness = apply_request(witness, WitnessRequest(OTHER, None, home=0, among=(0, 1)))
    assert witness.view is None
    third = Copy(2, 30)
    assert apply_request(witness, WitnessRequest(third, None, home=0, among=(0, 1, 2))).view == View(1, HOME, None)
    newest = View(7, third, OTHER)
    assert apply_request(witness, WitnessRequest(third, newest, home=0, among=(0, 1, 2))).view == newest


def test_the_first_that_asks_to_be_alone_is() -> None:
    witness = apply_request(Witness(view=PAIR), _request_of(OTHER, PAIR, RequestKind.ALONE))
    assert witness.view == View(5, OTHER, None)
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.ALONE)).view == View(5, OTHER, None)
    assert apply_request(witness, _request_of(OTHER, PAIR, RequestKind.ALONE)).view == View(5, OTHER, None)


def test_a_primary_gets_another_backup_or_hands_over() -> None:
    third = Copy(2, 30)
    assert apply_request(Witness(view=PAIR), _request_of(HOME, PAIR, RequestKind.PAIR, third)).view == View(
        5, HOME, third
    )
    assert apply_request(Witness(view=PAIR), _request_of(HOME, PAIR, RequestKind.HAND_OFF)).view == View(5, OTHER, HOME)
    assert apply_request(Witness(view=PAIR), _request_of(OTHER, PAIR, RequestKind.PAIR, third)).view == PAIR
    assert apply_request(Witness(view=PAIR), _request_of(OTHER, PAIR, RequestKind.HAND_OFF)).view == PAIR


def test_a_copy_of_an_older_term_gets_nothing() -> None:
    witness = Witness(view=View(5, OTHER, None))
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.PAIR, OTHER)).view == witness.view


def test_restarted_witness_adopts_the_newest_view() -> None:
    witness = apply_request(Witness(), _request_of(HOME, PAIR, RequestKind.ALONE))
    assert witness.view is None
    assert apply_request(witness, _request_of(OTHER, View(5, OTHER, None))).view == View(5, OTHER, None)


def test_a_restarted_witness_accepts_a_view_confirmed_by_all_its_replicas() -> None:
    everywhere = (0, 1, 2, 3)
    witness = apply_request(Witness(), WitnessRequest(OTHER, PAIR, home=0, among=everywhere))
    assert apply_request(witness, WitnessRequest(HOME, PAIR, home=0, among=everywhere)).view == PAIR
    assert apply_request(witness, WitnessRequest(Copy(0, 11), None, home=0, among=everywhere)).view is None
    alone = View(5, OTHER, None)
    assert apply_request(Witness(), WitnessRequest(OTHER, alone, home=0, among=everywhere)).view == alone


def test_a_restarted_witness_waits_for_the_report_of_a_possible_backup() -> None:
    alone, everywhere = View(5, OTHER, None), (0, 1, 2, 3)
    witness = apply_request(Witness(), WitnessRequest(OTHER, alone, RequestKind.PAIR, HOME, home=0, among=everywhere))
    assert witness.view is None
    newer = View(7, HOME, None)
    assert apply_request(witness, WitnessRequest(HOME, newer, home=0, among=everywhere)).view == newer
    assert apply_request(witness, WitnessRequest(HOME, alone, home=0, among=everywhere)).view == alone


def test_single_replica_restarts_with_its_task() -> None:
    witness = Witness(view=View(5, OTHER, None))
    assert apply_request(witness, _request_of(Copy(0, 11), None)).view == View(5, OTHER, None)
    assert apply_request(witness, _request_of(Copy(1, 21), None)).view == View(6, Copy(1, 21), None)


def test_the_last_replica_to_restart_serves_after_both_were_lost() -> None:
    witness = apply_request(Witness(view=PAIR), _request_of(Copy(0, 9), None))  # of a former life, and late
    witness = apply_request(apply_request(witness, _request_of(Copy(1, 21), None)), _request_of(Copy(1, 21), None))
    assert witness.view == PAIR
    assert apply_request(witness, _request_of(Copy(2, 30), None)).view == PAIR
    after = apply_request(witness, _request_of(Copy(0, 11), None))
    assert after.view == View(PAIR.term + 1, Copy(0, 11), None)


@pytest.mark.parametrize(("first", "last"), [(HOME, OTHER), (OTHER, HOME)])
def test_the_last_of_two_leaving_replicas_is_alone_until_it_has_left(first: Copy, last: Copy) -> None:
    third = Copy(2, 30)
    witness = apply_request(Witness(view=PAIR), _request_of(first, PAIR, RequestKind.SHUT_DOWN))
    assert apply_request(witness, _request_of(first, PAIR, RequestKind.SHUT_DOWN)) == witness
    assert apply_request(witness, _request_of(first, PAIR, RequestKind.ALONE)).view == PAIR
    assert apply_request(witness, _request_of(third, None)).view == PAIR
    assert apply_request(witness, _request_of(last, PAIR, RequestKind.ALONE)).view == View(5, last, None)
    alone = View(5, last, None)
    witness = apply_request(witness, _request_of(last, PAIR, RequestKind.SHUT_DOWN))
    assert witness.view == alone
    assert apply_request(witness, _request_of(last, alone, RequestKind.SHUT_DOWN)).view == alone
    assert apply_request(witness, _request_of(third, None)).view == alone
    witness = apply_request(witness, _request_of(last, alone, RequestKind.DEPOSITED))
    assert witness.view == alone
    assert apply_request(witness, _request_of(last, alone)).view == alone
    assert (
        apply_request(witness, _request_of(third, View(3, OTHER, third))).view == alone
    )  # it may have what others have changed
    assert apply_request(witness, _request_of(third, None)).view == View(6, third, None)
    assert apply_request(witness, _request_of(third, alone)).view == View(6, third, None)


def test_a_leaving_replica_first_learns_the_current_view() -> None:
    witness = apply_request(Witness(view=PAIR), _request_of(HOME, PAIR, RequestKind.SHUT_DOWN))
    assert apply_request(witness, _request_of(OTHER, View(3, HOME, None), RequestKind.SHUT_DOWN)) == witness
    assert apply_request(witness, _request_of(OTHER, PAIR, RequestKind.SHUT_DOWN)).view == View(5, OTHER, None)


def test_a_replica_without_a_live_backup_is_alone_when_it_shuts_down() -> None:
    witness = apply_request(Witness(view=PAIR), _request_of(Copy(1, 21), None))
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.SHUT_DOWN)).view == View(5, HOME, None)


def test_a_lost_replica_becomes_neither_primary_nor_backup() -> None:
    third = Copy(2, 30)
    witness = apply_request(Witness(view=PAIR), _request_of(OTHER, PAIR, RequestKind.SHUT_DOWN))
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.HAND_OFF)) == witness
    witness = apply_request(witness, _request_of(third, PAIR, RequestKind.SHUT_DOWN))
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.PAIR, third)) == witness
    assert apply_request(witness, _request_of(HOME, PAIR, RequestKind.PAIR, Copy(2, 31))).view == View(
        5, HOME, Copy(2, 31)
    )


def test_a_replica_outside_the_view_gets_a_new_incarnation() -> None:
    standing = standing_after(Standing(me=HOME, view=PAIR), View(5, OTHER, None), 11)
    assert standing == Standing(me=Copy(0, 11), view=View(5, OTHER, None))
    assert not standing.serves


def test_updates_of_older_terms_are_refused() -> None:
    backup = Standing(me=OTHER, view=PAIR)
    assert accepts(backup, PAIR)
    assert not accepts(backup, View(3, HOME, None))
    assert not accepts(standing_after(backup, View(5, OTHER, None), 21), PAIR)
    assert accepts(Standing(me=OTHER), PAIR)


@pytest.mark.parametrize("view", [None, PAIR, View(5, OTHER, None)])
def test_views_travel(view: View | None) -> None:
    assert from_words(as_words(view)) == view


@pytest.mark.parametrize("words", [(1,), (1, (0, 1), (0,)), "view", (None, (0, 1), None)])
def test_a_malformed_view_is_refused(words: object) -> None:
    with pytest.raises(ValueError, match="malformed view"):
        from_words(words)


# Random histories -----------------------------------------------------------------------------------------------------


class _Process:
    """A replica with its contents: the pushes that it has applied, in order."""

    def __init__(self, me: Copy) -> None:
        self.standing = Standing(me=me)
        self.log: list[int] = []
        self.stopped = False
        self.steps_down = False
        self.asked_for: Copy | None = None
        self.ends = False
        #: Whether it ends, and there was no channel to the other copy.
        self.lacks_other = False

    @property
    def acts(self) -> bool:
        return not (self.stopped or self.ends)


class _Feed:
    """A feed from a primary to another replica, with messages in both directions. Its first record is a snapshot."""

    def __init__(self, source: _Process, target: Copy) -> None:
        self.source, self.target = source, target
        self.records: list[list[int]] = [list(source.log)]
        self.sent, self.acks, self.confirmed = 1, list[int](), 0
        self.taken = 0

    @property
    def has_all(self) -> bool:
        return self.confirmed == self.sent


class _World:
    """Copies on some processes, a witness, a worker that repeats each push until it is acknowledged, and a network that
    loses. The copies are to be on other processes again and again."""

    def __init__(self, seed: int, processes: int) -> None:
        self.chance = random.Random(seed)
        self.incarnations = itertools.count(100)
        self.copies = [_Process(Copy(ps, next(self.incarnations))) for ps in range(processes)]
        self.witness = Witness()
        self.newest: View | None = None
        self.feeds: dict[tuple[int, int], _Feed] = {}
        self.answers: list[tuple[int, Copy, View]] = []
        self.acknowledged: list[int] = []
        self.push = 0
        self.crashed = 0
        self.handed = 0
        #: By term what a primary has left with the chief.
        self.left: dict[int, list[int]] = {}
        self.found = 0
        self.aim = Placement(0, 1)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            move = self.chance.choice(
                [self.works, self.delivers, self.confirms, self.acknowledges, self.resumes] * 24
                + [self.asks, self.hears, self.dials, self.ends] * 12
                + [self.is_cut, self.crashes, self.forgets, self.aims, self.leaves]
                + [self.stops] * 3
            )
            move(self.chance.randrange(len(self.copies)))
            self.check()

    def check(self) -> None:
        if self.newest is None:
            return
        primary = self.of(self.newest.primary)
        backup = None if self.newest.backup is None else self.of(self.newest.backup)
        if primary is not None and starts_empty(primary.standing, self.newest):
            has = self.left.get(self.newest.term - 1, [])
        elif primary is not None or backup is not None:
            has = (primary or backup or self.copies[0]).log
        else:
            has = self.left.get(self.newest.term, [])
        assert set(self.acknowledged) <= set(has), "an acknowledged update is lost"
        for copy in self.copies:
            assert len(set(copy.log)) == len(copy.log), "a push was applied twice"
            if copy.standing.acknowledges_alone:
                assert copy.standing.me == self.newest.primary, "two primaries acknowledge"

    def of(self, copy: Copy) -> _Process | None:
        found = self.copies[copy.ps]
        return found if found.standing.me == copy else None

    def feeds_of(self, ps: int) -> list[_Feed]:
        return [feed for (source, _), feed in self.feeds.items() if source == ps]

    def learns(self, ps: int, view: View) -> None:
        copy, before = self.copies[ps], self.copies[ps].standing
        copy.standing = after = standing_after(before, view, next(self.incarnations))
        if after.me != before.me:
            copy.log.clear()
        if starts_empty(before, view):
            copy.log = list(self.left.get(view.term - 1, []))
            self.found += bool(copy.log)
        if after.view == before.view:
            return
        copy.steps_down = False
        for (source, target), feed in list(self.feeds.items()):
            # A primary without a backup starts a new transfer to its next backup.
            was_alone = before.view is None or before.view.backup is None
            is_second = after.serves and (view.backup == feed.target or (view.backup is None and was_alone))
            if (source == ps and not is_second) or (target == ps and after.serves):
                del self.feeds[source, target]

    # What may happen

    def aims(self, _: int) -> None:
        """Copies are to be somewhere else."""
        ps = self.chance.sample(range(len(self.copies)), 2)
        self.aim = Placement(ps[0], self.chance.choice((ps[1], ps[1], ps[1], None)))

    def works(self, ps: int) -> None:
        """The worker brings its push to a copy that says it serves."""
        copy = self.copies[ps]
        if not copy.acts or not copy.standing.serves or copy.steps_down or self.push in copy.log:
            return
        copy.log.append(self.push)
        for feed in self.feeds_of(ps):
            feed.records.append([self.push])
            feed.sent += 1

    def acknowledges(self, ps: int) -> None:
        copy = self.copies[ps]
        standing = copy.standing
        if not copy.acts or not standing.serves or self.push not in copy.log:
            return
        seconds = {standing.pairing, standing.view.backup if standing.view is not None else None}
        needed = [self.feeds.get((ps, its.ps)) for its in seconds if its is not None]
        backup = self.feeds.get((ps, standing.view.backup.ps)) if standing.view and standing.view.backup else None
        both_have_it = (backup is not None or standing.pairing is not None) and all(
            feed is not None and feed.has_all and standing.needs(feed.target) for feed in needed
        )
        if standing.acknowledges_alone or both_have_it:
            self.acknowledged.append(self.push)
            self.push += 1

    def delivers(self, ps: int) -> None:
        """A record arrives at another copy."""
        for key in [key for key in self.feeds if key[1] == ps]:
            feed, copy = self.feeds[key], self.copies[ps]
            if not feed.records or copy.stopped:
                continue
            if copy.standing.me != feed.target:
                del self.feeds[key]
                continue
            record = feed.records.pop(0)
            if not feed.taken:
                copy.log.clear()
            copy.log += record
            feed.taken += 1
            feed.acks.append(feed.taken)

    def confirms(self, ps: int) -> None:
        for feed in self.feeds_of(ps):
            if feed.acks and not self.copies[ps].stopped:
                feed.confirmed = feed.acks.pop(0)

    def asks(self, ps: int) -> None:
        """Sends a request of a replica to the witness; the answer arrives later, or never."""
        copy = self.copies[ps]
        if not copy.acts:
            return
        kind, other = self.next_request(ps, copy)
        everyone = tuple(range(len(self.copies)))
        request = WitnessRequest(
            copy.standing.me, copy.standing.view, kind, other or copy.standing.pairing, 0, everyone
        )
        self.witness = apply_request(self.witness, request)
        if self.witness.view is not None:
            self.handed += kind is RequestKind.HAND_OFF and self.witness.view != copy.standing.view
            self.newest = self.witness.view
            self.answers.append((ps, copy.standing.me, self.witness.view))

    def next_request(self, ps: int, copy: _Process) -> tuple[RequestKind, Copy | None]:
        """Returns the next request of a replica."""
        standing = copy.standing
        view = standing.view
        if view is None or standing.me not in view:
            return RequestKind.VIEW, None
        if standing.pairing is not None:
            feed = self.feeds.get((ps, standing.pairing.ps))
            # It may have asked already; where the copy never was known to have everything, only that is asked.
            if feed is not None and feed.target == standing.pairing and feed.has_all:
                copy.asked_for = standing.pairing
            return (RequestKind.PAIR if copy.asked_for == standing.pairing else RequestKind.VIEW), standing.pairing
        if not standing.serves:
            fed = any(target == ps for _, target in self.feeds)
            return (RequestKind.VIEW if fed else RequestKind.ALONE), None
        backup = None if view.backup is None else self.feeds.get((ps, view.backup.ps))
        if view.backup is not None and backup is None:
            return RequestKind.ALONE, None
        step = next_step(view, self.aim)
        if view.backup is not None and step.move is Move.DROP:
            return RequestKind.ALONE, None
        if backup is not None and step.move is Move.HAND_OFF:
            copy.steps_down = True
            return (RequestKind.HAND_OFF if backup.has_all else RequestKind.VIEW), None
        copy.steps_down = False
        for feed in self.feeds_of(ps):
            if feed is not backup and (view.backup is None or step == (Move.BRING, feed.target.ps)):
                copy.standing = replace(standing, pairing=feed.target)
                copy.asked_for = feed.target if feed.has_all else None
                return (RequestKind.PAIR, feed.target) if feed.has_all else (RequestKind.VIEW, None)
        return RequestKind.VIEW, None

    def hears(self, _: int) -> None:
        if not self.answers:
            return
        ps, me, view = self.answers.pop(self.chance.randrange(len(self.answers)))
        copy = self.copies[ps]
        if copy.acts and copy.standing.me == me and self.chance.random() < 0.9:
            self.learns(ps, view)

    def dials(self, ps: int) -> None:
        """A primary begins to feed another copy, with all that it has."""
        source = self.copies[ps]
        view = source.standing.view
        if not source.acts or not source.standing.serves or view is None:
            return
        backup = None if view.backup is None else self.feeds.get((ps, view.backup.ps))
        if view.backup is not None and backup is None:
            number = view.backup.ps
        else:
            number = next_step(view, self.aim).ps
        if number is None or number == ps:
            number = self.chance.randrange(len(self.copies)) if view.backup is None else None
        if number is None or number == ps or (ps, number) in self.feeds or source.standing.pairing is not None:
            return
        target = self.copies[number]
        if not target.acts or not accepts(target.standing, view):
            return
        self.learns(number, view)
        if view.backup is None or view.backup.ps != number or view.backup == target.standing.me:
            for key in [key for key in self.feeds if key[1] == number]:
                del self.feeds[key]
            self.feeds[ps, number] = _Feed(source, target.standing.me)

    def is_cut(self, ps: int) -> None:
        for key in [key for key in self.feeds if key[0] == ps]:
            del self.feeds[key]

    def crashes(self, ps: int) -> None:
        """One failure at a time: no crash while the other copy lacks state that the newest view says it has, nor before
        the task that the primary considers its backup has received the newest view."""
        newest, knows = self.newest, self.witness.view is not None
        if newest is None or not knows:
            return
        left = [copy for copy in (newest.primary, newest.backup) if copy is not None and copy.ps != ps]
        if not left or any(self.of(copy) is None or not self.copies[copy.ps].acts for copy in left):
            return
        self.copies[ps] = _Process(Copy(ps, next(self.incarnations)))
        self.feeds = {key: feed for key, feed in self.feeds.items() if ps not in key}
        self.crashed += 1

    def leaves(self, ps: int) -> None:
        """Drains a process: it serves and feeds no more."""
        copy = self.copies[ps]
        if copy.acts and copy.standing.view is not None:
            copy.ends, copy.lacks_other = True, not self.has_channel(ps, copy.standing)
            self.feeds = {key: feed for key, feed in self.feeds.items() if key[0] != ps}

    def ends(self, ps: int) -> None:
        """Shuts a replica down and restarts it; the last replica deposits its state with the chief."""
        copy = self.copies[ps]
        known = copy.standing.view
        if copy.stopped or not copy.ends or self.witness.view is None:
            return
        last = copy.lacks_other and known is not None and copy.standing.me in known
        newest = self.tells(ps, RequestKind.ALONE if last else RequestKind.SHUT_DOWN)
        self.learns(ps, newest)
        if copy.standing.me in newest and newest.backup is not None and newest != known:
            return
        if newest == View(newest.term, copy.standing.me, None):
            self.left[newest.term] = list(copy.log)
            self.tells(ps, RequestKind.DEPOSITED)
        self.copies[ps] = _Process(Copy(ps, next(self.incarnations)))
        self.feeds = {key: feed for key, feed in self.feeds.items() if ps not in key}

    def has_channel(self, ps: int, standing: Standing) -> bool:
        """Returns whether there is a channel between a replica and the other one."""
        if not standing.serves:
            return any(target == ps for _, target in self.feeds)
        backup = None if standing.view is None else standing.view.backup
        feed = None if backup is None else self.feeds.get((ps, backup.ps))
        return feed is not None and feed.target == backup and feed.confirmed > 0

    def tells(self, ps: int, kind: RequestKind) -> View:
        """A copy asks the witness, and hears the answer; the witness knows the view."""
        standing = self.copies[ps].standing
        request = WitnessRequest(standing.me, standing.view, kind, standing.pairing, 0, tuple(range(len(self.copies))))
        self.witness = apply_request(self.witness, request)
        assert self.witness.view is not None
        self.newest = self.witness.view
        return self.newest

    def stops(self, ps: int) -> None:
        self.copies[ps].stopped = True

    def resumes(self, ps: int) -> None:
        self.copies[ps].stopped = False

    def forgets(self, _: int) -> None:
        """The chief is restarted, once every copy of the newest view has heard of that. Others may be stopped, and
        know older ones."""
        if self.newest is None:
            return
        copies = [self.of(copy) for copy in (self.newest.primary, self.newest.backup) if copy is not None]
        if all(copy is not None and not copy.stopped and copy.standing.view == self.newest for copy in copies):
            self.witness = Witness()
            self.left.clear()


@pytest.mark.parametrize("processes", [2, 3, 4])
def test_random_histories(processes: int) -> None:
    """No acknowledged update is lost with one failure at a time, each push is applied once, and no copy acknowledges
    what the newest primary does not have."""
    acknowledged = crashes = terms = handed = found = 0
    places: set[int] = set()
    for seed in range(200):
        world = _World(seed, processes)
        world.run(1000)
        acknowledged += len(world.acknowledged)
        crashes += world.crashed
        handed += world.handed
        found += world.found
        if world.newest is not None:
            terms = max(terms, world.newest.term)
            places.add(world.newest.primary.ps)
    assert acknowledged > 700
    assert crashes > 60
    assert terms > 6
    assert handed > 20
    assert found > 20
    assert len(places) == processes
