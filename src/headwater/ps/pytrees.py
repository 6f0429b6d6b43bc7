"""Parameter servers for JAX without Keras: a pytree of parameters and an optax optimizer.

::

    params = model.init(jax.random.key(0), x)                      # the same program on every task
    ps = headwater.ParameterServer(params, optax.adam(1e-3))       # a ps task stays here and serves
    grad = jax.jit(jax.value_and_grad(loss))
    for x, y in ps.batches((images, labels), batch_size=64, epochs=10):
        value, grads = grad(ps.params, x, y)
        ps.push(grads)
    ps.finish()
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from headwater.cluster.task.agreement import encode_topics
from headwater.cluster.task.members import find_members
from headwater.cluster.telemetry.progress import ProgressReporter
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.batches import Examples, Source
from headwater.ps.client import ParameterSnapshot
from headwater.ps.consistency import Consistency, KOfN, Synchronous, from_text
from headwater.ps.conversation import Traffic
from headwater.ps.global_norms import SumsError, find_sums, sums_of_gradients
from headwater.ps.layout import Partitioner
from headwater.ps.leaf_dependencies import make_leaf_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, check_update, leaf_specs, update_digest
from headwater.ps.process import ParameterTask, process_task
from headwater.ps.recovery import Recovery, saves_of
from headwater.ps.replicas.limits import require_replicas
from headwater.ps.round_sums import Squares
from headwater.ps.shards.limits import require_no_sums, shards_of
from headwater.ps.shards.moves import Moved
from headwater.ps.step_requests import StepRequest
from headwater.ps.updater import Array

if TYPE_CHECKING:
    import numpy.typing as npt
    from optax import GradientTransformation

    from headwater.ps.row_table import RowTable
    from headwater.ps.tables.client import TableClient
    from headwater.tables.compiled import Reals
    from headwater.tables.initializers import Initializer
    from headwater.tables.optimizers import RowOptimizer
    from headwater.tables.policies import Admission, Eviction
    from headwater.tables.row_formats import Format

_jax: Any = jax
_jnp: Any = _jax.numpy
_tree: Any = _jax.tree_util

_log = logging.getLogger("headwater")


class ParameterServer:
    """Parameters on the ``ps`` tasks of a cluster, for a program that every task runs.

    The cluster is described by ``TF_CONFIG`` (`headwater run --ps 2 --workers 4 program.py` sets it). On a ``ps`` the
    constructor does not return: it serves, and ends the process when the job is over. Without a cluster this process is
    both server and worker.

    >>> import jax.numpy as jnp
    >>> import optax
    >>> import headwater
    >>> ps = headwater.ParameterServer({"w": jnp.zeros(2)}, optax.sgd(0.5))
    >>> ps.push({"w": jnp.array([1.0, -2.0])})
    True
    >>> ps.params["w"].tolist()
    [-0.5, 1.0]
    >>> ps.finish()["w"].tolist()
    [-0.5, 1.0]

    Args:
      params: a pytree of arrays. The initial values are the arrays of the chief (the task of job ``chief``, or else
        worker 0).
      optimizer: an ``optax.GradientTransformation``, which runs on the ``ps``.
      consistency: ``"async"``, ``"sync"``, ``"k=3"`` (an update takes three gradients) or ``"staleness=4"`` (no worker
        is more than four steps ahead of the slowest), see `headwater.ps.consistency.from_text`; or a
        `headwater.ps.consistency.Consistency`.
      partitioner: chooses the leaves to split by rows, see `headwater.ps.layout`; by default, leaves are split into
        parts of at most 64 MiB, with at most one part on each task.
      name: distinguishes the sets of parameters of a program that has several.
      nonfinite: effect of gradients in `push` that are not finite: ``"raise"``, or ``"push"`` if the optimizer handles
          them (`optax.apply_if_finite`, `optax.zero_nans`).
      staleness_aware: whether the step of a gradient that is τ updates old is divided by τ; see
        `headwater.ps.host.HostedParameters`.
      snapshot_steps: interval, in the chief's own steps, at which the chief reads all values and the optimizer's state.
        It sends this snapshot to a ``ps`` that was lost and restarted. None: no snapshots; a restarted ``ps`` gets the
        values that the chief read last, and a new optimizer state.
      replicas: number of replicas of each part of the parameters, on different ``ps``. With 2, an update is
        acknowledged when both replicas have it. If a ``ps`` is lost, the backup takes over with all acknowledged
        updates; see ``docs/parameter-servers.md``.
      shards: number of parts of the parameters, which can move between ``ps`` while training continues: see `scale`,
        and ``docs/parameter-servers.md``. A good number is twice the greatest number of ``ps`` during the job. None for
        a part on each ``ps``, which does not move.
      log_dir: a folder in which the first ``ps`` writes the examples of `batches` that each update used, for `headwater
        audit`; by default the value of ``HEADWATER_LOG_DIR``. Without either, nothing is written.
      recovery: how a ``ps`` that is lost and restarted gets its values. ``"copy"``: the chief sends the values that the
        chief read last, see ``snapshot_steps``. ``"own"``, the default if ``saves`` names a folder: the ``ps`` recovers
        the state that it has saved itself. ``"own"`` requires asynchronous or bounded consistency.
      saves: the folder for recovery ``"own"``, in which each ``ps`` creates a subfolder. A restarted ``ps`` must
        be able to read it on any machine. States are removed when the job is over. Without a cluster nothing
        is saved.
      save_every_s: interval between two saves of a ``ps``, in seconds.

    Attributes:
      worker: number of this worker.
      workers: number of workers.
      is_chief: whether this worker is the chief.
      epoch: the epoch of the latest batch of `batches`, from 0; -1 before the first.

    Raises:
      ValueError: the cluster or an argument is invalid.
      UnavailableError: a ``ps`` could not be reached before the deadline.
      SystemExit: on a ``ps``, when the job is over.
    """

    def __init__(
        self,
        params: object,
        optimizer: GradientTransformation,
        *,
        consistency: str | Consistency = "async",
        partitioner: Partitioner | None = None,
        name: str = "params",
        snapshot_steps: int | None = 1000,
        nonfinite: Literal["raise", "push"] = "raise",
        staleness_aware: bool = False,
        log_dir: str | None = None,
        recovery: Recovery | None = None,
        saves: str | os.PathLike[str] | None = None,
        save_every_s: float = 5.0,
        replicas: int = 1,
        shards: int | None = None,
    ) -> None:
        if nonfinite not in ("raise", "push"):
            raise ValueError(f"nonfinite must be 'raise' or 'push', not {nonfinite!r}")
        members = find_members()
        self._structure = _tree.tree_structure(params)
        servers = len(members.servers) if members else 1
        self._specs = specs = leaf_specs(params)
        leaves = self._values_of(params)
        self._nonfinite = nonfinite
        self._params: Any = None
        shapes = _tree.tree_unflatten(
            self._structure, [_jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs]
        )
        self.workers: int = len(members.workers) if members else 1
        self.worker: int = members.number if members else 0
        self.is_chief: bool = members is None or members.is_chief
        self._snapshot_steps = snapshot_steps
        self._steps = 0
        # Number of calls of `finish`, which is the number of the current training. A restarted program repeats all
        # trainings from the first, but gets no examples in trainings that are over.
        self._finished = 0
        self.epoch: int = -1
        reporter = ProgressReporter.from_environment(str(members.me)) if members else None
        # A program that was not started by a launcher has no listener for reports.
        self._reporter = reporter if reporter is not None and reporter.listening else None
        choice = from_text(consistency, self.workers)
        own = saves_of(recovery, saves, save_every_s, choice)
        require_replicas(replicas, servers, choice, saves=own is not None)
        shards = shards_of(shards, servers if members else 0, replicas=replicas, saves=own is not None)
        self._shards = shards
        servers = shards or servers
        check_update(optimizer, shapes)
        self._replicas = replicas
        norms = servers > 1 and find_sums(optimizer, shapes) > 0
        if norms and isinstance(choice, KOfN):
            raise SumsError(
                f"the optimizer takes a norm over all leaves, and with consistency {choice} an update may use other "
                f"workers' gradients on each of {servers} ps: use one ps, or consistency 'sync', 'async' or "
                "'staleness=...'"
            )
        total = sums_of_gradients(optimizer, shapes) if norms else None
        layout = make_leaf_layout(optimizer, shapes, specs, servers, partitioner, finite=nonfinite == "raise")
        # In rounds, the ps compute the norm together, from their parts of the mean gradient. Otherwise the worker,
        # which has the whole gradient, computes it.
        in_rounds = isinstance(choice, Synchronous)
        if norms and in_rounds:
            require_no_sums("an optimizer that takes a norm over all leaves", shards=shards, replicas=replicas)
        self._sum = None if in_rounds else total
        program = encode_topics({"optimizer": {"digest of its update": update_digest(optimizer, shapes)}})

        def make_updater(index: int) -> OptaxUpdater:
            return OptaxUpdater(layout, index, self._structure, optimizer, norms=norms)

        def squares(index: int) -> Squares:
            return make_updater(index).squares()

        self._task: ParameterTask | None = None
        self._table_client: TableClient | None = None
        if members is None:
            self._client = LocalServers(
                name, layout, make_updater, choice, staleness_aware=staleness_aware, log_dir=log_dir
            ).client(leaves)
        else:
            task = self._task = process_task(members)
            if members.is_server:
                task.host(
                    name,
                    layout,
                    make_updater,
                    choice,
                    program,
                    staleness_aware=staleness_aware,
                    log_dir=log_dir,
                    saves=own,
                    replicas=replicas,
                    shards=shards,
                    squares=squares if norms and in_rounds else None,
                )
                task.serve()  # does not return: a ``ps`` does not run the rest of the program
            self._client = task.client(name, layout, choice, leaves, replicas=replicas, shards=shards)
        self._examples = Examples(self._client)
        self._client.connect()
        self._client.check_program(program)
        self._client.pull()
        self._training = self._client.trainings

    @property
    def params(self) -> Any:
        """The parameters as they were read last, with every push or with `pull`, as JAX arrays."""
        if self._params is None:
            # Not `jnp.asarray`, which would copy the arrays into newly allocated memory in every step.
            self._params = _tree.tree_unflatten(self._structure, _jax.device_put(self._client.values()))
        return self._params

    @property
    def version(self) -> int:
        """Number of updates applied to the parameters when they were last read."""
        return self._client.version

    def pull(self) -> Any:
        """Reads the parameters again."""
        self._client.pull()
        self._params = None
        return self.params

    def push(self, gradients: object, *, weight: float = 1.0) -> bool:
        """Pushes gradients, waits until this worker may continue, and reads the parameters, in one round trip.

        Gradients after a batch of `batches` belong to its examples: to all batches since the previous `push`.

        Args:
          gradients: a pytree like ``params``.
          weight: number of examples whose gradients were averaged; it weights this gradient within an update.

        Returns:
          Whether the gradients were accepted: False when they arrived too late (``"k=3"``), when a ``ps`` was lost, or
          when this worker counted as lost and another one computes its batch.

        Raises:
          InvalidArgumentError: the tree has the wrong structure, or a gradient is not finite; the message
            has the path of its leaf. See ``nonfinite``.
        """
        try:
            arrays = self._checked(gradients)
        except InvalidArgumentError as error:
            self._examples.return_failed(error.message)
            raise
        hyperparameters = () if self._sum is None else (float(self._sum(gradients)),)
        applied = self._examples.push(arrays, weight=weight, hyperparameters=hyperparameters)
        self._params = None
        self._steps += 1
        if self._reporter is not None:
            self._reporter.step(self._client.version)
        if self.is_chief and self._snapshot_steps is not None and self._steps % self._snapshot_steps == 0:
            self._client.snapshot()
        return applied

    def _checked(self, gradients: object) -> list[Array]:
        leaves, structure = _tree.tree_flatten(gradients)
        if structure != self._structure:
            raise InvalidArgumentError(f"gradients are {structure}, parameters are {self._structure}")
        arrays = [np.asarray(leaf) for leaf in leaves]
        if self._nonfinite == "raise":
            self._require_finite(arrays)
        return arrays

    def _require_finite(self, gradients: Sequence[Array]) -> None:
        for spec, gradient in zip(self._specs, gradients, strict=True):
            with np.errstate(all="ignore"):
                total = np.sum(gradient)
            # The sum is cheap to compute, but may overflow even if all gradients are finite. So check single gradients
            # only if the sum is not finite.
            if not np.isfinite(total) and not np.isfinite(gradient).all():
                bad = int(gradient.size - np.count_nonzero(np.isfinite(gradient)))
                raise InvalidArgumentError(
                    f"the gradient of params{spec.name} has {bad} numbers of {gradient.size} that are not finite: "
                    "nothing was pushed. Look at the loss, or lower the learning rate; if the optimizer supports such "
                    "gradients, set ParameterServer(nonfinite='push')"
                )

    def _values_of(self, params: object) -> list[Any]:
        """Returns the leaves of ``params`` as arrays of the types on the ``ps``; Python's numbers have no array
        type."""
        leaves = zip(self._specs, _tree.tree_leaves(params), strict=True)
        return [
            leaf if getattr(leaf, "dtype", None) == spec.dtype else np.asarray(leaf, spec.dtype)
            for spec, leaf in leaves
        ]

    def assign(self, params: object) -> None:
        """Replaces the parameters on all ``ps``; the optimizer's state is unchanged."""
        self._client.assign(self._values_of(params))
        self._params = None

    def snapshot(self) -> ParameterSnapshot:
        """Reads all parameters and the optimizer's state, by ``ps``."""
        return self._client.snapshot()

    def scale(self, ps: int | None = None) -> list[Moved]:
        """Moves shards between ``ps`` while training continues, so that all ``ps`` store about equally many bytes.

        Workers wait for a shard while it moves, and lose no updates. Any worker may call this at any time.

        Args:
          ps: number of ``ps`` to use; None for all. The running ``ps`` with the lowest numbers are used. The other
            ``ps`` then have no shard, and may be shut down.

        Returns:
          The moves, each with the time for which workers could not use the shard.

        Raises:
          FailedPreconditionError: the parameters have no ``shards``, or fewer ``ps`` run.
          UnavailableError: a ``ps`` does not answer. Shards that have moved before stay at their new ``ps``.
        """
        return self._balance_shards(ps, by_rate=False)

    def rebalance(self) -> list[Moved]:
        """Moves shards as `scale` does, so that every ``ps`` sends and receives about equally many bytes, as measured
        since its shards were placed there."""
        return self._balance_shards(None, by_rate=True)

    def _balance_shards(self, ps: int | None, *, by_rate: bool) -> list[Moved]:
        if self._shards is None or self._task is None:
            raise FailedPreconditionError("the parameters have no shards: set ParameterServer(shards=...)")
        return self._task.balance_shards(ps, by_rate=by_rate)

    def traffic(self) -> Traffic:
        """Returns the amount of data exchanged between this worker and all ``ps`` so far, including rows of embedding
        tables."""
        traffic = self._client.conversation.traffic()
        return traffic if self._table_client is None else traffic + self._table_client.traffic()

    # Examples ---------------------------------------------------------------------------------------------------------

    def batches(
        self,
        source: object,
        *,
        batch_size: int,
        epochs: int = 1,
        seed: int | None = None,
        shuffle: bool = True,
        tries: int = 3,
    ) -> Iterator[Any]:
        """Yields this worker's batches of the job's examples. Each example counts once in an epoch.

        The first ``ps`` assigns the examples. The next `push` after a batch sends the gradients of the batch's
        examples, which are applied and accounted for together. If a worker is lost or its gradients were dropped, its
        examples are assigned again, to any worker. At the end, a worker waits until the examples of all other workers
        are applied.

        A second call continues with the epoch after the last one of the first call. All workers must make the same
        calls. A batch that ``source`` fails to provide is assigned again, too; the error is logged.

        Args:
          source: the examples: an array, or a pytree of arrays with equally many rows. An array may be any object with
              ``len`` that returns rows when it is indexed by an array of indices (by a slice if ``shuffle`` is False).
              Or a dataset of `headwater.data` that yields one example at a time; with ``shuffle``, its examples must
              be readable in any order, see ``docs/data-accounting.md``.
          batch_size: maximum number of examples in a batch of this worker. Other workers may contribute further
              examples to the update.
          epochs: number of passes over all examples. An epoch begins when the previous one is completely assigned.
          seed: the seed for the order; by default drawn by the first ``ps``.
          shuffle: whether each epoch has a different order of the examples; otherwise all use the order of ``source``.
          tries: number of times that a range of examples may fail, or be lost with a worker, before it is set aside.

        Returns:
          An iterator over structures like ``source`` with the rows of a batch.

        Raises:
          ValueError, TypeError: an argument is invalid.
          FailedPreconditionError: from the iterator: other workers have other arguments.
          DataLossError: from the iterator, at the end of an epoch: some examples were set aside; the message names
            their positions in the order of the epoch, and the reasons.
        """
        examples = Source(source, batch_size=batch_size, shuffle=shuffle, seed=seed, tries=tries)
        if epochs < 1:
            raise ValueError(f"epochs must be at least 1, but is {epochs}")
        return self._batches(examples, self._examples.step_request(self._finished, epochs, examples.plan))

    def _batches(self, source: Source, step_request: StepRequest) -> Iterator[Any]:
        with closing(self._examples.ranges(step_request)) as ranges:
            for work, seed in ranges:
                self._params = None  # `ranges` may have read new values
                try:
                    batch = source.read_range(work, seed)
                except Exception as error:  # noqa: BLE001 - after any error, the examples are assigned again
                    _log.exception("source has failed to provide %s of the examples, which is assigned again", work)
                    self._examples.return_failed(f"source raised {type(error).__name__}: {error}", work)
                    continue
                self.epoch = work.epoch
                yield batch

    # Embedding tables -------------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        *,
        dim: int,
        optimizer: RowOptimizer | None = None,
        initializer: Initializer | None = None,
        seed: int = 0,
        strings: bool = False,
        admission: Admission | None = None,
        eviction: Eviction | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        memory_rows: int | None = None,
        folder: str | None = None,
        saves: str | None = None,
        wire: Format = "float32",
    ) -> RowTable:
        """Opens an embedding table, which grows as keys are used, on all ``ps``. The first call of any worker creates
        the table.

        Args:
          name: the name of the table, the same on all workers.
          dim: numbers in a row.
          optimizer: an optimizer of `headwater.tables`; gradient descent with 0.01 by default.
          initializer: for new rows; uniform between -0.05 and 0.05 by default.
          seed: the seed of the initializer.
          strings: whether ids are strings, not integers.
          admission: decides which keys get a row; by default every key gets one at its first use.
          eviction: decides which rows are removed when there are too many. None: a new key in a full table is an error.
          max_rows: maximum number of rows on each ``ps``, or in each of ``shards``.
          max_bytes: maximum number of bytes of these rows.
          memory_rows: maximum number of these rows in memory; further ones are kept in a file.
          folder: folder of that file, on the machine of the ``ps``.
          saves: a folder of saves that all tasks share. A ``ps`` that does not have the table yet, at the beginning or
            after a restart, restores its rows from the latest save there.
          wire: encoding of rows between tasks: ``"float32"``; ``"bfloat16"``, with half the bytes; or ``"int8"``, with
            one byte for each number (and gradients as bfloat16). The ``ps`` stores and trains rows as float32.

        Raises:
          FailedPreconditionError: there is another table with that name.
          InvalidArgumentError: the table in ``saves`` has a different configuration, e.g. another ``dim``.
          ValueError: an argument is invalid.
        """
        from headwater.ps.tables import cluster as tables  # noqa: PLC0415  only for dynamic tables

        config = tables.TableConfig(
            dim=dim,
            optimizer=optimizer or tables.SGD(),
            initializer=initializer or tables.Initializer(),
            seed=seed,
            strings=strings,
            admission=admission or tables.Admission(),
            eviction=eviction,
            max_rows=max_rows,
            max_bytes=max_bytes,
            memory_rows=memory_rows,
            folder=folder,
        )
        self._tables_client().open(name, config, saves, wire=wire)
        return tables.RowTable(name, config, self._tables_client)

    def lookup(self, ids: Mapping[str, npt.ArrayLike], *, training: bool = True) -> dict[str, Reals]:
        """Looks up rows of several tables in one round trip, by table; see `RowTable.lookup`."""
        return self._tables_client().look_up(ids, training=training)

    def push_rows(self, ids: Mapping[str, npt.ArrayLike], gradients: Mapping[str, npt.ArrayLike]) -> None:
        """Pushes gradients of rows of several tables in one round trip, by table; see `RowTable.push`."""
        self._tables_client().update(ids, gradients)

    def _tables_client(self) -> TableClient:
        if self._table_client is None:
            from headwater.ps.tables import cluster as tables  # noqa: PLC0415  as above

            task = self._task
            self._table_client = (
                tables.connect_tables(task, self._replicas, self._shards) if task else tables.LocalTables().client()
            )
        return self._table_client

    def finish(self) -> Any:
        """Leaves the training; waits until all workers have finished or are lost, and returns the parameters."""
        self._client.finish(self._finished if self._examples.asked else self._training)
        self._finished += 1
        self._training += 1
        self._examples = Examples(self._client)
        if self._reporter is not None:
            self._reporter.close()
        return self.pull()
