"""A task without a service: echoes frames, answers the control plane, prints its port, ends with its standard input.

A frame of kind `BUSY` names work to do first, during which no other thread gets the interpreter lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
from collections.abc import Collection, Mapping, Sequence

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.control_server import ControlServer
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.cluster.transport.handshake import PeerIdentity, new_generation
from headwater.cluster.transport.listener import Listener
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.workplace import Workplace

ME = PeerIdentity(task="/job:ps/task:0", generation=new_generation())


class Nothing:
    def status_details(self) -> Mapping[str, bytes]:
        return {}

    def list_devices(self) -> Sequence[DeviceInfo]:
        return []

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None: ...

    def release(self, session: str) -> None: ...

    def cancel_step(self, session: str, step: int, reason: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        raise NotImplementedError

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str]) -> None: ...


BUSY = 9


def hold(seconds: int) -> None:
    """Waits in a native function that keeps the lock."""
    ctypes.PyDLL(None).sleep(seconds)


def copy(times: int) -> None:
    """Copies half a GiB ``times`` times."""
    block = bytearray(1 << 29)
    for _ in range(times):
        bytes(block)


def compute(exponent: int) -> None:
    """Computes a long number, and discards it."""
    pow(3, exponent)


WORK = {"hold": hold, "copy": copy, "compute": compute}


def echo(channel: Channel) -> None:
    while True:
        frame = channel.recv()
        if frame.kind == BUSY:
            what, amount = frame.header
            WORK[what](amount)
        channel.send(frame)


def main() -> None:
    security = Security.from_environment()
    with contextlib.closing(Workplace()) as workplace:
        path = str(workplace.path / "control")
        listener = Listener(
            Address("127.0.0.1", 0),
            me=ME,
            security=security,
            on_channel=echo,
            options=TransportOptions(),
            workplace=workplace,
            control_path=path,
        )
        control = ControlServer(
            path,
            me=ME,
            security=listener.security,
            task=Nothing(),
            master=None,
            on_channel=echo,
            options=TransportOptions(),
            on_trusted=listener.trust,
        )
        control.start()
        listener.start()
        print(listener.address.port, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
