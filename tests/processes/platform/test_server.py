"""Whole servers: concurrent jobs, crashes of tasks and of the server, preemption, waiting for resources, scaling."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headwater.platform import Client
from headwater.platform.host.processes import ProcessTable
from tests.support.platform import HEADWATER, Server, server, shell_job
from tests.support.processes import Process

REPOSITORY = Path(__file__).resolve().parents[3]
# A parameter server waits until it is asked to end; all other tasks run the following code.
PS_WAITS = 'case "$TF_CONFIG" in *\'"type": "ps"\'*) exec sleep 1000;; esac; '


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yields a server for all tests that do not disturb it, since a server takes seconds to start."""
    with server(tmp_path_factory.mktemp("server")) as running:
        yield running


def fifo(tmp_path: Path, name: str = "gate") -> Path:
    path = tmp_path / name
    os.mkfifo(path)
    return path


def open_gate(path: Path) -> None:
    path.write_text("go\n")


def test_twenty_jobs_at_once(running: Server, tmp_path: Path) -> None:
    gate = fifo(tmp_path)
    # Opened for reading and writing, so that no task waits for another one to open it.
    script = f'exec 3<>{gate}; echo "$TF_CONFIG"; read line <&3; echo done'
    ids = [running.submit(script, name=f"job-{number}", workers=2) for number in range(20)]
    for job_id in ids:
        running.until(job_id, lambda job: job["tasks_running"] == 2)
    views = [running.job(job_id) for job_id in ids]
    addresses = [task["address"] for view in views for task in view["tasks"]]
    assert len(set(addresses)) == 40
    open_gate_all = os.open(gate, os.O_RDWR)
    os.write(open_gate_all, b"go\n" * 40)
    assert {running.over(job_id)["phase"] for job_id in ids} == {"succeeded"}
    os.close(open_gate_all)
    config = json.loads(running.log(ids[7], "worker-1")[0])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["worker"] == [task["address"] for task in views[7]["tasks"]]


def test_a_killed_server_finds_its_jobs_again(tmp_path: Path) -> None:
    gates = [fifo(tmp_path, name) for name in ("a", "b")]
    with server(tmp_path, "--max-running", "2") as running:
        goes_on = running.submit(f"echo started; read line < {gates[0]}; echo $line")
        ends_meanwhile = running.submit(f"echo started; read line < {gates[1]}; exit 0")
        waits = running.submit("echo ran")
        for job_id in (goes_on, ends_meanwhile):
            running.wait_log(job_id, "worker-0", "started")
        running.until(waits, lambda job: "2 jobs run already" in job["reason"])
        running.kill()
        open_gate(gates[1])
        running.start()
        assert running.over(ends_meanwhile)["phase"] == "succeeded"
        assert running.over(waits)["phase"] == "succeeded"
        open_gate(gates[0])
        assert running.over(goes_on)["phase"] == "succeeded"
        # No task was started twice.
        assert running.log(goes_on, "worker-0") == ["started", "go"]
        assert running.log(ends_meanwhile, "worker-0") == ["started"]
        assert running.log(waits, "worker-0") == ["ran"]
        assert [job["tasks"][0]["attempt"] for job in map(running.job, (goes_on, ends_meanwhile, waits))] == [0, 0, 0]


def test_a_crash_loop_ends_with_the_first_error(running: Server) -> None:
    script = 'echo "error number $HEADWATER_ATTEMPT"; exit $((HEADWATER_ATTEMPT + 3))'
    job_id = running.submit(script, restart={"limit": 2, "backoff": "50ms"})
    job = running.over(job_id)
    assert job["phase"] == "failed"
    assert job["reason"] == "worker-0 failed: exit code 3: error number 0 (after 2 restarts)"
    assert job["first_error"]["last_lines"] == ["error number 0"]
    pauses = [line for line in running.events(job_id) if "restart 1 of 2" in line or "restart 2 of 2" in line]
    assert ["after 0.05 s" in pauses[0], "after 0.1 s" in pauses[1]] == [True, True]
    lives = running.client.get(f"/jobs/{job_id}/attempts")
    assert [(life["attempt"], life["code"]) for life in lives] == [(2, 5), (1, 4), (0, 3)]


def test_a_preempted_job_saves_and_continues(running: Server, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    script = f"""
        if [ -e {saved} ]; then echo "continues after $(cat {saved})"; exit 0; fi
        trap 'echo step 41 > {saved}; exit 143' TERM
        echo $$ > {tmp_path}/pid; echo ready; while true; do sleep 0.1; done
    """
    job_id = running.submit(script)
    running.wait_log(job_id, "worker-0", "ready")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    job = running.over(job_id)
    assert (job["phase"], job["requeues"], job["restarts"]) == ("succeeded", 1, 0)
    assert running.log(job_id, "worker-0") == ["ready", "continues after step 41"]
    assert any("returns to the queue" in line for line in running.events(job_id))


SAVES = """
import json, os, signal, sys
if os.environ["HEADWATER_ATTEMPT"] != "0":
    print("continues")
    sys.exit()
def save(*_):
    print("saves", flush=True)
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with open(f"{sys.argv[1]}/gate-{index}") as gate:
        gate.read()
    print("saved", flush=True)
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
print("runs", os.getpid(), flush=True)
while True: signal.pause()
"""


@pytest.mark.parametrize("request_", ["stop", "requeue", "preempt", "scale", "stop and kill the server"])
def test_all_programs_behind_shells_save_at_a_request(running: Server, tmp_path: Path, request_: str) -> None:
    (tmp_path / "program.py").write_text(SAVES)
    gates = [fifo(tmp_path, f"gate-{index}") for index in (0, 1)]
    script = f"{sys.executable} {tmp_path}/program.py {tmp_path} 2>&1 | cat; echo after"
    job_id = running.submit(script, workers="1:2", deadlines={"grace": 60}, restart={"scope": "task"})
    running.wait_log(job_id, "worker-0", "runs", within=True)
    running.client.post(f"/jobs/{job_id}/scale", {"workers": 2})
    running.until(job_id, lambda job: job["tasks_running"] == 2)
    for index in (0, 1):
        running.wait_log(job_id, f"worker-{index}", "runs", within=True)
    pids = [int(running.log(job_id, f"worker-{index}")[0].split()[1]) for index in (0, 1)]
    asked = [1] if request_ in ("scale", "preempt") else [0, 1]
    if request_ == "scale":
        running.client.post(f"/jobs/{job_id}/scale", {"workers": 1})
    elif request_ == "preempt":
        table = ProcessTable()
        os.kill(table.parent(table.parent(pids[1])), signal.SIGTERM)  # to the keeper
    else:
        running.client.post(f"/jobs/{job_id}/stop", {"requeue": request_ == "requeue"})
    for index in asked:
        running.wait_log(job_id, f"worker-{index}", "saves")
    if "kill" in request_:
        running.kill()
        running.start()
    for index in asked:
        open_gate(gates[index])
        running.wait_log(job_id, f"worker-{index}", "saved")
    if len(asked) == 1:
        running.client.post(f"/jobs/{job_id}/stop")
        open_gate(gates[0])
    job = running.over(job_id)
    again = ["continues", "after"] if request_ == "requeue" else []
    for index in (0, 1):
        assert running.log(job_id, f"worker-{index}") == [f"runs {pids[index]}", "saves", "saved", *again]
    assert (job["phase"], job["restarts"]) == ("succeeded" if request_ == "requeue" else "stopped", 0)


# Counts steps; saves at the beginning and when it is asked to end, but not in between.
TRAINING = """
import os, sys
import tensorflow as tf

cluster = tf.train.ClusterSpec({job: addresses.split(",") for job, addresses in (
    ("ps", sys.argv[1].partition("=")[2]), ("worker", sys.argv[2].partition("=")[2])) if addresses})
job, index = sys.argv[3].partition("=")[2], int(sys.argv[4].partition("=")[2])
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    weight = tf.Variable(0.0, name="weight")
    train = tf.group(tf.assign_add(weight, 0.5), tf.assign_add(step, 1))
with tf.train.MonitoredTrainingSession(
    server.target, checkpoint_dir=os.environ["HEADWATER_CHECKPOINT_DIR"], save_checkpoint_steps=10**9
) as session:
    print("begins with", *session.run([step, weight]), flush=True)
    while os.environ["HEADWATER_ATTEMPT"] == "0":
        session.run(train)
        if session.run(step) == 100:
            print("trains", os.getpid(), flush=True)
"""


@pytest.mark.parametrize("ps", [0, 1])
def test_preempted_training_resumes_at_its_step(running: Server, tmp_path: Path, ps: int) -> None:
    """A preempted job gets SIGTERM, saves a checkpoint within the grace period, is queued, and resumes from the
    checkpoint.
    """
    program = tmp_path / "train.py"
    program.write_text(TRAINING)
    job = {
        "name": "train",
        "program": str(program),
        "flags": True,
        "ps": ps,
        "workers": 1,
        "checkpoint_dir": str(tmp_path / "checkpoints"),
        "deadlines": {"grace": "60s"},
        "restart": {"policy": "never"},
    }
    job_id = str(running.client.post("/jobs", job)["id"])
    with running.client.stream(f"/jobs/{job_id}/logs", task="worker-0") as lines:
        trains = next((entry["line"] for _, entry in lines if entry["line"].startswith("trains")), "")
    assert trains, running.log(job_id, "worker-0")
    if ps:
        running.client.post(f"/jobs/{job_id}/stop", {"requeue": True})
    else:
        os.kill(int(trains.split()[1]), signal.SIGTERM)
    over = running.over(job_id)
    assert (over["phase"], over["requeues"], over["restarts"]) == ("succeeded", 1, 0)
    begins = [line.split()[2:] for line in running.log(job_id, "worker-0") if line.startswith("begins with")]
    assert begins[0] == ["0", "0.0"]
    step, weight = int(begins[1][0]), float(begins[1][1])
    assert step >= 100
    assert weight == 0.5 * step


def test_request_above_the_maximum_fails_at_once_with_the_reason(running: Server) -> None:
    job = running.over(running.submit("true", workers={"cpus": 9999}))
    assert job["phase"] == "failed"
    assert "no host of this server is large enough: worker 0 asks for 9999 CPUs: local has" in job["reason"]


def test_scaling_and_the_end_of_ps(running: Server, tmp_path: Path) -> None:
    gate = fifo(tmp_path)
    script = PS_WAITS + f"echo here; exec 3<>{gate}; read line <&3"
    job_id = running.submit(script, ps=1, workers="1:3")
    running.wait_log(job_id, "worker-0", "here")
    running.client.post(f"/jobs/{job_id}/scale", {"workers": 3})
    for task in ("worker-1", "worker-2"):
        running.until(job_id, lambda job, name=task: name in [task["name"] for task in job["tasks"]])
        running.wait_log(job_id, task, "here")
    running.client.post(f"/jobs/{job_id}/scale", {"workers": 2})
    running.until(job_id, lambda job: {task["name"]: task["phase"] for task in job["tasks"]}["worker-2"] == "stopped")
    descriptor = os.open(gate, os.O_RDWR)
    os.write(descriptor, b"go\n" * 2)
    job = running.over(job_id)
    os.close(descriptor)
    phases = {task["name"]: task["phase"] for task in job["tasks"]}
    assert phases == {"ps-0": "stopped", "worker-0": "succeeded", "worker-1": "succeeded", "worker-2": "stopped"}
    assert job["phase"] == "succeeded"


def test_a_task_that_makes_no_progress_is_restarted(running: Server) -> None:
    # On a busy machine, an attempt may take too long to start, and is followed by another one.
    script = "if [ $HEADWATER_ATTEMPT != 0 ]; then exit 0; fi; exec sleep 1000"
    job_id = running.submit(script, deadlines={"progress": "500ms"}, restart={"backoff": "10ms", "limit": 50})
    assert running.over(job_id)["phase"] == "succeeded"
    assert any("since its start" in line for line in running.events(job_id))


def test_a_killed_task_of_a_mirrored_job_restarts_all(running: Server, tmp_path: Path) -> None:
    gate = fifo(tmp_path)
    script = f"""
        if [ $HEADWATER_ATTEMPT = 1 ]; then echo again; exit 0; fi
        case "$TF_CONFIG" in *'"index": 1'*) read line < {gate}; kill -9 $$;; esac
        exec sleep 1000
    """
    job_id = running.submit(script, workers=2, restart={"backoff": "10ms"})
    running.until(job_id, lambda job: job["tasks_running"] == 2)
    open_gate(gate)
    job = running.over(job_id)
    assert (job["phase"], job["restarts"]) == ("succeeded", 1)
    assert [running.log(job_id, f"worker-{index}") for index in (0, 1)] == [["again"], ["again"]]


def test_real_training_with_the_commands(running: Server, tmp_path: Path) -> None:
    """Runs the linear example as a job that is controlled by commands alone; its progress is reported."""
    job_file = tmp_path / "job.yaml"
    job_file.write_text(
        f"""
        name: linear
        program: {REPOSITORY / "examples" / "linear.py"}
        args: [--steps=20000, "--logdir={{log_dir}}"]
        flags: true
        ps: 1
        workers: 2
        log_dir: {tmp_path}/logs
        """
    )
    environ = {**os.environ, "HEADWATER_SERVER": running.address, "HEADWATER_SERVER_TOKEN": running.token}

    def command(*arguments: str) -> str:
        return subprocess.run(
            [*HEADWATER, *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    output = command("submit", str(job_file), "--follow")
    job_id = output.splitlines()[0]
    assert "worker-0 | " in output
    shown = json.loads(command("status", "linear", "--json"))
    assert (shown["id"], shown["phase"]) == (job_id, "succeeded")
    assert shown["step"] > 0
    assert list((tmp_path / "logs").glob("model.ckpt*"))
    assert json.loads(command("jobs", "--all", "--json"))[0]["id"] == job_id
    assert command("logs", job_id, "ps-0", "--tail", "0") == ""
    assert "is deleted" in command("delete", job_id)


def test_a_command_that_follows_a_job_says_how_it_ended(running: Server, tmp_path: Path) -> None:
    job_file = tmp_path / "job.yaml"
    job_file.write_text(json.dumps(shell_job("echo the cause; exit 3", restart={"policy": "never"})))
    environ = {**os.environ, "HEADWATER_SERVER": running.address, "HEADWATER_SERVER_TOKEN": running.token}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*HEADWATER, *arguments], env=environ, capture_output=True, text=True)

    submitted = command("submit", str(job_file), "--follow")
    job_id = submitted.stdout.splitlines()[0]
    failed = (1, f"headwater: {job_id} has failed: worker-0 failed: exit code 3: the cause\n")
    assert (submitted.returncode, submitted.stderr) == failed
    followed = command("logs", job_id, "--follow")
    assert (followed.returncode, followed.stderr) == failed
    assert "the cause" in followed.stdout
    assert command("logs", job_id).returncode == 0


def run_job(tmp_path: Path, script: str, **fields: object) -> Process:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(shell_job(script, **fields)))
    return Process([*HEADWATER, "run", "--job", str(path)], dict(os.environ))


def test_a_task_gets_a_secret_that_no_file_holds(running: Server) -> None:
    value = "s3cret-of-a-task"
    running.client.put("/secrets/wandb", {"value": value})
    gate = fifo(running.data_dir)
    job_id = running.submit(
        f'[ "$KEY" = {value[:8]}"{value[8:]}" ] && [ "${{#KEY}}" = {len(value)} ] && env | grep -c SECRET; cat {gate}',
        env={"KEY": {"secret": "wandb"}},
    )
    running.wait_log(job_id, "worker-0", "0")
    files = [path for path in running.data_dir.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if value.encode() in path.read_bytes()]
    open_gate(gate)
    assert running.over(job_id)["phase"] == "succeeded"


def test_a_secret_by_the_commands(running: Server) -> None:
    def secret(*arguments: str, value: str = "") -> str:
        command = [*HEADWATER, "secret", *arguments, "--server", running.address]
        environ = {**os.environ, "HEADWATER_SERVER_TOKEN": running.token}
        return subprocess.run(command, input=value, env=environ, capture_output=True, text=True, check=True).stdout

    assert secret("set", "hub-token", value="abc\n") == "hub-token is stored; jobs name it as {secret: hub-token}\n"
    assert "hub-token  20" in secret("list")
    job_id = running.submit('[ "$HUB" = abc ]', env={"HUB": {"secret": "hub-token"}})
    assert running.over(job_id)["phase"] == "succeeded"
    assert secret("delete", "hub-token") == "hub-token is deleted\n"
    assert "hub-token" not in secret("list")


def test_a_secret_without_a_server(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(shell_job('[ "$HUB" = abc ]', env={"HUB": {"secret": "hub-token"}})))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_SECRET_")}
    command = [*HEADWATER, "run", "--job", str(job)]
    missing = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert missing.returncode == 1
    assert (
        "env.HUB: the secret 'hub-token' is missing: without a server, set HEADWATER_SECRET_HUB_TOKEN" in missing.stderr
    )
    given = subprocess.run(command, env=environ | {"HEADWATER_SECRET_HUB_TOKEN": "abc"}, capture_output=True, text=True)
    assert given.returncode == 0, given.stderr


def test_the_live_table_of_all_jobs(running: Server) -> None:
    job_id = running.submit("sleep 1000", name="shown", workers=2)
    running.until(job_id, lambda job: job["tasks_running"] == 2)
    environ = {**os.environ, "HEADWATER_SERVER": running.address, "HEADWATER_SERVER_TOKEN": running.token}
    command = [*HEADWATER, "top"]
    shown = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.splitlines()
    assert (running.address in shown[0], "1 running, 0 queued; taken: " in shown[0], "CPUs" in shown[0]) == (True,) * 3
    (row,) = [line.split() for line in shown if line.startswith(job_id)]
    assert row[1:5] == ["admin", "local", "running", "2/2"]
    found = json.loads(subprocess.run([*command, "--json"], env=environ, capture_output=True, check=True).stdout)
    assert ([job["id"] for job in found["jobs"]], len(found["hosts"])) == ([job_id], 1)
    running.client.post(f"/jobs/{job_id}/stop")
    running.over(job_id)


def test_a_job_in_a_notebook(running: Server, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    report = "headwater.report(step=step, loss=1 / step)"
    code = f"import headwater\nfor step in range(1, 40): {report}\nprint('<done>')"
    path.write_text(json.dumps({"name": "noted", "command": [sys.executable, "-c", code], "workers": 2}))
    with closing(Client(running.address, running.token)) as client:
        job = client.submit(path).wait()
        assert (job.phase, repr(job)) == (
            "succeeded",
            f"<Job {job.id}: succeeded (all workers are done), 0 of 2 tasks run, step 39, loss 0.02564>",
        )
        assert job.logs("worker-1", tail=1) == "<done>\n"
        assert "succeeded" in [event["kind"] for event in job.events]
        shown = job._repr_html_()
        assert re.search(r"<svg .*>step 39 \(.*</svg>", shown)
        assert shown.count("<tr>") == 3
        other = client.submit({"name": "noted", "command": ["sleep", "1000"]})
        assert other.stop().wait().phase == "stopped"
        assert [found.id for found in client.jobs(name="noted")] == [other.id, job.id]
        assert client.job("noted").id == other.id
        other.delete()
        assert [found.id for found in client.jobs(name="noted")] == [job.id]


def test_a_job_without_a_server(tmp_path: Path) -> None:
    output = run_job(tmp_path, PS_WAITS + "echo hello", ps=1, workers=2).succeeds()
    assert "[worker 0] hello" in output
    assert "[worker 1] hello" in output
    failed = run_job(tmp_path, "echo boom; exit 7", restart={"policy": "never"})
    assert failed.ends() == 7
    assert "worker-0 failed: exit code 7: boom" in failed.output


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_job_without_a_server(tmp_path: Path, signum: signal.Signals) -> None:
    gate = fifo(tmp_path)
    # The end of the gate is noticed when the last process that has it open for writing has ended.
    running = run_job(tmp_path, f"exec 3>{gate}; (sleep 1000 &); echo ready; exec sleep 1000", workers=1)
    with gate.open() as reading:
        running.wait_for("ready")
        os.kill(running.pid, signum)
        assert reading.read() == ""
    assert running.ends() == (143 if signum == signal.SIGTERM else -signal.SIGKILL)


def test_each_error_of_a_job_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: A\nprogram: x\nworker: 2\n")
    failed = Process([*HEADWATER, "submit", str(path)], dict(os.environ))
    assert failed.ends() == 2
    assert f"{path}:1: name: " in failed.output
    assert f"{path}:3: worker: is not a field of a job" in failed.output


def test_two_servers_on_the_same_data(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        other = Process([*HEADWATER, "serve", "--port", "0", "--data-dir", str(running.data_dir)], dict(os.environ))
        assert other.ends() == 1
        assert "another server uses" in other.output
        assert running.stop() == 0
        running.start()


def test_no_server(tmp_path: Path) -> None:
    environ = {**os.environ, "HEADWATER_SERVER": "http://127.0.0.1:1", "HEADWATER_SERVER_DIR": str(tmp_path)}
    failed = Process([*HEADWATER, "jobs"], environ)
    assert failed.ends() == 1
    assert "the server at http://127.0.0.1:1 does not answer" in failed.output


def test_a_graph_needs_a_fixed_number_of_ps(running: Server) -> None:
    """Each task ends with an error that names the setting for the job's file."""
    job = {
        "name": "graph",
        "program": str(REPOSITORY / "examples" / "linear.py"),
        "flags": True,
        "ps": "1:2",
        "workers": 1,
        "restart": {"policy": "never"},
    }
    job_id = str(running.client.post("/jobs", job)["id"])
    assert running.over(job_id)["phase"] == "failed"
    shown = [line for task in ("ps-0", "worker-0") for line in running.log(job_id, task)]
    assert any("can move to another ps only if they are replicated. Set HEADWATER_REPLICAS=2" in line for line in shown)


@pytest.mark.long
def test_processes_of_a_replicated_graph_join_and_leave(running: Server, tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "cluster" / "programs" / "two_copies.py"
    job = {
        "name": "copies",
        "program": str(program),
        "args": [f"--folder={tmp_path}"],
        "flags": True,
        "env": {"HEADWATER_REPLICAS": "2"},
        "ps": "2:3",
        "workers": 2,
    }
    job_id = str(running.client.post("/jobs", job)["id"])
    running.wait_log(job_id, "worker-0", "step 20,", within=True)
    running.client.post(f"/jobs/{job_id}/scale", {"ps": 3})
    running.wait_log(job_id, "ps-0", "/job:ps/task:2 has a copy of the state of /job:ps/task:0 now", within=True)
    running.client.post(f"/jobs/{job_id}/scale", {"ps": 2})
    running.until(job_id, lambda job: {task["name"]: task["phase"] for task in job["tasks"]}["ps-2"] == "stopped")
    back = "has a copy of the state of /job:ps/task:0 now, in the place of /job:ps/task:2"
    running.wait_log(job_id, "ps-0", back, within=True)
    (tmp_path / "stop").touch()
    assert running.over(job_id)["phase"] == "succeeded"
    shown = ["\n".join(running.log(job_id, f"worker-{index}")) for index in range(2)]
    found = [re.search(r"acknowledged (\d+)", text) for text in shown]
    steps = [int(one[1]) for one in found if one is not None]
    assert f"global step {sum(steps)}, counts {[steps, steps]}" in shown[0]


@pytest.mark.long
def test_parameter_servers_join_and_leave_during_training(running: Server, tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "ps" / "moves.py"
    job = {
        "name": "moves",
        "program": str(program),
        "args": ["--shards", "0", str(tmp_path)],
        "ps": "2:3",
        "workers": 2,
    }
    job_id = str(running.client.post("/jobs", job)["id"])
    running.wait_log(job_id, "worker-0", "pushed 20")
    running.client.post(f"/jobs/{job_id}/scale", {"ps": 3})
    running.until(job_id, lambda job: "ps-2" in [task["name"] for task in job["tasks"]])
    running.wait_log(job_id, "ps-2", "/job:ps/task:2 has joined: 2 shards of 'params' have moved")
    running.client.post(f"/jobs/{job_id}/scale", {"ps": 2})
    running.wait_log(job_id, "ps-2", "/job:ps/task:2 has handed off its copies of 'params'")
    running.until(job_id, lambda job: {task["name"]: task["phase"] for task in job["tasks"]}["ps-2"] == "stopped")
    (tmp_path / "end").touch()
    assert running.over(job_id)["phase"] == "succeeded"
    shown = [line for index in range(2) for line in running.log(job_id, f"worker-{index}")]
    taken = [re.search(r": (\d+) of (\d+) pushes were taken", line) for line in shown]
    counts = [(int(found[1]), int(found[2])) for found in taken if found]
    assert len(counts) == 2
    assert all(taken == pushed for taken, pushed in counts)
