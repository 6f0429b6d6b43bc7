"""A client of the server's API."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject

SERVER = "HEADWATER_SERVER"
DEFAULT_SERVER = "http://127.0.0.1:8470"
TOKEN = "HEADWATER_SERVER_TOKEN"
DATA_DIR = "HEADWATER_SERVER_DIR"
_UNAUTHORIZED = 401
_PREFIX = "/api/v1"
_TIMEOUT = httpx.Timeout(30.0)
# Idle streams send a ping every 15 s.
_STREAM_TIMEOUT = httpx.Timeout(30.0, read=60.0)


class ClientError(Exception):
    """The server refused a request or cannot be reached, or a file cannot be read; the message has reason and remedy.

    Attributes:
      status: the HTTP status; 0 if there was no response.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def default_data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the default data folder of this user's server."""
    value = environ.get(DATA_DIR)
    if value:
        return Path(value)
    data_home = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data_home, "headwater", "server")


def find_token(environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the token: ``HEADWATER_SERVER_TOKEN``, or else the admin token of this user's server; None if there is
    neither."""
    value = environ.get(TOKEN)
    if value:
        return value.strip()
    try:
        return (default_data_dir(environ) / "admin.token").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


class ApiClient:
    """Calls a server.

    Args:
      server: its address, e.g. ``http://127.0.0.1:8470``; unless given, ``HEADWATER_SERVER`` or this machine's server.
      token: the token to send; by default the result of `find_token`. If it is empty, no token is sent.
    """

    def __init__(self, server: str | None = None, token: str | None = None) -> None:
        server = server or os.environ.get(SERVER) or DEFAULT_SERVER
        token = find_token() if token is None else token
        self.server: str = server.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # Connections to this machine bypass proxies.
            url = httpx.URL(self.server)
            self._http = httpx.Client(
                base_url=self.server + _PREFIX,
                headers=headers,
                timeout=_TIMEOUT,
                trust_env=not _is_loopback(url.host),
                # SSL_CERT_FILE can name the certificate authority of the server.
                verify=httpx.create_ssl_context() if url.scheme == "https" else True,
            )
        except (httpx.InvalidURL, ValueError, OSError) as error:
            raise ClientError(f"{SERVER} {server!r}: {error}") from error

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def get(self, path: str, **query: object) -> Json:
        """Returns the resource at ``path``."""
        return self._call("GET", path, params=_given(query))

    def post(self, path: str, body: object = None, **query: object) -> Json:
        """Posts ``body`` and returns the response."""
        return self._call("POST", path, params=_given(query), json=body)

    def put(self, path: str, body: object) -> Json:
        """Replaces the resource at ``path`` by ``body`` and returns the response."""
        return self._call("PUT", path, json=body)

    def delete(self, path: str) -> None:
        """Deletes the resource at ``path``."""
        self._call("DELETE", path)

    def upload(self, archive: Path) -> str:
        """Uploads an archive and returns its digest."""
        try:
            with archive.open("rb") as file:
                answer = self._call("PUT", "/archives", content=file, timeout=httpx.Timeout(600.0))
        except OSError as error:
            raise ClientError(f"archive: {archive} cannot be read: {error.strerror or error}") from error
        return str(answer["digest"])

    def job_id(self, job: str) -> str:
        """Returns the id of a job, given its id or its name. If several jobs have the name, returns the id of the
        latest.

        Raises:
          ClientError: there is no such job.
        """
        try:
            return str(self.get(f"/jobs/{job}")["id"])
        except ClientError as error:
            if error.status not in (404, 422):
                raise
        jobs = self.get("/jobs", name=job, limit=1)["jobs"]
        if not jobs:
            raise ClientError(f"there is no job {job!r}: 'headwater jobs --all' shows all", status=404)
        return str(jobs[0]["id"])

    @contextmanager
    def stream(self, path: str, **query: Json) -> Generator[Generator[tuple[str, Json]]]:
        """Yields kind and data of each server-sent event on arrival, until the server ends the stream."""
        try:
            with self._http.stream("GET", path, params=_given(query), timeout=_STREAM_TIMEOUT) as response:
                if response.is_error:
                    response.read()
                    raise _refusal(response)
                yield _events(response)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _call(self, method: str, path: str, **arguments: Json) -> Json:
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise _refusal(response)
        return response.json() if response.content else None

    def _unreachable(self, error: httpx.HTTPError) -> ClientError:
        why = str(error) or type(error).__name__
        return ClientError(f"the server at {self.server} does not answer: {why}; start one with 'headwater serve'")


def _events(response: httpx.Response) -> Generator[tuple[str, object]]:
    kind, data = "message", list[str]()
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "data":
                data.append(value)
        elif data:
            yield kind, json.loads("\n".join(data))
            kind, data = "message", []


def _refusal(response: httpx.Response) -> ClientError:
    try:
        message = str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = f"HTTP status {response.status_code}; is this a Headwater server?"
    if response.status_code == _UNAUTHORIZED:
        message += f"; set {TOKEN}"
    return ClientError(message, status=response.status_code)


def _given(query: Mapping[str, object]) -> JsonObject:
    return {name: value for name, value in query.items() if value is not None}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
