"""``tf.test.TestCase`` and related functions: sessions, threads, random numbers, clusters, comparisons of graphs."""

from __future__ import annotations

import os
import random
import sys
import unittest
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.tf1.compat import test_util


def outcome(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_each_test_begins_with_an_empty_graph_and_the_same_numbers() -> None:
    seen: list[Any] = []

    class Case(tf.test.TestCase):
        def _look(self) -> None:
            assert not tf.get_default_graph().get_operations()
            x = tf.random_normal([], name="x")
            seen.append((random.random(), np.random.rand(), float(self.evaluate(x)), tf.get_default_graph().seed))

        def test_one(self) -> None:
            self._look()

        def test_two(self) -> None:
            self._look()

    result = outcome(Case)
    assert not result.errors, result.errors
    assert seen[0] == seen[1]
    assert [reason for _, reason in result.skipped] == ["Not a test."]


def test_a_test_that_fails_within_a_graph_leaves_nothing() -> None:
    class Case(tf.test.TestCase):
        def test_a(self) -> None:
            tf.Graph().as_default().__enter__()

        def test_b(self) -> None:
            assert not tf.get_default_graph().get_operations()

    assert not outcome(Case).errors


@pytest.fixture
def case() -> Any:
    class Case(tf.test.TestCase):
        def runTest(self) -> None: ...

    found = Case()
    found.setUp()
    yield found
    found.tearDown()


def test_sessions(case: Any) -> None:
    with case.session() as session:
        assert tf.get_default_session() is session
        assert (tf.constant(1.0) + 1.0).eval() == 2.0
        assert tf.constant(1.0).device == "/device:CPU:0"
    with pytest.raises(RuntimeError, match="closed"):
        session.run(tf.constant(1))
    with case.session(use_gpu=True):
        assert tf.constant(1.0).device == ""
    with case.session(graph=tf.Graph()) as session:
        assert tf.get_default_graph() is session.graph


def test_cached_session_stays(case: Any) -> None:
    v = tf.Variable(1.0)
    with case.cached_session() as session:
        session.run(v.initializer)
    with case.test_session() as again:
        assert again is session
        assert v.eval() == 1.0
    assert case.evaluate(v) == 1.0
    for arguments in ({"graph": tf.Graph()}, {"config": tf.ConfigProto()}, {"force_gpu": True}):
        with pytest.raises(ValueError, match=rf"The {next(iter(arguments))} used"), case.cached_session(**arguments):
            pass
    with case.test_session(config=tf.ConfigProto()) as again:
        assert again is session
    with case.test_session(graph=tf.Graph()) as other:
        assert other is not session


def test_missing_gpu_that_a_test_forces_is_an_error(case: Any) -> None:
    assert not tf.test.is_gpu_available()
    assert tf.test.gpu_device_name() == ""
    with case.session(force_gpu=True) as session:
        x = tf.constant(1.0) + 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:0"):
            session.run(x)


def test_the_build_of_jax_is_reported() -> None:
    assert tf.test.is_built_with_gpu_support() == (tf.test.is_built_with_cuda() or tf.test.is_built_with_rocm())


def test_evaluate_keeps_the_structure(case: Any) -> None:
    found = case.evaluate({"a": tf.constant(1), "b": [tf.constant([2.0])]})
    assert found["a"] == 1
    assert found["b"][0].tolist() == [2.0]


def test_checked_threads(case: Any) -> None:
    done: list[int] = []
    thread = case.checkedThread(lambda a, b: done.append(a + b), args=(1,), kwargs={"b": 2})
    thread.start()
    thread.join()
    assert done == [3]
    assert not thread.is_alive()
    bad = case.checkedThread(lambda: 1 // 0)
    bad.start()
    with pytest.raises(AssertionError, match="Error in checkedThread: integer division"):
        bad.join()


def test_threads_have_to_be_joined() -> None:
    class Case(tf.test.TestCase):
        def test_it(self) -> None:
            self.checkedThread(lambda: None).start()

    (failure,) = outcome(Case).failures
    assert "A checked thread was not joined." in failure[1]


def test_folders(case: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TEST_TMPDIR", str(tmp_path / "t"))
    assert tf.test.get_temp_dir() == str(tmp_path / "t")
    folder = case.get_temp_dir()
    assert folder == case.get_temp_dir()
    assert os.path.dirname(folder) == str(tmp_path / "t")
    monkeypatch.setenv("TEST_SRCDIR", "/src")
    assert tf.test.test_src_dir_path("a/b") == "/src/a/b"


def test_captured_writes(case: Any, capfd: pytest.CaptureFixture[str]) -> None:
    del capfd  # replaces the descriptor of standard error
    with case.captureWritesToStream(sys.stderr) as printed:
        os.write(sys.stderr.fileno(), b"direct\n")
        print("through python", file=sys.stderr)
        sys.stderr.flush()
        assert "direct" in printed.contents()
    assert printed.contents() == "direct\nthrough python\n"


def test_local_cluster() -> None:
    workers, servers = tf.test.create_local_cluster(num_workers=2, num_ps=1)
    try:
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(1.0)
            with tf.device("/job:worker/task:1"):
                up = v.assign_add(1.0)
            with tf.Session(workers[0].target) as session:
                session.run(v.initializer)
                assert session.run(up) == 2.0
            with tf.Session(workers[1].target) as session:
                assert session.run(v) == 2.0
    finally:
        for server in (*workers, *servers):
            server.stop()
    assert "HEADWATER_LISTEN_FDS" not in os.environ


def _graph(value: float, name: str = "c") -> Any:
    with tf.Graph().as_default() as graph:
        tf.constant(value, name=name)
        tf.no_op(name="n")
    return graph.as_graph_def()


def test_graphs_compared() -> None:
    tf.test.assert_equal_graph_def(_graph(1.0), _graph(1.0))
    with pytest.raises(AssertionError, match="'c' differs"):
        tf.test.assert_equal_graph_def(_graph(1.0), _graph(2.0))
    with pytest.raises(AssertionError, match="'d' is not expected"):
        tf.test.assert_equal_graph_def(_graph(1.0, "d"), _graph(1.0))
    with pytest.raises(TypeError, match=r"expected tf.GraphDef, got str"):
        tf.test.assert_equal_graph_def("x", _graph(1.0))


def test_decorators_run_tests_in_graphs() -> None:
    seen: list[Any] = []

    @test_util.run_all_in_graph_and_eager_modes
    class Case(test_util.TensorFlowTestCase):
        def test_it(self) -> None:
            seen.append(tf.get_default_session())

    class Other(tf.test.TestCase):
        @test_util.run_v1_only("no reason")
        def test_one(self) -> None:
            seen.append("one")

        @test_util.run_in_graph_and_eager_modes(use_gpu=False)
        def test_two(self) -> None:
            seen.append(tf.constant(1.0).device)

    assert not outcome(Case).errors
    assert not outcome(Other).errors
    assert isinstance(seen[0], tf.Session)
    assert seen[1:] == ["one", "/device:CPU:0"]
