"""``headwater run`` with real servers, which take over the launcher's sockets, train, and end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEADWATER = str(Path(sys.executable).with_name("headwater"))

COUNT = """
import json, os
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
cluster = tf.train.ClusterSpec(config["cluster"])
task = config["task"]
server = tf.train.Server(cluster, job_name=task["type"], task_index=task["index"])
if task["type"] == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    count = tf.Variable(0, name="global_step", trainable=False)
    done = tf.Variable([False, False], name="done")
increment = tf.assign_add(count, 1)
finish = tf.scatter_update(done, [task["index"]], [True])
supervisor = tf.train.Supervisor(
    is_chief=task["index"] == 0, global_step=count, saver=None, summary_op=None, recovery_wait_secs=1
)
with supervisor.managed_session(server.target) as session:
    for _ in range(100):
        session.run(increment)
    session.run(finish)
    while not session.run(done).all():
        pass
    print("count", session.run(count))
"""


@pytest.mark.slow
def test_workers_count_together_and_the_ps_ends_by_itself(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(COUNT)
    result = subprocess.run(
        [HEADWATER, "run", "--ps", "1", "--workers", "2", "count.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["[worker 0] count 200", "[worker 1] count 200"]
    # The ps ended when asked to: it was not killed.
    launcher = [line for line in result.stderr.splitlines() if line.startswith("headwater run: ")]
    assert launcher == ["headwater run: all workers are done"]
