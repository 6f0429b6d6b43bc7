"""A ``ps`` sends a shard to another one, and an error occurs at the sender."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import optax
import pytest

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import UnavailableError
from headwater.ps.consistency import from_text
from headwater.ps.host import HostedParameters
from headwater.ps.layout import make_layout
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.ps.shards.directory import Directory
from headwater.ps.shards.holder import ShardHolder
from headwater.ps.shards.places import ShardPlace
from headwater.ps.updater import Updater
from tests.support.peer_link import PeerLink

ME, OTHER = "/job:ps/task:0", "/job:ps/task:1"


def fails(*_: object) -> Any:
    raise MemoryError


class Link(PeerLink):
    """A link to a ``ps`` that accepts shards and has none, over channels that send what ``may_send`` allows."""

    def __init__(self) -> None:
        self.may_send: Callable[[Frame], bool] = lambda frame: True
        self.asked: list[int] = []

    def open_channel_now(self) -> Channel:
        mine, theirs = memory_pair((OTHER, ME))
        send = mine.send

        def sends(frame: Frame) -> None:
            if not self.may_send(frame):
                raise MemoryError
            send(frame)
            self.asked.append(frame.kind)
            theirs.recv()
            theirs.send(Frame(kinds.DONE, (frame.kind == kinds.OFFER,)))

        mine.send = sends
        return mine


class Kept:
    """The chief's copy of a shard's state; the chief answers or does not."""

    def __init__(self, noted: list[str], shard: int, answers: bool) -> None:
        self._noted, self._shard, self._answers = noted, shard, answers

    def restore(self) -> bool:
        self._noted.append(f"{self._shard} back")
        return self._answers

    def deposit(self) -> bool:
        self._noted.append(f"{self._shard} left")
        return self._answers


def holding(
    link: Link, first: Sequence[int] = (1,), leaving: Any = lambda shard, host: Kept([], shard, True)
) -> tuple[ShardHolder, HostedParameters, Updater]:
    """Returns the parts of a ``ps`` that has shards with the values ``first``."""
    layout, structure = make_layout(leaf_specs({}), 1), jax.tree.structure({})
    updater = OptaxUpdater(layout, 0, structure, optax.sgd(1.0))
    host = HostedParameters("params/1", ME, 0, layout, updater, from_text("sync", 1))
    host.updates.filled = 1
    directory = Directory("params", ME, {}, lambda *_: link)
    holder = ShardHolder(
        directory,
        3,
        task=ME,
        address="here",
        make=lambda shard: (host, updater),
        rehearse=lambda *_: None,
        expect=lambda *_, **__: None,
        end_with_job=lambda _: None,
        leaving=leaving,
    )
    holder.start({shard: ShardPlace(0, ME) for shard in first})
    return holder, host, updater


@pytest.mark.parametrize("what", ["words", "values", "state"])
def test_a_shard_stays_when_its_state_cannot_be_captured(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link()
    holder, host, updater = holding(link)
    monkeypatch.setattr(host.memory if what == "words" else updater, what, fails)
    with pytest.raises(MemoryError):
        holder.send_shard(1, OTHER, "there")
    assert host.waiting.held_for == host.waiting.pauses_for == ""
    assert (holder.held, holder.moving, link.asked) == ([1], [], [kinds.OFFER])


def test_a_shard_stays_after_a_failed_send_once_the_receiver_denies_having_it() -> None:
    link = Link()
    holder, host, _ = holding(link)
    link.may_send = lambda frame: frame.kind != kinds.STATE
    with pytest.raises(UnavailableError, match="has not taken shard 1"):
        holder.send_shard(1, OTHER, "there")
    assert host.waiting.held_for == ""
    assert (holder.held, holder.moving, link.asked) == ([1], [], [kinds.OFFER, kinds.TOOK])


def test_a_failed_query_for_a_shard_is_repeated() -> None:
    link = Link()
    holder, host, _ = holding(link)
    left = [kinds.STATE, kinds.TOOK]

    def may_send(frame: Frame) -> bool:
        if frame.kind in left:
            left.remove(frame.kind)
            return False
        return True

    link.may_send = may_send
    with pytest.raises(UnavailableError, match="has not taken shard 1"):
        holder.send_shard(1, OTHER, "there")
    assert host.waiting.held_for == ""
    assert link.asked == [kinds.OFFER, kinds.TOOK]


@pytest.mark.parametrize("answers", [True, False])
def test_the_chief_keeps_shards_that_no_ps_accepts(answers: bool) -> None:
    """A ``ps`` that does not answer is asked once, not once for each shard."""
    noted: list[str] = []
    holder, _, _ = holding(Link(), (0, 1, 2), lambda shard, host: Kept(noted, shard, answers))
    assert noted == ["0 back", "1 back", "2 back"][: 3 if answers else 1]
    noted.clear()
    holder.hand_off()
    assert noted == ["0 left", "1 left", "2 left"][: 3 if answers else 1]


def test_a_ps_takes_no_shard_once_it_leaves() -> None:
    """It has already reported its shards, and ends: no process would serve a further shard."""
    holder, host, _ = holding(Link(), ())
    mine, theirs = memory_pair((ME, OTHER))
    offer = Frame(kinds.OFFER, ("params", 1, 1, OTHER, holder.directory.words(), []))
    taking = threading.Thread(target=holder.serve_peer, args=(theirs, offer))
    taking.start()
    assert mine.recv().header == (True,)
    holder.hand_off()
    with host.lock:
        words = host.memory.words()
    mine.send(Frame(kinds.STATE, ([], words)))
    assert mine.recv().header == (False,)
    taking.join()
    assert holder.held == []
