from __future__ import annotations

import json

from headwater.cluster.config import parse_task_config
from headwater.cluster.names import TaskName
from headwater.platform.spec import job_from_data
from headwater.platform.tasks import cluster_of, task_command, task_environment


def test_a_task_keeps_its_number_where_one_before_it_has_no_place() -> None:
    last = TaskName("worker", 2)
    cluster = cluster_of({TaskName("ps", 0): "a:1", TaskName("worker", 0): "b:1", last: "d:1"})
    assert cluster == {"ps": ["a:1"], "worker": ["b:1", "worker-1.away.invalid:1", "d:1"]}
    spec = job_from_data({"name": "linear", "program": "train.py", "ps": 1, "workers": 3, "flags": True})
    config = task_environment(spec, last, cluster, job_id="linear-x1", attempt=1)["TF_CONFIG"]
    assert parse_task_config(config).task == last
    assert json.loads(config)["cluster"]["worker"][2] == "d:1"
    assert "--worker_hosts=b:1,worker-1.away.invalid:1,d:1" in task_command(spec, last, cluster)


def test_tasks_of_a_replicated_graph_know_the_first_ps() -> None:
    cluster = {"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1"]}
    data = {"name": "linear", "program": "train.py", "ps": "2:4", "workers": 1, "flags": True}
    spec = job_from_data({**data, "env": {"HEADWATER_REPLICAS": "2"}})

    def told(task: TaskName) -> list[str]:
        config = task_environment(spec, task, cluster, job_id="linear-x1", attempt=1)
        known = json.loads(config["TF_CONFIG"])["cluster"]["ps"]
        assert f"--ps_hosts={','.join(known)}" in task_command(spec, task, cluster)
        assert config["HEADWATER_FIRST_PS"] == "2"
        return known

    assert told(TaskName("worker", 0)) == told(TaskName("ps", 1)) == ["a:1", "b:1"]
    assert told(TaskName("ps", 2)) == ["a:1", "b:1", "c:1"]
