"""A server that is configured by ``TF_CONFIG``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater import tf
from headwater.cluster.config import TaskConfig
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.graph.server import standard_server


def config(**parts: Any) -> str:
    return json.dumps(parts)


def test_a_standard_server_serves_the_task_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # TF_CONFIG must name a port; here the system chooses one.
    found = TaskConfig(cluster=ClusterSpec({"chief": ["localhost:0"]}), task=TaskName("chief", 0))
    monkeypatch.setattr(standard_server, "task_config_from_environment", lambda: found)
    server = tf.contrib.distribute.run_standard_tensorflow_server()
    try:
        assert isinstance(server, tf.distribute.Server)
        with tf.Graph().as_default(), tf.Session(server.target) as session:
            assert session.run(tf.constant(2) + 3) == 5
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '"cluster" is not found'),
        (config(cluster={"worker": ["localhost:1"]}), '"task" is not found'),
        (config(cluster={"ps": ["localhost:1"]}, task={"type": "ps", "index": 0}), "`chief` or `worker`"),
    ],
)
def test_missing_environment_variables_are_named(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=message):
        tf.contrib.distribute.run_standard_tensorflow_server()
