"""The server: a manager and its API in one process."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

import uvicorn
from fastapi import APIRouter

from headwater.platform.app import create_app
from headwater.platform.auth import Auth
from headwater.platform.backends.base import Backend
from headwater.platform.host.folders import private_file, private_folder
from headwater.platform.host.signals import handling
from headwater.platform.job_secrets import SecretError
from headwater.platform.lanes import BackendSource
from headwater.platform.logging_setup import LogFormat, set_up_logging
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.secret_store import KEY_FILE, KEY_VARIABLE, StoredSecrets, secrets_keys
from headwater.platform.server_clock import server_clock
from headwater.platform.service import Platform
from headwater.platform.store import Store
from headwater.platform.webhook import Notifier

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

TOKEN_FILE = "admin.token"
# Streams end by themselves at a shutdown; connections that stay open longer than this are closed, in seconds.
_SHUTDOWN_S = 5


class ServerError(Exception):
    """The server cannot start; the message has the reason and the remedy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """Settings of a server.

    Attributes:
      data_dir: the folder of its database, logs, archives and records of tasks.
      database: another database, as a URL of SQLAlchemy.
      host: the address to listen at.
      port: the port; 0 for any that is free.
      certificate: a PEM file with the server's certificate chain, for TLS.
      key: a PEM file with the private key of the certificate.
      auth: whether clients need a token.
      trusted_proxies: addresses of proxies whose ``X-Forwarded-For`` and ``X-Forwarded-Proto`` are trusted.
      max_running: maximum number of jobs that run at once; 0 for no limit.
      max_archive_bytes: maximum size of an archive.
      poll_s: seconds between two polls of all tasks.
      keep_days: days for which a finished job is kept, with its logs; 0 for no limit.
      keep_jobs: maximum number of finished jobs that are kept; 0 for all.
      log_format: the format of the server's own log.
    """

    data_dir: Path
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8470
    certificate: Path | None = None
    key: Path | None = None
    auth: bool = True
    trusted_proxies: tuple[str, ...] = ()
    max_running: int = 0
    max_archive_bytes: int = 1 << 30
    poll_s: float = 0.5
    keep_days: float = 90.0
    keep_jobs: int = 1000
    log_format: LogFormat = "text"

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("--certificate and --key must be given together")
        if not self.auth and not self.loopback:
            raise ValueError(
                f"--no-auth cannot be used with --host {self.host}: every machine there could run programs here"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def scheme(self) -> Literal["http", "https"]:
        """The protocol of the server."""
        return "https" if self.certificate is not None else "http"


def open_store(settings: ServerSettings) -> Store:
    """Opens the server's database, in a folder that only its user can read.

    Raises:
      StoreError: the database cannot be used.
      ServerError: the folder belongs to another user.
    """
    try:
        private_folder(settings.data_dir.absolute())
    except PermissionError as error:
        raise ServerError(f"--data-dir: {error}") from error
    for name in ("headwater.db", "headwater.db-wal", "headwater.db-shm", TOKEN_FILE, KEY_FILE):
        private_file(settings.data_dir / name)
    for name in ("jobs", "archives"):
        if (settings.data_dir / name).exists():
            private_folder(settings.data_dir.absolute() / name)
    store = Store(settings.database or f"sqlite:///{settings.data_dir.absolute() / 'headwater.db'}")
    store.open()
    return store


def serve_forever(
    settings: ServerSettings,
    backends: Sequence[Backend | BackendSource],
    *,
    announce: Callable[[str], None],
    routers: Sequence[APIRouter] = (),
) -> None:
    """Serves until the process is asked to end. Running jobs then continue, and the next server finds them.

    Args:
      backends: the backends for jobs; the first is the default.
      announce: shows a line to the person who started the server.
      routers: further routes, such as the web page's.

    Raises:
      StoreError: the database cannot be used.
      ServerError: the address is not available, or the certificate or the key of the secrets cannot be read.
    """
    set_up_logging(settings.log_format)
    # Files of jobs, their output and the database may all contain secrets.
    os.umask(0o077)
    store = open_store(settings)
    clock = server_clock(settings.data_dir)
    try:
        secrets = StoredSecrets(store, secrets_keys(settings.data_dir.absolute()), clock)
    except SecretError as error:
        store.close()
        raise ServerError(str(error)) from error
    os.environ.pop(KEY_VARIABLE, None)  # child processes do not need it
    notifier = Notifier()
    manager = Manager(
        store,
        backends,
        ManagerSettings(
            data_dir=settings.data_dir,
            poll_s=settings.poll_s,
            max_running=settings.max_running,
            keep_s=settings.keep_days * 86400 or None,
            keep_jobs=settings.keep_jobs or None,
        ),
        on_note=notifier,
        secrets=secrets,
        clock=clock,
    )
    try:
        auth = Auth(store, required=settings.auth, clock=clock)
        platform = Platform(store, manager, auth, max_archive_bytes=settings.max_archive_bytes)
        with _listen(settings) as listening:
            manager.start()
            port = listening.getsockname()[1]
            announce(f"Headwater serves at {settings.scheme}://{settings.host}:{port}")
            _announce_token(auth, settings, announce)
            if not settings.loopback and settings.scheme == "http":
                announce("WARNING: tokens are sent unencrypted: use --certificate and --key")
            config = uvicorn.Config(
                create_app(platform, routers),
                log_config=None,
                access_log=False,
                ssl_certfile=settings.certificate,
                ssl_keyfile=settings.key,
                timeout_graceful_shutdown=_SHUTDOWN_S,
                server_header=False,
                **proxy_settings(settings.trusted_proxies),
            )
            try:
                with handling({signal.SIGINT: _nothing, signal.SIGTERM: _nothing}):
                    _Server(config, platform).run(sockets=[listening])
            except OSError as error:  # the certificate or its key caused the error: the socket is already open
                raise ServerError(f"{settings.certificate}, {settings.key}: {error}") from error
    finally:
        manager.close()
        notifier.close()
        store.close()


def proxy_settings(trusted: Sequence[str]) -> JsonObject:
    """Returns uvicorn's proxy settings: only listed proxies are trusted, not even local ones by default."""
    return {"proxy_headers": bool(trusted), "forwarded_allow_ips": list(trusted)}


class _Server(uvicorn.Server):
    """Ends streams at a shutdown, so that the shutdown need not wait for their clients."""

    def __init__(self, config: uvicorn.Config, platform: Platform) -> None:
        super().__init__(config)
        self._platform = platform

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called by uvicorn after a signal has requested the shutdown."""
        self._platform.feed.close()
        await super().shutdown(sockets)


def _nothing(_signum: int, _frame: FrameType | None) -> None:
    """Ignores signals that uvicorn sends to itself again after its shutdown: such signals must not kill this
    process."""


def _listen(settings: ServerSettings) -> socket.socket:
    try:
        return socket.create_server((settings.host, settings.port), family=_family(settings.host), backlog=512)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise ServerError(f"--host and --port: cannot listen at {where}: {error.strerror or error}") from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _announce_token(auth: Auth, settings: ServerSettings, announce: Callable[[str], None]) -> None:
    """Logs the path of the admin token; creates the token on first use, readable only by the server's user."""
    if not settings.auth:
        announce("WARNING: --no-auth: every user of this machine can run programs as the user of this server")
        return
    path = settings.data_dir / TOKEN_FILE
    if not auth.tokens():
        _, secret = auth.issue_token("admin", "admin")
        written = path.with_suffix(".tmp")
        written.unlink(missing_ok=True)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secret + "\n")
        written.replace(path)
        announce(f"The first token, for everything: {secret}")
    announce(f"Jobs run as the user of this server. Its token is in {path}")
