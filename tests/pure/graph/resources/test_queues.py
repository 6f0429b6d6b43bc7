"""Queues: elements that are kept as rows of arrays come out as elements that are kept as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from headwater.errors import CancelledError, OutOfRangeError
from headwater.graph.resources import queues
from headwater.graph.resources.queues import FifoQueue, PaddingQueue, PriorityQueue, Queue, ShuffleQueue
from headwater.graph.resources.rows import Rows


class Patient:
    """A step that waits for as long as it takes."""

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        condition.wait_for(ready)


STEP = Patient()
KINDS: dict[str, Callable[[Any], Queue]] = {
    "fifo": lambda shapes: FifoQueue("q", 40, shapes),
    "padding": lambda shapes: PaddingQueue("q", 40, shapes),
    "shuffle": lambda shapes: ShuffleQueue("q", 40, shapes, 2, 7),
    "priority": lambda shapes: PriorityQueue("q", 40, [(), *shapes]),
}


def texts(*values: bytes) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def batch_of(first: int, count: int) -> tuple[Any, ...]:
    numbers = np.arange(first, first + count)
    return texts(*(b"%d\0" % n for n in numbers)), np.repeat(numbers[:, None], 3, axis=1).astype(np.float32)


def history(queue: Queue, priority: bool) -> list[Any]:
    """Elements of a queue that is filled, emptied in parts, and filled again."""
    seen: list[Any] = []

    def add(first: int, count: int) -> None:
        batch = batch_of(first, count)
        queue.enqueue_many(STEP, (np.arange(first, first + count), *batch) if priority else batch)

    def see(found: Sequence[Any]) -> None:
        seen.append([part.tolist() for part in found])

    add(0, 30)
    see(queue.dequeue_many(STEP, 25))
    add(30, 33)
    single = (texts(b"one")[0:1].reshape(()), np.zeros(3, np.float32))
    queue.enqueue(STEP, (np.array(40), *single) if priority else single)
    for _ in range(3):
        see(queue.dequeue(STEP))
    see(queue.dequeue_some(STEP, 4))
    queue.enqueue_many(
        STEP, tuple(part[:0] for part in ((np.arange(0), *batch_of(0, 0)) if priority else batch_of(0, 0)))
    )
    queue.close()
    see(queue.dequeue_many(STEP, 20))
    see(queue.dequeue_many(STEP, 20, at_most=True))
    assert queue.size() == 0
    with pytest.raises(OutOfRangeError):
        queue.dequeue(STEP)
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_queues_treat_small_and_large_elements_alike(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_rows = history(KINDS[kind]([(), (3,)]), kind == "priority")
    monkeypatch.setattr(queues, "_ROW_BYTES", -1)
    assert in_rows == history(KINDS[kind]([(), (3,)]), kind == "priority")
    numbers = sorted(int(text.rstrip(b"\0")) for batch in in_rows for text in np.ravel(batch[-2]) if text != b"one")
    assert numbers == list(range(63))


def test_taken_elements_are_not_changed_by_later_elements() -> None:
    queue = FifoQueue("q", 4, [(2,)])
    given = np.ones((2, 2))
    queue.enqueue_many(STEP, (given,))
    given[:] = 5
    (one,) = queue.dequeue(STEP)
    queue.enqueue_many(STEP, (np.full((3, 2), 9.0),))
    assert one.tolist() == [1, 1]
    assert queue.dequeue_many(STEP, 4)[0].tolist() == [[1, 1], [9, 9], [9, 9], [9, 9]]


@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
def test_elements_of_a_batch_that_never_fills_go_back(kind: str) -> None:
    queue = KINDS[kind]([(), (3,)])
    queue.enqueue_many(STEP, batch_of(0, 5))
    queue.close()
    with pytest.raises(OutOfRangeError, match="requested 6, current size 5"):
        queue.dequeue_many(STEP, 6)
    assert sorted(queue.dequeue_many(STEP, 5)[0]) == [b"%d\0" % n for n in range(5)]
    with pytest.raises(CancelledError):
        queue.enqueue_many(STEP, batch_of(0, 1))


def test_batch_larger_than_the_queue_passes_through() -> None:
    queue = FifoQueue("q", 3, [(), (3,)])
    adding = threading.Thread(target=queue.enqueue_many, args=(STEP, batch_of(0, 50)))
    adding.start()
    found = queue.dequeue_many(STEP, 50)[0]
    adding.join()
    assert found.tolist() == [b"%d\0" % n for n in range(50)]


def test_places_are_used_again_and_hold_nothing_that_was_taken() -> None:
    rows = Rows(100)
    text = b"a text that nothing else refers to"
    first = rows.add([texts(text, b"b")])
    assert rows.pop(first)[0].tolist() == [text, b"b"]
    assert text not in rows._columns[0].tolist()
    assert sorted(rows.add([texts(*[b""] * 16)])) == list(range(16))
    with_more = rows.add([texts(*[b"c"] * 90)])
    assert len(rows._columns[0]) == 106
    assert rows.pop(with_more)[0].tolist() == [b"c"] * 90


def test_other_types_are_widened() -> None:
    rows = Rows(10)
    places = rows.add([np.array([1], np.int32)]) + rows.add([np.array([1 << 40])])
    assert rows.pop(places)[0].tolist() == [1, 1 << 40]
