"""The Slurm backend on a Slurm cluster: a controller and three nodes on this machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import BackendError, Exited, JobOrder, JobReport, Running
from headwater.platform.backends.slurm import SlurmBackend, SlurmSettings
from headwater.platform.spec import job_from_data
from tests.support.slurm import Slurm, require_slurm, slurm
from tests.support.tasks import PREAMBLE, ValuePipe, printed, wait_for_end

pytestmark = pytest.mark.slow

PS, FIRST, SECOND = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)

# Reports its identity and place; a ps stays until it is asked to end.
CLUSTER = (
    PREAMBLE
    + """
config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
def address(role, index):
    host, port = config["cluster"][role][index].split(":")
    return host, int(port)
"""
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    require_slurm()
    with slurm(tmp_path_factory.mktemp("slurm"), 3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def out_of_time(cluster: Slurm, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Starts two jobs that exceed their time limits; one of them is not asked to end before.

    Slurm checks time limits twice a minute, so these jobs start before the other tests, which run meanwhile.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        folder = tmp_path_factory.mktemp("out-of-time")
        backend = SlurmBackend(SlurmSettings(folder=folder / "shared", python=sys.executable))
        told = ValuePipe(folder)
        program = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
tell()
signal.pause()
"""
        fields: dict[str, Any] = {
            "workers": {"count": 1, "memory": "100MiB"},
            "slurm": {"options": ["--nodelist=node2"]},
            "deadlines": {"run": "10m", "grace": "60s"},
        }
        handles = tuple(backend.submit_job(order(folder, program, job_id=name, **fields)) for name in ("t-1", "t-2"))
        for _ in handles:
            told()
        told.close()
        for handle, limit in zip(handles, ("TimeLimit=1", "EndTime=now"), strict=True):
            number = json.loads(handle)["id"]
            # A job cannot exceed its limit in the second in which it has started.
            while cluster.run("squeue", "--noheader", f"--jobs={number}", "--format=%M").strip() == "0:00":
                pass
            cluster.run("scontrol", "update", f"JobId={number}", limit)
        return handles


@pytest.fixture
def backend(
    cluster: Slurm, out_of_time: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SlurmBackend:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    return SlurmBackend(SlurmSettings(folder=tmp_path / "shared", python=sys.executable))


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ValuePipe]:
    told = ValuePipe(tmp_path)
    yield told
    told.close()


def order(tmp_path: Path, program: str, *, job_id: str = "linear-x1", attempt: int = 0, **fields: Any) -> JobOrder:
    (tmp_path / "program.py").write_text(CLUSTER + program)
    spec = job_from_data(
        {
            "name": "linear",
            "command": [sys.executable, str(tmp_path / "program.py")],
            "env": {"TELL": str(tmp_path / "tell")},
            "workers": 2,
            "deadlines": {"grace": "5s"},
            **fields,
        }
    )
    return JobOrder(job_id=job_id, attempt=attempt, spec=spec, log_dir=tmp_path / "logs")


def over(backend: SlurmBackend, handle: str) -> JobReport:
    """Waits for the job's end; returns its last report."""
    report = backend.poll_job(handle)
    while report.phase in ("waiting", "running"):
        report = backend.poll_job(handle)
    return report


def test_a_job_runs_on_two_nodes_and_its_ps_ends(backend: SlurmBackend, tmp_path: Path) -> None:
    program = """
if role == "ps":
    listening = socket.create_server(address("ps", 0))
    while True:
        listening.accept()[0].sendall(os.environ["HEADWATER_TOKEN"].encode())
for attempt in range(1000):
    try:
        said = socket.create_connection(address("ps", 0)).makefile().read()
        break
    except ConnectionRefusedError:
        threading.Event().wait(0.05)
print(role, index, "of", os.environ["SLURM_JOB_NUM_NODES"], said == os.environ["HEADWATER_TOKEN"])
"""
    assert {host.total.cpus for host in backend.capacity().hosts} == {2}
    ordered = order(tmp_path, program, ps=1, slurm={"options": ["--ntasks-per-node=2"]})
    handle = backend.submit_job(ordered)
    assert backend.submit_job(ordered) == handle
    report = over(backend, handle)
    assert (report.phase, report.reason) == ("succeeded", "")
    for number in (0, 1):
        assert printed(tmp_path / f"logs/worker-{number}.log") == f"worker {number} of 2 True\n"
    ended = report.tasks[PS]
    assert isinstance(ended, Exited)
    assert ended.preempted
    assert report.restarts == {PS: 0, FIRST: 0, SECOND: 0}
    # A server that does not know of the submission gets the same job instead of submitting another one.
    assert json.loads(backend.submit_job(ordered))["id"] == json.loads(handle)["id"]


def test_a_task_gets_a_secret_that_no_file_of_the_job_holds(backend: SlurmBackend, tmp_path: Path) -> None:
    value = "s3cret-of-a-task"
    program = """
import hashlib
print(hashlib.sha256(os.environ["KEY"].encode()).hexdigest(), [name for name in os.environ if "SECRET" in name])
"""
    ordered = order(tmp_path, program, workers=1, env={"KEY": {"secret": "wandb"}}, job_id="linear-s1")
    handle = backend.submit_job(dataclasses.replace(ordered, secrets={"wandb": value}))
    assert over(backend, handle).phase == "succeeded"
    assert printed(tmp_path / "logs/worker-0.log") == f"{hashlib.sha256(value.encode()).hexdigest()} []\n"
    folder = Path(json.loads(handle)["folder"])
    files = [path for path in (*folder.rglob("*"), *tmp_path.rglob("*")) if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if value.encode() in path.read_bytes()]


def test_one_task_is_started_again(backend: SlurmBackend, tmp_path: Path) -> None:
    program = """
if role == "ps":
    signal.pause()
if index == 1 and not os.path.exists("failed"):
    open("failed", "x").close()
    sys.exit(9)
print("done", os.environ["HEADWATER_ATTEMPT"])
"""
    ordered = order(tmp_path, program, ps=1, restart={"limit": 1, "backoff": 0}, job_id="linear-x2")
    report = over(backend, backend.submit_job(ordered))
    assert report.phase == "succeeded"
    assert report.restarts == {PS: 0, FIRST: 0, SECOND: 1}
    assert printed(tmp_path / "logs/worker-1.log") == "done 1\n"


def test_all_tasks_are_started_again_until_the_limit(backend: SlurmBackend, tmp_path: Path) -> None:
    program = "print('failing'); sys.exit(7 if index else 0)"
    ordered = order(tmp_path, program, restart={"limit": 1, "backoff": 0}, job_id="linear-x3")
    report = over(backend, backend.submit_job(ordered))
    assert (report.phase, report.reason) == ("failed", "worker 1 failed: exit code 7")
    assert report.restarts[SECOND] == 1
    assert printed(tmp_path / "logs/worker-1.log") == "failing\n" * 2


def test_old_processes_are_ended_before_new_ones_start(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe
) -> None:
    program = f'''
orphan = {PREAMBLE!r} + """
open("orphan", "w").write(str(os.getpid()))
tell(os.getpid())
while True: signal.pause()
"""
if os.path.exists("orphan"):
    try:
        state = open("/proc/" + open("orphan").read() + "/stat").read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        state = "Z"
    print("gone" if state in "ZX" else "left")
    sys.exit()
# What Slurm does not find: a daemon, whose parent is gone.
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["setsid", sys.executable, "-c", orphan], start_new_session=True)
signal.pause()
'''
    ordered = order(tmp_path, program, workers=1, job_id="linear-x4")
    handle = backend.submit_job(ordered)
    orphan = told()
    number = json.loads(handle)["id"]
    cluster.run("scontrol", "requeue", number)
    while "PENDING" not in cluster.run("squeue", "--noheader", f"--jobs={number}", "--format=%T"):
        pass
    # Otherwise Slurm would wait for two minutes.
    cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now")
    report = over(backend, handle)
    assert report.phase == "succeeded"
    assert printed(tmp_path / "logs/worker-0.log") == "gone\n"
    assert report.restarts[FIRST] == 1
    wait_for_end(orphan)


def test_a_job_is_stopped_with_time_to_end(backend: SlurmBackend, tmp_path: Path, told: ValuePipe) -> None:
    program = """
def end(*_):
    print("saved")
    sys.exit(3)
signal.signal(signal.SIGTERM, end)
tell()
signal.pause()
"""
    handle = backend.submit_job(order(tmp_path, program, workers=1, job_id="linear-x5"))
    told()
    assert isinstance(backend.poll_job(handle).tasks[FIRST], Running)
    backend.stop_job(handle, grace_s=5)
    report = over(backend, handle)
    ended = report.tasks[FIRST]
    assert isinstance(ended, Exited)
    assert (ended.code, ended.stopped) == (3, True)
    assert printed(tmp_path / "logs/worker-0.log") == "saved\n"
    backend.delete_job(handle)
    assert not (tmp_path / "shared/linear-x5").exists()


def test_roles_may_ask_for_different_resources(backend: SlurmBackend, tmp_path: Path) -> None:
    program = "print(os.environ.get('SLURM_CPUS_PER_TASK'))\nif role == 'ps': signal.pause()"
    workers = {"count": 2, "cpus": 1, "memory": "100MiB"}
    ordered = order(tmp_path, program, ps={"count": 1, "cpus": 2, "memory": "200MiB"}, workers=workers, job_id="h-1")
    report = over(backend, backend.submit_job(ordered))
    assert report.phase == "succeeded"
    assert printed(tmp_path / "logs/ps-0.log") == "2\n"
    assert printed(tmp_path / "logs/worker-1.log") == "1\n"


def test_a_refusal_of_slurm_is_reported(backend: SlurmBackend, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="invalid partition") as refused:
        backend.submit_job(order(tmp_path, "", slurm={"partition": "none"}, job_id="linear-x6"))
    assert not refused.value.temporary


def test_a_job_that_asks_for_too_much_waits_and_says_why(backend: SlurmBackend, tmp_path: Path) -> None:
    handle = backend.submit_job(order(tmp_path, "", workers={"count": 1, "cpus": 64}, job_id="linear-x7"))
    report = backend.poll_job(handle)
    assert report.phase == "waiting"
    assert report.reason.startswith("Slurm: ")
    assert report.reason != "Slurm: "
    backend.stop_job(handle, grace_s=1)
    assert over(backend, handle).phase == "cancelled"


def waiting(backend: SlurmBackend, handle: str) -> JobReport:
    """Waits until the job is no longer running; returns its report."""
    report = backend.poll_job(handle)
    while report.phase == "running":
        report = backend.poll_job(handle)
    return report


def test_a_cancelled_job_has_a_reason(backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe) -> None:
    handle = backend.submit_job(order(tmp_path, "tell()\nsignal.pause()", workers=1, job_id="linear-x8"))
    told()
    cluster.run("scancel", json.loads(handle)["id"])
    report = over(backend, handle)
    assert (report.phase, report.reason) == ("cancelled", "it was cancelled (Slurm: CANCELLED)")


def test_a_job_that_makes_room_for_others_is_preempted(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe
) -> None:
    here: dict[str, Any] = {"workers": {"count": 1, "cpus": 2}}
    spot = {"partition": "spot", "options": ["--nodelist=node1"]}
    handle = backend.submit_job(order(tmp_path, "tell()\nsignal.pause()", job_id="linear-x9", slurm=spot, **here))
    told()
    (tmp_path / "urgent").mkdir()
    urgent = {"partition": "urgent", "options": ["--nodelist=node1"]}
    other = backend.submit_job(order(tmp_path / "urgent", "", job_id="linear-y1", slurm=urgent, **here))
    report = over(backend, handle)
    assert (report.phase, report.reason) == ("preempted", "it was preempted (Slurm: PREEMPTED)")
    assert over(backend, other).phase == "succeeded"


def elastic(tmp_path: Path, program: str, job_id: str, **fields: Any) -> JobOrder:
    """Returns the order of a job with one worker beside the ``ps`` on one node, and two elastic workers on another
    node.
    """
    ordered = order(
        tmp_path,
        program,
        ps={"count": 1, "memory": "100MiB"},
        workers={"count": 3, "cpus": 1, "memory": "100MiB"},
        preemptible=True,
        job_id=job_id,
        slurm={"options": ["--nodelist=node0"], "further": {"options": ["--nodelist=node1"]}},
        **fields,
    )
    return dataclasses.replace(ordered, least=1)


def test_workers_preempted_by_slurm_return_while_the_others_continue(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe
) -> None:
    program = """
if role == "ps":
    signal.pause()
tell([index, os.environ["HEADWATER_ATTEMPT"], len(config["cluster"]["worker"])])
while not os.path.exists(f"end-{index}"):
    threading.Event().wait(0.05)
print("done")
"""
    ordered = elastic(tmp_path, program, "linear-e1")
    handle = backend.submit_job(ordered)
    work = Path(json.loads(handle)["folder"]) / "work"
    assert sorted(told() for _ in range(3)) == [[0, "0", 1], [1, "0", 2], [2, "0", 3]]
    report = backend.poll_job(handle)
    before = report.tasks[PS], report.tasks[FIRST]
    third = report.tasks[TaskName("worker", 2)]
    assert isinstance(third, Running)
    assert third.host == "node1"

    (tmp_path / "urgent").mkdir()
    urgent = order(
        tmp_path / "urgent",
        f"tell()\nwhile not os.path.exists({str(tmp_path / 'end')!r}):\n    threading.Event().wait(0.05)",
        job_id="linear-e2",
        workers={"count": 1, "cpus": 2},
        env={"TELL": str(tmp_path / "tell")},
        slurm={"partition": "urgent", "options": ["--nodelist=node1"]},
    )
    other = backend.submit_job(urgent)
    told()
    gone = [SECOND, TaskName("worker", 2)]
    while not all(getattr(state, "waiting", "") for state in map(report.tasks.__getitem__, gone)):
        report = backend.poll_job(handle)
    assert report.phase == "running"
    assert str(getattr(report.tasks[SECOND], "waiting", "")).startswith("no free resources at present (Slurm: ")
    assert (report.tasks[PS], report.tasks[FIRST]) == before
    (tmp_path / "end").touch()
    assert over(backend, other).phase == "succeeded"

    numbers = cluster.run("squeue", "--noheader", "--array", "--name=linear-e1-workers", "--format=%i").split()
    for number in numbers:  # otherwise Slurm would wait for two minutes
        cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now")
    assert sorted(told() for _ in range(2)) == [[1, "1", 2], [2, "1", 3]]
    report = backend.poll_job(handle)
    assert (report.tasks[PS], report.tasks[FIRST]) == before
    assert set(report.restarts.values()) == {0}

    # The job waits for workers that have a place.
    for index in (0, 1):
        (work / f"end-{index}").touch()
        while not isinstance(report.tasks[TaskName("worker", index)], Exited):
            report = backend.poll_job(handle)
    assert (report.phase, report.tasks[PS]) == ("running", before[0])
    (work / "end-2").touch()
    assert over(backend, handle).phase == "succeeded"
    assert [printed(tmp_path / f"logs/worker-{index}.log") for index in range(3)] == ["done\n"] * 3


@pytest.mark.long
def test_elastic_workers_are_restarted_with_their_job(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe
) -> None:
    program = """
if role == "ps":
    signal.pause()
tell([index, os.getpid(), config["cluster"]["ps"]])
while not os.path.exists("end"):
    threading.Event().wait(0.05)
"""
    handle = backend.submit_job(elastic(tmp_path, program, "linear-e4"))
    fields = json.loads(handle)
    first = sorted(told() for _ in range(3))
    cluster.run("scontrol", "requeue", fields["id"])
    while "PENDING" not in cluster.run("squeue", "--noheader", f"--jobs={fields['id']}", "--format=%T"):
        pass
    cluster.run("scontrol", "update", f"JobId={fields['id']}", "StartTime=now")
    again = sorted(told() for _ in range(3))
    assert [index for index, *_ in again] == [0, 1, 2]
    for _, process, _ in first:
        wait_for_end(process)
    assert len({str(addresses) for *_, addresses in again}) == 1
    (Path(fields["folder"]) / "work" / "end").touch()
    assert over(backend, handle).phase == "succeeded"


def test_an_elastic_worker_may_fail_the_job(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe
) -> None:
    program = """
if index == 1:
    sys.exit(9)
tell(index)
signal.pause()
"""
    ordered = elastic(tmp_path, program, "linear-e3", restart={"limit": 1, "backoff": 0})
    handle = backend.submit_job(ordered)
    report = over(backend, handle)
    assert (report.phase, report.reason) == ("failed", "worker 1 failed: exit code 9")
    assert report.restarts[SECOND] == 1
    assert not cluster.run("squeue", "--noheader", "--name=linear-e3-workers")


@pytest.mark.parametrize("requeue", [True, False])
def test_a_node_that_fails(
    backend: SlurmBackend, cluster: Slurm, tmp_path: Path, told: ValuePipe, requeue: bool
) -> None:
    node = f"node{int(requeue)}"
    fields = {"workers": 1, "requeue": requeue, "slurm": {"options": [f"--nodelist={node}"]}}
    handle = backend.submit_job(order(tmp_path, "tell()\nsignal.pause()", job_id=f"linear-n{node}", **fields))
    told()
    cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    report = waiting(backend, handle)
    if requeue:
        assert report.phase == "waiting"
        backend.stop_job(handle, grace_s=1)
    else:
        assert (report.phase, report.reason) == ("lost", "one of its nodes failed (Slurm: NODE_FAIL)")


def test_a_job_that_runs_into_its_time_limit_says_so(backend: SlurmBackend, out_of_time: tuple[str, ...]) -> None:
    asked, unasked = (over(backend, handle) for handle in out_of_time)
    assert (asked.phase, asked.reason) == ("failed", "it ran into its time limit of 1 min")
    ended = asked.tasks[FIRST]
    assert isinstance(ended, Exited)
    assert (ended.code, ended.last_lines) == (1, ("saved",))
    assert unasked.phase == "failed"
    assert re.fullmatch(r"it ran into its time limit of \d+ min \(Slurm: TIMEOUT\)", unasked.reason)


def test_a_job_that_slurm_does_not_know_is_lost(backend: SlurmBackend, tmp_path: Path) -> None:
    handle = f'{{"id": "4711", "folder": "{tmp_path}", "attempt": 0, "log_dir": "{tmp_path}"}}'
    assert backend.poll_job(handle).phase == "lost"
    backend.stop_job(handle, grace_s=1)


def test_without_slurms_commands_there_is_no_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(BackendError, match="sbatch is not on the PATH"):
        SlurmBackend(SlurmSettings(folder=tmp_path))
