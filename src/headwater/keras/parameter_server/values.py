"""A model's variables on parameter servers: their placement, reads and assignments."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.cluster.task.agreement import encode_topics
from headwater.keras.combining.combination import keeps_train_step
from headwater.keras.embeddings.calls import find_tables
from headwater.keras.embeddings.inference import dynamic_layers
from headwater.keras.embeddings.small import worth_rows
from headwater.keras.embeddings.variables import TableVariable, as_table, make_whole
from headwater.keras.parameter_server.described_sets import describe
from headwater.keras.parameter_server.optimizers import (
    KerasUpdater,
    ServerPart,
    indivisible,
    join_state,
    split_state,
    starts_from_values,
    state_names,
)
from headwater.keras.parameter_server.own_momentum import momentum_of
from headwater.keras.parameter_server.slots import as_slot
from headwater.keras.parameter_server.steps import Split, inner_optimizer
from headwater.keras.programs import optimizer_topics, updates_made
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import KOfN, Synchronous
from headwater.ps.conversation import Traffic
from headwater.ps.layout import Layout, VariableSpec, make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.round_sums import Squares, sum_of_squares
from headwater.ps.shards.limits import require_no_sums

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.parameter_server.dynamic import DynamicTables
    from headwater.keras.parameter_server.strategy import ParameterServerStrategy

_log = logging.getLogger("headwater")

#: Least momentum that causes a warning in asynchronous training.
_MUCH_MOMENTUM = 0.9

#: All models of parameter-server strategies in this process.
_MODELS: weakref.WeakSet[ModelValues] = weakref.WeakSet()


class ModelValues:
    """The values of a model on parameter servers: layout, reads, assignments and tables.

    Args:
      model: a Keras model.
      place: this process's place in the cluster, and the strategy's options.
    """

    def __init__(self, model: Any, place: ParameterServerStrategy) -> None:
        self.model = model
        self.place = place
        #: Number of ``ps`` in this process, if there is no cluster.
        self.servers = 1
        self._begun = False
        # Determined once: a program may freeze layers of this model while it trains another one.
        self._found_split: Split | None = None
        self._client: ParameterClient | None = None
        self._prepared_client: ParameterClient | None = None
        self._tables: list[Any] | None = None
        self._small: list[Any] = []
        #: A batch as ``(x, y, sample_weight)``, if its shapes are certain to be equal on all tasks; else None.
        self._batch: Any = None
        self._sent_rate: float | None = None
        #: The array of each variable, by the variable's ``id``, as it was last read or sent.
        self._known: dict[int, Any] = {}
        #: Number of the optimizer's updates that the version of the ``ps`` does not count; None if unknown.
        self._earlier_updates: int | None = None
        #: Whether this worker has read values that the model's variables do not have yet.
        self._outdated = False
        #: Parts of the training that steps have changed on the ``ps`` since the last read: "values", "state".
        self._stale: set[str] = set()
        self._table_variables: dict[int, list[TableVariable]] | None = None
        self._dynamic_tables: DynamicTables | None = None
        #: Whether the ``ps`` host this model from a description, because their program serves another model.
        self._described = False
        #: The ``id`` of each variable that the ``ps`` keep with another model of this process.
        self.elsewhere: frozenset[int] = frozenset()
        _MODELS.add(self)

    def determine_variables(self) -> None:
        """Determines which variables of this model the ``ps`` keep, and whether the workers have to describe these
        variables to the ``ps``. Does nothing after the first call.

        Raises:
          ValueError: another model trains variables of this one; or a ``ps`` cannot host this model from a description.
        """
        if self._begun:
            return
        self._begun, self._found_split = True, None
        others = [other for other in self._others() if other._begun]
        self.elsewhere = frozenset(id(variable) for other in others for variable in other.variables)
        trained = [variable.path for variable in self.model.trainable_variables if id(variable) in self.elsewhere]
        if trained:
            raise ValueError(
                f"model {self.model.name!r} trains {', '.join(trained)}, which the ps keep with a model that was "
                "trained before: only the first model that uses a variable may train it; set trainable=False on "
                "these layers while the other models are trained"
            )
        task, place = self.place.task, self.place
        self._described = task is not None and task.has_sets
        if self._described and (place.replicas > 1 or place.shards is not None or dynamic_layers(self.model)):
            raise ValueError(
                f"model {self.model.name!r} is the second model that this program trains, which is not supported with "
                "replicas, shards or DynamicEmbedding: train it in another job"
            )

    def _others(self) -> list[ModelValues]:
        """The other models of this strategy."""
        return [other for other in _MODELS if other is not self and other.place is self.place]

    @property
    def _dynamic(self) -> DynamicTables | None:
        """The tables of the model's dynamic embeddings, if it has any."""
        if self._dynamic_tables is None and dynamic_layers(self.model):
            from headwater.keras.parameter_server import dynamic  # noqa: PLC0415  only for dynamic tables

            self._dynamic_tables = dynamic.DynamicTables(self.model, self.place, clips=not self.workers_clip)
        return self._dynamic_tables

    # Placement --------------------------------------------------------------------------------------------------------

    @property
    def optimizer(self) -> Any:
        """The model's optimizer, in the form that runs on the ``ps``."""
        return inner_optimizer(self.model.optimizer)

    @property
    def tables(self) -> list[Any]:
        """The embedding layers with tables on the ``ps``."""
        if self._tables is None:
            optimizer = self.optimizer
            # A ps has only a part of each table, so it cannot compute the norm of a whole table's gradient.
            norms = not self.workers_clip and (optimizer.clipnorm or optimizer.global_clipnorm)
            # A custom train_step computes gradients of whole variables, and a description has no initial rows.
            whole = norms or self._described or not keeps_train_step(self.model)
            # A ps has the initial values of a row only after its first use, too late for an optimizer that needs them.
            trained = self.model.trainable_variables
            whole = whole or starts_from_values(optimizer, trained, [variable.shape for variable in trained])
            tables = [] if whole else self._find_row_tables()
            if tables:
                combined = indivisible(optimizer, self._part, [layer.embeddings for layer in tables])
                tables = [layer for layer in tables if layer.embeddings.path not in combined]
            self._tables = tables
            for layer in self._tables:
                as_table(layer.embeddings, layer=layer)
            make_whole([*self.model.variables, *optimizer.variables], [layer.embeddings for layer in self._tables])
        return self._tables

    def _find_row_tables(self) -> list[Any]:
        large, place = find_tables(self.model, self.place.table_bytes), self.place
        # All workers must choose the same small tables, so the choice may depend only on a batch whose shapes are equal
        # on all tasks.
        if self._batch is None or not place.small_tables or place.momentum_at == "worker":
            return large
        every = find_tables(self.model, 0)
        smaller = [layer for layer in every if layer not in large]
        others = [*large, *dynamic_layers(self.model)]
        self._small = worth_rows(self.model, smaller, self._batch, others)
        return [layer for layer in every if layer in large or layer in self._small]

    @property
    def exact(self) -> list[str]:
        """Paths of the tables with exact updates, which change all rows."""
        layers = self.tables if self.place.exact_tables else self._small
        return [layer.embeddings.path for layer in layers]

    @property
    def variables(self) -> list[Any]:
        """The model's variables on the ``ps``: all but integer variables, such as seeds, which are local."""
        return self._split.served

    @property
    def _split(self) -> Split:
        if self._found_split is None or not self._begun:
            self._found_split = Split(self.model, self.tables, self.elsewhere)
        return self._found_split

    def layout(self) -> Layout:
        """Returns the placement of variables on the ``ps``.

        Raises:
          ValueError: the optimizer clips by the norm of all gradients, and the ``ps`` cannot compute that norm;
            replication is requested, and the model has tables; or workers cannot keep the momentum.
        """
        place, optimizer = self.place, self.optimizer
        servers = self._servers
        in_rounds = isinstance(place.choice, Synchronous | KOfN)
        if isinstance(place.choice, KOfN) and self._joint_norm:
            raise ValueError(
                f"global_clipnorm needs the gradients of all variables, but with consistency {place.choice} each of "
                f"{servers} ps tasks may apply gradients of different workers; use clipnorm, one ps, 'sync' or 'async'"
            )
        if self._joint_norm and self._accumulates:
            raise ValueError(
                "global_clipnorm with gradient_accumulation_steps clips by the norm of all accumulated gradients, of "
                f"which each of {servers} ps tasks has a part; use clipnorm, or one ps"
            )
        if in_rounds and self._joint_norm:
            require_no_sums("global_clipnorm", shards=place.shards, replicas=place.replicas)
        self.worker_momentum()
        in_rows = len(self.tables)
        variables = self.variables
        optimized = self._split.dense_count
        specs = [
            VariableSpec(
                name=variable.path,
                shape=tuple(variable.shape),
                dtype=variable.dtype,
                optimized=at < optimized,
                table=at >= len(variables) - in_rows,
            )
            for at, variable in enumerate(variables)
        ]
        partitioner = place.partitioner
        if partitioner is None or servers == 1:
            return make_layout(specs, servers)
        # Norms and some constraints apply to whole variables.
        whole = indivisible(optimizer, self._part, variables[:optimized])
        return make_layout(specs, servers, lambda spec: 1 if spec.name in whole else partitioner(spec))

    @property
    def workers_clip(self) -> bool:
        """Whether workers, rather than the ``ps``, clip gradients by norms.

        Workers clip if each gradient is an update by itself: a worker has the whole gradient, a ``ps`` only a part.
        """
        return not isinstance(self.place.choice, Synchronous | KOfN) and not self._accumulates

    @property
    def _accumulates(self) -> bool:
        """Whether an update accumulates several gradients of a worker, and clips their mean."""
        return bool(self.optimizer.gradient_accumulation_steps)

    def worker_momentum(self) -> float | None:
        """The momentum that each worker keeps of its own gradients; None if the ``ps`` keep it.

        Raises:
          ValueError: see `momentum_of`.
        """
        if self.place.momentum_at == "ps":
            return None
        tables = [layer.name for layer in (*self.tables, *dynamic_layers(self.model))]
        return momentum_of(self.optimizer, tables)

    @property
    def _servers(self) -> int:
        """The number of ``ps``, or of shards."""
        if self.place.task is None:
            return self.servers
        return self.place.shards or len(self.place.task.members.servers)

    @property
    def _joint_norm(self) -> bool:
        """Whether updates are clipped by a joint norm over several ``ps``."""
        return self._servers > 1 and not self.workers_clip and bool(self.optimizer.global_clipnorm)

    def squares(self) -> Callable[[int], Squares] | None:
        """Returns the function for each ``ps`` that computes its part of the joint norm; None without a joint norm."""
        return (lambda _: sum_of_squares) if self._joint_norm else None

    def _updater(self, layout: Layout, index: int) -> KerasUpdater:
        return KerasUpdater(
            layout,
            index,
            self.variables,
            self.optimizer,
            part=self._part,
            exact=self.exact,
        )

    @property
    def _part(self) -> ServerPart:
        """The parts of the optimizer that run on the ``ps``."""
        return ServerPart(
            clips="no" if self.workers_clip else "jointly" if self._joint_norm else "each",
            momentum=self.place.momentum_at == "ps",
        )

    def _make_client(self) -> ParameterClient:
        if self._prepared_client is not None:
            self._prepared_client.tables.set_initial(self._held_rows)
            self._prepared_client.tables.set_wire(self.place.wire)
            return self._prepared_client
        layout, place = self.layout(), self.place
        initial = [
            None if spec.table else np.asarray(variable.value)
            for spec, variable in zip(layout.variables, self.variables, strict=True)
        ]
        make_updater: Callable[[int], KerasUpdater] = functools.partial(self._updater, layout)
        if place.task is None:
            client = LocalServers(self.model.name, layout, make_updater, place.choice, squares=self.squares()).client(
                initial
            )
        else:
            described = describe(layout, self.variables, self.optimizer, self._part) if self._described else None
            client = place.task.client(
                place.task.set_name(self.model.name),
                layout,
                place.choice,
                initial,
                replicas=place.replicas,
                shards=place.shards,
                description=described,
            )
        client.tables.set_initial(self._held_rows)
        client.tables.set_wire(place.wire)
        if place.is_chief and place.workers > 1 and not place.staleness_aware:
            self._warn_of_momentum()
        if place.is_chief and updates_made(self.optimizer):
            # A loaded model continues with its optimizer's saved state.
            client.set_initial_state(self._split_state)
        return client

    def _warn_of_momentum(self) -> None:
        """Warns if momentum is high: staleness acts like additional momentum, and training may not converge."""
        momentum = float(getattr(self.optimizer, "momentum", 0.0) or 0.0)
        in_rounds = isinstance(self.place.choice, Synchronous | KOfN)
        if not in_rounds and momentum >= _MUCH_MOMENTUM and self.place.momentum_at == "ps":
            _log.warning(
                "%s has momentum %g, and with consistency %s gradients of %d workers are about %d updates old, which "
                "acts like more momentum: training may diverge. Use momentum_at='worker' and staleness_aware=True, a "
                "smaller momentum or learning rate, or consistency='sync'",
                self.optimizer.name,
                momentum,
                self.place.choice,
                self.place.workers,
                self.place.workers - 1,
            )

    def host(self) -> None:
        """On a ``ps``: starts to serve this model."""
        task = self.place.task
        assert task is not None
        self._build_optimizer()
        layout = self.layout()
        task.host(
            self.model.name,
            layout,
            functools.partial(self._updater, layout),
            self.place.choice,
            encode_topics(optimizer_topics(self.optimizer)),
            staleness_aware=self.place.staleness_aware,
            saves=self.place.saves,
            replicas=self.place.replicas,
            shards=self.place.shards,
            squares=self.squares(),
        )
        if self._dynamic is not None:
            self._dynamic.host()
        for variables in self._variables_of_tables().values():
            for variable in variables:
                variable.forget()

    # Tables -----------------------------------------------------------------------------------------------------------

    def table_numbers(self) -> range:
        """The numbers of the tables in `variables`."""
        count = len(self.variables)
        return range(count - len(self.tables), count)

    def _variables_of_tables(self) -> dict[int, list[TableVariable]]:
        """Returns, by table, its variable and the optimizer's slots with a row for each row of the table."""
        if self._table_variables is None:
            layout = self.layout()
            slots = dict(zip(state_names(self.optimizer), self.optimizer.variables, strict=True))
            self._table_variables = {}
            for index in range(len(layout.blocks) if self.tables else 0):
                blocks = [block for block in layout.blocks[index] if layout.variables[block.variable].table]
                for block, table in zip(blocks, self._updater(layout, index).tables, strict=True):
                    variable = as_table(self.variables[block.variable])
                    slot_tables = [as_table(slots[name], of=variable) for name in table.row_names]
                    self._table_variables[block.variable] = [variable, *slot_tables]
        return self._table_variables

    def _held_rows(self, number: int) -> list[Any] | None:
        """Returns the rows of a table, and their optimizer slots, if the program has assigned them; else None.

        See `headwater.ps.tables.transfer.TableRows`.
        """
        variable, *slot_tables = self._variables_of_tables()[number]
        if all(part.local_values is None for part in (variable, *slot_tables)):
            return None
        with_slots = any(slot.local_values is not None for slot in slot_tables)
        return [np.asarray(part.value) for part in ([variable, *slot_tables] if with_slots else [variable])]

    def _reach_tables(self) -> None:
        """Connects this process's table variables to the values on the ``ps``."""
        client = self._client
        assert client is not None
        for number, variables in self._variables_of_tables().items():
            for part, variable in enumerate(variables):
                variable.set_source(functools.partial(client.tables.read, number, part))

    # Values -----------------------------------------------------------------------------------------------------------

    def sync(self, *, state: bool = False) -> None:
        """Reads the current values of the model's variables from the ``ps``; with ``state`` the optimizer's as well.

        A learning rate that the chief's program has set is kept until a step has sent it to the ``ps``.
        """
        client = self._client
        if client is None:
            return
        set_rate = self._unsent_rate() if self._sent_rate is not None else None
        self._stale -= {"values", "state"} if state else {"values"}
        if state:
            snapshot = client.snapshot()
            self._reach_tables()
            join_state(self.optimizer, self.layout(), self.variables, snapshot.states)
            self._sent_rate = self._rate()
            self._known = {}
            self._count_from(client.version)
            set_here = getattr(self.optimizer, "_learning_rate", None), self.optimizer._iterations
            for slot in self.optimizer.variables:
                if not any(slot is variable for variable in set_here):
                    as_slot(slot, self._read_state)
        else:
            client.pull()
        self.hold_values()
        if set_rate is not None:
            self.optimizer.learning_rate = set_rate

    def hold_values(self) -> None:
        """Assigns the values that this worker last read from the ``ps`` to the model's variables, and the number of
        updates to the optimizer."""
        assert self._client is not None
        read = self.variables[: self.table_numbers().start]
        for variable, value in zip(read, self._client.values(), strict=False):
            variable.assign(value)
        if self._earlier_updates is not None:
            self.optimizer._iterations.assign(self._earlier_updates + self._client.version)
            read.append(self.optimizer._iterations)
        self._note_known(read if self._known else self._held)
        self._outdated = False

    def _read_state(self) -> None:
        if "state" in self._stale:
            self.read_others(state=True)

    def _count_from(self, version: int) -> None:
        self._earlier_updates = int(np.asarray(self.optimizer._iterations.value)) - version

    def count_update(self, *, is_applied: bool) -> None:
        """Records whether this worker's latest update was applied, or omitted because gradients were not finite."""
        if not is_applied and self._earlier_updates is not None:
            self._earlier_updates -= 1

    def read_others(self, *, state: bool = False) -> None:
        """Does the same as `sync`, but variables that the program has assigned keep the assigned, unsent values."""
        assigned = [(variable, variable._value) for variable in self.assigned_variables()]
        self.sync(state=state)
        for variable, value in assigned:
            variable._value, self._known[id(variable)] = value, None

    def _note_known(self, variables: Sequence[Any]) -> None:
        self._known |= {id(variable): variable._value for variable in variables}

    @property
    def _held(self) -> list[Any]:
        """The model's variables on the ``ps``, then the optimizer's."""
        return [*self.variables, *self.optimizer.variables]

    def _send_changes(self) -> None:
        """Sends the ``ps`` the changes that the chief's program has made to variables since they were read."""
        assert self._client is not None
        if self._dynamic is not None:
            self._dynamic.send_loaded_rows()
        assigned = self.assigned_variables()
        rate = self._unsent_rate() if self._known else None
        if not assigned and rate is None:
            return
        slots = set(map(id, self.optimizer.variables))
        state = self._split_state if rate is not None or any(id(it) in slots for it in assigned) else None
        dense = self.table_numbers().start
        self._client.assign([np.asarray(v.value) if at < dense else None for at, v in enumerate(self.variables)], state)
        self._reach_tables()
        if state is not None:
            self._count_from(self._client.version)
        self._note_known(self._held)

    def send_evaluated_state(self) -> None:
        """Sends the ``ps`` the state of layers that an evaluation on the chief has changed, as in one Keras process.

        Drops such changes on other workers, and on the chief if there are several asynchronous workers: these update
        the state during the evaluation.
        """
        place, client = self.place, self._client
        assert client is not None
        start, stop = self._split.dense_count, self.table_numbers().start
        state = {id(variable) for variable in self.variables[start:stop]}
        if not any(id(variable) in state for variable in self.assigned_variables()):
            return
        if place.is_chief and (place.workers == 1 or isinstance(place.choice, Synchronous)):
            values = list(client.values())
            values[start:stop] = [np.asarray(variable.value) for variable in self.variables[start:stop]]
            client.assign(values)
        else:
            self.hold_values()

    def assigned_variables(self) -> list[Any]:
        """Returns the variables, except for the learning rate, with other values than the ``ps`` last sent."""
        if self._client is None or not self._known:
            return []
        rate = getattr(self.optimizer, "_learning_rate", None)
        assigned: list[Any] = []
        sent = dict(zip(map(id, self.variables[: self.table_numbers().start]), self._client.values(), strict=False))
        for variable in self._held:
            key, value = id(variable), variable._value
            # A variable has no value while Keras evaluates the model.
            if value is self._known.get(key) or value is None or variable is rate:
                continue
            if key in sent and np.array_equal(np.asarray(value), sent[key], equal_nan=True):
                self._known[key] = value  # an evaluation creates new arrays with the same values
            else:
                assigned.append(variable)
        return assigned

    def _split_state(self, index: int) -> list[HostArray]:
        layout = self.layout()
        return split_state(self.optimizer, layout, self.variables, self._updater(layout, index), index)

    def _rate(self) -> float | None:
        rate: Any = getattr(self.optimizer, "_learning_rate", None)
        return float(rate.value) if isinstance(rate, keras.Variable) else None

    def _hyperparameters(self) -> Sequence[float]:
        """The hyperparameters to send: the learning rate, if the chief's program has changed it."""
        rate = self._unsent_rate()
        if rate is None:
            return ()
        self._sent_rate = rate
        return (rate,)

    def _unsent_rate(self) -> float | None:
        """The learning rate, if the chief's program has changed it since it was last sent; else None."""
        rate = self._rate() if self.place.is_chief else None
        return None if rate == self._sent_rate else rate

    def traffic(self) -> Traffic:
        """The traffic so far: bytes, round trips and rows."""
        traffic = self._client.conversation.traffic() if self._client is not None else Traffic()
        return traffic if self._dynamic is None else traffic + self._dynamic.traffic()

    def connect(self) -> ParameterClient:
        """Returns a worker's client; the first call creates it."""
        if self._client is None:
            self._build_optimizer()
            self._client = self._make_client()
            if self._dynamic is not None:
                self._dynamic.connect(self.servers, self._client)
            self._client.connect()
            self._reach_tables()
            self._client.check_program(encode_topics(optimizer_topics(self.optimizer)))
            self.sync(state=True)
        return self._client

    def use(self, client: ParameterClient) -> None:
        """Uses ``client``, which is not connected yet, instead of a new client."""
        self._prepared_client = client

    def close(self) -> None:
        """Closes the client."""
        if self._client is not None:
            self._client.close()
        if self._dynamic is not None:
            self._dynamic.close()

    def _build_optimizer(self) -> None:
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
