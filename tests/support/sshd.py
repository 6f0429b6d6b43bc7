"""Hosts for tests: network namespaces on one bridge, each with a real sshd that accepts only the test's key."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.processes import Process

# A range that is reserved for benchmarks of network devices (RFC 2544), so that no real host has such an address. The
# third byte is random, so that two test runs at the same time probably use different networks.
_NETWORK = f"198.18.{secrets.randbelow(256)}"
_PORT = 2022


def require_sshd() -> None:
    """Skips the test if hosts cannot be made."""
    for command in ("/usr/sbin/sshd", "ssh", "ssh-keygen", "ip"):
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class SshHosts:
    """Hosts, and the options to reach them.

    Attributes:
      addresses: the address of each host.
      options: the options with which ssh connects to a host.
    """

    def __init__(self, folder: Path, count: int, stack: ExitStack) -> None:
        self._tag = f"hw{secrets.token_hex(3)}"
        self.addresses = [f"{_NETWORK}.{10 + number}" for number in range(count)]
        key, host_key = folder / "key", folder / "host_key"
        for path in (key, host_key):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        (folder / "known").write_text(
            "".join(f"[{one}]:{_PORT} {Path(f'{host_key}.pub').read_text()}" for one in self.addresses)
        )
        self.options = (
            "-F",
            "none",
            "-p",
            str(_PORT),
            "-i",
            str(key),
            "-o",
            f"UserKnownHostsFile={folder / 'known'}",
        )
        config = folder / "sshd_config"
        config.write_text(
            f"Port {_PORT}\nHostKey {host_key}\nAuthorizedKeysFile {key}.pub\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"PermitRootLogin prohibit-password\nPasswordAuthentication no\nLogLevel INFO\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        bridge = self._tag
        _run("ip", "link", "add", bridge, "type", "bridge")
        stack.callback(_run, "ip", "link", "del", bridge)
        _run("ip", "addr", "add", f"{_NETWORK}.1/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        for number, address in enumerate(self.addresses):
            namespace = self._namespace(number)
            _run("ip", "netns", "add", namespace)
            stack.callback(_run, "ip", "netns", "del", namespace)
            _run("ip", "link", "add", self._link(number), "type", "veth", "peer", "name", "eth0", "netns", namespace)
            _run("ip", "link", "set", self._link(number), "master", bridge, "up")
            _run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _run("ip", "-n", namespace, "link", "set", device, "up")
            server = Process(
                ["ip", "netns", "exec", namespace, "/usr/sbin/sshd", "-D", "-e", "-f", str(config)], dict(os.environ)
            )
            stack.callback(self._end, namespace, server)
            server.wait_for("Server listening")
            socket.create_connection((address, _PORT)).close()

    def cut(self, number: int) -> None:
        """Disconnects a host from the network."""
        _run("ip", "link", "set", self._link(number), "down")

    def reconnect(self, number: int) -> None:
        """Reconnects a host to the network."""
        _run("ip", "link", "set", self._link(number), "up")

    def _end(self, namespace: str, server: Process) -> None:
        # A session whose client was disconnected continues after the end of sshd: kill all processes of the namespace.
        listed = subprocess.run(["ip", "netns", "pids", namespace], check=True, capture_output=True, text=True)
        for pid in map(int, listed.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        server.ends()

    def _namespace(self, number: int) -> str:
        return f"{self._tag}-{number}"

    def _link(self, number: int) -> str:
        return f"{self._tag}-{number}"


@contextmanager
def ssh_hosts(folder: Path, count: int) -> Iterator[SshHosts]:
    """Context manager for hosts."""
    with ExitStack() as stack:
        yield SshHosts(folder, count, stack)
