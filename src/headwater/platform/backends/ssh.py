"""Hosts that are reached over ssh and have only Headwater installed.

The server keeps one connection of the system's ``ssh`` to an agent on each host, `headwater.platform.host.agent`; so
keys, users, ports and jump hosts in ``~/.ssh/config`` apply. The tasks' keepers depend neither on the connection nor on
the agent: tasks continue when the connection breaks, and the next connection finds them.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headwater.platform.backends.base import BackendError
from headwater.platform.backends.hosts import HostsBackend

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json

_READ_SIZE = 1 << 20
# BatchMode: there is no user at a terminal to enter a password or confirm a host key.
_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3")


@dataclass(frozen=True, kw_only=True, slots=True)
class SshHost:
    """A host.

    Attributes:
      host: the name of the host for ``ssh``, such as ``gpu1`` or ``me@gpu1``.
      address: the name or address at which the other hosts reach it; ``host`` without the user unless given.
      python: the interpreter there that has Headwater installed.
      state_dir: a folder there for records and for the jobs' own folders, on a local disk.
      options: further arguments of ``ssh``, such as ``-p 2200``.
      labels: the labels that selectors of jobs are matched with.
    """

    host: str
    address: str = ""
    python: str = "python3"
    state_dir: str = "~/.headwater"
    options: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.host or self.host.startswith("-"):
            raise ValueError(f"host must be the name of a host, but is {self.host!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SshSettings:
    """The hosts and how they are used.

    Attributes:
      state_dir: a folder of the server for the secret from which each job's token is derived.
      call_timeout_s: the timeout of a call, including connecting, in seconds.
      retry_s: the pause before connecting again to a host that could not be reached, in seconds.
      lost_after_s: seconds without an answer of a host after which its tasks count as lost.
    """

    hosts: tuple[SshHost, ...]
    state_dir: Path
    call_timeout_s: float = 20.0
    retry_s: float = 5.0
    lost_after_s: float = 120.0

    def __post_init__(self) -> None:
        if not self.hosts:
            raise ValueError("hosts must name at least one host")
        names = [host.host for host in self.hosts]
        if len(set(names)) < len(names):
            raise ValueError(f"hosts must name each host once, but are {', '.join(names)}")


class SshConnection:
    """The connection to one host's agent; see `HostConnection`."""

    local = False

    def __init__(self, host: SshHost, settings: SshSettings) -> None:
        self.host: str = host.host
        self.address: str = host.address or host.host.rpartition("@")[2]
        self.labels: Mapping[str, str] = host.labels
        self._host = host
        self._settings = settings
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._buffer = b""
        self._answered_at = time.monotonic()
        self._failure = ""
        self._retry_at = 0.0

    def call(self, method: str, **arguments: object) -> Json:
        """See `HostConnection`."""
        # One request at a time: answers carry no id, and are matched with requests by their order.
        with self._lock:
            began = time.monotonic()
            if self._failure and began < self._retry_at:
                raise BackendError(self._failure, temporary=True)
            try:
                answer = self._exchange({"method": method, "arguments": arguments})
            except OSError as error:
                self._failure = f"host {self.host}: {self._last_error_line() or error}"
                self._disconnect()
                # Back off longer from hosts that fail slowly, so that calls to them do not delay other hosts most of
                # the time.
                now = time.monotonic()
                self._retry_at = now + max(self._settings.retry_s, 2 * (now - began))
                raise BackendError(self._failure, temporary=True) from error
            self._failure, self._answered_at = "", time.monotonic()
        if "error" in answer:
            raise BackendError(f"host {self.host}: {answer['error']}", temporary=answer["kind"] != "AgentError")
        return answer["result"]

    def silence_s(self) -> float:
        """See `HostConnection`."""
        return time.monotonic() - self._answered_at if self._failure else 0.0

    def close(self) -> None:
        """See `HostConnection`."""
        with self._lock:
            self._disconnect()

    def _exchange(self, request: dict[str, object]) -> dict[str, object]:
        deadline = time.monotonic() + self._settings.call_timeout_s
        if self._process is None:
            self._connect()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0 or not selector.select(remaining_s):
                    raise TimeoutError(f"no answer in {self._settings.call_timeout_s:g} s")
                data = os.read(self._process.stdout.fileno(), _READ_SIZE)
                if not data:
                    raise ConnectionError("ssh ended")
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer: dict[str, object] = json.loads(line)
        except ValueError as error:
            # Another program on the host, such as a login script, printed to standard output.
            raise ConnectionError(f"unexpected output {line[:200]!r}") from error
        return answer

    def _connect(self) -> None:
        host = self._host
        agent = [host.python, "-P", "-m", "headwater.platform.host.agent", host.state_dir]
        timeout = f"ConnectTimeout={max(1, int(self._settings.call_timeout_s))}"
        self._buffer = b""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  for as long as the connection lasts
        self._process = subprocess.Popen(
            ["ssh", *_OPTIONS, "-o", timeout, *host.options, host.host, shlex.join(agent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            # An interrupt at the server's terminal must not reach ssh.
            start_new_session=True,
        )

    def _last_error_line(self) -> str:
        """Returns the last line that ssh or the host's shell printed to standard error before it ended."""
        if self._process is None or self._said is None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0 if self._process.stdout is not None else 0.0)
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _disconnect(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # unsent data is lost with the connection
                pipe.close()
        try:
            # The agent exits at the end of its input, and ssh with the agent.
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._said is not None:
            self._said.close()
            self._said = None


class SshBackend(HostsBackend):
    """Runs tasks on hosts over ssh.

    Args:
      settings: the hosts and how they are used.
    """

    name = "ssh"

    def __init__(self, settings: SshSettings) -> None:
        super().__init__(
            [SshConnection(host, settings) for host in settings.hosts],
            lost_after_s=settings.lost_after_s,
            state_dir=settings.state_dir,
        )
