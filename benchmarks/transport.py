"""Measures channels: what a round trip takes, and how many bytes a second go through, for each kind.

    python benchmarks/transport.py [KIND ...]

Another process echoes frames. A round trip is a frame of five small tensors there and back, like a step of a small
model; bytes a second are counted one way, for frames of one tensor that the other process sends back. Prints medians of
several rounds, in which the kinds alternate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from headwater.cluster.addresses import Address
from headwater.cluster.transport import frames
from headwater.cluster.transport.certificates import make_certificates
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.security import Security

ECHO = PeerIdentity(task="/job:ps/task:0", generation=1)
ME = PeerIdentity(task="/job:worker/task:0", generation=2)
SMALL = Frame(
    1,
    (7, 812, "session"),
    [
        np.zeros((2, 2), np.float32),
        np.zeros((), np.float32),
        np.zeros(10, np.float32),
        np.zeros((4, 4), np.float32),
        np.array(3, np.int64),
    ],
)
ROUNDS = 7
SIZES = (64 << 10, 1 << 20, 100 << 20)


def echo(channel: Channel) -> None:
    """Sends every frame back until the other end closes."""
    while True:
        channel.send(channel.recv())


def serve(options: TransportOptions, security: Security) -> None:
    """The other process: a task with nothing behind it."""
    # gRPC must not be imported before the fork.
    import signal

    from headwater.cluster.transport.control_server import ControlServer
    from headwater.cluster.transport.listener import Listener
    from headwater.cluster.transport.workplace import Workplace

    workplace = Workplace()
    path = str(workplace.path / "control")
    listener = Listener(
        Address("127.0.0.1", 0),
        me=ECHO,
        security=security,
        on_channel=echo,
        options=options,
        workplace=workplace,
        control_path=path,
    )
    nothing: Any = None
    control = ControlServer(
        path,
        me=ECHO,
        security=security,
        task=nothing,
        master=None,
        on_channel=echo,
        options=options,
        on_trusted=listener.trust,
    )
    control.start()
    listener.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        sys.stdout.write(f"{listener.address.port}\n")
        sys.stdout.flush()
        signal.pause()
    finally:
        listener.stop()
        control.stop(0)
        workplace.close()


@contextmanager
def served(options: TransportOptions, security: Security) -> Iterator[Address]:
    """A task in another process, and where it is."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writing, 1)
        try:
            serve(options, security)
        except Exception:  # noqa: BLE001 - this process ends here, and says why
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading) as stream:
            yield Address("127.0.0.1", int(stream.readline()))
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)


@contextmanager
def socket_channel(*, local: bool, security: Security) -> Iterator[Channel]:
    """A channel as tasks open it."""
    options = TransportOptions(local_sockets=local)
    with served(options, security) as address:
        channel = connect(address, me=ME, wanted=ECHO, security=security, options=options)
        yield channel
        channel.close()


@contextmanager
def grpc_channel() -> Iterator[Channel]:
    """A channel inside gRPC."""
    with served(TransportOptions(), Security()) as address:
        from headwater.cluster.transport.control_client import ControlClient

        client = ControlClient(address, peer=ECHO.task, security=Security())
        channel = client.open_channel(me=ME, wanted=ECHO, options=TransportOptions())
        yield channel
        channel.close()
        client.close()


@contextmanager
def tls_channel() -> Iterator[Channel]:
    """A channel over TLS, certificates of both ends checked."""
    with TemporaryDirectory() as directory:
        security = Security.from_environment(make_certificates(Path(directory), []).environment())
        with socket_channel(local=False, security=security) as channel:
            yield channel


KINDS: dict[str, Callable[[], AbstractContextManager[Channel]]] = {
    "tcp": lambda: socket_channel(local=False, security=Security()),
    "shared": lambda: socket_channel(local=True, security=Security()),
    "tls": tls_channel,
    "grpc": grpc_channel,
}


def seconds_per(action: Callable[[], object], at_least_s: float) -> float:
    """What ``action`` takes, in seconds, over as many runs as fit."""
    action()
    runs, began = 0, time.perf_counter()
    while time.perf_counter() - began < at_least_s:
        action()
        runs += 1
    return (time.perf_counter() - began) / runs


def measure(channel: Channel) -> list[float]:
    """A round trip in microseconds, then MB/s one way for each of `SIZES`."""

    def exchange(frame: Frame) -> None:
        channel.send(frame)
        channel.recv()

    found = [seconds_per(lambda: exchange(SMALL), 0.3) * 1e6]
    for size in SIZES:
        large = Frame(1, (), [np.ones(size // 4, np.float32)])
        found.append(2 * size / seconds_per(lambda large=large: exchange(large), 0.3) / 1e6)
    return found


def measure_codec() -> tuple[float, float]:
    """Microseconds to encode and to decode the small frame, and to take it through a channel in this process."""
    encoded = frames.encode(SMALL)
    wire = b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])

    def there_and_back() -> None:
        made = frames.encode(SMALL)
        b"".join([made.prefix(), made.header, made.layout, *made.body])
        frames.decode(wire)

    first, second = memory_pair()

    def through_memory() -> None:
        first.send(SMALL)
        second.recv()

    return seconds_per(there_and_back, 0.5) * 1e6, seconds_per(through_memory, 0.5) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures channels.")
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=f"some of {', '.join(KINDS)}")
    kinds = parser.parse_args().kinds
    codec, memory = measure_codec()
    print(f"five small tensors: {codec:.1f} µs to encode and decode, {memory:.1f} µs through memory")
    with ExitStack() as stack:
        channels = {kind: stack.enter_context(KINDS[kind]()) for kind in kinds}
        rounds = [{kind: measure(channel) for kind, channel in channels.items()} for _ in range(ROUNDS)]
    headings = ["channel", "round trip µs", *(f"{size >> 10} KiB MB/s" for size in SIZES)]
    print("  ".join(f"{heading:>16}" for heading in headings))
    for kind in kinds:
        medians = [statistics.median(values) for values in zip(*(found[kind] for found in rounds), strict=True)]
        print("  ".join([f"{kind:>16}", *(f"{value:>16.0f}" for value in medians)]))


if __name__ == "__main__":
    main()
