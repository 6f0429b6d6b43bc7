"""The share of a machine's cores that a task uses."""

from __future__ import annotations

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.graph.runtime import devices


@pytest.mark.parametrize(
    ("task", "share"),
    [
        (TaskName("ps", 0), {"beside": 3, "sparing": 0}),
        (TaskName("chief", 0), {"beside": 2, "sparing": 1}),
        (TaskName("worker", 0), {"beside": 2, "sparing": 1}),
        (TaskName("worker", 1), {"beside": 1, "sparing": 0}),
    ],
)
def test_tasks_of_one_host_divide_its_cores(
    task: TaskName, share: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[dict[str, int]] = []
    monkeypatch.setattr(devices, "share_machine", lambda **limits: found.append(limits))
    cluster = ClusterSpec({"ps": ["one:1"], "chief": ["one:2"], "worker": ["one:3", "two:1"]})
    devices.share_machine_with_tasks(cluster, task)
    assert found == [share]
