"""A process as a task of a cluster of parameter servers.

Every task runs the same program. So each task computes the layout and creates the optimizer itself, and tasks never
send code to each other. On a ``ps`` the program serves parameters; on a worker it gets a `ParameterClient`.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import jax

from headwater.cluster.names import TaskName
from headwater.cluster.task.agreement import Said
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.deposited_states import DepositedStates, StateAtChief
from headwater.cluster.task.kinds import OPEN_TABLES
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.task.members import Members
from headwater.cluster.task.service import Service
from headwater.cluster.task.shell import TaskShell
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.cluster.variables import JOINED
from headwater.errors import FailedPreconditionError, OpError
from headwater.ps.arrivals import Arrival
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency
from headwater.ps.host import HostedParameters
from headwater.ps.layout import Layout
from headwater.ps.local_servers import MakeUpdater
from headwater.ps.protocol import TABLES
from headwater.ps.replicas.holder import CopyHolder, HostedReplica
from headwater.ps.replicas.links import EitherLink
from headwater.ps.replicas.processes import KnownServers
from headwater.ps.replicas.recorded import RecordedUpdater
from headwater.ps.replicas.shard import ShardCopy, shard_name
from headwater.ps.round_sums import RoundSums, Squares
from headwater.ps.service import ParameterService
from headwater.ps.shards.directory import Directory
from headwater.ps.shards.limits import first_servers
from headwater.ps.shards.links import ShardLink
from headwater.ps.shards.moves import Moved, balance_shards
from headwater.ps.shards.places import Places
from headwater.ps.shards.rebalancing import UNEVEN, Rebalancing
from headwater.ps.state_deposits import StateDeposit
from headwater.ps.state_saver import ParameterSaver
from headwater.ps.updater import Updater
from headwater.state.replica_deposits import ReplicaDeposits
from headwater.state.sites import FixedProcesses, Site
from headwater.state.state_saver import Saves
from headwater.state.witness import RemoteWitness, RequestView, WitnessService

if TYPE_CHECKING:
    from headwater.ps.replicas.tables import CopiesOfTables, TablesCopy
    from headwater.ps.tables.host import TableService

_jax: Any = jax
_log = logging.getLogger("headwater")

#: How long a worker's task may take to answer a check that it is alive, in seconds.
ANSWER_TIMEOUT_S = 2.0


class ParameterTask:
    """A task of a cluster of parameter servers.

    A ``ps`` does not use GPUs. A worker tells every ``ps`` when its program ends.

    Args:
      members: the cluster, and this process's place in it.

    Attributes:
      members: the cluster, and this process's place in it.
      shell: the task.
      saves: on a ``ps``, the folder and the interval with which it saves its own state; None if the ``ps`` does not
        save its state.
      table_service: on a ``ps``, the service of dynamic tables; None before the first call of `tables`.
      copies: on a ``ps``, if shards have two replicas that do not move: its replicas by name of the shard.
      copy_holders: on a ``ps``, if shards move: the holder of each set's replicas, by name of the set.

    Raises:
      AlreadyExistsError: another process holds the port; the message names it.
      PermissionDeniedError: other users could reach the task, and it has no authentication.
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self.saves: Saves | None = None
        self.table_service: TableService | CopiesOfTables | None = None
        self._table_counts = 1, 0  # number of replicas of each part of the tables, and number of parts
        #: The number of replicas of each shard, and the number of shards (None if shards do not move). The pair is None
        #: until the program has called `host` with two replicas or with shards that move.
        self._copies_config: tuple[int, int | None] | None = None
        self._known_servers: dict[str, KnownServers] = {}
        self._tables_lock = threading.Lock()
        self.copies: dict[str, ShardCopy] = {}
        self.copy_holders: dict[str, CopyHolder] = {}
        self._directories: dict[str, Directory] = {}
        self._deposits = DepositedStates()
        self._set_names = Counter[str]()
        self._rebalancing = Rebalancing(partial(self.balance_shards, by_rate=True, above=UNEVEN))
        # Set this before JAX is used, or a ps would reserve memory of GPUs that workers need.
        if members.is_server:
            _jax.config.update("jax_platforms", "cpu")
        self.shell: TaskShell = TaskShell(
            members.cluster, members.me, devices=self._devices, listens=not members.is_evaluator
        )
        self._service = ParameterService(str(members.me), self.shell.watchdog, is_needed=lambda: self.shell.is_needed)
        # Serve before any set exists, so that workers that connect early receive the reason of their wait.
        self.shell.add_service(self._service)
        if members.is_server:
            self.shell.add_service(_Tables(self))
            self._service.offer(TABLES, self._offer_tables)
        if members.is_chief:
            # Only one task may create views. The witness runs on the chief, because the job ends with the chief anyway.
            self.shell.add_service(WitnessService(self._deposits))
            self.shell.add_service(self._deposits)
        # Every ps waits until all workers have announced their departure. A program may end without calling `finish`,
        # so announce the end of the program as well.
        if not members.is_server:
            atexit.register(self.shell.announce_departure)
        self.shell.start()
        if members.is_server and len(members.servers) > 1:
            links = [self.shell.link(server) for server in members.servers if server != members.me]
            # Ask in a thread, as another ps may be started minutes later.
            threading.Thread(
                target=self._service.fetch_ended_workers, args=(links,), name="fetch-ended-workers", daemon=True
            ).start()

    def set_name(self, name: str) -> str:
        """Returns a name for the next set of this program: ``name``, with a number if an earlier set has that name."""
        self._set_names[name] += 1
        number = self._set_names[name]
        return name if number == 1 else f"{name} {number}"

    @property
    def has_sets(self) -> bool:
        """Whether this program has named a set."""
        return bool(self._set_names)

    def tables(self, replicas: int = 1, shards: int | None = None) -> TableService | CopiesOfTables:
        """Returns the service of the dynamic tables of this ``ps``; the first call creates it.

        Args:
          replicas: number of replicas of each part of the tables.
          shards: number of parts, which can move between ``ps``; None for one part on each ``ps``, which does not move.

        Raises:
          FailedPreconditionError: the tables were created with other numbers of replicas or shards.
        """
        # Only programs with dynamic tables need these modules.
        from headwater.ps.replicas.tables import CopiesOfTables  # noqa: PLC0415
        from headwater.ps.tables.saver import table_service  # noqa: PLC0415

        with self._tables_lock:
            parts = shards or len(self.members.servers)
            if self.table_service is None:
                self._table_counts = replicas, parts
                if replicas == 1 and shards is None:
                    storage = self._state_at_chief(TABLES, self.members.number)
                    self.table_service = table_service(self.members, self.saves, storage)
                else:
                    sites = self._sites() if shards is None else self._moving_sites(TABLES, shards, replicas)
                    copies = CopiesOfTables(sites, parts, moves=shards is not None)
                    self.table_service = copies
                    if shards is not None:
                        self._host_movable_copies(TABLES, copies.copies, replicas)
                    else:
                        self._host_copies(copies.copies, sites)
            if (replicas, parts) != self._table_counts:
                raise FailedPreconditionError(
                    f"{self.members.me} has tables with other numbers of replicas or shards: use the same numbers for "
                    "all models"
                )
            return self.table_service

    def _offer_tables(self) -> None:
        """Creates this task's replicas of tables; does nothing until the program has set their number."""
        if self._copies_config is not None:
            self.tables(*self._copies_config)

    def host(
        self,
        name: str,
        layout: Layout,
        make_updater: MakeUpdater,
        choice: Consistency,
        program: Said | None = None,
        *,
        staleness_aware: bool = False,
        log_dir: str | None = None,
        saves: Saves | None = None,
        replicas: int = 1,
        shards: int | None = None,
        squares: Callable[[int], Squares] | None = None,
    ) -> None:
        """Starts to serve this ``ps``'s part of the set ``name``.

        Args:
          name: the name of the set of parameters.
          layout: the placement of all blocks on all ``ps``.
          make_updater: creates the updater of a part, from its number.
          choice: the consistency between workers.
          program, staleness_aware, log_dir: see `HostedParameters`.
          saves: the folder and the interval of saves of this ``ps``'s own state. The ``ps`` first restores the state in
              that folder, if any; see `ParameterSaver`.
          replicas: number of replicas of each part. With 2, this ``ps`` also holds the backup of another part; see
            `headwater.ps.replicas`.
          shards: number of parts that can move between ``ps``; None for one part on each ``ps``, which does not move.
            See `headwater.ps.replicas.holder`.
          squares: creates the function that computes this ``ps``'s part of a sum over all ``ps``, from its number; see
            `headwater.ps.round_sums`. None if updates need no such sum.
        """
        index, servers = self.members.number, self.members.servers
        sums = None
        if squares is not None:
            other_servers = [(str(server), self.shell.link(server)) for server in servers if server != self.members.me]
            sums = RoundSums(name, str(self.members.me), other_servers, squares(index))

        def make(shard: int, part_name: str, updater: Updater) -> HostedParameters:
            return HostedParameters(
                part_name,
                str(self.members.me),
                shard,
                layout,
                updater,
                choice,
                program=program,
                staleness_aware=staleness_aware,
                log_dir=log_dir,
                round_sums=sums,
                answers=self._answers,
            )

        if replicas == 1 and shards is None:
            parameters = make(index, name, make_updater(index))
            if saves is not None:
                self.saves = saves
                saver = ParameterSaver(parameters, saves, index=index, tasks=len(servers))
                self._service.host(name, parameters, saver)
                saver.start()
            else:
                self._service.host(name, parameters, self._state_deposit(index, parameters))
            return

        def make_copy(shard: int, updater: RecordedUpdater | None) -> tuple[HostedParameters, RecordedUpdater]:
            updater = updater or RecordedUpdater(make_updater(shard))
            return make(shard, shard_name(name, shard), updater), updater

        # Set this before the replicas exist: another task may ask for one, and then `_offer_tables` needs the numbers.
        self._copies_config = replicas, shards
        expect = None if shards is None else self.shell.expect
        sites = self._sites() if shards is None else self._moving_sites(name, shards, replicas)
        copies = {
            shard: ShardCopy(name, shard, make=partial(make_copy, shard), site=site, expect=expect)
            for shard, site in sites.items()
        }
        if shards is not None:
            self._host_movable_copies(name, copies, replicas)
            return
        self.copies |= {copy.name: copy for copy in copies.values()}
        self._host_copies(copies, sites)

    def _host_copies(self, copies: Mapping[int, ShardCopy | TablesCopy], sites: Mapping[int, Site]) -> None:
        """Serves replicas that do not move: each shard stays on its initial pair of servers."""
        for shard, copy in copies.items():
            copy.request_placement(shard, sites[shard].initial[-1])
            self._service.host(copy.name, copy)

    def _state_deposit(self, number: int, parameters: HostedParameters) -> StateDeposit:
        """Returns the object that deposits a set's state with the chief when this ``ps`` shuts down."""
        return StateDeposit(parameters, str(self.members.me), self._state_at_chief(parameters.name, number))

    def _state_at_chief(self, what: str, number: int) -> StateAtChief:
        chief = self.members.workers[0]
        return StateAtChief(what, number, str(chief), self.shell.link(chief))

    def _answers(self, worker: str) -> bool:
        """Returns whether the task of a worker can be reached."""
        address = self.shell.present_cluster().get(worker)
        if address is None:
            return False
        try:
            self.shell.link(TaskName.parse(worker), address).reach(ANSWER_TIMEOUT_S)
        except OpError as error:
            _log.debug("%s does not answer: %s", worker, error.message)
            return False
        return True

    def _host_movable_copies(self, name: str, copies: Mapping[int, HostedReplica], replicas: int) -> None:
        """Serves replicas that may move between servers."""
        directory, servers = self._directory(name), self._servers_of(name)
        holder = CopyHolder(
            directory,
            servers,
            copies,
            replicas=replicas,
            task=str(self.members.me),
            address=self.shell.claim.address,
            end_with_job=self.shell.end_with_job,
            on_start=self._announce_tables if name != TABLES else lambda _: None,
        )
        self.copy_holders[name] = holder
        self._service.host(name, holder)
        threading.Thread(target=holder.join, name=f"join-{name}", daemon=True).start()

    def _announce_tables(self, server: str) -> None:
        """Tells a ``ps`` that has just started where the movable replicas of tables are.

        Without this message, that ``ps`` would not create its own replicas of tables.
        """
        if TABLES not in self.copy_holders:
            return
        directory = self._directory(TABLES)
        address = next((known.address(server) for known in self._directories.values() if server in known.servers()), "")
        directory.merge(Places(addresses={server: address}))

        def announce() -> None:
            with suppress(OpError):
                directory.exchange_places(server)

        threading.Thread(target=announce, name="announce-tables", daemon=True).start()

    def _servers_of(self, name: str) -> KnownServers:
        """Returns the ``ps`` that may hold replicas of a set's shards."""
        if name not in self._known_servers:
            self._known_servers[name] = KnownServers(self._directory(name))
        return self._known_servers[name]

    def _initial(self, shard: int, replicas: int) -> tuple[int, ...]:
        """Returns the numbers of the ``ps`` that hold a shard's replicas at the beginning, the primary first."""
        first = [task.index for task in self.members.servers[: first_servers(len(self.members.servers))]]
        home = first[shard % len(first)]
        return (home,) if replicas == 1 else (home, first[(shard + 1) % len(first)])

    def _witness_and_deposits(self) -> tuple[RequestView, ReplicaDeposits]:
        """Returns the function that requests views from the witness, and the access to the replicas that were deposited
        with the chief."""
        chief = self.members.workers[0]
        name, link = str(chief), self.shell.link(chief)
        return RemoteWitness(link, name).request_view, ReplicaDeposits(name, link)

    def _sites(self) -> dict[int, Site]:
        """Returns the sites of this ``ps``'s replicas, by shard."""
        index, servers = self.members.number, self.members.servers
        request_view, deposits = self._witness_and_deposits()
        sites: dict[int, Site] = {}
        # The shard of this ps, and the shard of the previous ps, for which this ps has the backup.
        for shard in (index, (index - 1) % len(servers)):
            pair = shard, (shard + 1) % len(servers)
            other = pair[1] if shard == index else shard
            route = str(servers[other]), self.shell.link(servers[other])
            processes = FixedProcesses(index, str(self.members.me), {other: route})
            sites[shard] = Site(
                ps=index, initial=pair, processes=processes, request_view=request_view, deposits=deposits
            )
        return sites

    def _moving_sites(self, name: str, shards: int, replicas: int) -> dict[int, Site]:
        """Returns the sites of this ``ps``'s replicas of movable shards; most of the replicas may be unused."""
        index, servers = self.members.me.index, self._servers_of(name)
        request_view, deposits = self._witness_and_deposits()
        return {
            shard: Site(
                ps=index,
                initial=self._initial(shard, replicas),
                processes=servers,
                request_view=request_view,
                deposits=deposits,
            )
            for shard in range(shards)
        }

    def _directory(self, name: str) -> Directory:
        """Returns the directory of a set: the ``ps`` that own its shards, as far as this task knows."""
        if name not in self._directories:
            members = self.members
            addresses = {str(task): members.cluster.task_address(task.job, task.index) for task in members.servers}
            for other in list(self._directories.values()):
                addresses |= {task: other.address(task) for task in other.servers()}
            self._directories[name] = Directory(
                name, str(members.me), addresses, lambda task, address: self.shell.link(TaskName.parse(task), address)
            )
        return self._directories[name]

    def balance_shards(self, servers: int | None = None, *, by_rate: bool = False, above: float = 0.0) -> list[Moved]:
        """Moves shards of all sets between ``ps``; see `headwater.ps.shards.moves.balance_shards`.

        Raises:
          FailedPreconditionError: no set has shards that move, or there are fewer than ``servers`` ``ps``.
          OpError: a move failed; the shards moved before it stay moved.
        """
        if not self._directories:
            raise FailedPreconditionError(
                "no parameters have shards that could move between ps: set shards=..., to a multiple of the largest "
                "number of ps"
            )
        return [
            moved
            for directory in self._directories.values()
            for moved in balance_shards(directory, servers=servers, by_rate=by_rate, above=above)
        ]

    def client(
        self,
        name: str,
        layout: Layout,
        choice: Consistency,
        initial: Sequence[Any],
        *,
        replicas: int = 1,
        shards: int | None = None,
        description: bytes | None = None,
    ) -> ParameterClient:
        """Returns a new client of the set ``name`` for this worker, not yet connected.

        Arguments as in `host`; for ``initial`` and ``description`` see `ParameterClient`.
        """
        members = self.members
        links = self.server_links(name, replicas, shards)
        # Rebalance on one task only, or several would move the same shards.
        if shards and members.is_chief:
            self._rebalancing.start()
        client = ParameterClient(
            name,
            worker=str(members.me),
            chief=members.is_chief,
            follows=members.is_evaluator,
            layout=layout,
            choice=choice,
            links=links,
            initial=initial,
            shard_names=[shard_name(name, shard) for shard in range(len(links))] if shards or replicas > 1 else None,
            reach_chief=None if members.is_chief else lambda: self.shell.link(members.workers[0]).reach(0.0),
            on_handshake=self.handshake_callback(name, replicas, shards),
            description=description,
        )
        if os.environ.get(JOINED):
            awaited_tasks = [*members.servers, members.workers[0]]
            sessions = client.conversation.sessions
            arrival = Arrival(
                members.me,
                [(task, self.shell.link(task)) for task in awaited_tasks],
                lambda: all(session.incarnation for session in sessions),
            )
            for _, link in links:
                link.check = arrival.check
        return self._service.use(client)

    def handshake_callback(
        self, name: str, replicas: int, shards: int | None = None
    ) -> Callable[[int, int], None] | None:
        """Returns the function that a client calls after a handshake with a ``ps``; see
        `DepositedStates.discard_outdated`.

        Its arguments are the number of the ``ps``, and the generation of its process. None if this task keeps no
        deposited state of the set ``name``, because it is not the chief, or because parts have two replicas or move. If
        parts have two replicas or move, the witness discards outdated state (`headwater.state.replica_deposits`).
        """
        if not self.members.is_chief or replicas > 1 or shards is not None:
            return None
        return partial(self._deposits.discard_outdated, name)

    def server_links(
        self, name: str, replicas: int, shards: int | None = None
    ) -> list[tuple[str, WaitingLink | EitherLink | ShardLink]]:
        """Returns the routes from a worker to the parts of a set, each with a name for messages.

        Args:
          name: the name of the set.
          replicas: number of replicas of each part.
          shards: number of shards that move; None if each ``ps`` has one fixed part.
        """
        if shards is not None:
            directory = self._directory(name)
            return [(f"the ps with shard {shard} of {name!r}", ShardLink(directory, shard)) for shard in range(shards)]
        servers = self.members.servers
        links = [self.shell.link(task) for task in servers]
        if replicas == 1:
            return [(str(task), link) for task, link in zip(servers, links, strict=True)]
        backups = [*links[1:], links[0]]
        return [
            (f"{task}, or its backup", EitherLink([link, backup]))
            for task, link, backup in zip(servers, links, backups, strict=True)
        ]

    def serve(self, make: Callable[[str, bytes], object] | None = None) -> NoReturn:
        """Serves as a ``ps`` until the job is over, then ends the process with code 0.

        Args:
          make: hosts a set that this program has not created, from its name and from a worker's description.

        Raises:
          SystemExit: the job is over.
        """
        self._service.refuse_other_sets(make)
        self.shell.wait_until_over()
        raise SystemExit(0)

    def _devices(self) -> Sequence[DeviceInfo]:
        prefix, local = self.members.me.device_prefix, _jax.local_devices()
        kinds = [str(device.platform).upper() for device in local]
        return [DeviceInfo(name=f"{prefix}/device:{kind}:{at}", type=kind) for at, kind in enumerate(kinds)]


class _Tables(Service):
    """Service of a ``ps``'s dynamic tables. It imports their modules only when a worker first opens a table."""

    kinds: ClassVar[Collection[int]] = (OPEN_TABLES,)

    def __init__(self, task: ParameterTask) -> None:
        self._task = task
        self._over = False

    def serve(self, channel: Channel, first: Frame) -> None:
        match first.header:
            case (int(), _):
                self._task.tables().serve(channel, first)
            case (int(), _, int(), None | int() as shards, int(replicas)):
                self._task.tables(replicas, shards).serve(channel, first)
            case _:
                raise bad_header(first, channel.peer)

    def job_over(self, reason: str) -> None:
        self._over = True

    def before_end(self, *, over: bool) -> None:
        if self._task.table_service is not None and not over:
            self._task.table_service.before_end()

    def close(self) -> None:
        if self._task.table_service is not None:
            self._task.table_service.close(over=self._over)

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        service = self._task.table_service
        return snapshot if service is None else replace(snapshot, tables=service.loads())


_tasks: dict[TaskName, ParameterTask] = {}
_lock = threading.Lock()


def process_task(members: Members) -> ParameterTask:
    """Returns the task of this process; the first call creates it."""
    with _lock:
        if members.me not in _tasks:
            _tasks[members.me] = ParameterTask(members)
        return _tasks[members.me]
