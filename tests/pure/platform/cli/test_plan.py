from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.names import TaskName
from headwater.platform.cli.arguments import Invocation
from headwater.platform.cli.launcher.job import label
from headwater.platform.cli.launcher.plan import LaunchSettings, TaskPlan, plan_tasks, reserve_address

PROGRAM = Invocation(options=("-O",), kind="file", program="train.py", arguments=("--rate=1",))


def settings(**changes: Any) -> LaunchSettings:
    asked: dict[str, Any] = {"invocation": PROGRAM, "ps": 1, "workers": 2, **changes}
    return LaunchSettings(**asked)


@pytest.fixture
def plan() -> Iterator[Any]:
    """Plans a launch with sockets that are closed after the test."""
    with ExitStack() as stack:

        def plan(
            settings: LaunchSettings, env: dict[str, str] | None = None, gpus: Sequence[str] = ()
        ) -> dict[TaskName, TaskPlan]:
            sockets = {task: stack.enter_context(reserve_address()) for task in settings.tasks}
            plans = plan_tasks(
                settings,
                sockets,
                job_id="j0b",
                status_address="/run/s",
                launch_token="s3cret",
                base_env=env or {},
                gpus=gpus,
            )
            return {plan.task: plan for plan in plans}

        yield plan


def test_every_task_gets_the_cluster_and_its_place(plan: Any) -> None:
    plans = plan(settings(chief=True))
    addresses = [p.address for p in plans.values()]
    assert [label(task) for task in plans] == ["ps 0", "chief 0", "worker 0", "worker 1"]
    assert len(set(addresses)) == 4
    for task, p in plans.items():
        assert json.loads(p.env["TF_CONFIG"]) == {
            "cluster": {"ps": addresses[:1], "chief": addresses[1:2], "worker": addresses[2:]},
            "task": {"type": task.job, "index": task.index},
            "environment": "cloud",
        }
        assert json.loads(p.env["HEADWATER_LISTEN_FDS"]) == {p.address: p.listening}


def test_programs_run_under_exec_with_their_own_arguments(plan: Any) -> None:
    command = plan(settings())[TaskName("worker", 0)].command
    assert command[1] == "-O"
    assert Path(command[2]).name == "__main__.py"
    assert command[3:] == ("exec", "train.py", "--rate=1")


def test_flags_follow_the_arguments(plan: Any) -> None:
    plans = plan(settings(flags=True))
    addresses = [p.address for p in plans.values()]
    assert plans[TaskName("worker", 1)].command[-5:] == (
        "--rate=1",
        f"--ps_hosts={addresses[0]}",
        f"--worker_hosts={addresses[1]},{addresses[2]}",
        "--job_name=worker",
        "--task_index=1",
    )


def test_a_reserved_address_is_exclusive() -> None:
    with reserve_address() as listening, socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(listening.getsockname())


def test_variables_reach_every_task_and_win(plan: Any) -> None:
    plans = plan(settings(env={"A": "1", "CUDA_VISIBLE_DEVICES": "7"}), env={"A": "0", "B": "2"})
    for p in plans.values():
        assert (p.env["A"], p.env["B"], p.env["CUDA_VISIBLE_DEVICES"]) == ("1", "2", "7")


def test_tasks_write_journals_where_their_output_is(plan: Any, tmp_path: Path) -> None:
    (found, *_) = plan(settings(log_dir=tmp_path)).values()
    assert found.env["HEADWATER_LOG_DIR"] == str(tmp_path)
    (found, *_) = plan(settings(log_dir=tmp_path), env={"HEADWATER_LOG_DIR": "/other"}).values()
    assert found.env["HEADWATER_LOG_DIR"] == "/other"


def test_a_job_within_a_job_carries_both_marks(plan: Any) -> None:
    assert plan(settings(), env={"HEADWATER_JOB": "outer"})[TaskName("ps", 0)].env["HEADWATER_JOB"] == "outer:j0b"
    assert plan(settings())[TaskName("ps", 0)].env["HEADWATER_JOB"] == "j0b"


@pytest.mark.parametrize(
    ("workers", "gpus", "visible", "share"),
    [
        (2, (), [None, None], None),
        (1, ("0", "1"), ["0,1"], None),
        (2, ("0", "1"), ["0", "1"], None),
        (2, ("0", "1", "2"), ["0,2", "1"], None),
        (3, ("4", "6"), ["4", "6", "4"], "0.450"),
        (2, ("0",), ["0", "0"], "0.450"),
    ],
)
def test_workers_share_gpus_and_ps_use_none(
    plan: Any, workers: int, gpus: tuple[str, ...], visible: list[str | None], share: str | None
) -> None:
    plans = plan(settings(workers=workers), gpus=gpus)
    assert plans[TaskName("ps", 0)].env["CUDA_VISIBLE_DEVICES"] == ""
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in plans[TaskName("ps", 0)].env
    found = [plans[TaskName("worker", index)].env for index in range(workers)]
    assert [env.get("CUDA_VISIBLE_DEVICES") for env in found] == visible
    assert found[0].get("XLA_PYTHON_CLIENT_MEM_FRACTION") == share


def test_a_memory_share_that_is_set_stays(plan: Any) -> None:
    plans = plan(settings(), env={"XLA_PYTHON_CLIENT_MEM_FRACTION": ".2"}, gpus=("0",))
    assert plans[TaskName("worker", 0)].env["XLA_PYTHON_CLIENT_MEM_FRACTION"] == ".2"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ps": -1}, "--ps"),
        ({"workers": -1}, "--workers"),
        ({"workers": 0}, "--workers"),
        ({"chief": True, "flags": True}, "--chief cannot be used with --flags"),
        ({"grace_s": -1.0}, "--grace"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        settings(**changes)
