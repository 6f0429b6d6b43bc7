"""Synchronous replicas: n workers train like one worker with n times the batch."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf
from headwater.tf1.training.gathering import UpdateRunner
from tests.inproc.conftest import StartCluster

STEPS = 5
PARAMETER_SERVERS = 2


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


class Model:
    """A linear model and a table of embeddings, trained by gradient descent with momentum.

    Args:
      replica: the worker's index; None: all on one task.
      wrap: wraps the optimizer in another one.
    """

    def __init__(self, replica: int | None = None, wrap: Callable[[Any], Any] = lambda opt: opt) -> None:
        ps_tasks = 0 if replica is None else PARAMETER_SERVERS
        with tf.device(tf.train.replica_device_setter(ps_tasks, worker_device=f"/job:worker/task:{replica}")):
            self.x = tf.placeholder(tf.float32, [None, 3])
            self.rows = tf.placeholder(tf.int32, [None])
            self.weight = tf.Variable([[1.0], [2.0], [3.0]], name="weight")
            self.table = tf.Variable([[1.0], [2.0], [3.0], [4.0]], name="table")
            self.step = tf.train.get_or_create_global_step()
            errors = tf.square(tf.matmul(self.x, self.weight) - 1.0)
            self.loss = tf.reduce_mean(errors) + tf.reduce_mean(tf.square(tf.gather(self.table, self.rows)))
            self.opt = wrap(tf.train.MomentumOptimizer(0.125, 0.5))
            self.train = self.opt.minimize(self.loss, global_step=self.step)

    def feed(self, batch: tuple[Any, Any]) -> dict[Any, Any]:
        return {self.x: batch[0], self.rows: batch[1]}


def batches(replica: int) -> list[tuple[Any, Any]]:
    random = np.random.RandomState(replica)
    return [(random.uniform(-1, 1, (4, 3)).astype("float32"), random.randint(0, 4, 4)) for _ in range(STEPS)]


def of_all(replicas: int) -> list[Any]:
    """Returns the batches of all replicas together."""
    return [
        tuple(map(np.concatenate, zip(*step, strict=True))) for step in zip(*map(batches, range(replicas)), strict=True)
    ]


def sync(aggregate: int, total: int, **arguments: Any) -> Callable[[Any], Any]:
    return lambda opt: tf.train.SyncReplicasOptimizer(opt, aggregate, total, **arguments)


def together(*workers: Callable[[], Any]) -> list[Any]:
    """Runs each action in its own thread; returns their results. Raises the first error, for which other threads may
    wait.
    """
    ended: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def run(index: int) -> None:
        try:
            ended.put((index, workers[index]()))
        except BaseException as error:  # noqa: BLE001 - raised below
            ended.put((index, error))

    for index in range(len(workers)):
        threading.Thread(target=run, args=(index,), daemon=True).start()
    results: dict[int, Any] = {}
    while len(results) < len(workers):
        index, results[index] = ended.get()
        if isinstance(results[index], BaseException):
            raise results[index]
    return [results[index] for index in range(len(workers))]


def session(targets: Any, model: Model, replica: int) -> Any:
    """Returns the monitored session of one worker; the first is the chief."""
    hook = model.opt.make_session_run_hook(replica == 0)
    return tf.train.MonitoredTrainingSession(targets[f"worker:{replica}"], replica == 0, hooks=[hook])


def worker(targets: Any, replica: int, aggregate: int, total: int) -> Callable[[], Any]:
    """Runs a worker with its own graph and session, and the batches of ``replica``; returns the final variables."""

    def run() -> Any:
        with tf.Graph().as_default():
            model = Model(replica, sync(aggregate, total))
            with session(targets, model, replica) as sess:
                for batch in batches(replica):
                    sess.run(model.train, model.feed(batch))
                return sess.run([model.weight, model.table, model.step])

    return run


@pytest.mark.parametrize("replicas", [1, 3])
def test_same_values_as_one_process_with_all_batches(start_cluster: StartCluster, replicas: int) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=replicas).targets
    results = together(*(worker(targets, replica, replicas, replicas) for replica in range(replicas)))
    alone = Model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for batch in of_all(replicas):
            sess.run(alone.train, alone.feed(batch))
        expected = sess.run([alone.weight, alone.table])
    for weight, table, step in results:
        assert step == STEPS
        np.testing.assert_allclose(weight, expected[0], rtol=1e-5)
        np.testing.assert_allclose(table, expected[1], rtol=1e-5)


def test_more_gradients_than_replicas(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=1).targets
    model = Model(0, sync(2, 1))
    with session(targets, model, 0) as sess:
        for batch in batches(0)[:4]:
            sess.run(model.train, model.feed(batch))
        assert sess.run(model.step) == 2


def test_fewer_gradients_than_replicas_need_no_wait(start_cluster: StartCluster) -> None:
    # Two gradients are enough, and the third worker never pushes one.
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    results = together(worker(targets, 0, 2, 3), worker(targets, 1, 2, 3))
    assert [step for _, _, step in results] == [STEPS, STEPS]


def test_a_late_gradient_is_dropped(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    model = Model(0, sync(1, 2))
    batch = model.feed(batches(0)[0])
    with session(targets, model, 0) as chief, tf.Graph().as_default():
        other = Model(1, sync(1, 2))
        with session(targets, other, 1) as late:
            for _ in range(3):
                chief.run(model.train, batch)
            before = chief.run(model.weight)
            # Its gradient is of step 0, which is over: nothing changes, and from now on the worker is at step 3.
            late.run(other.train, other.feed(batches(1)[0]))
            assert late.run(other.step) == 3
            np.testing.assert_array_equal(chief.run(model.weight), before)
            late.run(other.train, other.feed(batches(1)[0]))
            assert late.run(other.step) == 4


def test_an_older_checkpoint_is_restored_while_a_replica_waits(start_cluster: StartCluster, tmp_path: Path) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    steps: list[int] = []
    trained = threading.Condition()

    def other() -> None:
        with tf.Graph().as_default():
            model = Model(1, sync(2, 2))
            with session(targets, model, 1) as sess:
                while not steps or steps[-1] < 8:
                    sess.run(model.train, model.feed(batches(1)[0]))
                    with trained:
                        steps.append(int(sess.run(model.step)))
                        trained.notify_all()

    def chief(until: int) -> None:
        with tf.Graph().as_default():
            model = Model(0, sync(2, 2))
            hooks = [model.opt.make_session_run_hook(True)]
            with tf.train.MonitoredTrainingSession(
                targets["worker:0"],
                hooks=hooks,
                checkpoint_dir=str(tmp_path),
                save_checkpoint_steps=2,
                save_summaries_steps=0,
                log_step_count_steps=0,
            ) as sess:
                while sess.run(model.step) < until:
                    sess.run(model.train, model.feed(batches(0)[0]))

    worker = threading.Thread(target=other)
    worker.start()
    chief(4)
    tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "model.ckpt-2"))  # as after the death of a chief
    chief(8)
    worker.join()
    assert steps[-1] >= 8


def test_chief_restarts_while_a_replica_waits(start_cluster: StartCluster) -> None:
    """A gradient of the previous incarnation is in the accumulators for the same step: it does not count twice."""
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    model = Model(0, sync(2, 2))
    with tf.Graph().as_default():
        other = Model(1, sync(2, 2))
    with session(targets, model, 0) as chief, tf.Session(targets["worker:1"], graph=other.step.graph) as late:
        late.run(other.opt.local_step_init_op)
        chief.run_step_fn(lambda step_context: step_context.session.run(model.opt.chief_init_op))
        with pytest.raises(
            tf.errors.AbortedError, match=r"restarted the training at step 0: the step of this replica is void"
        ):
            late.run(other.train, other.feed(batches(1)[0]))
        late.run(other.opt.local_step_init_op)
        together(
            lambda: late.run(other.train, other.feed(batches(1)[0])),
            lambda: chief.run(model.train, model.feed(batches(0)[0])),
        )
        assert late.run(other.step) == 1


def test_workers_waiting_for_updates_receive_the_reason_of_their_end() -> None:
    queue = tf.FIFOQueue(1, [tf.int32])
    waits = queue.dequeue()
    fails = tf.train.Saver([tf.Variable(1.0)]).saver_def.restore_op_name
    runner = UpdateRunner(tf.get_default_graph().get_operation_by_name(fails))
    coord = tf.train.Coordinator()
    with tf.Session() as sess:
        runner.create_threads(sess, coord=coord, start=True)
        for _ in range(2):  # while it waits, or at its next request
            with pytest.raises(tf.errors.OpError) as heard:
                sess.run(waits)
            assert not isinstance(heard.value, tf.errors.CancelledError)
    assert coord.wait_for_stop()
    with pytest.raises(type(heard.value)):
        coord.join()


class LosesUpdates(tf.train.SessionCreator, tf.train.SessionRunHook):
    """Makes sessions. In the first one, the update thread notices the loss of a ps while this hook waits for values.

    Args:
      when: the method in which the hook waits.
    """

    def __init__(self, when: str) -> None:
        self.made = 0
        self._when = when
        self._waiting = threading.Event()
        self._never = tf.FIFOQueue(1, [tf.int32]).dequeue()
        tf.train.add_queue_runner(UpdateRunner(tf.no_op()))

    def create_session(self) -> Any:
        self.made += 1
        made = tf.train.ChiefSessionCreator().create_session()
        if self.made == 1:

            def update() -> None:
                self._waiting.wait()
                raise tf.errors.AbortedError(None, None, "a ps was restarted")

            made.make_repeated = lambda enqueue_op, block: update
        return made

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._wait(session, "begin")

    def end(self, session: Any) -> None:
        self._wait(session, "end")

    def _wait(self, session: Any, when: str) -> None:
        if self.made == 1 and self._when == when:
            self._waiting.set()
            session.run(self._never)


def test_a_ps_is_lost_at_the_end() -> None:
    """For example while the last checkpoint is written: the error that the update thread noticed first is raised."""
    lost = LosesUpdates("end")
    with pytest.raises(tf.errors.AbortedError, match="a ps was restarted"), tf.train.MonitoredSession(lost, [lost]):
        pass


def test_a_ps_is_lost_when_hooks_begin() -> None:
    """A hook notices that the session is over: another session is created."""
    lost = LosesUpdates("begin")
    with tf.train.MonitoredSession(lost, [lost]):
        assert lost.made == 2


def until_step(model: Model, sess: Any, step: int) -> None:
    """Reads the global step until it is ``step``: the chief's update thread does not announce its updates."""
    while sess.run(model.step) != step:
        pass


def test_one_thread_drives_two_replicas_with_tokens(start_cluster: StartCluster) -> None:
    """The same as TensorFlow 1.15, step by step: the first tokens are of step 0, so the second gradients are stale."""
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=2).targets
    models: list[Model] = []
    sessions: list[Any] = []
    for replica in range(2):
        with tf.Graph().as_default():
            models.append(Model(replica, sync(2, 2)))
            hook = models[replica].opt.make_session_run_hook(replica == 0, num_tokens=2)
            target = targets[f"worker:{replica}"]
            sessions.append(tf.train.MonitoredTrainingSession(target, replica == 0, hooks=[hook]))
    local = [model.step.graph.get_tensor_by_name("sync_rep_local_step:0") for model in models]

    def run(replica: int, batch: int) -> None:
        sessions[replica].run(models[replica].train, models[replica].feed(batches(replica)[batch]))

    def local_steps() -> list[int]:
        return [int(sess.run(step)) for sess, step in zip(sessions, local, strict=True)]

    alone = Model()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        expected = []
        for batch in (of_all(2)[0], of_all(2)[2]):
            sess.run(alone.train, alone.feed(batch))
            expected.append(sess.run(alone.weight))
    run(0, 0)
    run(1, 0)
    until_step(models[1], sessions[1], 1)
    np.testing.assert_allclose(sessions[1].run(models[1].weight), expected[0], rtol=1e-5)
    assert local_steps() == [0, 0]
    run(0, 1)
    run(1, 1)
    assert local_steps() == [1, 1]
    assert sessions[0].run(models[0].step) == 1
    together(lambda: run(0, 2), lambda: run(1, 2))
    assert local_steps() == [2, 2]
    assert sessions[0].run(models[0].step) == 2
    np.testing.assert_allclose(sessions[0].run(models[0].weight), expected[1], rtol=1e-5)
    for session_of_one in reversed(sessions):
        session_of_one.close()


def test_a_replica_continues_with_the_tokens_of_an_absent_one(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=1).targets
    model = Model(0, sync(2, 2))
    hook = model.opt.make_session_run_hook(True, num_tokens=2)
    with tf.train.MonitoredTrainingSession(targets["worker:0"], hooks=[hook]) as sess:
        for _ in range(20):
            sess.run(model.train, model.feed(batches(0)[0]))
        # An update takes two gradients. The third is also of step 0: it is stale, or part of the same update. The last
        # one is alone.
        assert sess.run(model.step) == 9


def test_moving_averages_follow(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=1, worker=1).targets
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.device(tf.train.replica_device_setter(1, worker_device="/job:worker/task:0")):
        v = tf.Variable(1.0, name="v")
        step = tf.train.get_or_create_global_step()
        inner = tf.train.GradientDescentOptimizer(1.0)
        opt = tf.train.SyncReplicasOptimizer(inner, 1, 1, variable_averages=average, variables_to_average=[v])
        train = opt.minimize(v * 2.0, global_step=step)
    hook = opt.make_session_run_hook(True)
    with tf.train.MonitoredTrainingSession(targets["worker:0"], hooks=[hook]) as sess:
        for _ in range(3):
            sess.run(train)
        assert sess.run(v) == -5.0
        # The average may be updated after the next step begins, but before the next update.
        assert sess.run(average.average(v)) in (-1.5, -3.25)


def test_under_a_supervisor_as_it_was_done_first(start_cluster: StartCluster) -> None:
    targets = start_cluster(ps=PARAMETER_SERVERS, worker=1).targets
    model = Model(0, sync(1, 1, name="mnist_sync_replicas"))
    queue_runner = model.opt.get_chief_queue_runner()
    init_tokens = model.opt.get_init_tokens_op()
    sv = tf.train.Supervisor(
        is_chief=True,
        init_op=tf.global_variables_initializer(),
        local_init_op=model.opt.chief_init_op,
        ready_for_local_init_op=model.opt.ready_for_local_init_op,
        recovery_wait_secs=1,
        global_step=model.step,
    )
    sess = sv.prepare_or_wait_for_session(targets["worker:0"])
    sess.run(init_tokens)
    sv.start_queue_runners(sess, [queue_runner])
    for batch in batches(0):
        sess.run(model.train, model.feed(batch))
    assert sess.run(model.step) == STEPS
    sv.stop()
    sess.close()


def test_slots_and_variables_are_the_inner_ones() -> None:
    model = Model(None, sync(1, 1))
    assert model.opt.get_slot_names() == ["momentum"]
    assert model.opt.get_slot(model.weight, "momentum").name == "weight/Momentum:0"
    assert [v.name for v in model.opt.variables()] == ["table/Momentum:0", "weight/Momentum:0"]
    names = {v.name for v in tf.global_variables()}
    assert names == {"weight:0", "table:0", "global_step:0", "weight/Momentum:0", "table/Momentum:0"}
    assert [v.op.name for v in tf.local_variables()] == ["sync_rep_local_step"]


def test_errors() -> None:
    v = tf.Variable(1.0)
    opt = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 3, 1)
    with pytest.raises(ValueError, match="after apply_gradients"):
        opt.get_chief_queue_runner()
    with pytest.raises(ValueError, match="after apply_gradients"):
        opt.get_init_tokens_op()
    with pytest.raises(ValueError, match="before using the hook"):
        opt.make_session_run_hook(True).begin()
    with pytest.raises(ValueError, match="Global step is required"):
        opt.minimize(v * 2.0)
    with pytest.raises(ValueError, match="at least one variable"):
        opt.apply_gradients([], global_step=tf.train.get_or_create_global_step())
    opt.minimize(v * 2.0, global_step=tf.train.get_global_step())
    with pytest.raises(ValueError, match="Too few tokens"):
        opt.get_init_tokens_op(num_tokens=1)


def test_the_constructor_of_old() -> None:
    opt = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(1.0), replicas_to_aggregate=2, replica_id=0, total_num_replicas=2
    )
    opt.minimize(tf.Variable(1.0) * 2.0, global_step=tf.train.get_or_create_global_step())
    assert opt.get_clean_up_op().type == "NoOp"
