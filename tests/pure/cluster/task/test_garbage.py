"""Collections of cyclic garbage in a process that only serves."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, weakref
from headwater.cluster.task.garbage import keep_survivors

class Node:
    def __init__(self):
        self.itself = self

gc.disable()  # collections come when this program asks for them
keep_survivors()
first = gc.get_freeze_count()
kept, lost = Node(), Node()
gone = weakref.ref(lost)
del lost
gc.collect()
print("garbage is collected", gone() is None)
print("survivors are left out", first > 1000, not any(each is kept for each in gc.get_objects()))
many = [[at] for at in range(2 * first)]
gc.collect()
gone = weakref.ref(kept)
del kept
gc.collect()
print("twice as much is looked at again", gone() is None)
keep_survivors()
print("one callback", sum("garbage" in type(each).__module__ for each in gc.callbacks))
"""


def test_survivors_are_left_out() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "garbage is collected True",
        "survivors are left out True True",
        "twice as much is looked at again True",
        "one callback 1",
    ]
