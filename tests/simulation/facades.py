"""Runs Headwater on simulated threads, clocks, random numbers and networks.

`install` patches Headwater's modules once per process: it replaces ``threading``, ``time`` and similar modules by
facades that decide at each call: a thread of a simulation gets the simulated object, and any other thread gets the real
object. Of Headwater's own code only the interfaces to the outside are replaced: sockets, gRPC's server and channel, the
helper process that sends a task's heartbeats, and settings of the whole process.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import os
import pkgutil
import queue
import random
import secrets
import select
import socket
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from headwater.cluster.addresses import Address
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.heartbeat_process import ALIVE, BEAT_S, STOPPED
from tests.simulation import control, primitives
from tests.simulation.network import Network
from tests.simulation.scheduler import Process, running, simulation

#: The time of day when a history begins, in seconds since 1970.
EPOCH_S = 1_700_000_000.0

_PACKAGES = (
    "headwater.cluster", "headwater.keras.collectives", "headwater.keras.coordinator", "headwater.data.io",
    "headwater.graph.master",
    "headwater.ps", "headwater.graph.resources", "headwater.graph.runtime", "headwater.graph.server",
    "headwater.graph.session",
    "headwater.cluster.task", "headwater.cluster.telemetry", "headwater.tf1.training", "headwater.cluster.transport",
)  # fmt: skip


class _Facade(types.ModuleType):
    """A module in which some names refer to simulated objects in threads of a simulation."""

    def __init__(self, real: types.ModuleType, names: dict[str, Any]) -> None:
        super().__init__(real.__name__)
        self._real = real
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _either(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real, updated=())
    def choose(*args: Any, **kwargs: Any) -> Any:
        return (real if simulation() is None else simulated)(*args, **kwargs)

    return choose


def _classes(simulated: Any, real: Any) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        return (real if simulation() is None else simulated)(*args, **kwargs)

    make.__name__ = real.__name__
    return make


class _Locals:
    """Replaces an instance of `threading.local`: each thread of a simulation has its own values."""

    def __init__(self, real: threading.local) -> None:
        object.__setattr__(self, "_real", real)

    def _mine(self) -> Any:
        real = object.__getattribute__(self, "_real")
        found = simulation()
        if found is None:
            return real
        mine = found.current.locals
        if self not in mine:
            mine[self] = type(real)()
        return mine[self]

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_mine")(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_mine")(), name, value)


def _now() -> float:
    return running().now


def _time_of_day() -> float:
    return EPOCH_S + running().now


def _chance() -> random.Random:
    return running().random


_threading = _Facade(
    threading,
    {
        "Thread": _classes(primitives.Thread, threading.Thread),
        "Lock": _classes(primitives.Lock, threading.Lock),
        "RLock": _classes(primitives.RLock, threading.RLock),
        "Condition": _classes(primitives.Condition, threading.Condition),
        "Event": _classes(primitives.Event, threading.Event),
        "Semaphore": _classes(primitives.Semaphore, threading.Semaphore),
        "current_thread": _either(primitives.current_thread, threading.current_thread),
        "main_thread": _either(primitives.MainThread, threading.main_thread),
    },
)
_monotonic = _either(_now, time.monotonic)
_time = _Facade(
    time,
    {
        "monotonic": _monotonic,
        "perf_counter": _either(_now, time.perf_counter),
        "time": _either(_time_of_day, time.time),
        "sleep": _either(lambda seconds: primitives.Event().wait(seconds), time.sleep),  # noqa: TID251
    },
)
_wall = _time.time
_secrets = _Facade(
    secrets,
    {
        "token_hex": _either(lambda n=32: _chance().randbytes(n).hex(), secrets.token_hex),
        "token_bytes": _either(lambda n=32: _chance().randbytes(n), secrets.token_bytes),
        "randbits": _either(lambda k: _chance().getrandbits(k), secrets.randbits),
        "choice": _either(lambda values: _chance().choice(values), secrets.choice),
        "randbelow": _either(lambda k: _chance().randrange(k), secrets.randbelow),
    },
)
_uuid = _Facade(uuid, {"uuid4": _either(lambda: uuid.UUID(bytes=_chance().randbytes(16)), uuid.uuid4)})
_random = _Facade(
    random,
    {
        "random": _either(lambda: _chance().random(), random.random),
        "randint": _either(lambda a, b: _chance().randint(a, b), random.randint),
    },
)


def _register(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    at_exit(running().current.process).append((call, args, kwargs))
    return call


def _unregister(call: Callable[..., Any]) -> None:
    calls = at_exit(running().current.process)
    calls[:] = [item for item in calls if item[0] != call]


def at_exit(process: Process) -> list[Any]:
    """Returns the functions that a process calls when it ends by itself."""
    return process.__dict__.setdefault("at_exit", [])


_atexit = _Facade(
    atexit,
    {"register": _either(_register, atexit.register), "unregister": _either(_unregister, atexit.unregister)},
)
_queue = _classes(primitives.Queue, queue.SimpleQueue)
_BY_VALUE: list[tuple[Any, Any]] = [
    (threading, _threading),
    (time, _time),
    (secrets, _secrets),
    (uuid, _uuid),
    (random, _random),
    (atexit, _atexit),
    (queue.SimpleQueue, _queue),
    (time.monotonic, _monotonic),
    (time.time, _wall),
]


def network() -> Network:
    """The network of the history that the calling thread is part of."""
    found: Network = vars(running())["network"]
    return found


class _Listener:
    """Replaces `headwater.cluster.transport.listener.Listener`."""

    def __init__(
        self,
        address: Address,
        *,
        me: PeerIdentity,
        security: Any,
        on_channel: Callable[[Channel], None],
        options: Any,
        workplace: Any,
        control_path: str,
    ) -> None:
        del options, workplace
        self.process = running().current.process
        self.address = address
        self.me = me
        self.security = security
        self.on_channel = self._serve
        self.control_path = control_path
        self._on_channel = on_channel
        self._channels: dict[Channel, None] = {}

    def _serve(self, channel: Channel) -> None:
        self._channels[channel] = None
        try:
            self._on_channel(channel)
        finally:
            self._channels.pop(channel, None)

    def start(self) -> None:
        network().listeners[str(self.address)] = self

    def stop(self) -> None:
        network().listeners.pop(str(self.address), None)
        for channel in list(self._channels):
            channel.close()

    def trust(self, caller: str) -> None:
        del caller

    def channels(self) -> list[Channel]:
        return list(self._channels)

    def statistics(self) -> Any:
        return types.SimpleNamespace(channels=len(self._channels))


class _Workplace:
    """Replaces `headwater.cluster.transport.workplace.Workplace`."""

    def __init__(self) -> None:
        self.path = Path(f"/simulated/{running().next_number()}")

    def close(self) -> None:
        return


def _connect(
    address: Address, *, me: PeerIdentity, wanted: PeerIdentity, security: Any, options: Any, timeout_s: float = 5.0
) -> Channel:
    del security, options
    return network().channel(str(address), me, wanted, timeout_s)


def _connect_lifeline(
    address: Address, *, me: PeerIdentity, wanted: PeerIdentity, security: Any, timeout_s: float
) -> control.HeartbeatSocket:
    del me, security
    listener = network().connect(str(address), running().current.process, wanted, timeout_s)
    return control.HeartbeatSocket(network(), listener.process, ALIVE, STOPPED, BEAT_S)


def _listens_here(address: Address) -> bool:
    listener = network().listeners.get(str(address))
    return listener is not None and listener.process is running().current.process


def _open_grpc(address: Address, security: Any, pings: Any) -> control.SimulatedGrpcChannel:
    del security, pings
    return control.SimulatedGrpcChannel(network(), str(address))


def _process_name(real: str) -> str:
    """Returns a name for the running process, in place of a random constant of a module.

    All simulated processes share the module, and would otherwise have the same name.
    """
    return real if simulation() is None else f"{real} {running().current.process}"


@functools.cache
def _shared(real: threading.local) -> _Locals:
    """Returns the same replacement for all modules that refer to ``real``."""
    return _Locals(real)


def _nothing(*args: Any, **kwargs: Any) -> None:
    del args, kwargs


def _replace_outside() -> None:
    """Replaces the interfaces to the outside."""

    def put(module: str, name: str, simulated: Any) -> None:
        found = sys.modules[f"headwater.{module}"]
        setattr(found, name, _either(simulated, getattr(found, name)))

    client: Any = sys.modules["headwater.ps.client"]
    greet = client.ParameterClient._greet

    def greet_here(self: Any, *arguments: Any) -> Any:
        if simulation() is not None:
            client._STARTED = EPOCH_S + running().current.process.began
        return greet(self, *arguments)

    client.ParameterClient._greet = greet_here
    put("cluster.task.shell", "Listener", _Listener)
    put("cluster.task.shell", "Workplace", _Workplace)
    put("cluster.transport.links", "connect", _connect)
    put("cluster.transport.lifeline", "connect_lifeline", _connect_lifeline)
    put("cluster.transport.control_client", "listens_here", _listens_here)
    put("cluster.transport.control_client", "_open", _open_grpc)
    put("graph.server.task_server", "use_cpu_only", _nothing)
    put("graph.server.task_server", "share_machine_with_tasks", _nothing)
    put("graph.server.task_server", "configure", _nothing)
    modules: Any = sys.modules
    manager = modules["headwater.tf1.training.session_manager"]
    decide, seal = manager.decide, manager.Seal

    def decide_here(found: Any, *, process: str, **arguments: Any) -> Any:
        return decide(found, process=_process_name(process), **arguments)

    def seal_here(*, process: str, **arguments: Any) -> Any:
        return seal(process=_process_name(process), **arguments)

    manager.decide, manager.Seal = decide_here, seal_here
    modules["headwater.cluster.transport.lifeline"].select = _Facade(
        select, {"poll": _either(control.Poll, select.poll)}
    )
    modules["headwater.cluster.transport.lifeline"].socket = _Facade(
        socket, {"socketpair": _either(control.socketpair, socket.socketpair)}
    )
    server = modules["headwater.cluster.transport.control_server"]
    server.grpc = _Facade(
        grpc,
        {"server": _either(lambda *args, **kwargs: control.SimulatedGrpcServer(network()), grpc.server)},
    )
    server.os = _Facade(os, {"chmod": _either(_nothing, os.chmod)})


@functools.cache
def install() -> None:
    """Patches Headwater in this process to run on the simulation."""
    os.environ.setdefault("HEADWATER_TOKEN", "of a simulation")
    for package in _PACKAGES:
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not found.name.endswith(("heartbeat_process", "__main__")):
                importlib.import_module(found.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("headwater"):
            for key, value in list(vars(module).items()):
                for real, facade in _BY_VALUE:
                    if value is real:
                        setattr(module, key, facade)
                if isinstance(value, threading.local):
                    setattr(module, key, _shared(value))
    # Default arguments were evaluated at import, so they still refer to the real clocks.
    for function in gc.get_objects():
        if isinstance(function, types.FunctionType) and (function.__module__ or "").startswith("headwater"):
            _replace_clock_defaults(function)
    _replace_outside()


def _replace_clock_defaults(function: types.FunctionType) -> None:
    """Replaces defaults of arguments that are real clocks."""

    def replacement(value: Any) -> Any:
        return next((facade for real, facade in _BY_VALUE if value is real), value)

    if function.__defaults__:
        function.__defaults__ = tuple(replacement(value) for value in function.__defaults__)
    if function.__kwdefaults__:
        function.__kwdefaults__ = {key: replacement(value) for key, value in function.__kwdefaults__.items()}
