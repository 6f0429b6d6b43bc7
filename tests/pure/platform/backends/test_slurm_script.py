from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from headwater.platform.backends.slurm_script import SlurmRendering, batch_script
from headwater.platform.spec import job_from_data


def script(least: int | None = None, **fields: Any) -> str:
    spec = job_from_data({"name": "linear", "program": "train.py", "ps": 1, "workers": 2, **fields})
    how = SlurmRendering(
        job_id="linear-x1",
        attempt=2,
        folder="/shared/it's here",
        python="python3.12",
        token="s3cret",
        least=least,
    )
    text = batch_script(spec, how)
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    return text


def lines(text: str, start: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith(start)]


def test_each_role_is_a_step() -> None:
    steps = [
        line for line in script(chief=True, evaluator=True).splitlines() if "srun" in line and "slurm_task" in line
    ]
    assert [line.split('"$folder" ')[1].split()[0] for line in steps] == ["ps", "chief", "worker", "evaluator"]
    assert ["working+=($!)" in line for line in steps] == [False, True, True, False]
    assert all("python3.12 -P -m headwater.platform.backends.slurm_task" in line for line in steps)


def test_roles_with_the_same_resources_share_an_allocation() -> None:
    text = script()
    assert "#SBATCH --ntasks=3" in text
    assert "hetjob" not in text
    assert "--het-group" not in text


def test_roles_with_other_resources_have_their_own() -> None:
    text = script(workers={"count": 2, "cpus": 2.5, "memory": "3GiB", "gpus": 1})
    assert lines(text, "#SBATCH --ntasks") == ["#SBATCH --ntasks=1", "#SBATCH --ntasks=2"]
    assert "#SBATCH hetjob\n#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=3\n#SBATCH --mem-per-cpu=1024M\n" in text
    assert "--het-group=1 --ntasks=2 --cpus-per-task=3 --mem-per-cpu=1024M --gpus-per-task=1" in text


def test_the_job_file_says_the_rest() -> None:
    text = script(
        slurm={"partition": "gpu", "account": "me", "qos": "high", "options": ["--constraint=ib"]},
        deadlines={"run": "90m", "grace": "45s"},
        requeue=False,
    )
    wanted = {
        "--job-name=linear-x1",
        "--comment=attempt-2",
        "--partition=gpu",
        "--account=me",
        "--qos=high",
        "--constraint=ib",
        "--time=90",
        "--signal=B:TERM@45",
        "--no-requeue",
    }
    assert wanted <= {line.removeprefix("#SBATCH ") for line in lines(text, "#SBATCH")}


@pytest.mark.parametrize(
    ("restart", "limit"),
    [({"scope": "job", "limit": 4}, 4), ({"scope": "task", "limit": 4}, 0), ({"policy": "never", "scope": "job"}, 0)],
)
def test_the_script_restarts_whole_jobs_only(restart: dict[str, Any], limit: int) -> None:
    assert f'"$restarts" -ge {limit} ]' in script(restart=restart)


def test_script_contains_the_settings_of_tasks() -> None:
    text = script(args=["END_OF_JOB", "'$HOME'"])
    (line,) = lines(text, '{"job_id"')
    description = json.loads(line)
    assert description["counts"] == {"ps": 1, "worker": 2}
    again = job_from_data(description["spec"])
    assert again.args == ["END_OF_JOB", "'$HOME'"]
    assert "folder='/shared/it'\"'\"'s here'" in text


def test_elastic_workers_are_separate_jobs() -> None:
    slurm = {"partition": "all", "account": "me", "further": {"partition": "spot", "options": ["--nice"]}}
    fields = {"preemptible": True, "slurm": slurm | {"options": ["--constraint=ib"]}, "requeue": False}
    text = script(workers={"count": "2:16", "cpus": 2}, **fields)
    job, _, array = text.partition("<<'END_OF_WORKERS'\n")
    array, _, rest = array.partition("\nEND_OF_WORKERS\n")
    subprocess.run(["bash", "-n"], input=array, text=True, check=True)
    assert lines(job, "#SBATCH --ntasks") == ["#SBATCH --ntasks=1", "#SBATCH --ntasks=2"]
    assert "#SBATCH --partition=all" in job
    wanted = {
        "--job-name=linear-x1-workers",
        "--array=2-15",
        "--requeue",
        "--cpus-per-task=2",
        "--partition=spot",
        "--account=me",
        "--nice",
    }
    options = {line.removeprefix("#SBATCH ") for line in lines(array, "#SBATCH")}
    assert wanted <= options
    assert "--constraint=ib" not in options
    description = json.loads(lines(job, '{"job_id"')[0])
    assert (description["counts"], description["further"]) == ({"ps": 1, "worker": 2}, 14)
    assert "s3cret" not in array + rest


@pytest.mark.parametrize(
    ("fields", "least", "counts", "further"),
    [
        ({"preemptible": True, "workers": 5}, 2, {"ps": 1, "worker": 2}, 3),
        ({"preemptible": True, "workers": "0:3", "chief": True}, None, {"ps": 1, "chief": 1}, 3),
        ({"preemptible": True, "workers": 4}, None, {"ps": 1, "worker": 4}, 0),
        ({"preemptible": True, "workers": 4, "ps": 0}, 2, {"worker": 4}, 0),
        ({"workers": "2:4"}, 2, {"ps": 1, "worker": 2}, 0),
    ],
)
def test_elastic_workers_of_a_slurm_script(
    fields: dict[str, Any], least: int | None, counts: dict[str, int], further: int
) -> None:
    text = script(least, **fields)
    description = json.loads(lines(text, '{"job_id"')[0])
    assert (description["counts"], description["further"]) == (counts, further)
    assert ("sbatch" in text) == bool(further)


def test_the_evaluator_has_a_deadline_of_its_own() -> None:
    text = script(evaluator=True, deadlines={"evaluator": "90s"})
    assert [line for line in lines(text, "srun") if line.endswith("evaluator & evaluator=$!")]
    assert "validated=$((SECONDS + 90))" in text
    # The loop of the script itself, with shell functions for what Slurm and the tasks do.
    loop = text[text.index("    validated=") : text.index("    # Check once more:")]
    for evaluator, elapsed in (("sleep 0.01", 0), ("sleep 60", 1)):
        program = f"""
            ended() {{ for step in "$@"; do kill -0 "$step" 2>/dev/null && return 1; done; return 0; }}
            told() {{ :; }}
            failed() {{ return 1; }}
            asked=0 working=() SECONDS=0
            {evaluator} & evaluator=$!
            {loop.replace("+ 90", "+ 1")}
            echo $SECONDS
            kill $evaluator 2>/dev/null
        """
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True)
        assert int(done.stdout) >= elapsed, done.stderr
