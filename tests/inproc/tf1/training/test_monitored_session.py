"""Monitored sessions and their hooks."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.data.io.event_file import summary_iterator
from headwater.errors import GaveUpError
from headwater.tf1.compat import tf
from headwater.tf1.training.file_writer import FileWriterCache
from headwater.tf1.training.monitored_wrappers import RecoverableSession


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph
    FileWriterCache.clear()


class Train:
    """Builds a small model: its global step, its loss, and the training operation."""

    def __init__(self, device: str = "") -> None:
        with tf.device(device):
            self.v = tf.Variable([1.0, 2.0], name="v")
            self.step = tf.train.get_or_create_global_step()
            self.loss = tf.reduce_sum(self.v * self.v, name="loss")
            optimizer = tf.train.GradientDescentOptimizer(0.125)
            self.op = optimizer.minimize(self.loss, global_step=self.step)


class Recorder(tf.train.SessionRunHook):
    """Records calls of its methods."""

    def __init__(self, fetches: Any = None, feed_dict: Any = None) -> None:
        self.calls: list[str] = []
        self.results: list[Any] = []
        self._args = tf.train.SessionRunArgs(fetches, feed_dict)

    def begin(self) -> None:
        self.calls.append("begin")

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("after_create_session")

    def before_run(self, run_context: Any) -> Any:
        self.calls.append("before_run")
        return self._args

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.calls.append("after_run")
        self.results.append(run_values.results)

    def end(self, session: Any) -> None:
        self.calls.append("end")


def checkpoints(folder: Path) -> list[int]:
    return sorted(int(path.name[11:-6]) for path in folder.glob("model.ckpt-*.index"))


def summaries(folder: Path) -> list[tuple[str, int]]:
    FileWriterCache.clear()
    return [
        (v.tag, e.step) for path in folder.glob("events*") for e in summary_iterator(str(path)) for v in e.summary.value
    ]


def test_order_of_calls() -> None:
    train, hook = Train(), Recorder()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        assert not sess.should_stop()
        sess.run(train.op)
    assert hook.calls == ["begin", "after_create_session", "before_run", "after_run", "end"]
    assert sess.should_stop()


def test_hooks_fetch_and_feed() -> None:
    x = tf.placeholder(tf.float32, [])
    y = x * 2.0
    z = y + 1.0
    hooks = [Recorder(fetches={"y": y}, feed_dict={x: 3.0}), Recorder(fetches=[x])]
    with tf.train.MonitoredSession(hooks=[*hooks, tf.train.FeedFnHook(dict)]) as sess:
        assert sess.run(z) == 7.0
    assert hooks[0].results == [{"y": 6.0}]
    assert hooks[1].results == [[3.0]]


def test_one_tensor_is_fed_once() -> None:
    x = tf.placeholder(tf.float32, [])
    hooks = [Recorder(feed_dict={x: 3.0}), Recorder(feed_dict={x: 3.0})]
    with tf.train.MonitoredSession(hooks=hooks[:1]) as sess, pytest.raises(RuntimeError, match="Hook and user"):
        sess.run(x, {x: 1.0})
    with tf.train.MonitoredSession(hooks=hooks) as sess, pytest.raises(RuntimeError, match="two hooks"):
        sess.run(x)


def test_the_graph_can_grow_again_afterwards(graph: Any) -> None:
    Train()
    with tf.train.MonitoredSession(), pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)
    tf.constant(1)


def test_the_end_of_the_input_ends_the_block() -> None:
    hook = Recorder()
    with tf.train.MonitoredSession(hooks=[hook]):
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert hook.calls[-1] == "end"


def test_errors_leave_the_block_without_the_hooks_end() -> None:
    hook = Recorder()
    with pytest.raises(KeyError), tf.train.MonitoredSession(hooks=[hook]):
        raise KeyError("x")
    assert "end" not in hook.calls


def test_closing_twice_and_running_afterwards() -> None:
    train = Train()
    sess = tf.train.MonitoredSession()
    sess.close()
    with pytest.raises(RuntimeError, match="already closed"):
        sess.close()
    with pytest.raises((RuntimeError, AttributeError)):
        sess.run(train.op)


def test_programs_unwrap_the_plain_session(tmp_path: Path) -> None:
    tf.train.get_or_create_global_step()
    saver = tf.train.Saver()
    with tf.train.MonitoredTrainingSession() as monitored:
        session: Any = monitored
        while type(session).__name__ != "Session":
            session = session._sess
        assert session is monitored._tf_sess()
        assert saver.save(session, str(tmp_path / "own")) == str(tmp_path / "own")


def test_stopping_at_a_step() -> None:
    train = Train()
    step = None
    for arguments, last in (({"last_step": 3}, 3), ({"num_steps": 4}, 4)):
        with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(**arguments)]) as sess:
            while not sess.should_stop():
                _, step = sess.run([train.op, train.step])
            with pytest.raises(RuntimeError, match="after should_stop"):
                sess.run(train.op)
        assert step == last


def test_saving_session_saves_at_sigterm_until_it_is_closed(tmp_path: Path) -> None:
    Train()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    hook = tf.train.CheckpointSaverHook(str(tmp_path / "other"), save_steps=100)
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), hooks=[hook]):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(ZeroDivisionError), tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)):
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    # The program's own setting for SIGTERM is kept.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with tf.Graph().as_default():
            Train()
            with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)):
                assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_a_training_session_saves_restores_and_summarises(tmp_path: Path) -> None:
    train = Train()
    arguments: dict[str, Any] = {
        "checkpoint_dir": str(tmp_path),
        "save_checkpoint_steps": 4,
        "save_summaries_steps": None,
        "save_summaries_secs": None,
        "log_step_count_steps": 5,
    }
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(last_step=10)], **arguments) as sess:
        while not sess.should_stop():
            sess.run(train.op)
    assert checkpoints(tmp_path) == [0, 4, 8, 10]
    assert summaries(tmp_path) == [("global_step/sec", 6)]
    with tf.train.MonitoredTrainingSession(hooks=[tf.train.StopAtStepHook(num_steps=1)], **arguments) as sess:
        assert sess.run(train.step) == 10


def test_summaries_every_so_many_steps(tmp_path: Path) -> None:
    train = Train()
    summary = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.0)]).SerializeToString()
    hook = tf.train.SummarySaverHook(save_steps=2, output_dir=str(tmp_path), summary_op=tf.constant(summary))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(5):
            sess.run(train.op)
    assert summaries(tmp_path) == [("x", 1), ("x", 3), ("x", 5)]


def test_listeners_of_checkpoints(tmp_path: Path) -> None:
    calls: list[Any] = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self) -> None:
            calls.append("begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            calls.append(("before", global_step_value))

        def after_save(self, session: Any, global_step_value: int) -> bool:
            calls.append(("after", global_step_value))
            return global_step_value >= 2

        def end(self, session: Any, global_step_value: int) -> None:
            calls.append(("end", global_step_value))

    train = Train()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, saver=tf.train.Saver(), listeners=[Listener()], checkpoint_basename="model.ckpt"
    )
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        while not sess.should_stop():
            sess.run(train.op)
    assert calls == ["begin", ("before", 0), ("after", 0), ("before", 2), ("after", 2), ("end", 2)]


def test_a_loss_that_is_no_number() -> None:
    loss = tf.placeholder(tf.float32, [])
    fails = tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss)])
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss"), fails as sess:
        sess.run(loss, {loss: 1.0})
        sess.run(loss, {loss: float("nan")})
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss, fail_on_nan_loss=False)]) as sess:
        sess.run(loss, {loss: float("nan")})
        assert sess.should_stop()


def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    train = Train()
    hooks = [
        tf.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=2),
        tf.train.LoggingTensorHook([train.step], at_end=True, formatter=lambda values: f"at the end {values}"),
    ]
    with caplog.at_level(logging.INFO), tf.train.MonitoredSession(hooks=hooks) as sess:
        for _ in range(3):
            sess.run(train.op)
    lines = [record.getMessage() for record in caplog.records if "basic_session_run_hooks" in record.name]
    assert lines[0] == "loss = 5.0"
    assert lines[1].startswith("loss = 1.58")
    assert lines[1].endswith(" sec)")
    assert lines[2].startswith("at the end {")
    assert len(lines) == 3


def test_final_operations_and_waiting() -> None:
    train = Train()
    final = tf.train.FinalOpsHook([train.step])
    with tf.train.MonitoredSession(hooks=[final, tf.train.GlobalStepWaiterHook(0)]) as sess:
        sess.run(train.op)
    assert final.final_ops_values == [1]


def test_profiles(tmp_path: Path) -> None:
    train = Train()
    hook = tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(4):
            sess.run(train.op)
    (file,) = tmp_path.glob("timeline-*.json")
    assert file.name == "timeline-3.json"
    first, *others = json.loads(file.read_text())["traceEvents"]
    assert first["args"]["name"] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert "Executable" in {event["name"] for event in others}


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: tf.train.StopAtStepHook(), ValueError),
        (lambda: tf.train.StopAtStepHook(1, 2), ValueError),
        (lambda: tf.train.LoggingTensorHook([]), ValueError),
        (lambda: tf.train.LoggingTensorHook([], every_n_iter=0), ValueError),
        (lambda: tf.train.LoggingTensorHook([], every_n_iter=1, every_n_secs=1), ValueError),
        (lambda: tf.train.CheckpointSaverHook("x"), ValueError),
        (
            lambda: tf.train.CheckpointSaverHook(
                "x", save_secs=1, saver=tf.train.Saver(defer_build=True), scaffold=tf.train.Scaffold()
            ),
            ValueError,
        ),
        (lambda: tf.train.StepCounterHook(1, 1), ValueError),
        (lambda: tf.train.SummarySaverHook(1), ValueError),
        (lambda: tf.train.SecondOrStepTimer(1, 1), ValueError),
    ],
)
def test_bad_arguments(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_a_hook_that_needs_the_global_step_says_so() -> None:
    with pytest.raises(RuntimeError, match="Global step should be created to use StopAtStepHook"):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(1)])


def test_scaffold() -> None:
    value = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    init = v.assign(value).op
    seen: list[Any] = []
    scaffold = tf.train.Scaffold(
        init_op=init, init_feed_dict={value: 4.0}, init_fn=lambda scaffold, sess: seen.append((scaffold, sess.run(v)))
    )
    copied = tf.train.Scaffold(copy_from_scaffold=scaffold)
    creator = tf.train.ChiefSessionCreator(copied)
    with tf.train.MonitoredSession(creator) as sess:
        assert sess.run(v) == 4.0
    assert seen == [(copied, 4.0)]
    assert copied.init_op is init
    tf.add_to_collection(tf.GraphKeys.INIT_OP, init)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, init)
    with pytest.raises(RuntimeError, match="More than one item"):
        tf.train.Scaffold().finalize()


def test_queue_runners_and_their_errors() -> None:
    queue = tf.FIFOQueue(3, "int64", shapes=[[]])
    count = tf.get_local_variable("count", initializer=tf.constant(0, tf.int64))
    assert isinstance(count, tf.Variable)
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(count.count_up_to(3))]))
    item = queue.dequeue()
    found: list[int] = []
    with tf.train.MonitoredSession() as sess:
        while not sess.should_stop():
            found.append(int(sess.run(item)))
    assert found == [0, 1, 2]


class Flaky(tf.train.SessionCreator):
    """A session creator whose first session loses a task in its second step."""

    def __init__(self) -> None:
        self.made = 0

    def create_session(self) -> Any:
        self.made += 1
        if self.made == 2:
            raise tf.errors.UnavailableError(None, None, "not back yet")
        creator = tf.train.ChiefSessionCreator()
        session = creator.create_session()
        if self.made == 1:
            run, steps = session.run, iter(range(100))

            def lossy(
                fetches: object, feed_dict: Any = None, options: object = None, run_metadata: object = None
            ) -> Any:
                if next(steps) == 1:
                    raise tf.errors.AbortedError(None, None, "ps restarted")
                return run(fetches, feed_dict, options, run_metadata)

            session.run = lossy
        return session


def test_recovery_from_lost_tasks() -> None:
    train, hook, creator = Train(), Recorder(), Flaky()
    with tf.train.MonitoredSession(creator, hooks=[hook]) as sess:
        steps = [int(sess.run([train.op, train.step])[1]) for _ in range(3)]
    assert creator.made == 3
    assert steps == [1, 1, 2]
    assert hook.calls.count("after_create_session") == 2
    assert hook.calls.count("begin") == 1


def test_recovery_can_be_disabled() -> None:
    train = Train()
    with tf.train.SingularMonitoredSession() as sess:
        assert sess.run(train.step) == 0
        assert sess.raw_session().run(train.step) == 0


def test_step_functions() -> None:
    train, hook = Train(), Recorder()
    with tf.train.MonitoredSession(hooks=[hook]) as sess:

        def step(step_context: Any) -> Any:
            step_context.session.run(train.op)
            return step_context.run_with_hooks(train.step)

        assert sess.run_step_fn(step) == 1
        assert hook.calls.count("before_run") == 1
        with pytest.raises(ValueError, match="step_context"):
            sess.run_step_fn(lambda other: None)

        def stop(step_context: Any) -> None:
            step_context.request_stop()

        sess.run_step_fn(stop)
    assert sess.should_stop()


def test_a_worker_waits_for_its_chief() -> None:
    server = tf.train.Server.create_local_server()
    train = Train("/job:local/task:0")
    with tf.Graph().as_default():
        Train("/job:local/task:0")
        with pytest.raises(tf.errors.DeadlineExceededError, match="not initialized"):
            tf.train.MonitoredTrainingSession(server.target, is_chief=False, max_wait_secs=0)
    with tf.train.MonitoredTrainingSession(server.target) as sess:
        sess.run(train.op)
        with tf.Graph().as_default():
            other = Train("/job:local/task:0")
            with tf.train.MonitoredTrainingSession(server.target, is_chief=False) as worker:
                assert worker.run(other.step) == 1


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_task_that_never_connected_is_not_awaited_again() -> None:
    made: list[int] = []

    def create() -> Any:
        made.append(1)
        raise GaveUpError(None, None, "gave up waiting for /job:ps/task:0")

    with pytest.raises(GaveUpError, match="gave up waiting"):
        RecoverableSession(create)
    assert len(made) == 1


def test_a_session_that_cannot_be_made_again_is_given_up_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_CONNECT_DEADLINE_S", "8")
    clock = Clock()
    created: list[float] = []

    class Lost:
        def run(self, *args: Any) -> Any:
            raise tf.errors.UnavailableError(None, None, "it is lost")

        def close(self) -> None: ...

    def create() -> Any:
        created.append(clock.now)
        if len(created) == 1:
            return Lost()
        clock.now += 4
        raise GaveUpError(None, None, "gave up waiting for /job:ps/task:0")

    session = RecoverableSession(create, clock=clock)
    with pytest.raises(GaveUpError, match="gave up waiting"):
        session.run(None)
    assert created == [0, 0, 4]
