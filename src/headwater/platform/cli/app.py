"""The commands of ``headwater``, except ``exec``, which is in `headwater.platform.cli.execute`.

Each command checks its arguments, calls the function that does the work, and turns the result into output lines and an
exit code: 0 success, 1 failure, 2 wrong arguments (one line that names the argument).
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import headwater
from headwater.errors import OpError, OutOfRangeError
from headwater.platform.cli import jobs, render, serve
from headwater.platform.cli.arguments import UsageError, parse_arguments
from headwater.platform.cli.launcher.plan import LaunchSettings
from headwater.platform.cli.launcher.shell import launch

app = typer.Typer(
    name="headwater",
    help="Trains models on a cluster of parameter servers and workers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# All arguments after the first one that is not an option belong to the program, options included.
_PROGRAM_FOLLOWS = {
    "allow_interspersed_args": False,
    "ignore_unknown_options": True,
    "help_option_names": ["-h", "--help"],
}


# The base class of typer's errors for wrong arguments: the class of click, or of typer's own copy of click.
_WrongArguments: Any = typer.BadParameter.__base__


# Import names of the packages of the extra `platform`. One of these packages is in the extra `tls`, too.
_MODULES_OF_EXTRAS = frozenset(
    {"alembic", "cryptography", "fastapi", "httpx", "jinja2", "sqlalchemy", "sse_starlette", "uvicorn", "yaml"}
)


def run_app() -> int:
    """Runs the command in ``sys.argv``, and returns its exit code."""
    try:
        return int(app(prog_name="headwater", standalone_mode=False) or 0)
    except _WrongArguments as error:
        # Without a message: no command was given, so the help has been shown.
        if error.format_message():
            command = error.ctx.command_path if error.ctx is not None else "headwater"
            print(f"{command}: {error.format_message()}", file=sys.stderr)
        return 2
    except typer.Abort:  # an interrupt outside of a command's own handling
        return 130
    except ModuleNotFoundError as error:
        if error.name not in _MODULES_OF_EXTRAS:
            raise
        extra = "tls" if sys.argv[1] == "certs" else "platform"
        print(
            f"headwater {sys.argv[1]} needs {error.name}, which is not installed: pip install 'headwater[{extra}]'",
            file=sys.stderr,
        )
        return 2


@app.command(name="exec", context_settings=_PROGRAM_FOLLOWS)
def exec_(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[PYTHON OPTIONS] PROGRAM|-m MODULE|-c CODE [ARGUMENTS]",
            help="Options, program and arguments, as for python.",
        ),
    ],
) -> None:
    """Runs a Python program as python does, with Headwater in place of TensorFlow."""
    # Listed here for help and completion; `headwater.platform.cli.main` runs it without importing this module.
    del arguments


@app.command(context_settings=_PROGRAM_FOLLOWS)
def run(
    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROGRAM|-m MODULE [ARGUMENTS]", help="Program of every task, as for headwater exec."),
    ] = None,
    job: Annotated[
        Path | None, typer.Option(help="Run this job file instead of PROGRAM, as for headwater submit.")
    ] = None,
    ps: Annotated[int, typer.Option(help="Number of parameter server tasks.")] = 0,
    workers: Annotated[
        str, typer.Option(metavar="N|N:M", help="Number of worker tasks; 2:8 starts two, and up to eight can join.")
    ] = "0",
    chief: Annotated[
        bool, typer.Option("--chief", help="Start a task of job chief in addition to the workers.")
    ] = False,
    flags: Annotated[
        bool,
        typer.Option(
            "--flags",
            help="Pass the cluster as --ps_hosts --worker_hosts --job_name --task_index, in addition to TF_CONFIG.",
        ),
    ] = False,
    log_dir: Annotated[Path | None, typer.Option(help="Folder for the output of tasks, one file per task.")] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Environment variable of all tasks.")
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds between SIGTERM and SIGKILL of a task.")] = 4.0,
    restarts: Annotated[
        int,
        typer.Option(
            help="Maximum number of restarts: of all tasks of a mirrored job, or of lost workers of an elastic job."
        ),
    ] = 3,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --job: print JSON, one line for each line of output of a task.")
    ] = False,
) -> None:
    """Starts a whole cluster on this machine and runs a program in every task.

    Every task gets a free port and the cluster in TF_CONFIG, and its output is shown with its name. The parameter
    servers are stopped after the workers have finished. If a task fails, all others are stopped, and its exit code is
    returned. If a task of a mirrored job, whose tasks need each other, is killed or exits with code 75, all its tasks
    are restarted and continue from their last save.
    """
    try:
        least, most = _range_of(workers)
    except UsageError as error:
        _usage_error("run", str(error))
    if job is not None:
        if program:
            _usage_error("run", "--job: the job file has the program; do not give another one")
        raise typer.Exit(_run_job(job, least or None, as_json=as_json))
    if as_json:
        _usage_error("run", "--json: requires --job: otherwise, the output of tasks is shown unchanged")
    try:
        invocation = parse_arguments(program or ())
        if invocation.kind == "stdin":
            raise UsageError("the tasks cannot share one standard input: name a file, -m MODULE or -c CODE")
        if invocation.kind == "file" and not os.path.exists(invocation.program):
            raise UsageError(f"PROGRAM: there is no file {invocation.program!r}")
        settings = LaunchSettings(
            invocation=invocation,
            ps=ps,
            workers=least,
            most_workers=most,
            chief=chief,
            flags=flags,
            log_dir=log_dir,
            env=dict(_variable(assignment) for assignment in env or ()),
            grace_s=grace,
            restarts=restarts,
        )
    except (UsageError, ValueError) as error:
        _usage_error("run", str(error))
    try:
        exit_code = launch(settings)
    except OSError as error:
        _fail("run", str(error))
    raise typer.Exit(exit_code)


@app.command(context_settings=_PROGRAM_FOLLOWS)
def tensorboard(
    logdir: Annotated[Path, typer.Argument(metavar="LOGDIR", help="Folder with event files.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]", help="Further arguments of TensorBoard.")
    ] = None,
) -> None:
    """Shows a log folder in TensorBoard, which must be installed."""
    if importlib.util.find_spec("tensorboard") is None:
        _fail("tensorboard", "TensorBoard is not installed: pip install tensorboard")
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), *(arguments or ())]
    os.execv(sys.executable, command)


@app.command()
def doctor(
    ps_hosts: Annotated[str, typer.Option("--ps_hosts", metavar="HOST:PORT,...", help="Parameter servers.")] = "",
    worker_hosts: Annotated[str, typer.Option("--worker_hosts", metavar="HOST:PORT,...", help="Workers.")] = "",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait at each step of connecting.")] = 5.0,
) -> None:
    """Connects to every task of a cluster from this machine, and reports problems with hints.

    The cluster is given by the two options or, without them, by TF_CONFIG. The exit code is 1 if there is any problem.
    """
    from headwater.platform.cli.doctor import cluster_to_examine, examine, show  # noqa: PLC0415  gRPC takes 100 ms

    try:
        cluster = cluster_to_examine(ps_hosts, worker_hosts)
    except ValueError as error:
        _usage_error("doctor", str(error))
    try:
        examined = examine(cluster, timeout_s=timeout)
    except OpError as error:
        _usage_error("doctor", str(error))
    show(examined)
    if not all(entry.diagnosis.ok for entry in examined):
        raise typer.Exit(1)


@app.command()
def certs(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Output folder; it is created with access for its owner only.")
    ],
    hosts: Annotated[str, typer.Option(metavar="HOST,HOST...", help="Addresses of the tasks, without ports.")] = "",
    days: Annotated[int, typer.Option(min=1, help="Number of days for which the certificates are valid.")] = 365,
) -> None:
    """Creates certificates for a cluster, and prints the environment variables that make its tasks use them."""
    from headwater.cluster.transport.certificates import make_certificates  # noqa: PLC0415  cryptography takes 100 ms

    names = [name for name in (part.strip() for part in hosts.split(",")) if name]
    try:
        files = make_certificates(directory.absolute(), names, valid_days=days)
    except (OpError, OSError, ValueError) as error:
        _fail("certs", str(error))
    for name, value in files.environment().items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def server(
    cluster: Annotated[
        str, typer.Option(metavar="JSON", help='All tasks, e.g. \'{"ps": ["a:2222"], "worker": ["b:2222"]}\'.')
    ],
    job: Annotated[str, typer.Option(help="The job of this task, e.g. ps.")],
    index: Annotated[int, typer.Option(help="Index of this task in its job.")] = 0,
    protocol: Annotated[str, typer.Option(help="grpc, or grpc+stream to send tensors through gRPC, too.")] = "grpc",
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Start without authentication, even if other machines can reach the address."),
    ] = False,
) -> None:
    """Runs a task of a cluster without a program; clients on other machines open sessions with it."""
    from headwater.platform.cli.server import serve, task_of  # noqa: PLC0415  JAX takes a second

    try:
        config = task_of(cluster, job, index)
    except ValueError as error:
        _usage_error("server", str(error))
    try:
        serve(config, protocol=protocol, insecure=insecure)
    except (OpError, ValueError) as error:
        _fail("server", str(error))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@app.command(context_settings=_PROGRAM_FOLLOWS)
def worker(
    program: Annotated[
        list[str], typer.Argument(metavar="PROGRAM|-m MODULE [ARGUMENTS]", help="As for headwater exec.")
    ],
    join: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of any task of the cluster.")],
    host: Annotated[str, typer.Option(help="Address at which other tasks reach this worker; default: detected.")] = "",
    flags: Annotated[
        bool, typer.Option("--flags", help="Also pass the cluster as flags, like headwater run --flags.")
    ] = False,
) -> None:
    """Runs a program as an additional worker of a running cluster; its configuration need not list the worker."""
    from headwater.platform.cli.worker import run_worker  # noqa: PLC0415  gRPC takes 100 ms

    try:
        invocation = parse_arguments(program)
    except UsageError as error:
        _usage_error("worker", str(error))
    try:
        run_worker(invocation, join, host=host, as_flags=flags)
    except OutOfRangeError as error:  # the job is over: not a failure
        print(f"headwater worker: {error.message}", file=sys.stderr)
    except (OpError, ValueError, OSError) as error:
        _fail("worker", str(error))


@app.command()
def status(
    target: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT|JOB",
            help="Address of any task of a running cluster, or a job of a server.",
            autocompletion=jobs.complete_job,
        ),
    ],
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line per refresh.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two refreshes; speeds are measured over them.")
    ] = 1.0,
    server: jobs.ServerOption = jobs.DEFAULT_SERVER,
) -> None:
    """Shows the state of a cluster's tasks: steps, speeds, waiting tasks, staleness, traffic, variables.

    For a job of a server: its tasks with their states, restarts and progress; with --watch until it has ended.
    """
    if ":" not in target:
        jobs.job_status(target, watch=watch, as_json=as_json, server=server)
    from headwater.platform.cli.status import status as show_status  # noqa: PLC0415  gRPC takes 100 ms

    try:
        exit_code = show_status(target, watch=watch, as_json=as_json, interval_s=interval)
    except (OpError, ValueError) as error:
        _fail("status", str(error))
    raise typer.Exit(exit_code)


@app.command()
def rebalance(
    target: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT|JOB",
            help="Address of a parameter server of a running cluster, or a job of a server.",
            autocompletion=jobs.complete_job,
        ),
    ],
    ps: Annotated[
        int | None, typer.Option(min=1, help="Number of ps among which to distribute the parameters, by their bytes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    server: jobs.ServerOption = jobs.DEFAULT_SERVER,
) -> None:
    """Moves shards of parameters between parameter servers during training, to even out their traffic.

    Requires a program for Keras or JAX with shards=..., or a job whose number of ps is a range.
    """
    from headwater.platform.cli.rebalance import rebalance as move  # noqa: PLC0415  gRPC takes 100 ms

    try:
        move(target if ":" in target else jobs.address_of_ps(target, server), ps=ps, as_json=as_json)
    except (OpError, ValueError) as error:
        _fail("rebalance", str(error))


@app.command()
def inspect(
    checkpoint: Annotated[
        str, typer.Argument(help="Folder of saved embedding tables, Keras model, or TensorFlow checkpoint.")
    ],
    keys: Annotated[int, typer.Option(min=0, help="Number of most used keys to show per table.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Shows the contents of a checkpoint: tables with their rows, sizes and most used keys, or variables."""
    from headwater.platform.cli.inspect import inspect as show  # noqa: PLC0415  other commands need no arrays

    try:
        show(checkpoint, keys=keys, as_json=as_json)
    except (OpError, OSError, ValueError) as error:
        _fail("inspect", str(error))


@app.command()
def export(
    folder: Annotated[str, typer.Argument(help="Folder of saved embedding tables.")],
    target: Annotated[str, typer.Argument(metavar="FILE", help="Output file: .arrow, .feather or .npz.")],
    table: Annotated[str | None, typer.Option(help="Name of the table; required if there are several.")] = None,
    save: Annotated[int | None, typer.Option(min=1, help="Number of the save; default: the last.")] = None,
) -> None:
    """Writes an embedding table's keys and rows to an Arrow or NumPy file."""
    from headwater.platform.cli.export import export as write  # noqa: PLC0415  other commands need no arrays

    try:
        write(folder, target, table=table, save=save)
    except (OpError, OSError, ImportError) as error:
        _fail("export", str(error))


@app.command()
def audit(
    logdir: Annotated[str, typer.Argument(metavar="LOGDIR", help="The folder with journals of examples.")],
    example: Annotated[
        int | None, typer.Option(min=0, help="Only report when this example was applied, and by which task.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Checks whether each example of an epoch was applied exactly once, and reports worker and time of any other.

    Reads the journals that the first parameter server writes; see the guide to parameter servers. The exit code is 1 if
    a finished epoch is not exact, or a file is damaged.
    """
    from headwater.platform.cli.audit import show_audit  # noqa: PLC0415  other commands need no arrays

    try:
        exit_code = show_audit(logdir, example=example, as_json=as_json)
    except (OpError, OSError, ValueError) as error:
        _fail("audit", str(error))
    raise typer.Exit(exit_code)


@app.command()
def make_records(
    data_set: Annotated[str, typer.Argument(metavar="mnist", help="The data set.")],
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder.")],
) -> None:
    """Writes a sample data set as TFRecords: train.tfrecords and test.tfrecords."""
    from headwater.data.mnist_data import write_records  # noqa: PLC0415  other commands need no arrays

    if data_set != "mnist":
        _usage_error("make-records", f"the data set must be mnist, but is {data_set!r}")
    try:
        written = write_records(directory)
    except (OpError, OSError) as error:
        _fail("make-records", str(error))
    for path, count in written.items():
        print(f"{path}: {count} examples")


@app.command()
def version() -> None:
    """Prints the version of Headwater."""
    print(headwater.__version__)


for _command in (
    serve.serve,
    jobs.submit,
    jobs.jobs,
    jobs.top,
    jobs.logs,
    jobs.stop,
    jobs.restart,
    jobs.scale,
    jobs.delete,
    render.render,
    serve.schema,
):
    app.command()(_command)
app.add_typer(serve.token, name="token")
app.add_typer(serve.secret, name="secret")


def _run_job(path: Path, workers: int | None, *, as_json: bool) -> int:
    from headwater.platform.cli.run_job import CannotRun, run_job  # noqa: PLC0415  a database takes half a second

    try:
        return run_job(jobs.read_spec(path), workers=workers, as_json=as_json)
    except CannotRun as error:
        _fail("run", f"{path}: {error}")


def _range_of(workers: str) -> tuple[int, int | None]:
    """Parses ``N`` or ``N:M``."""
    least, separator, most = workers.partition(":")
    try:
        return int(least), int(most) if separator else None
    except ValueError:
        raise UsageError(f"--workers must be a number, or two as in 2:8, but is {workers!r}") from None


def _variable(assignment: str) -> tuple[str, str]:
    name, separator, value = assignment.partition("=")
    if not separator or not name:
        raise UsageError(f"--env must be KEY=VALUE, but is {assignment!r}")
    return name, value


def _usage_error(command: str, message: str) -> NoReturn:
    print(f"headwater {command}: {message}", file=sys.stderr)
    raise typer.Exit(2)


def _fail(command: str, message: str) -> NoReturn:
    print(f"headwater {command}: {message}", file=sys.stderr)
    raise typer.Exit(1)
