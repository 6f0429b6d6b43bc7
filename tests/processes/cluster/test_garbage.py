"""A task that only serves excludes its modules from full collections of cyclic garbage."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import EXEC, processes

PROGRAM = """
import gc, threading
from headwater import tf

def collect():
    while not gc.get_freeze_count():
        gc.collect()
    print("looks at", len(gc.get_objects()), "without", gc.get_freeze_count())

server = tf.train.Server.create_local_server()
threading.Thread(target=collect, daemon=True).start()
server.join()
"""


def test_modules_are_left_out(tmp_path: Path) -> None:
    program = tmp_path / "serves.py"
    program.write_text(PROGRAM)
    with processes() as cluster:
        found = cluster.run(*EXEC, str(program)).wait_for(r"looks at (\d+) without (\d+)")
        looks_at, without = map(int, found.groups())
        assert looks_at < without / 5
