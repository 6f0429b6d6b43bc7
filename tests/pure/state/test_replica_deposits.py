"""Copies that the chief keeps, frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.cluster.task import kinds
from headwater.cluster.task.deposited_states import DepositedStates, StateAtChief
from headwater.cluster.transport.problems import Problem
from headwater.errors import InvalidArgumentError, UnavailableError
from headwater.state.feed import Feed
from headwater.state.replica_deposits import ReplicaDeposits, forget_outdated
from headwater.state.views import Copy
from tests.support.deposits import CHIEF, Link, replica_deposits

STRINGS = np.array([b"one", b"two"], object)


def leave(copies: ReplicaDeposits, term: int) -> None:
    """Feeds the chief with a snapshot, and with a change after it."""
    channel = copies.open_feed("set/0", term)
    begins = [(kinds.STATE, (term,), [np.arange(3)]), (kinds.ROWS, ("table",), [STRINGS])]
    feed = Feed(channel, Copy(-1, 0), begins)
    feed.fill()
    feed.send(kinds.UPDATE, (), [np.arange(2)])
    assert feed.wait(feed.last_number, lambda: True)
    channel.end()


def found(copies: ReplicaDeposits, term: int) -> list[Any]:
    return [
        (frame.kind, frame.header, [tensor.tolist() for tensor in frame.tensors])
        for frame in copies.find("set/0", term)
    ]


def test_deposited_state_is_used_once_in_the_next_term() -> None:
    chief = DepositedStates()
    leave(replica_deposits(chief, 0), 4)
    other = replica_deposits(chief, 1)
    assert found(other, 3) == []
    assert found(other, 4) == [
        (kinds.STATE, (0, 4), [[0, 1, 2]]),
        (kinds.ROWS, (1, "table"), [[b"one", b"two"]]),
        (kinds.UPDATE, (2,), [[0, 1]]),
    ]
    assert found(other, 4) == []


def test_unusable_deposited_state_is_dropped() -> None:
    chief = DepositedStates()
    for term in (4, 5):
        leave(replica_deposits(chief, 0), term)
    forget_outdated(chief, "set", 1, 9)
    forget_outdated(chief, "set", 0, 5)
    assert found(replica_deposits(chief, 1), 4) == []
    assert len(found(replica_deposits(chief, 1), 5)) == 3


def test_an_incomplete_deposited_replica_is_ignored() -> None:
    chief = DepositedStates()
    copies = replica_deposits(chief, 0)
    copies.open_feed("set/0", 4)
    feed = Feed(copies.open_feed("set/0", 4), Copy(-1, 0), [(kinds.STATE, (4,), [np.arange(3)])])
    feed.fill()
    assert found(copies, 4) == []


def test_nothing_is_left_with_a_chief_that_is_not_there() -> None:
    link = Link(DepositedStates())
    link.refuses = lambda: Problem.REFUSED
    with pytest.raises(UnavailableError):
        ReplicaDeposits(CHIEF, link).require_chief()


def test_malformed_deposits_are_rejected() -> None:
    chief = DepositedStates()
    StateAtChief("copy set/0", 4, CHIEF, Link(chief)).deposit(("something",), ())
    with pytest.raises(InvalidArgumentError):
        found(replica_deposits(chief, 0), 4)
    kept = StateAtChief("copy set/0", 5, CHIEF, Link(chief))
    kept.deposit_part(0, ("something",), ())
    kept.deposit((1,), ())
    with pytest.raises(InvalidArgumentError):
        found(replica_deposits(chief, 0), 5)
