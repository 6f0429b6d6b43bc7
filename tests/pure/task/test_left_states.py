"""What a chief keeps for ``ps`` that have ended, frame by frame."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

from headwater.errors import CancelledError, InvalidArgumentError, UnavailableError
from headwater.task.kinds import DONE, FETCH_STATE, LEAVE_STATE
from headwater.task.left_states import LeftStates, StateAtChief
from headwater.transport.channel import Channel, memory_pair
from headwater.transport.frames import Frame


class Link:
    """Channels to a chief, of which some are lost before the answer.

    Args:
      service: the chief's.
      lost: numbers of such channels.
    """

    def __init__(self, service: LeftStates, *lost: int) -> None:
        self._service = service
        self._lost = set(lost)
        self.opened = 0

    def take_now(self) -> Channel:
        mine, theirs = memory_pair()
        number = self.opened
        self.opened += 1

        def serve() -> None:
            frame = theirs.recv()
            if number in self._lost:
                theirs.close()
            with contextlib.suppress(CancelledError):
                self._service.serve(theirs, frame)

        threading.Thread(target=serve).start()
        return mine

    def give_back(self, channel: Channel, usable: bool) -> None:
        assert not usable
        channel.close()


def kept(link: Link, number: int = 0) -> StateAtChief:
    return StateAtChief("what", number, "/job:worker/task:0", link)


def found(frame: Frame | None) -> tuple[list[object], list[object]] | None:
    return None if frame is None else (list(frame.header), [tensor.tolist() for tensor in frame.tensors])


def test_a_state_is_there_once() -> None:
    link = Link(LeftStates())
    one, other = kept(link), kept(link, 1)
    assert one.fetch() is None
    one.leave(("a", 1), [np.arange(2)])
    assert other.fetch() is None
    assert found(one.fetch()) == (["a", 1], [[0, 1]])
    assert one.fetch() is None


def test_the_last_one_counts() -> None:
    link = Link(LeftStates())
    one = kept(link)
    one.leave(("a",), [])
    one.leave(("b",), [])
    assert found(one.fetch()) == (["b"], [])


@pytest.mark.parametrize("lost", range(3))
def test_each_frame_may_be_said_again(lost: int) -> None:
    """Of leaving, fetching and dropping a state one answer is lost."""
    link = Link(LeftStates(), lost)
    one = kept(link)
    one.leave(("a",), [np.arange(2)])
    assert found(one.fetch()) == (["a"], [[0, 1]])
    assert link.opened == 4
    assert one.fetch() is None


def test_it_is_not_asked_for_ever() -> None:
    link = Link(LeftStates(), *range(10))
    with pytest.raises(UnavailableError):
        kept(link).fetch()
    assert link.opened == 3


@pytest.mark.parametrize("frame", [Frame(LEAVE_STATE, (1, 2)), Frame(FETCH_STATE, ("what",)), Frame(DONE)])
def test_frames_that_make_no_sense(frame: Frame) -> None:
    with pytest.raises(InvalidArgumentError):
        LeftStates().serve(memory_pair()[0], frame)
