"""``/metrics``, and the dashboard that uses them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.cluster.telemetry.progress import Progress
from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform.app import create_app
from headwater.platform.auth import Auth
from headwater.platform.backends.base import Running, Usage
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.records import TokenRole
from headwater.platform.service import Platform
from headwater.platform.spec import job_from_data
from headwater.platform.store import Store
from headwater.platform.web.metrics import task_metrics
from headwater.platform.web.routes import ROUTERS
from tests.support.scripted import ScriptedTasks

DASHBOARD = Path(__file__).resolve().parents[3] / "docs/grafana/headwater.json"
USAGE = Usage(cpu_s=12.5, memory_bytes=1 << 20, gpu_memory_bytes=1 << 30, gpu_utilization=0.75)


class Served:
    """A platform with simulated tasks, with its routes."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(f"sqlite:///{folder}/jobs.db")
        self.store.open()
        self.tasks = ScriptedTasks(room=3)
        self.manager = Manager(self.store, [self.tasks], ManagerSettings(data_dir=folder))
        auth = Auth(self.store)
        roles: tuple[TokenRole, ...] = ("view", "run")
        self.secrets = {role: auth.issue_token(role, role)[1] for role in roles}
        self._app = create_app(Platform(self.store, self.manager, auth), ROUTERS)

    def get(self, role: TokenRole | None) -> httpx.Response:
        """Requests ``/metrics`` with a token of the given role."""

        async def ask() -> httpx.Response:
            headers = {"Authorization": f"Bearer {self.secrets[role]}"} if role is not None else {}
            async with self._app.router.lifespan_context(self._app):
                transport = httpx.ASGITransport(self._app)
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                    return await client.get("/metrics", headers=headers)

        return asyncio.run(ask())

    def submit(self, name: str, **fields: Any) -> str:
        return self.manager.submit(job_from_data({"name": name, "command": ["true"], **fields}), owner="eve").id

    def scrape(self) -> dict[str, list[tuple[dict[str, str], float]]]:
        """Returns the samples of each metric, by its name; a metric without samples has an empty list."""
        answer = self.get("view")
        assert answer.status_code == 200
        found: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(answer.text):
            found[f"{family.name}_total" if family.type == "counter" else family.name] = [
                (sample.labels, sample.value) for sample in family.samples
            ]
        return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.manager.close()
    served.store.close()


def test_metrics_need_a_token(served: Served) -> None:
    assert served.get(None).status_code == 401


def test_jobs_tasks_and_the_queue(served: Served) -> None:
    job_id = served.submit("runs", ps=1, workers=2)
    served.manager.process_jobs()
    waits = served.submit("waits")
    progress = Progress(task="/job:worker/task:0", step=7, steps_per_s=3.5, loss=float("nan"))
    served.tasks.tasks["worker-0#0"] = Running(progress=progress, usage=USAGE)
    served.manager.process_jobs()

    found = served.scrape()
    phases = {labels["phase"]: value for labels, value in found["headwater_jobs"]}
    assert (phases["running"], phases["queued"], phases["failed"]) == (1, 1, 0)
    job, task = {"job": job_id, "name": "runs"}, {"job": job_id, "name": "runs", "task": "worker-0"}
    assert (job, 7) in found["headwater_job_step"]
    assert (job, 3) in found["headwater_job_tasks_running"]
    assert [labels["job"] for labels, _ in found["headwater_job_queued_since_seconds"]] == [waits]
    assert found["headwater_task_cpu_seconds_total"] == [(task, 12.5)]
    assert found["headwater_task_memory_bytes"] == [(task, 1 << 20)]
    assert found["headwater_task_gpu_memory_bytes"] == [(task, 1 << 30)]
    assert found["headwater_task_gpu_utilization_ratio"] == [(task, 0.75)]
    assert found["headwater_task_steps_per_second"] == [(task, 3.5)]
    assert str(found["headwater_task_loss"][0][1]) == "nan"
    assert sum(value for _, value in found["headwater_task_running"]) == 3


def test_metrics_reported_by_tasks(served: Served) -> None:
    job_id = served.submit("runs", ps=1, workers=1)
    served.manager.process_jobs()
    activity = TaskActivity(bytes_per_s={"worker-0": (100.0, 28.0)}, staleness=1.25, staleness_max=4)
    metrics = task_metrics(served.manager.live(), {job_id: {"ps-0": activity, "worker-0": TaskActivity()}})
    samples = {
        sample.name: sample.value for metric in metrics for sample in metric.samples if "ps-0" in sample.labels.values()
    }
    assert samples["headwater_task_staleness_mean"] == 1.25
    assert samples["headwater_task_staleness_max"] == 4
    assert samples["headwater_task_traffic_bytes_per_second"] == 128


def test_the_dashboard_names_metrics_that_exist(served: Served) -> None:
    known = set(served.scrape())
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [entry["query"]["query"] for entry in dashboard["templating"]["list"] if entry["type"] == "query"]
    assert len(expressions) > 15
    for expression in expressions:
        names = set(re.findall(r"headwater_\w+", expression))
        assert names, expression
        assert names <= known, expression
