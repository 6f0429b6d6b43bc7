"""``headwater serve``, its tokens and secrets, and the schema of job files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from headwater.platform.cli.jobs import DEFAULT_SERVER, JsonOption, ServerOption, connected, fail, show_json

_PORT = 8470
token = typer.Typer(help="Creates, lists and revokes the tokens of a server.", no_args_is_help=True)
secret = typer.Typer(
    help="Stores, lists and deletes secrets. Job files refer to them by name; values are never shown again.",
    no_args_is_help=True,
)


def serve(
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free port.")] = _PORT,
    data_dir: Annotated[
        Path | None, typer.Option(envvar="HEADWATER_SERVER_DIR", help="Folder of its database, logs and archives.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(envvar="HEADWATER_DATABASE", help="URL of another database, e.g. postgresql+psycopg://..."),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="PEM file of its certificate chain.")] = None,
    key: Annotated[Path | None, typer.Option(help="PEM file of its private key.")] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Accept every user of this machine without a token.")
    ] = False,
    backends: Annotated[Path | None, typer.Option(help="File with its backends; default: only this machine.")] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="Address of a proxy; its headers X-Forwarded-For and X-Forwarded-Proto are trusted; repeatable."
        ),
    ] = None,
    max_running: Annotated[int, typer.Option(min=0, help="Maximum number of jobs that run at once; 0: unlimited.")] = 0,
    keep_days: Annotated[
        float, typer.Option(min=0, help="Days after which ended jobs are deleted with their logs; 0: never.")
    ] = 90.0,
    keep_jobs: Annotated[int, typer.Option(min=0, help="Maximum number of ended jobs to keep; 0: all.")] = 1000,
    cpus: Annotated[int | None, typer.Option(min=0, help="Number of this machine's cores for jobs.")] = None,
    gpus: Annotated[int | None, typer.Option(min=0, help="Number of this machine's GPUs for jobs.")] = None,
    log_format: Annotated[str, typer.Option(help="Format of the server's log: text or json.")] = "text",
) -> None:
    """Runs the server that queues, starts, watches and restarts jobs. Jobs run as the user of this server.

    Running jobs continue when the server exits or crashes, and its next start finds them.
    """
    # Importing the server's modules takes a second, which other commands need not wait for.
    from headwater.platform.backend_file import load_backends  # noqa: PLC0415
    from headwater.platform.backends.base import BackendError  # noqa: PLC0415
    from headwater.platform.client import default_data_dir  # noqa: PLC0415
    from headwater.platform.server import ServerError, ServerSettings, serve_forever  # noqa: PLC0415
    from headwater.platform.store import StoreError  # noqa: PLC0415
    from headwater.platform.web.routes import ROUTERS  # noqa: PLC0415

    if log_format not in ("text", "json"):
        fail(f"--log-format must be text or json, but is {log_format!r}", code=2)
    folder = data_dir or default_data_dir()
    try:
        settings = ServerSettings(
            data_dir=folder,
            database=database,
            host=host,
            port=port,
            certificate=certificate,
            key=key,
            auth=not no_auth,
            trusted_proxies=tuple(trusted_proxy or ()),
            max_running=max_running,
            keep_days=keep_days,
            keep_jobs=keep_jobs,
            log_format=log_format,
        )
        loaded = load_backends(backends, folder, local={"cpus": cpus, "gpus": gpus})
    except (ValueError, BackendError, OSError) as error:
        fail(str(error), code=2)
    try:
        serve_forever(settings, loaded, announce=_announce, routers=ROUTERS)
    except (StoreError, ServerError, OSError) as error:
        fail(str(error))


def schema() -> None:
    """Prints the JSON schema of job files."""
    from headwater.platform.spec import job_schema  # noqa: PLC0415  pydantic takes 100 ms

    show_json(job_schema())


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="User or purpose of the token.")],
    role: Annotated[str, typer.Option(help="Permission of the token: view, run or admin.")] = "run",
    days: Annotated[float | None, typer.Option(min=0.001, help="Time until it expires; default: never.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Creates a new token and prints it; it is never shown again."""
    if role not in ("view", "run", "admin"):
        fail(f"--role must be view, run or admin, but is {role!r}", code=2)
    valid_s = days * 86400 if days is not None else None
    with connected(server) as client:
        created = client.post("/tokens", {"name": name, "role": role, "valid_s": valid_s})
    if as_json:
        show_json(created)
    else:
        print(created["secret"])


@token.command("list")
def list_tokens(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """Lists all tokens, without their secrets."""
    with connected(server) as client:
        tokens = client.get("/tokens")
    if as_json:
        show_json(tokens)
        return
    for entry in tokens:
        print(f"{entry['id']}  {entry['role']:5}  {entry['name']}")


@token.command("delete")
def delete_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the token in 'headwater token list'.")],
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Revokes a token; requests with it are refused from now on."""
    with connected(server) as client:
        client.delete(f"/tokens/{token_id}")
    if as_json:
        show_json({"deleted": token_id})
    else:
        print(f"{token_id} is revoked")


@secret.command("set")
def set_secret(
    name: Annotated[str, typer.Argument(help="Name for use in job files: lower-case letters, digits and dashes.")],
    file: Annotated[Path | None, typer.Option(help="File with the value; default: prompt, or standard input.")] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Stores a secret on the server, which keeps it encrypted. A newline at the end of the value is removed."""
    try:
        if file is not None:
            value = file.read_text(encoding="utf-8")
        elif sys.stdin.isatty():
            value = typer.prompt(f"Value of {name}", hide_input=True, err=True)
        else:
            value = sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"the value of {name!r} cannot be read: {error}")
    with connected(server) as client:
        stored = client.put(f"/secrets/{name}", {"value": value.removesuffix("\n")})
    if as_json:
        show_json(stored)
    else:
        print(f"{name} is stored; jobs name it as {{secret: {name}}}")


@secret.command("list")
def list_secrets(server: ServerOption = DEFAULT_SERVER, as_json: JsonOption = False) -> None:
    """Lists the names of all secrets."""
    with connected(server) as client:
        secrets = client.get("/secrets")
    if as_json:
        show_json(secrets)
        return
    for entry in secrets:
        day = time.strftime("%Y-%m-%d", time.localtime(entry["stored_at"]))
        print(f"{entry['name']}  {day}  {entry['owner']}")


@secret.command("delete")
def delete_secret(
    name: Annotated[str, typer.Argument(help="Name of the secret in 'headwater secret list'.")],
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Deletes a secret; refused while an unfinished job names it."""
    with connected(server) as client:
        client.delete(f"/secrets/{name}")
    if as_json:
        show_json({"deleted": name})
    else:
        print(f"{name} is deleted")


def _announce(line: str) -> None:
    print(line, flush=True, file=sys.stdout)
