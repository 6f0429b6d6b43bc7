"""Elastic workers on Slurm: a job array beside the job that has its ``ps``, chief and first workers.

Slurm preempts and requeues a job as a whole. So each worker beyond the minimum is a job of its own: an element of an
array, which can be preempted alone. The script of `slurm_script` submits the array in each of its rounds, under the
round's name. When the script's own workers are done, the script waits for the array's running workers, and then ends
the rest::

    FOLDER/workers.sh                the array's script
    FOLDER/rounds/ROUND/over         exists once a round is over: its remaining workers must end
    FOLDER/rounds/ROUND/NAME.code    exit code of a worker that is not restarted: the job has failed
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from headwater.platform.host.guard import JOB
from headwater.platform.spec import JobSpec


def further_name(job_id: str) -> str:
    """Returns the name of a job's array in Slurm."""
    return f"{job_id}-workers"


def further_options(spec: JobSpec) -> list[str]:
    """Returns options of the array's jobs: partition, account, quality of service and others from the job's file."""
    slurm, own = spec.slurm, spec.slurm.further
    named = {
        "partition": own.partition or slurm.partition,
        "account": own.account or slurm.account,
        "qos": own.qos or slurm.qos,
    }
    options = slurm.options if own.options is None else own.options
    return [*(f"--{name}={value}" for name, value in named.items() if value), *options]


def further_workers(
    spec: JobSpec, *, job_id: str, folder: str, first: int, count: int, resources: Sequence[str], command: Sequence[str]
) -> str:
    """Returns the lines of the job's script that submit ``count`` elastic workers.

    Args:
      spec: the job.
      job_id: the name of the job in Slurm.
      folder: the job's folder.
      first: the index of the first elastic worker.
      count: the number of elastic workers; for 0 the functions do nothing.
      resources: the resources of each worker, as options.
      command: runs a task; the folder, the role and the worker's index are appended.
    """
    if not count:
        return _NONE
    options = [
        f"--job-name={further_name(job_id)}",
        f"--array={first}-{first + count - 1}",
        f"--output={folder}/slurm.log",
        "--open-mode=append",
        # Requeue regardless of the job's setting, because preemption is not a fault of the worker.
        "--requeue",
        f"--signal=B:TERM@{math.ceil(spec.deadlines.grace)}",
        "--ntasks=1",
        *resources,
        *([f"--time={math.ceil(spec.deadlines.run / 60)}"] if spec.deadlines.run else []),
        *further_options(spec),
    ]
    script = _ARRAY.format(
        options="\n".join(f"#SBATCH {option}" for option in options),
        folder=shlex.quote(folder),
        job_id=job_id,
        mark=JOB,
        step=shlex.join(["srun", "--job-name=worker", "--ntasks=1", *resources, "--exact", *command]),
    )
    return _SUBMIT.format(script=script, name=further_name(job_id))


_NONE = """
further() { :; }
wait_for_further() { :; }
end_further() { :; }
"""

_SUBMIT = """
put "$folder/workers.sh" <<'END_OF_WORKERS'
{script}END_OF_WORKERS
# The variables of this job's allocation are not for another one.
further() {{
    (
        unset $(compgen -v SLURM_ | grep -vx SLURM_CONF)
        exec sbatch --quiet --comment="$round" "$folder/workers.sh" "$round"
    ) && return
    echo "headwater: the elastic workers could not be submitted: nodes must be allowed to use sbatch"
    echo 1 | put "$folder/rounds/$round/workers.code"
}}
# Elastic workers that have not been placed are cancelled, so that only running ones are waited for.
wait_for_further() {{
    until failed || [ "$asked" -eq 1 ]; do
        scancel --quiet --me --name={name} --state=PENDING 2>/dev/null
        left=$(squeue --noheader --me --name={name} --format=%A) && [ -z "$left" ] && break
        sleep 1 & wait -n
    done
}}
end_further() {{
    for each in "$folder"/rounds/*; do [ -d "$each" ] && : > "$each/over"; done
    scancel --quiet --me --name={name} --state=PENDING 2>/dev/null
}}
"""

_ARRAY = """#!/bin/bash
{options}
umask 077
folder={folder}
round=$1
# SLURM_JOB_ID may be the number of the whole array.
own="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
# Whether the main job has ended this round, or no longer exists.
over() {{
    [ -e "$folder/rounds/$round/over" ] && return 0
    [ $((SECONDS - looked)) -lt 20 ] && return 1
    looked=$SECONDS
    left=$(squeue --noheader --me --name={job_id} --format=%A) && [ -z "$left" ]
}}
looked=$SECONDS
over && exit 0
trap ':' TERM
export {mark}="{job_id}.$round" HEADWATER_SLURM_ROUND="$round"
{step} "$folder" worker "$SLURM_ARRAY_TASK_ID" &
step=$!
told=0
while kill -0 "$step" 2>/dev/null; do
    if [ "$told" -eq 0 ] && over; then
        told=1
        scancel --quiet --signal=TERM "$own"
    fi
    sleep 1 & wait -n
done
wait "$step" && exit
# This worker was preempted with time to end, and not yet requeued: requeue it.
[ "$told" -eq 1 ] || over || [ -e "$folder/rounds/$round/worker-$SLURM_ARRAY_TASK_ID.code" ] && exit 1
[ "$(squeue --noheader --jobs="$own" --format=%T)" != RUNNING ] || scontrol requeue "$own"
exit 1
"""
