"""Supervisors: initialisation, restoring, waiting, serving, and their ends."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.claims import Claim
from headwater.data.io.event_file import summary_iterator
from headwater.tf1.compat import tf
from headwater.tf1.training.session_manager import SessionManager


@pytest.fixture(autouse=True)
def graph() -> Generator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def model(device: str = "") -> tuple[Any, Any]:
    """Builds a global step, and the training operation."""
    with tf.device(device):
        v = tf.Variable([1.0, 2.0], name="v")
        step = tf.train.get_or_create_global_step()
        return step, tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(v * v), global_step=step)


def wait_for_file(path: Path) -> None:
    """Waits for a file that another thread writes."""
    nothing = threading.Event()
    while not path.exists():
        nothing.wait(0.01)


def test_a_chief_initialises_saves_and_restores(tmp_path: Path) -> None:
    step, train = model()
    sv = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=3600)
    with sv.managed_session() as sess:
        for _ in range(5):
            sess.run(train)
        sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
    assert sv.should_stop()
    assert (tmp_path / "graph.pbtxt").exists()
    with tf.Graph().as_default():
        step, train = model()
        sv = tf.train.Supervisor(logdir=str(tmp_path))
        with sv.managed_session() as sess:
            assert sess.run(step) == 5
        assert sv.saver.last_checkpoints[-1] == str(tmp_path / "model.ckpt-5")


def test_services_write_checkpoints_and_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, train = model()
    summary = tf.Summary(value=[tf.Summary.Value(tag="x", simple_value=1.5)]).SerializeToString()
    sv = tf.train.Supervisor(logdir=str(tmp_path), summary_op=tf.constant(summary), save_summaries_secs=0.01)
    seen = {"x": threading.Event(), "global_step/sec": threading.Event()}
    add_summary = sv.summary_writer.add_summary

    def add_and_tell(added: Any, global_step: Any = None) -> None:
        add_summary(added, global_step)
        for value in (tf.Summary.FromString(added) if isinstance(added, bytes) else added).value:
            if value.tag in seen:
                seen[value.tag].set()

    monkeypatch.setattr(sv.summary_writer, "add_summary", add_and_tell)
    with sv.managed_session() as sess:
        wait_for_file(tmp_path / "model.ckpt-0.meta")
        for event in seen.values():
            event.wait()
        sess.run(train)
        sv.summary_computed(sess, summary)
        sv.summary_computed(sess, tf.Summary(value=[tf.Summary.Value(tag="y", simple_value=2.0)]), global_step=77)
    (events,) = tmp_path.glob("events*")
    found = list(summary_iterator(str(events)))
    assert [e.WhichOneof("what") for e in found[:4]] == ["file_version", "graph_def", "meta_graph_def", "session_log"]
    statuses = [e.session_log.status for e in found if e.HasField("session_log")]
    assert (statuses[0], tf.SessionLog.CHECKPOINT in statuses, statuses[-1]) == (
        tf.SessionLog.START,
        True,
        tf.SessionLog.STOP,
    )
    values = {(v.tag, v.simple_value, e.step) for e in found for v in e.summary.value}
    assert {("x", 1.5, 0), ("x", 1.5, 1), ("y", 2.0, 77)} <= values
    assert any(tag == "global_step/sec" for tag, _, _ in values)


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, train = model()
    sv = tf.train.Supervisor(summary_op=None, saver=None)
    with sv.managed_session() as sess:
        sess.run(train)
        with pytest.raises(RuntimeError, match="summary writer"):
            sv.summary_computed(sess, b"")
    assert sv.summary_writer is None
    assert sv.save_path is None
    assert not os.listdir(tmp_path)


def test_defaults_are_read_from_and_added_to_collections(graph: Any) -> None:
    step, _ = model()
    init = tf.global_variables_initializer()
    tf.add_to_collection(tf.GraphKeys.INIT_OP, init)
    sv = tf.train.Supervisor()
    assert sv.init_op is init
    assert sv.global_step is step
    assert graph.get_collection(tf.GraphKeys.READY_OP) == [sv.ready_op]
    assert graph.get_collection(tf.GraphKeys.SAVERS) == [sv.saver]
    assert sv.ready_for_local_init_op is None
    assert sv.summary_op is None
    assert sv.is_chief
    assert sv.save_model_secs == 600
    assert sv.save_summaries_secs == 120
    assert graph.finalized
    with pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)


def test_the_model_is_initialised_by_a_function_and_with_feeds() -> None:
    value = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    w = tf.Variable(0.0)
    assign = w.assign(7.0)
    sv = tf.train.Supervisor(
        init_op=v.assign(value).op, init_feed_dict={value: 3.0}, init_fn=lambda sess: sess.run(assign), saver=None
    )
    with sv.managed_session() as sess:
        assert sess.run([v, w]) == [3.0, 7.0]


def test_local_variables_are_initialised_in_every_session() -> None:
    local = tf.get_local_variable("local", initializer=2.0)
    sv = tf.train.Supervisor()
    for _ in range(2):
        with sv.managed_session() as sess:
            assert sess.run(local) == 2.0


def test_a_model_that_stays_uninitialised_is_an_error() -> None:
    tf.Variable(0.0, name="left_out")
    sv = tf.train.Supervisor(init_op=tf.no_op(), local_init_op=None)
    with pytest.raises(RuntimeError, match=r"did not make model ready.*not initialized: left_out"):
        sv.prepare_or_wait_for_session()


def test_nothing_to_initialise_with_is_an_error() -> None:
    tf.Variable(0.0)
    sv = tf.train.Supervisor(init_op=None, local_init_op=None)
    with pytest.raises(RuntimeError, match="no init_op"):
        sv.PrepareSession()


def test_an_error_of_the_program_is_raised_after_all_has_stopped() -> None:
    model()
    sv = tf.train.Supervisor()
    stopped = threading.Event()

    def service() -> None:
        sv.wait_for_stop()
        stopped.set()

    with pytest.raises(KeyError, match="mine"), sv.managed_session():
        sv.loop(None, service)
        raise KeyError("mine")
    assert stopped.is_set()


def test_the_end_of_the_input_ends_the_training() -> None:
    model()
    sv = tf.train.Supervisor()
    with sv.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "no more")
    assert sv.should_stop()
    sv.stop()


def test_an_error_of_a_service_is_raised() -> None:
    model()
    sv = tf.train.Supervisor()

    def fail() -> None:
        raise KeyError("service")

    with pytest.raises(KeyError, match="service"), sv.managed_session():
        sv.loop(60, fail)
        sv.wait_for_stop()


def test_queue_runners_run_and_end() -> None:
    queue = tf.FIFOQueue(3, "int64", shapes=[[]])
    count = tf.get_local_variable("count", initializer=tf.constant(0, tf.int64))
    assert isinstance(count, tf.Variable)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(count.count_up_to(4))])
    tf.train.add_queue_runner(runner)
    item = queue.dequeue()
    sv = tf.train.Supervisor()
    found: list[int] = []
    with sv.managed_session() as sess:
        while not sv.should_stop():
            found.append(int(sess.run(item)))
    assert found == [0, 1, 2, 3]


def test_a_blocked_queue_runner_is_cancelled_at_the_end() -> None:
    queue = tf.FIFOQueue(1, "int64", shapes=[[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(tf.constant(1, tf.int64))] * 2))
    item = queue.dequeue()
    sv = tf.train.Supervisor()
    with sv.managed_session() as sess:
        assert sess.run(item) == 1


def test_workers_require_variables_with_devices() -> None:
    tf.Variable(0.0, name="v")
    with pytest.raises(ValueError, match="must have their device set: v"):
        tf.train.Supervisor(is_chief=False)


def test_workers_have_no_files_and_no_services(tmp_path: Path) -> None:
    model("/job:local/task:0")
    sv = tf.train.Supervisor(is_chief=False, logdir=str(tmp_path / "logs"))
    assert (sv.summary_writer, sv.save_path, sv.save_model_secs) == (None, None, None)
    assert not (tmp_path / "logs").exists()
    with tf.Session() as session, pytest.raises(RuntimeError, match="Only chief"):
        sv.start_standard_services(session)


def test_a_worker_logs_its_wait_for_the_chief(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headwater.tf1.training.session_manager._LOG_INTERVAL_S", 0.0)
    server = tf.train.Server.create_local_server()
    said = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.set()

    logging.getLogger("headwater.tf1.training.session_manager").addHandler(listener := Listener())
    results: list[Any] = []

    def work() -> None:
        with tf.Graph().as_default():
            step, train = model("/job:local/task:0")
            sv = tf.train.Supervisor(is_chief=False, recovery_wait_secs=1)
            with sv.managed_session(server.target) as sess:
                sess.run(train)
                results.append(int(sess.run(step)))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert said.wait(60)
        model("/job:local/task:0")
        sv = tf.train.Supervisor()
        with sv.managed_session(server.target):
            worker.join()
    finally:
        logging.getLogger("headwater.tf1.training.session_manager").removeHandler(listener)
    assert results == [1]
    assert "Variables not initialized: v, global_step, v/Adagrad on /job:local/task:0" in caplog.text


def test_waiting_ends_after_its_time() -> None:
    with tf.device("/job:local/task:0"):
        tf.Variable(0.0, name="never")
    server = tf.train.Server.create_local_server()
    sv = tf.train.Supervisor(is_chief=False, recovery_wait_secs=0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="not initialized: never"):
        sv.prepare_or_wait_for_session(server.target, max_wait_secs=0)


def test_waiting_ends_where_the_job_is_over() -> None:
    with tf.device("/job:local/task:0"):
        tf.Variable(0.0, name="never")
    server = tf.train.Server.create_local_server()
    assert server._running is not None
    server._running.shell.shutdown("/job:worker/task:0 is done", Claim(), ())
    sv = tf.train.Supervisor(is_chief=False, recovery_wait_secs=0)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"job is over \(/job:worker/task:0 is done\).*: never"):
        sv.prepare_or_wait_for_session(server.target)


def test_waiting_for_a_checkpoint(tmp_path: Path) -> None:
    v = tf.Variable(3.0, name="v")
    saver = tf.train.Saver()
    ready = tf.report_uninitialized_variables()
    manager = SessionManager(ready_op=ready, recovery_wait_secs=0.01)
    with tf.Session() as sess:
        sess.run(v.initializer)

        def save() -> None:
            saver.save(sess, str(tmp_path / "m"))

        thread = threading.Thread(target=save)
        thread.start()
        restored = manager.prepare_session(
            "", saver=saver, checkpoint_dir=str(tmp_path), wait_for_checkpoint=True, max_wait_secs=60
        )
        thread.join()
    with restored:
        assert restored.run(v) == 3.0


def test_recovering(tmp_path: Path) -> None:
    v = tf.Variable(3.0, name="v")
    saver = tf.train.Saver()
    later = tf.Variable(4.0, name="later")
    manager = SessionManager(ready_op=tf.report_uninitialized_variables())
    sess, done = manager.recover_session("", saver=saver, checkpoint_dir=str(tmp_path))
    assert not done
    with sess:
        sess.run(v.initializer)
        path = saver.save(sess, str(tmp_path / "m"))
    sess, done = manager.recover_session("", saver=saver, checkpoint_filename_with_path=path)
    with sess:
        assert not done
        assert sess.run(v) == 3.0
        assert sess.run(tf.report_uninitialized_variables()).tolist() == [later.op.name.encode()]
    with pytest.raises(ValueError, match="both"):
        manager.recover_session("", saver=saver, checkpoint_dir="a", checkpoint_filename_with_path="b")


def test_a_restarted_chief_logs_the_lost_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = tf.train.Server.create_local_server()
    step, train = model()
    saver = tf.train.Saver()
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(train)
        saver.save(sess, str(tmp_path / "m"), global_step=step)
        for _ in range(4):
            sess.run(train)
    sv = tf.train.Supervisor(logdir=str(tmp_path), saver=saver, summary_op=None)
    with sv.managed_session(server.target) as sess:
        assert sess.run(step) == 1
    assert "were at step 5: 4 steps are lost" in caplog.text
