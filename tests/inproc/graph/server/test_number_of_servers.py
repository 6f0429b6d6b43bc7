"""Graphs refuse a job whose number of ``ps`` can change while it runs, because their variables do not move."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import tf

HERE = "127.0.0.1:0"


@pytest.mark.parametrize("task", ["ps", "worker"])
def test_a_task_of_a_graph_says_so(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables are the environment variables that the platform sets for ``ps: 1:3``."""
    monkeypatch.setenv("HEADWATER_SHARDS", "6")
    monkeypatch.setenv("HEADWATER_FIRST_PS", "1")
    with pytest.raises(tf.errors.FailedPreconditionError) as raised:
        tf.train.Server({"ps": [HERE], "worker": [HERE]}, job_name=task, task_index=0)
    for part in ("begins with 1 ps", "HEADWATER_SHARDS=6", "only if they are replicated", "'ps: 2'"):
        assert part in str(raised.value)


def test_a_job_without_ps_has_none_that_could_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_SHARDS", "6")
    server = tf.train.Server({"worker": [HERE]}, start=False)
    server.start()
    target = server.target
    server.stop()
    assert target.startswith("grpc://127.0.0.1:")
