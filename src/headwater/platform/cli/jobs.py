"""The commands that use a server: submit, jobs, logs, stop, restart, scale, delete, and the status of a job."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from headwater.cluster.pauses import pause
from headwater.platform.cli.console import table_console

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from headwater.data.io.json_types import JsonObject
    from headwater.platform.client import ApiClient
    from headwater.platform.spec import JobSpec

DEFAULT_SERVER = "http://127.0.0.1:8470"
_COLOURS = {
    "succeeded": "green",
    "running": "cyan",
    "failed": "red",
    "queued": "yellow",
    "restarting": "yellow",
    "starting": "yellow",
    "waiting": "yellow",
    "ending": "magenta",
    "stopped": "dim",
}
# The number of jobs for which the comparison page has colours.
_MAX_COMPARED = 8
_NOT_REACHED, _JOB_FAILED = 1, 1
# Messages say "is" before these phases, such as "is running", and "has" before others, such as "has failed". Unfinished
# jobs have messages, too, because following a job also ends when the server shuts down.
_ONGOING = ("queued", "running", "restarting", "ending", "stopped")

ServerOption = Annotated[str, typer.Option("--server", envvar="HEADWATER_SERVER", help="The server's address.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def read_spec(path: Path) -> JobSpec:
    """Returns the job of a file; its working folder, unless given, is the file's folder.

    Raises:
      typer.Exit: the file cannot be read, or is invalid; every problem is shown with its line.
    """
    from headwater.platform.submission import resolve_paths  # noqa: PLC0415  pydantic takes 100 ms

    return resolve_paths(parse_file(path), path)


def parse_file(path: Path) -> JobSpec:
    """Returns the job of a file without resolving its paths; raises as `read_spec` does."""
    from headwater.platform.spec import JobSpecError  # noqa: PLC0415  pydantic takes 100 ms
    from headwater.platform.submission import read_job  # noqa: PLC0415  as above

    try:
        return read_job(path)
    except (OSError, UnicodeDecodeError, JobSpecError) as error:
        fail(str(error), code=2)


def complete_job(incomplete: str) -> list[str]:
    """Returns ids of jobs for shell completion; none if no server answers."""
    try:
        with contextlib.redirect_stderr(None), connected(os.environ.get("HEADWATER_SERVER", DEFAULT_SERVER)) as client:
            jobs = client.get("/jobs", limit=100)["jobs"]
    except typer.Exit:
        return []
    return [job["id"] for job in jobs if job["id"].startswith(incomplete)]


JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Id or name of a job.", autocompletion=complete_job)]


def submit(
    file: Annotated[Path, typer.Argument(metavar="job.yaml", help="The job file.")],
    workers: Annotated[int | None, typer.Option(help="Number of workers, within the job's range.")] = None,
    upload: Annotated[
        bool, typer.Option("--upload", help="Upload the working folder, for jobs on other machines.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show the output of its tasks until it is over.")
    ] = False,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=A,B,...", help="Submit a job for each value, passed as --NAME=VALUE; repeatable."
        ),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Submits a job to the server's queue; with --set, one job per combination of values, for comparison."""
    spec = read_spec(file)
    combinations = _combinations(values or [])
    if values and follow:
        fail("--follow: shows one job, but --set submits several", code=2)
    from headwater.platform.submission import upload_files  # noqa: PLC0415  pydantic takes 100 ms

    with connected(server) as client:
        try:
            spec, digest = upload_files(client, spec, upload=upload)
        except (OSError, ValueError) as error:
            fail(f"--upload: {error}")
        body = spec.model_dump(mode="json", exclude_defaults=True)
        if values:
            sweep = f"{spec.name}-{secrets.token_hex(3)}"
            submitted = [
                client.post("/jobs", body, workers=workers, archive=digest, sweep=sweep, setting=settings)
                for settings in combinations
            ]
            if as_json:
                show_json(submitted)
            for job in () if as_json else submitted:
                print(job["id"], *job["spec"]["args"][-len(values) :])
            if not as_json:
                compared = submitted[:_MAX_COMPARED]
                if len(compared) < len(submitted):
                    print(f"The page compares {_MAX_COMPARED} jobs at most; others can be ticked in its list.")
                print(f"{client.server}/compare?" + "&".join(f"job={job['id']}" for job in compared))
            return
        job = client.post("/jobs", body, workers=workers, archive=digest)
        if as_json:
            show_json(job)
        else:
            print(job["id"])
        if follow:
            _follow(client, job["id"], None, None, as_json)
            _require_success(client.get(f"/jobs/{job['id']}"))


def _combinations(values: list[str]) -> list[list[str]]:
    """Expands ``["a=1,2", "b=3"]`` to ``[["a=1", "b=3"], ["a=2", "b=3"]]``."""
    choices: list[list[str]] = []
    for assignment in values:
        name, separator, listed = assignment.partition("=")
        if not separator or not name:
            fail(f"--set must be NAME=A,B,..., but is {assignment!r}", code=2)
        choices.append([f"{name}={value}" for value in listed.split(",")])
    return [list(combination) for combination in itertools.product(*choices)]


def jobs(
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Include jobs that are over.")] = False,
    name: Annotated[str | None, typer.Option(help="Only jobs of this name.")] = None,
    phase: Annotated[str | None, typer.Option(help="Only jobs in this phase, e.g. failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of jobs.")] = 100,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Lists jobs, the latest first."""
    live = None if show_all or phase else True
    with connected(server) as client:
        listed = client.get("/jobs", live=live, name=name, phase=phase, limit=limit)["jobs"]
    if as_json:
        show_json(listed)
        return
    table = _table("job", "phase", "tasks", "step", "steps/s", "loss", "age", "reason")
    now = time.time()
    for job in listed:
        tasks = f"{job['tasks_running']}/{job['tasks_total']}"
        age = _seconds(now - job["submitted_at"])
        table.add_row(job["id"], _phase(job), tasks, *_progress(job), age, job["reason"])
    table_console().print(table)


def top(
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two refreshes without events.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once; the default without a terminal.")] = False,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Shows the jobs and machines of a server, updated until Ctrl-C."""
    with connected(server) as client:
        if as_json:
            show_json(_overview(client))
            return
        console = table_console()
        if once or not sys.stdout.isatty():
            console.print(_top(client, _overview(client)))
            return
        from rich.live import Live  # noqa: PLC0415  for terminals only

        with (
            contextlib.suppress(KeyboardInterrupt),
            Live(_top(client, _overview(client)), console=console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                pause(every)
                live.update(_top(client, _overview(client)), refresh=True)


def _overview(client: ApiClient) -> dict[str, object]:
    return {"hosts": client.get("/hosts"), "jobs": client.get("/jobs", live=True, limit=500)["jobs"]}


def _top(client: ApiClient, activity: JsonObject) -> Table:
    from rich.table import Table  # noqa: PLC0415  rich takes 50 ms
    from rich.text import Text  # noqa: PLC0415  as above

    jobs = activity["jobs"]
    hosts = [host for host in activity["hosts"] if not host["problem"]]
    counts = [f"{sum(job['phase'] == phase for job in jobs)} {phase}" for phase in ("running", "queued")]
    taken = [
        f"{sum(host['total'][kind] - host['free'][kind] for host in hosts):g} of "
        f"{sum(host['total'][kind] for host in hosts):g} {name}"
        for kind, name in (("cpus", "CPUs"), ("gpus", "GPUs"))
        if any(host["total"][kind] for host in hosts)
    ]
    grid = Table.grid(padding=(0, 1))
    grid.add_row(
        Text(f"{client.server}  {_clock(time.time())}  {', '.join(counts)}; taken: {', '.join(taken)}", "bold")
    )
    for host in activity["hosts"]:
        if host["problem"]:
            grid.add_row(Text(f"{host['backend']} {host['host']}: {host['problem']}", "red"))
    order = {"running": 0, "ending": 1, "restarting": 2}
    table = _table("job", "owner", "backend", "phase", "tasks", "step", "steps/s", "loss", "restarts", "age", "reason")
    for job in sorted(jobs, key=lambda job: (order.get(job["phase"], 3), -job["priority"], job["queued_at"])):
        table.add_row(
            job["id"],
            job["owner"],
            job["backend"],
            _phase(job),
            f"{job['tasks_running']}/{job['tasks_total']}",
            *_progress(job),
            str(job["restarts"] + job["requeues"]),
            _seconds(time.time() - job["submitted_at"]),
            job["reason"],
        )
    grid.add_row(table if jobs else Text("No job is queued or runs: headwater submit job.yaml", "dim"))
    return grid


def job_status(job: str, *, watch: bool = False, as_json: bool = False, server: str = DEFAULT_SERVER) -> None:
    """Shows a job with its tasks; ``watch``: until it has ended.

    Raises:
      typer.Exit: 1 if the job has failed, or cannot be queried.
    """
    with connected(server) as client:
        job_id = client.job_id(job)
        shown = client.get(f"/jobs/{job_id}")
        if watch:
            shown = _watch(client, job_id, shown, as_json)
        elif as_json:
            show_json(shown)
        else:
            table_console().print(_status(shown))
    raise typer.Exit(_JOB_FAILED if shown["phase"] == "failed" else 0)


def logs(
    job: JobArgument,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="Only logs of this task, e.g. worker-0.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job is over.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Number of earlier lines to show.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Shows the output of a job's tasks; with --follow, the exit code is 1 unless the job succeeds."""
    with connected(server) as client:
        job_id = client.job_id(job)
        _follow(client, job_id, task, tail, as_json, follow=follow)
        if follow:
            _require_success(client.get(f"/jobs/{job_id}"))


def stop(
    job: JobArgument,
    requeue: Annotated[
        bool, typer.Option("--requeue", help="Return the job to the queue, as after a preemption.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Requests a graceful stop of a job's tasks; they have the job's grace period to save their state."""
    _post_action(job, "stop", {"requeue": requeue}, server, as_json)


def restart(job: JobArgument, server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """Restarts all tasks of a job, also of a finished one."""
    _post_action(job, "restart", None, server, as_json)


def scale(
    job: JobArgument,
    workers: Annotated[int | None, typer.Option(min=0, help="New number of workers.")] = None,
    ps: Annotated[int | None, typer.Option(min=1, help="New number of parameter servers.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Changes the number of workers or of parameter servers of a job, within the ranges of its file."""
    if workers is None and ps is None:
        raise typer.BadParameter("give --workers, --ps, or both")
    _post_action(job, "scale", {"workers": workers, "ps": ps}, server, as_json)


def address_of_ps(job: str, server: str) -> str:
    """Returns the address of a job's first running parameter server.

    Raises:
      ValueError: no parameter server runs.
    """
    with connected(server) as client:
        tasks = client.get(f"/jobs/{client.job_id(job)}")["tasks"]
    for task in tasks:
        if task["name"].startswith("ps-") and task["address"] and task["phase"] == "running":
            return str(task["address"])
    raise ValueError(f"job {job} has no parameter server that runs")


def delete(job: JobArgument, server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """Deletes a finished job and its logs. Its checkpoints stay."""
    with connected(server) as client:
        job_id = client.job_id(job)
        client.delete(f"/jobs/{job_id}")
    if as_json:
        show_json({"deleted": job_id})
    else:
        print(f"{job_id} is deleted")


@contextmanager
def connected(server: str) -> Generator[ApiClient]:
    """Yields a client of the server; an error ends the command with one line and exit code 1."""
    from headwater.platform.client import ApiClient, ClientError, find_token  # noqa: PLC0415  httpx takes 100 ms

    try:
        with closing(ApiClient(server, find_token())) as client:
            yield client
    except ClientError as error:
        fail(str(error))


def fail(message: str, *, code: int = _NOT_REACHED) -> NoReturn:
    """Prints ``message`` and ends the command."""
    print(f"headwater: {message}", file=sys.stderr)
    raise typer.Exit(code)


def show_json(value: object) -> None:
    """Prints ``value`` as JSON."""
    print(json.dumps(value, indent=2))


def _post_action(job: str, verb: str, body: object, server: str, as_json: bool) -> None:
    with connected(server) as client:
        shown = client.post(f"/jobs/{client.job_id(job)}/{verb}", body)
    if as_json:
        show_json(shown)
    else:
        print(f"{shown['id']} is {shown['phase']}" + (f": {shown['reason']}" if shown["reason"] else ""))


def _follow(
    client: ApiClient, job_id: str, task: str | None, tail: int | None, as_json: bool, *, follow: bool = True
) -> None:
    with client.stream(f"/jobs/{job_id}/logs", task=task, tail=tail, follow=follow) as events:
        for _, entry in events:
            if as_json:
                print(json.dumps(entry), flush=True)
            else:
                print(entry["line"] if task is not None else f"{entry['task']} | {entry['line']}", flush=True)


def _watch(client: ApiClient, job_id: str, shown: object, as_json: bool) -> Any:
    with client.stream(f"/jobs/{job_id}/stream") as events:
        if as_json or not sys.stdout.isatty():
            for kind, entry in events:
                if as_json:
                    print(json.dumps({kind: entry}), flush=True)
                elif kind == "event":
                    print(f"{_clock(entry['at'])} {entry['text']}", flush=True)
                shown = entry if kind == "job" else shown
        else:
            from rich.live import Live  # noqa: PLC0415  for terminals only

            with Live(_status(shown), console=table_console(), auto_refresh=False) as live:
                for kind, entry in events:
                    if kind == "job":
                        shown = entry
                        live.update(_status(shown), refresh=True)
                    else:
                        live.console.print(f"{_clock(entry['at'])} {entry['text']}")
    return shown


def _status(job: Any) -> Table:
    from rich.table import Table  # noqa: PLC0415  rich takes 50 ms
    from rich.text import Text  # noqa: PLC0415

    grid = Table.grid(padding=(0, 1))
    head = Text.assemble((job["id"], "bold"), "  ", _phase(job), f"  {job['reason']}")
    grid.add_row(head)
    facts = [
        f"owner {job['owner']}",
        f"backend {job['backend']}",
        f"workers {job['workers']} of {job['workers_range']}",
    ]
    facts += [f"{job[name]} {name}" for name in ("restarts", "requeues") if job[name]]
    grid.add_row(Text(" · ".join(facts), "dim"))
    if job["cost"]["text"]:
        grid.add_row(Text(job["cost"]["text"], "dim"))
    if job["first_error"] is not None and job["phase"] == "failed":
        for line in job["first_error"]["last_lines"][-10:]:
            grid.add_row(Text(f"  {line}", "red"))
    table = _table("task", "phase", "host", "attempt", "step", "steps/s", "loss", "reason")
    for task in job["tasks"]:
        table.add_row(
            task["name"], _phase(task), task["host"] or "", str(task["attempt"]), *_progress(task), task["reason"]
        )
    grid.add_row(table)
    return grid


def _require_success(job: Any) -> None:
    """Ends the command with exit code 1 and the reason, unless a followed job has succeeded."""
    if job["phase"] != "succeeded":
        reason = f": {job['reason']}" if job["reason"] else ""
        fail(f"{job['id']} {'is' if job['phase'] in _ONGOING else 'has'} {job['phase']}{reason}", code=_JOB_FAILED)


def _phase(shown: Any) -> Text:
    from rich.text import Text  # noqa: PLC0415  as above

    return Text(shown["phase"], _COLOURS.get(shown["phase"], ""))


def _progress(shown: Any) -> Iterable[str]:
    speed, loss = shown["steps_per_s"], shown["loss"]
    yield f"{shown['step']:,}" if shown["step"] is not None else ""
    yield f"{speed:,.0f}" if speed is not None else ""
    yield loss if isinstance(loss, str) else f"{loss:.4g}" if loss is not None else ""


def _table(*headings: str) -> Table:
    from rich.table import Table  # noqa: PLC0415  as above

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _seconds(seconds: float) -> str:
    minutes, seconds = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
