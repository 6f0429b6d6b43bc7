"""The network of a history: messages are delayed or lost; connections break; the network is partitioned.

Methods name the ends of a connection by the names of their processes. Messages on one connection arrive in order; on
different connections, in any order. As with TCP, messages that are sent during a partition arrive after it, unless the
connection is lost meanwhile. A process that ends closes its connections; the connections of a process that vanishes
with its machine stay open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from headwater.cluster.transport import frames
from headwater.cluster.transport.channel import (
    Channel,
    ChannelStatistics,
    closed_here,
    closed_there,
    receive_timeout_error,
)
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import OpError
from tests.simulation.primitives import Waiters
from tests.simulation.scheduler import Process, Simulation, running, simulation

#: TCP keepalive timeout: time without an answer until the kernel closes an idle connection, in seconds.
_KEEPALIVE_S = 11.0


class Breakable(Protocol):
    """A connection between two processes, which breaks when one of them ends, or by a fault of the network."""

    processes: tuple[Process, Process]

    def handle_break(self, process: Process, reason: str) -> None:
        """Notifies ``process`` that the connection is broken. A reason that begins with "Connection" is an abrupt reset
        or timeout: messages in transit are lost."""
        ...


class Listener(Protocol):
    """A process that accepts connections at an address."""

    process: Process
    me: PeerIdentity
    control_path: str

    @property
    def on_channel(self) -> Callable[[Channel], None]:
        """The function that is called with each new channel to this process."""
        ...


class Network:
    """All connections of a history.

    Args:
      simulation: the history.
      delay_s: mean latency of a message, in seconds.

    Attributes:
      message_s: processing time of a received frame on a process's core, in seconds.
    """

    def __init__(self, simulation: Simulation, delay_s: float = 0.001) -> None:
        self.simulation = simulation
        self.delay_s = delay_s
        self.message_s = 0.0
        self.listeners: dict[str, Listener] = {}
        self.servers: dict[str, Any] = {}
        self.connections: dict[Breakable, None] = {}
        self._interruptions: dict[tuple[str, str], int] = {}
        self._held: list[tuple[str, str, Callable[[], None]]] = []
        self._messages = 0
        self._due: list[tuple[int, Callable[[], None]]] = []

    # Faults -----------------------------------------------------------------------------------------------------------

    def interrupt(self, one: str, other: str, seconds: float, *, both: bool = True) -> None:
        """Interrupts the network from ``one`` to ``other`` for some seconds; with ``both``, in both directions."""
        ways = [(one, other), (other, one)] if both else [(one, other)]
        self.simulation.note(f"{' and '.join(f'{a} -> {b}' for a, b in ways)} is interrupted for {seconds:.2f} s")
        for way in ways:
            self._interruptions[way] = self._interruptions.get(way, 0) + 1

        def heal() -> None:
            for way in ways:
                self._interruptions[way] -= 1
            held, self._held = self._held, []
            for source, target, then in held:
                self.send(source, target, then)

        self.simulation.after(seconds, heal)
        if seconds > _KEEPALIVE_S:
            self.simulation.after(
                _KEEPALIVE_S, lambda: self._time_out(lambda connection: _between(connection, one, other))
            )

    def is_interrupted(self, source: str, target: str) -> bool:
        """Returns whether the network from ``source`` to ``target`` is interrupted now."""
        return self._interruptions.get((source, target), 0) > 0

    def lose(self, one: str, other: str) -> None:
        """Breaks all connections between two processes; messages in transit are lost."""
        self.simulation.note(f"connections between {one} and {other} are lost")
        for connection in list(self.connections):
            if _between(connection, one, other):
                del self.connections[connection]
                for process in connection.processes:
                    self._notify(connection, process, "Connection reset by peer")

    def handle_end(self, process: Process, *, silently: bool = False) -> None:
        """Closes the connections of a process that has ended, unless it vanished with its machine."""
        for address in [address for address, listener in self.listeners.items() if listener.process is process]:
            del self.listeners[address]
        for connection in list(self.connections):
            if process in connection.processes and not silently:
                del self.connections[connection]
                other = connection.processes[connection.processes[0] is process]
                self.send(
                    process.name,
                    other.name,
                    lambda connection=connection, other=other: connection.handle_break(
                        other, "the other end closed it"
                    ),
                )

        if silently:
            self.simulation.after(
                _KEEPALIVE_S, lambda: self._time_out(lambda connection: process in connection.processes)
            )

    def _time_out(self, silent: Callable[[Breakable], bool]) -> None:
        """Breaks idle connections for which ``silent`` is true, as TCP keepalive does at both ends."""
        for connection in [
            connection
            for connection in self.connections
            if isinstance(connection, _Link) and connection.idle() and silent(connection)
        ]:
            del self.connections[connection]
            for process in connection.processes:
                connection.handle_break(process, "Connection timed out")

    def handle_start(self, process: Process) -> None:
        """Breaks connections to vanished previous incarnations of a process that has started."""
        for connection in list(self.connections):
            mine = [its for its in connection.processes if its.name == process.name and its.dead]
            if mine:
                del self.connections[connection]
                other = connection.processes[connection.processes[0] is mine[0]]
                self.send(
                    process.name,
                    other.name,
                    lambda connection=connection, other=other: connection.handle_break(
                        other, "Connection reset by peer"
                    ),
                )

    # Messages ---------------------------------------------------------------------------------------------------------

    def delay(self) -> float:
        """Draws the latency of a message, in seconds."""
        chance = self.simulation.random
        # One of 100 messages is much slower than the others, so that messages on different connections overtake it.
        return chance.expovariate(1.0 / self.delay_s) * (30.0 if chance.random() < 0.01 else 1.0)

    def after_messages(self, count: int, call: Callable[[], None]) -> None:
        """Schedules ``call`` after a number of further messages."""
        self._due.append((self._messages + count, call))

    def send(self, source: str, target: str, then: Callable[[], None], at: float = 0.0) -> float:
        """Schedules ``then`` at the arrival of a message, not before ``at``; returns the time of arrival."""
        self._messages += 1
        for due in [due for due in self._due if due[0] <= self._messages]:
            self._due.remove(due)
            self.simulation.after(0.0, due[1])
        if self.is_interrupted(source, target):
            self._held.append((source, target, then))
            return at
        when = max(at, self.simulation.now + self.delay())

        def arrives() -> None:
            # The interruption may have begun while the message was in transit.
            if self.is_interrupted(source, target):
                self._held.append((source, target, then))
            else:
                then()

        self.simulation.at(when, arrives)
        return when

    def _notify(self, connection: Breakable, process: Process, reason: str) -> None:
        self.simulation.after(self.delay(), lambda: connection.handle_break(process, reason))

    def connect(self, address: str, me: Process, wanted: PeerIdentity, timeout_s: float) -> Listener:
        """Connects to an address; returns the process that listens there.

        Raises:
          ConnectFailure: the connection fails.
        """
        simulation = self.simulation
        name = address.partition(":")[0]
        begun = simulation.now
        waiting = simulation.current
        arrived: list[Listener | None] = []

        def there() -> None:
            listener = self.listeners.get(address)
            self.send(name, me.name, lambda: back(listener))

        def back(listener: Listener | None) -> None:
            arrived.append(listener)
            simulation.wake(waiting)

        self.send(me.name, name, there)
        while not arrived:
            left = begun + timeout_s - simulation.now
            if not simulation.wait(f"a connection to {address}", left) and not arrived:
                raise ConnectFailure(Problem.NO_ANSWER, "no answer")
        listener = arrived[0]
        if listener is None:
            raise ConnectFailure(Problem.REFUSED, "connection refused")
        while listener.process.stopped:
            left = begun + timeout_s - simulation.now
            if left <= 0:
                raise ConnectFailure(Problem.SILENT, "connected, but got no answer")
            simulation.wait(f"a greeting of {address}", min(left, 0.1))
        if listener.process.dead:
            raise ConnectFailure(Problem.CLOSED, "the connection was closed")
        if wanted.task and wanted.task != listener.me.task:
            raise ConnectFailure(Problem.OTHER_TASK, f"it is {listener.me.task}")
        if wanted.generation and wanted.generation != listener.me.generation:
            raise ConnectFailure(Problem.GENERATION, f"it is of generation {listener.me.generation:x}")
        return listener

    def channel(self, address: str, me: PeerIdentity, wanted: PeerIdentity, timeout_s: float) -> Channel:
        """Opens a channel to the task at an address.

        Raises:
          ConnectFailure: the connection fails.
        """
        mine = self.simulation.current.process
        listener = self.connect(address, mine, wanted, timeout_s)
        link = _Link(self, mine, listener.process)
        ours = SimulatedChannel(link, 0, f"{listener.me.task} ({address})", listener.me.generation)
        theirs = SimulatedChannel(link, 1, f"{me.task} ({mine.name})", me.generation)
        link.ends = (ours, theirs)
        self.connections[link] = None

        def serve() -> None:
            try:
                listener.on_channel(theirs)
            except OpError:
                pass
            finally:
                theirs.close()

        self.simulation.thread(listener.process, f"channel of {me.task}", serve).start()
        return ours


def _between(connection: Breakable, one: str, other: str) -> bool:
    return {process.name for process in connection.processes} == {one, other}


class _Link:
    """A connection that carries frames."""

    def __init__(self, network: Network, client: Process, server: Process) -> None:
        self.network = network
        self.processes = (client, server)
        self.ends: tuple[SimulatedChannel, SimulatedChannel]
        self._last = [0.0, 0.0]  # in each direction, the arrival time of the latest message
        self._transit: tuple[deque[bytes | None], deque[bytes | None]] = (deque(), deque())

    def idle(self) -> bool:
        """Returns whether no message is in transit."""
        return not any(self._transit)

    def put(self, end: int, data: bytes | None) -> None:
        """Sends data from an end; None closes the connection in that direction."""
        target = 1 - end
        self._transit[target].append(data)

        def arrives() -> None:
            if self._transit[target]:
                self.ends[target].receive(self._transit[target].popleft())

        # Deliver not before the previous message in this direction, as TCP delivers in order.
        source, there = self.processes[end].name, self.processes[target].name
        self._last[target] = self.network.send(source, there, arrives, self._last[target])

    def handle_break(self, process: Process, reason: str) -> None:
        end = self.processes.index(process)
        if reason.startswith("Connection"):
            self._transit[end].clear()
            self.ends[end].reset(reason)
            return
        while self._transit[end]:  # data sent before the close arrive before it
            self.ends[end].receive(self._transit[end].popleft())
        self.ends[end].receive(None)


class SimulatedChannel:
    """An end of a channel; see `headwater.cluster.transport.channel.Channel`."""

    def __init__(self, link: _Link, end: int, peer: str, peer_generation: int) -> None:
        self.peer = peer
        self.peer_generation = peer_generation
        self.closed = False
        self._link = link
        self._end = end
        self._reason = ""
        self._gone = ""
        self._lost = False
        self._incoming: deque[bytes] = deque()
        self._waiters = Waiters()
        self._sent = [0, 0]
        self._received = [0, 0]

    def send(self, frame: Frame) -> None:
        running().pause()
        if self.closed:
            raise closed_here(self.peer, self._reason)
        encoded = frames.encode(frame)
        if self._gone:
            self.close()
            raise closed_there(self.peer, self._gone)
        data = b"".join([encoded.prefix(), encoded.header, encoded.layout, *encoded.body])
        self._sent[0] += 1
        self._sent[1] += len(data)
        self._link.put(self._end, data)
        running().pause()

    def recv(self, timeout_s: float | None = None) -> Frame:
        simulation = running()
        simulation.pause()
        end = None if timeout_s is None else simulation.now + timeout_s
        while True:
            if self.closed:
                raise closed_here(self.peer, self._reason)
            if self._incoming:
                break
            if self._gone:
                self.close()
                raise closed_there(self.peer, self._gone)
            left = None if end is None else end - simulation.now
            if left is not None and left <= 0:
                raise receive_timeout_error(self.peer, timeout_s or 0.0)
            self._waiters.wait(f"a frame of {self.peer}", left)
        data = self._incoming.popleft()
        # The threads of a process share one core: this frame waits until the core has processed earlier ones.
        if cost := self._link.network.message_s:
            process = simulation.current.process
            process.free_at = max(simulation.now, process.free_at) + cost
            simulation.sleep(process.free_at - simulation.now)
        self._received[0] += 1
        self._received[1] += len(data)
        return frames.decode(data, max_payload_bytes=frames.DEFAULT_MAX_PAYLOAD_BYTES)

    def sends_at_once(self, payload_bytes: int) -> bool:
        del payload_bytes
        # Frames of histories are small, so draw the answer: otherwise the code for large frames would never run.
        return running().random.random() >= 0.05

    def peer_gone(self) -> bool:
        return bool(self._gone) or self.closed

    def close(self) -> None:
        now = simulation()  # None in a thread that outlives a history and closes its channels
        if not self.closed and now is not None and now.is_alive():
            self.closed = True
            self._link.network.connections.pop(self._link, None)
            self._link.put(self._end, None)
            self._waiters.wake(len(self._waiters))

    def break_off(self, reason: str) -> None:
        if not self.closed:
            self._reason = reason
            self.close()

    def statistics(self) -> ChannelStatistics:
        return ChannelStatistics(
            frames_sent=self._sent[0],
            bytes_sent=self._sent[1],
            frames_received=self._received[0],
            bytes_received=self._received[1],
        )

    def receive(self, data: bytes | None) -> None:
        """Receives data from the other end; None when it has closed the connection."""
        if data is None:
            self._gone = self._gone or "the other end closed it"
        elif not self.closed and not self._lost:
            self._incoming.append(data)
        self._waiters.wake(len(self._waiters))

    def reset(self, reason: str) -> None:
        """Breaks the connection; data that have arrived but were not received yet are lost."""
        self._gone, self._lost = reason, True
        self._incoming.clear()
        self._waiters.wake(len(self._waiters))
