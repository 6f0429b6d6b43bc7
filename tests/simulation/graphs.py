"""Histories (see `tests.simulation.scheduler`) of training graphs on parameter servers, as in a TensorFlow 1 program.

Each of the first `UNITS` steps adds a unique *unit* to two variables on every parameter server: a vector that is 1 at
one position. So the values show which of these steps were applied, and how often; later steps add zeros. In mode
"consistent" an update adds the mean of the units of a round, so the values show only the number of updates.
"""

from __future__ import annotations

import contextlib
import functools
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headwater.data.io.disk import mounted
from headwater.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    GaveUpError,
    ResourceExhaustedError,
    UnavailableError,
)
from headwater.tf1.compat import tf
from headwater.tf1.training.consistency import ConsistentOptimizer, Synchronous
from tests.simulation.account import LAUNCHER_S, NO_UNIT, UNITS, Account
from tests.simulation.cluster import Cluster, Task
from tests.simulation.disk import SimulatedDisk
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import HistoryError, Simulation, running

#: Longest time that a worker may wait for a ``ps`` that never starts, in seconds: more than two deadlines, because it
#: waits a second time if a task is lost during the first wait.
_LONGEST_WAIT_S = 300.0

_SLACK = 0.001
"""The tolerance of a sum of units."""

Mode = Literal["asynchronous", "synchronous", "k of n", "consistent"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of a history.

    Attributes:
      servers: number of parameter servers.
      workers: number of workers.
      mode: how gradients become updates; ``consistent``: by a `ConsistentOptimizer`, in rounds of all workers.
      steps: number of steps of the whole training.
      saves: whether a checkpoint is written every other step.
      faults: the faults.
      delay_s: mean latency of a message, in seconds.
      work_s: mean computation time of a worker's step, in seconds.
      stale: index of the worker whose place a task of an earlier cluster claims as well; None if there is no such task.
      absent: the ``ps`` that never starts; None if all start.
    """

    servers: int
    workers: int
    mode: Mode
    steps: int
    saves: bool
    faults: tuple[Fault, ...]
    delay_s: float
    work_s: float
    stale: int | None
    absent: int | None

    @staticmethod
    def draw(chance: random.Random) -> Setting:
        """Returns a random setting."""
        servers, workers = chance.choice((1, 1, 2, 2, 3)), chance.choice((1, 2, 2, 3, 3, 4))
        tasks = [f"ps{index}" for index in range(servers)] + [f"worker{index}" for index in range(workers)]
        saves = chance.random() < 0.4
        return Setting(
            servers=servers,
            workers=workers,
            mode=chance.choice(("asynchronous", "synchronous", "k of n", "consistent")),
            steps=chance.randint(3, 8),
            saves=saves,
            faults=Fault.draw_some(chance, tasks, disk=saves),
            delay_s=chance.choice((0.0002, 0.001, 0.01)),
            work_s=chance.choice((0.0, 0.005, 0.1)),
            stale=chance.randrange(workers) if chance.random() < 0.2 else None,
            absent=chance.randrange(servers) if chance.random() < 0.1 else None,
        )


class GraphHistory:
    """A history of training a graph.

    Args:
      simulation: runs the history.
      setting: the history's parameters.
    """

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        self.simulation = simulation
        self.setting = setting
        self.cluster = Cluster(simulation, setting.delay_s, lambda: self._chief.returned)
        self.account = Account()
        self._closing = contextlib.ExitStack()
        self.folder: str | None = None
        self.disk: SimulatedDisk | None = None
        if setting.saves:
            self.folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="headwater-simulated-"))
            self.disk = SimulatedDisk(simulation, self.folder)
            self._closing.enter_context(mounted(self.folder, self.disk))
        self._ends = False
        self._values: dict[str, dict[str, np.ndarray[Any, Any]]] = {}
        self._prepared = False
        # Whether a loss has prevented the usual end of the training, so that the final values cannot be checked.
        self._ends_unchecked = False
        self._spec = {
            "ps": [f"ps{index}:1" for index in range(setting.servers)],
            "worker": [f"worker{index}:1" for index in range(setting.workers)],
        }
        for index in range(setting.servers):
            if index != setting.absent:
                self.cluster.add(f"ps{index}", functools.partial(self._serve, index))
        for index in range(setting.workers):
            self.cluster.add(f"worker{index}", functools.partial(self._work, index))
        if setting.stale is not None:
            self.cluster.add("stale", functools.partial(self._intrude, setting.stale))

    def run(self) -> None:
        """Runs the whole history; raises HistoryError if a rule is broken."""
        simulation, cluster = self.simulation, self.cluster
        simulation.note(str(self.setting))
        possible = [fault for fault in self.setting.faults if fault.task in cluster.tasks]
        faults = Faults(cluster, possible, self._may_fail, self._may_restart, self.disk, self._recovery())
        self._faults = faults
        cluster.start(within_s=0.1)
        faults.begin()
        workers = [task for name, task in cluster.tasks.items() if name.startswith("worker")]
        cluster.wait_until(lambda: self._ends_unchecked or all(task.done for task in workers))
        if self.setting.absent is not None:
            return  # each worker has ended with an error
        if self._ends_unchecked:
            simulation.note("the history ends here, and the values are not checked")
            return
        simulation.note("all workers are done")
        faults.end()
        if self.setting.stale is not None:
            cluster.tasks["stale"].end()
        cluster.killed |= self._may_miss_end()
        cluster.wait_for_ends(LAUNCHER_S)
        self._check()

    def close(self) -> None:
        """Removes the files of the history."""
        self._closing.close()

    @property
    def _chief(self) -> Task:
        return self.cluster.tasks["worker0"]

    def _may_fail(self, task: Task) -> bool:
        del task
        return not self._chief.returned

    def _may_restart(self, task: Task) -> bool:
        return self.cluster.may_restart(task, self._chief)

    # Programs ---------------------------------------------------------------------------------------------------------

    def _serve(self, index: int) -> None:
        server = tf.train.Server(self._spec, job_name="ps", task_index=index)
        self._on_start(index, server)
        with contextlib.suppress(SystemExit):
            server.join()
        self._on_end(index, server)

    def _may_miss_end(self) -> bool:
        """Returns whether a server may be unable to learn that the job is over, so that a launcher has to end it.

        An example is a server that has never been connected to another task.
        """
        return False

    def _recovery(self) -> Callable[[], bool] | None:
        """Returns a function that checks whether the system has recovered from the last fault; None if the next fault
        does not wait for this."""
        return None

    def _on_start(self, index: int, server: Any) -> None:
        """Called when a server begins to serve. A hook for subclasses, which does nothing here."""

    def _on_end(self, index: int, server: Any) -> None:
        """Records the values of a server's variables at its end."""
        assert server._running is not None
        cells = server._running.runtime.resources.cells()
        values = {name: np.asarray(cell.value) for (_, name), cell in cells.items() if cell.value is not None}
        if (
            values or self.cluster.tasks[f"ps{index}"].process.incarnation == 1
        ):  # otherwise it was restarted after the last step, and has no values
            self._values[f"ps{index}"] = values

    def _intrude(self, index: int) -> None:
        """Runs a stale worker of an earlier cluster: it runs steps until they are rejected."""
        spec = {**self._spec, "worker": list(self._spec["worker"])}
        spec["worker"][index] = "stale:1"
        server = tf.train.Server(spec, job_name="worker", task_index=index)
        while True:
            running().sleep(running().random.expovariate(1.0) * 0.1)
            with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
                two = tf.constant(1.0) + tf.constant(1.0)
                try:
                    with tf.Session(server.target) as sess:
                        sess.run(two)
                except FailedPreconditionError as error:
                    running().note(f"the stale worker is rejected: {error.message}")
                    return
                except (AbortedError, UnavailableError) as error:
                    running().note(f"the stale worker tries again: {error.message}")

    def _work(self, index: int) -> None:
        began = self.simulation.now
        try:
            self._train(index)
        except GaveUpError as error:
            if self.setting.absent is None:
                raise
            waited = self.simulation.now - began
            running().note(f"worker{index} gave up after {waited:.0f} s: {error.message}")
            if waited > _LONGEST_WAIT_S:
                raise HistoryError(f"worker{index} waited {waited:.0f} s for a ps that never started") from error
        except AbortedError as error:
            if not self._ends or all(
                task.process.incarnation == 1 and not task.process.dead for task in self._servers()
            ):
                raise
            # A parameter server was lost after the last step, before the last state was saved.
            running().note(f"the last state is not saved: {error.message}")
        except ResourceExhaustedError as error:
            if self.disk is None or not self.disk.was_full:
                raise
            # Training continues with a full disk, but a failure of the final save must be reported.
            running().note(f"the last state is not saved: {error.message}")
        except DataLossError as error:
            if self.disk is None or not self.disk.damaged or f"{self.folder}/model.ckpt" not in error.message:
                raise
            # A parameter server was lost while all checkpoints are damaged: a person has to repair them. The error must
            # name the file.
            running().note(f"the chief ends: {error.message}")
            self._ends_unchecked = True
            self.cluster.changed()

    def _train(self, index: int) -> None:
        setting, account = self.setting, self.account
        server = tf.train.Server(self._spec, job_name="worker", task_index=index)
        with tf.Graph().as_default() as graph:
            model = _Model(setting, index)
            chief = index == 0
            # The key of the plans that histories share; see `tests.simulation.caches`.
            vars(graph)["same_as"] = setting.servers, setting.workers, setting.mode, index, setting.saves

            def begun(scaffold: Any, sess: Any) -> None:
                del scaffold, sess
                if self.folder is not None and any(Path(self.folder).glob("model.ckpt-*.index")):
                    raise HistoryError("training starts from nothing, though there are checkpoints")
                self._record_new_state()

            # Steps that are acknowledged after the chief has restored a checkpoint, but before it starts to gather
            # gradients, may be missing as well.
            begins = [_Begins(account)] if chief and model.hooks else []
            hooks = [tf.train.StopAtStepHook(last_step=setting.steps), *model.hooks, *begins]
            with tf.train.MonitoredTrainingSession(
                master=server.target,
                is_chief=chief,
                checkpoint_dir=self.folder if chief else None,
                scaffold=tf.train.Scaffold(init_fn=begun, saver=saver_of(self._record_restore) if chief else None),
                hooks=hooks,
                save_checkpoint_steps=2 if self.folder else None,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as sess:
                self._prepared |= chief
                if chief:
                    self._ends = False
                while not sess.should_stop():
                    self._look(sess.run(model.variables))
                    if sess.should_stop():
                        break
                    running().sleep(running().random.expovariate(1.0) * setting.work_s)
                    unit = account.give()
                    account.open.add(unit)
                    before = account.acknowledged - account.void
                    _, seen = sess.run([model.train, model.seen], {model.unit: np.arange(UNITS) == unit})
                    self._check_seen(seen, before)
                    account.open.discard(unit)
                    account.acknowledged.add(unit)
                    running().note(f"unit {unit} is acknowledged")
                if chief:
                    self._ends = True

    def _record_new_state(self) -> None:
        """Records that the chief has initialized or restored the variables: all earlier updates may be missing.

        Raises:
          HistoryError: the parameter servers still had the state.
        """
        if self._prepared and all(task.process.incarnation == 1 and not task.process.dead for task in self._servers()):
            raise HistoryError("the chief discarded the state, though all parameter servers had it")
        self.account.lose()
        if self.setting.mode != "asynchronous" and any(
            task.returned for name, task in self.cluster.tasks.items() if name.startswith("worker")
        ):
            # As in TensorFlow, the chief waits, with a message, for gradients of workers that a person must restart.
            self.simulation.note("the state was lost after other workers had finished")
            self._ends_unchecked = True
            self.cluster.changed()

    def _record_restore(self) -> None:
        """Records that the chief has restored a checkpoint."""
        self.account.again |= self.account.open
        self._record_new_state()

    def _servers(self) -> list[Task]:
        return [task for name, task in self.cluster.tasks.items() if name.startswith("ps")]

    def _look(self, values: dict[str, Any]) -> None:
        """Checks that no reader sees a partial update: the two variables of a task are updated together."""
        for server in range(self.setting.servers):
            one, other = values[f"a_ps{server}"], values[f"b_ps{server}"]
            if not np.array_equal(one, other):
                raise HistoryError(f"a reader of ps{server} saw half an update: {np.flatnonzero(one != other)}")

    def _check_seen(self, seen: np.ndarray[Any, Any], before: set[int]) -> None:
        """Checks that a step has read all updates that were acknowledged, to any worker, before it began.

        Args:
          seen: the last variable of the model, as the step has read it.
          before: units of steps that were acknowledged before the step began.
        """
        if self.setting.mode not in ("asynchronous", "synchronous"):
            return  # stale gradients are dropped, or are part of a mean
        missing = [unit for unit in sorted(before - self.account.void - {NO_UNIT}) if abs(seen[unit] - 1.0) > _SLACK]
        if len(missing) > len(self._substitute_units(seen)):
            raise HistoryError(f"a step has not seen units {missing}, which were acknowledged before it began")

    def _substitute_units(self, applied: np.ndarray[Any, Any]) -> list[int]:
        """Returns the applied units that may each have replaced the unit of another worker in a synchronous round.

        These are units of steps that are in progress, or were lost. A worker may have pushed such a unit shortly before
        it was lost. If its next incarnation pushes to the same round, the round has two gradients of one worker. So the
        round is complete although the gradient of another worker is missing. The latter gradient is stale when it
        arrives.
        """
        if self.setting.mode != "synchronous":
            return []
        return [unit for unit in self.account.open | self.account.void if applied[unit] > 0.5]

    # Rules ------------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        account = self.account
        lossless = sorted(account.acknowledged - account.void - {NO_UNIT})
        if self.setting.mode == "consistent":
            self._check_means()
            return
        for server, values in self._values.items():
            for name in ("a", "b"):
                # A round of k of n gradients drops stale ones, so no unit is guaranteed.
                expected = lossless if self.setting.mode != "k of n" else []
                applied = values[f"{name}_{server}"]
                missing = [unit for unit in expected if applied[unit] < 0.5]
                if len(missing) <= len(self._substitute_units(applied)):
                    expected = sorted({*expected} - {*missing})
                account.check(f"{name} of {server}", applied, expected)

    def _check_means(self) -> None:
        """Checks that the sums of all variables are equal.

        An update adds a mean of units, whose sum is 1, to each variable. So all variables have got the same number of
        updates. Which units an update contains is not checked, because a stale gradient is dropped, such as the first
        gradient of a worker that joins during an update.
        """
        totals = {
            round(float(values[f"{name}_{server}"].sum()), 3)
            for server, values in self._values.items()
            for name in ("a", "b")
        }
        if len(totals) > 1:
            raise HistoryError(f"variables have different sums of updates: {totals}")


class _Begins(tf.train.SessionRunHook):
    """Records, when the chief starts to gather gradients, that units of earlier steps may be missing."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def after_create_session(self, session: Any, coord: Any) -> None:
        del session, coord
        self._account.lose()


class _Model:
    """The graph of a worker."""

    def __init__(self, setting: Setting, index: int) -> None:
        self.hooks: list[Any] = []
        worker = f"/job:worker/task:{index}"
        with tf.device(worker):
            self.unit = tf.placeholder(tf.float32, [UNITS], name="unit")
        parts: list[Any] = []
        self.variables: dict[str, Any] = {}
        with tf.device("/job:ps/task:0"):
            self.step = step = tf.train.get_or_create_global_step()
        for server in range(setting.servers):
            for name in ("a", "b"):
                with tf.device(f"/job:ps/task:{server}"):
                    variable = tf.get_variable(f"{name}_ps{server}", [UNITS], initializer=tf.zeros_initializer())
                with tf.device(worker):
                    # Of the last variable: its value as this step reads it, from which its gradient is computed.
                    self.seen = variable + 0.0
                    self.variables[f"{name}_ps{server}"] = variable
                    parts.append(tf.reduce_sum(variable * self.unit))
        with tf.device(worker):
            loss = -tf.add_n(parts)
            if setting.mode == "asynchronous":
                self.train = tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=step)
                return
            if setting.mode == "consistent":
                together = ConsistentOptimizer(
                    tf.train.GradientDescentOptimizer(1.0), Synchronous(workers=setting.workers)
                )
                self.train = together.minimize(loss, global_step=step)
                self.hooks.append(together.make_session_run_hook(index == 0))
                return
            needed = setting.workers if setting.mode == "synchronous" else max(1, setting.workers - 1)
            opt = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(float(needed)), needed, setting.workers
            )
            self.train = opt.minimize(loss, global_step=step)
            self.hooks.append(opt.make_session_run_hook(index == 0))


def saver_of(restored: Callable[[], None]) -> Any:
    """Returns a saver that reports each restore."""

    class Saver(tf.train.Saver):
        def restore(self, sess: Any, save_path: str | None) -> None:
            super().restore(sess, save_path)
            restored()

    return Saver()


def history(seed: int) -> tuple[Simulation, GraphHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, GraphHistory(simulation, Setting.draw(random.Random(f"graphs {seed}")))
