"""A task with nothing behind it: echoes frames, answers the control plane, prints its port, ends with its stdin."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping, Sequence

from headwater.cluster.addresses import Address
from headwater.transport.channel import Channel
from headwater.transport.control_server import ControlServer
from headwater.transport.handlers import DeviceInfo
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.listener import Listener
from headwater.transport.options import TransportOptions
from headwater.transport.security import Security
from headwater.transport.workplace import Workplace

ME = Identity(task="/job:ps/task:0", generation=new_generation())


class Nothing:
    def status_details(self) -> Mapping[str, bytes]:
        return {}

    def list_devices(self) -> Sequence[DeviceInfo]:
        return []

    def add_plan(self, session: str, number: int, plan: bytes, owner: tuple[str, int]) -> None: ...

    def release(self, session: str) -> None: ...

    def cancel_step(self, session: str, step: int, reason: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...

    def shutdown(self, reason: str) -> None: ...


def echo(channel: Channel) -> None:
    while True:
        channel.send(channel.recv())


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
            path, me=ME, security=listener.security, task=Nothing(), master=None, on_channel=echo,
            options=TransportOptions(), on_trusted=listener.trust,
        )  # fmt: skip
        control.start()
        listener.start()
        print(listener.address.port, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
