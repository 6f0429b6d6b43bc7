"""A job as a Slurm batch script: the output of ``headwater render``, and the script that the backend submits.

The script requires only Headwater on the nodes and a folder that all nodes share. It runs one ``srun`` for each role,
whose tasks are `headwater.platform.backends.slurm_task`. If roles have different resources, the job is a heterogeneous
job, with a component for each kind of resources. Elastic workers are separate jobs, which the script submits:
`slurm_workers`.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.platform.backends.slurm_workers import further_workers
from headwater.platform.host.guard import JOB
from headwater.platform.spec import JobSpec, Role, RoleSpec

#: The roles that decide the end of the job.
WORKING: tuple[Role, ...] = ("chief", "worker")

_MIB = 1 << 20
_UNLIMITED_S = 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmRendering:
    """Values that the script needs in addition to the job's specification.

    Attributes:
      job_id: the name of the job in Slurm and for its tasks.
      attempt: how often the job has been submitted before.
      folder: a folder that all nodes share, used by this job only.
      python: the interpreter on the nodes that has Headwater installed.
      token: the secret that the job's tasks share.
      archive: a file on a disk that all nodes share, which is unpacked into the job's folder; empty for none.
      least: the minimum number of workers of an elastic job; unless given, the first number in its file.
    """

    job_id: str
    attempt: int = 0
    folder: str
    python: str = "python3"
    token: str
    archive: str = ""
    least: int | None = None


def batch_script(spec: JobSpec, how: SlurmRendering) -> str:
    """Returns the script, for ``sbatch``."""
    counts = spec.counts()
    further = 0
    if spec.elastic:
        counts["worker"] = spec.workers.count.least if how.least is None else how.least
        further = spec.workers.count.most - counts["worker"]
        if not counts["worker"]:
            del counts["worker"]
    components = _components(spec, counts)
    description = {
        "job_id": how.job_id,
        "attempt": how.attempt,
        "token": how.token,
        "archive": how.archive,
        "counts": counts,
        "further": further,
        "spec": spec.model_dump(mode="json", exclude_none=True),
    }
    limit = spec.restart.limit if spec.restart.policy == "on-failure" and spec.restart_scope == "job" else 0
    lines = ["#!/bin/bash", *_options(spec, how)]
    for number, roles in enumerate(components):
        lines += ["#SBATCH hetjob"] if number else []
        lines += [f"#SBATCH {option}" for option in _component_options(spec, roles, counts)]
    steps = [
        _step(spec, role, counts[role], number if len(components) > 1 else None, how)
        for number, roles in enumerate(components)
        for role in roles
    ]
    return "\n".join(lines) + _BODY.format(
        folder=shlex.quote(how.folder),
        description=json.dumps(description),
        attempt=how.attempt,
        limit=limit,
        # Without this limit, Slurm's time limit ends the job at the latest.
        evaluator=_UNLIMITED_S if spec.deadlines.evaluator is None else math.ceil(spec.deadlines.evaluator),
        patience=math.ceil(spec.deadlines.grace) + 10,
        backoff=math.ceil(spec.restart.backoff),
        max_backoff=math.ceil(spec.restart.max_backoff),
        reset_after=math.ceil(spec.restart.reset_after),
        mark=JOB,
        job_id=how.job_id,
        tick="sleep 2 & " if further else "",
        further=further_workers(
            spec,
            job_id=how.job_id,
            folder=how.folder,
            first=counts.get("worker", 0),
            count=further,
            resources=_per_task(spec.workers),
            command=_task_command(how),
        ),
        steps="\n".join(f"    {step}" for step in steps),
        python=shlex.quote(how.python),
    )


_BODY = """

# Only the owner may read the following files: they hold the secret that the tasks share.
umask 077
folder={folder}
mkdir -p "$folder/rounds" "$folder/logs" "$folder/work"
# Other processes read these files at any time, so each file appears atomically.
put() {{ cat > "$1.tmp" && mv "$1.tmp" "$1"; }}
put "$folder/job.json" <<'END_OF_JOB'
{description}
END_OF_JOB

{further}
result() {{ echo "$1" | put "$folder/result-{attempt}"; }}
step() {{ "${{@:2}}"; echo $? | put "$folder/rounds/$round/$1.code"; }}
# Records the time limit and the elapsed time, which distinguish the time limit from other requests to end.
asked() {{
    [ "$asked" -eq 1 ] && return
    asked=1
    squeue --noheader --jobs="$SLURM_JOB_ID" --format="%l %M" | head -n 1 | put "$folder/asked-{attempt}"
}}
# Whether a step has ended with an exit code other than 0, which is $code then.
failed() {{
    for file in "$folder/rounds/$round"/*.code; do
        [ -e "$file" ] && code=$(cat "$file") && [ "${{code:-0}}" -ne 0 ] && return 0
    done
    code=0
    return 1
}}
# Whether every step that counts has recorded its exit code. A step that was killed from outside has not.
told() {{ for name in "${{names[@]}}"; do [ -e "$folder/rounds/$round/$name.code" ] || return 1; done; }}
ended() {{ for step in "$@"; do kill -0 "$step" 2>/dev/null && return 1; done; return 0; }}
# Do not signal srun: it would kill the tasks that are to end gracefully.
end_all() {{
    scancel --quiet --signal=TERM "$SLURM_JOB_ID" 2>/dev/null
    since=$SECONDS
    while ! ended $(jobs -pr); do
        # Keepers kill tasks that do not end. This kills tasks that have no keeper yet.
        if [ $((SECONDS - since)) -gt {patience} ]; then
            scancel --quiet --signal=KILL "$SLURM_JOB_ID" 2>/dev/null
            since=$SECONDS
        fi
        sleep 0.5 & wait $!
    done
}}
asked=0
rm -f "$folder/asked-{attempt}"
trap 'asked' TERM

restarts=0
pause={backoff}
while :; do
    began=$SECONDS
    # A round is one start of all tasks. Each task first kills the remains of other rounds on its node.
    round="$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}.$restarts"
    export {mark}="{job_id}.$round" HEADWATER_SLURM_ROUND="$round"
    end_further
    mkdir -p "$folder/rounds/$round"
    working=()
    names=()
    evaluator=
    interrupted=0
    code=0
{steps}
    further
    until failed || ended "${{working[@]}}" || [ "$asked" -eq 1 ]; do
        {tick}wait -n
    done
    ended "${{working[@]}}" && told && wait_for_further
    # Wait for the evaluator, which validates the final state. A task that fails meanwhile ends the wait.
    validated=$((SECONDS + {evaluator}))
    while [ -n "$evaluator" ] && ! ended "$evaluator" && ended "${{working[@]}}" && told && ! failed; do
        [ "$asked" -eq 1 ] || [ "$SECONDS" -ge "$validated" ] && break
        sleep 0.5 & wait -n
    done
    # Check once more: after this, tasks end because they are asked to.
    failed || told || interrupted=1
    end_further
    end_all
    # Slurm may want to start an interrupted job again: that is not a result.
    [ "$asked" -eq 1 ] || [ "$interrupted" -eq 1 ] && exit 143
    # A job that ran for long counts as healthy again. A program that cannot be run (127) is not restarted.
    [ $((SECONDS - began)) -ge {reset_after} ] && restarts=0 && pause={backoff}
    if [ "$code" -eq 0 ] || [ "$code" -eq 127 ] || [ "$restarts" -ge {limit} ]; then
        result "$code"
        exit "$code"
    fi
    restarts=$((restarts + 1))
    echo "headwater: a task failed with exit code $code: restart $restarts of {limit} of the whole job"
    sleep "$pause" & wait $!
    pause=$((pause * 2 > {max_backoff} ? {max_backoff} : pause * 2))
done
"""


def _options(spec: JobSpec, how: SlurmRendering) -> list[str]:
    slurm = spec.slurm
    options = [
        f"--job-name={how.job_id}",
        f"--comment=attempt-{how.attempt}",
        f"--output={how.folder}/slurm.log",
        "--open-mode=append",
        "--requeue" if spec.requeue else "--no-requeue",
    ]
    options += [f"--partition={slurm.partition}"] if slurm.partition else []
    options += [f"--account={slurm.account}"] if slurm.account else []
    options += [f"--qos={slurm.qos}"] if slurm.qos else []
    options += [f"--time={math.ceil(spec.deadlines.run / 60)}"] if spec.deadlines.run else []
    # Slurm sends SIGTERM this long before the time limit, so that tasks can end gracefully.
    options += [f"--signal=B:TERM@{math.ceil(spec.deadlines.grace)}"]
    return [f"#SBATCH {option}" for option in [*options, *slurm.options]]


def _resources(role: RoleSpec) -> tuple[int, int, int]:
    """Returns CPUs, memory per CPU in MiB, and GPUs of a task."""
    cpus = max(1, math.ceil(role.cpus))
    return cpus, math.ceil(role.memory / cpus / _MIB), role.gpus


def _components(spec: JobSpec, counts: Mapping[Role, int]) -> list[list[Role]]:
    """Groups the roles by their resources."""
    components: dict[tuple[int, int, int], list[Role]] = {}
    for role in counts:
        components.setdefault(_resources(spec.role(role)), []).append(role)
    return list(components.values())


def _component_options(spec: JobSpec, roles: list[Role], counts: Mapping[Role, int]) -> list[str]:
    return [f"--ntasks={sum(counts[role] for role in roles)}", *_per_task(spec.role(roles[0]))]


def _per_task(role: RoleSpec) -> list[str]:
    cpus, memory, gpus = _resources(role)
    options = [f"--cpus-per-task={cpus}"]
    options += [f"--mem-per-cpu={memory}M"] if memory else []
    options += [f"--gpus-per-task={gpus}"] if gpus else []
    return options


def _task_command(how: SlurmRendering) -> list[str]:
    return [how.python, "-P", "-m", "headwater.platform.backends.slurm_task"]


def _step(spec: JobSpec, role: Role, count: int, component: int | None, how: SlurmRendering) -> str:
    command: list[Any] = ["srun", f"--job-name={role}"]
    command += [f"--het-group={component}"] if component is not None else []
    command += [f"--ntasks={count}", *_per_task(spec.role(role)), "--exact", "--kill-on-bad-exit=1"]
    command += _task_command(how)
    # An evaluator's exit code does not affect the job.
    counted = "" if role == "evaluator" else f"step {role} "
    line = f'{counted}{shlex.join(command)} "$folder" {role} &'
    if role == "evaluator":
        return f"{line} evaluator=$!"
    return f"{line} working+=($!) names+=({role})" if role in WORKING else line
