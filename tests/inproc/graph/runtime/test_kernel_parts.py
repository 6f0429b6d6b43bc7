"""Parts of plans on kernels: they compute the same as executables, and readers' values do not change later."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from headwater.graph.background import Compilation
from headwater.graph.kernels.registry import gradient_kernel_of, kernel_of
from headwater.graph.passes.plan import Node
from headwater.graph.runtime import compile, kernel_lookup, programs
from headwater.graph.runtime.mode_choice import VARIABLE
from headwater.tf1.compat import tf
from tests.support.compilations import compilations


def _trained(level: int | None = None) -> list[Any]:
    """Returns losses and weights of a small click model whose batches differ in length."""
    random = np.random.RandomState(0)
    with tf.Graph().as_default():
        bag, y = tf.sparse_placeholder(tf.int64), tf.placeholder(tf.float32, [None, 1])
        table = tf.get_variable("table", initializer=random.rand(50, 4).astype("f"))
        weights = tf.get_variable("weights", initializer=random.rand(4, 1).astype("f"))
        bags = tf.reshape(tf.nn.embedding_lookup_sparse(table, bag, None, combiner="mean"), [-1, 4])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=tf.matmul(bags, weights)))
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        config = tf.ConfigProto()
        if level is not None:
            config.graph_options.optimizer_options.global_jit_level = level
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            losses: list[Any] = []
            for size in (3, 5, 4):
                rows = np.repeat(np.arange(size), random.randint(1, 5, size))
                ids = random.randint(0, 50, len(rows))
                value = tf.SparseTensorValue(np.stack([rows, np.arange(len(rows))], 1), ids, [size, len(rows)])
                losses.append(session.run([loss, train], {bag: value, y: np.ones((size, 1))})[0])
            return [losses, *session.run([table, weights])]


def test_both_ways_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    on_kernels, in_executables = _trained(-1), _trained(1)
    for one, other in zip(on_kernels, in_executables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_first_runs_of_many_shapes_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    with compilations() as compiled:
        _trained()
    assert not list(compiled)


def test_read_values_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("variable", initializer=np.zeros(3, np.float32))
        session.run(variable.initializer)
        before, part = session.run([variable, variable[1:]])
        before[0] = 7
        after = session.run(tf.assign_add(variable, np.ones(3)))
        np.testing.assert_array_equal(part, [0, 0])
        np.testing.assert_array_equal(after, [1, 1, 1])
        np.testing.assert_array_equal(session.run(variable), [1, 1, 1])


def test_an_error_names_the_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
        product = tf.matmul(x, y, name="product")
        with pytest.raises(tf.errors.InvalidArgumentError, match="product"):
            session.run(product, {x: np.ones((2, 3)), y: np.ones((2, 3))})


@pytest.mark.parametrize("jit", ["off", "on"])
def test_a_loop_and_its_gradient(monkeypatch: pytest.MonkeyPatch, jit: str) -> None:
    monkeypatch.setenv(VARIABLE, jit)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        power = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * x), [0, x])[1]
        assert session.run([power, tf.gradients(power, x)[0]], {x: 2.0}) == [32.0, 80.0]


def _drawn() -> list[Any]:
    """Returns random numbers of all kinds in two steps: alone, in a branch, in a loop and its gradient, in a scan."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [])

        def noisy(i: Any, y: Any) -> Any:
            return i + 1, y * tf.random_uniform([], seed=3)

        power = tf.while_loop(lambda i, y: i < 4, noisy, (0, x))[1]
        tensors = [
            tf.random_normal([3, 2], 0.5, 2.0, seed=1),
            tf.random_uniform([4], -1, 1, tf.float64, seed=1),
            tf.truncated_normal([5], dtype=tf.float16, seed=2),
            tf.random_uniform([6], 0, 50, tf.int32, seed=1),
            tf.random_shuffle(tf.range(7), seed=1),
            tf.nn.dropout(tf.ones([3, 4]) * x, keep_prob=0.5, seed=1),
            tf.cond(x > 1, lambda: tf.random_normal([2], seed=1), lambda: tf.zeros([2])),
            power,
            tf.gradients(power, x)[0],
            tf.scan(lambda a, b: a + b * tf.random_uniform([2], seed=1), tf.ones([3, 2])),
            tf.map_fn(lambda row: tf.random_crop(row, [2], seed=1), tf.reshape(tf.range(12.0), [3, 4])),
        ]
        return [value for _ in range(2) for value in session.run(tensors, {x: 2.0})]


def test_random_numbers_are_those_of_executables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    in_executables = _drawn()
    monkeypatch.setenv(VARIABLE, "off")
    monkeypatch.setattr(programs, "trace", _refuse)
    for one, other in zip(_drawn(), in_executables, strict=True):
        np.testing.assert_array_equal(one, other)


def _refuse(*args: object) -> None:
    raise AssertionError(f"compiles {args}")


def test_a_forward_pass_is_compiled_once_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    switched: list[int] = []
    interval, wait = sys.getswitchinterval(), Compilation.wait

    def noted(compilation: Compilation, limit_s: float | None = None) -> None:
        wait(compilation, limit_s)
        if limit_s is None:
            switched.append(len(compiled))

    traced: list[tuple[str, threading.Thread]] = []
    trace = programs.trace

    def traced_by(node: Node, *args: Any) -> None:
        traced.append((node.name, threading.current_thread()))
        trace(node, *args)

    monkeypatch.setattr(Compilation, "wait", noted)
    monkeypatch.setattr(programs, "trace", traced_by)
    with tf.Graph().as_default(), tf.Session() as session, compilations() as compiled:
        x = tf.placeholder(tf.float32, [400, 400])
        y = tf.reduce_sum(tf.exp(tf.tanh(tf.matmul(x, x) + 1.0)))
        values = list[Any]()
        while not switched and len(values) < 10_000:
            values.append(session.run(y, {x: np.ones((400, 400))}))
        values += [session.run(y, {x: np.ones((400, 400))}) for _ in range(3)]
    assert switched == [1]
    assert len(compiled) == 1, "the run compiles again what was compiled in the background"
    names, threads = zip(*traced, strict=True)
    assert len(set(names)) == len(names), "operations are traced once"
    assert threading.current_thread() not in threads, "a step waits for the trace"
    assert sys.getswitchinterval() == interval
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def _scanned() -> list[Any]:
    """Returns values and gradients of a loop that writes two arrays, reads one of them, and writes one index twice."""
    x, start = np.linspace(-1, 1, 30).reshape(5, 2, 3).astype("f"), np.ones((2, 3), np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        rows, weights = tf.placeholder(tf.float32, [None, 2, 3]), tf.constant(np.eye(3, dtype="f") * 0.5)
        turns = tf.shape(rows)[0]
        arrays = [tf.TensorArray(tf.float32, turns, element_shape=[2, 3], clear_after_read=False) for _ in range(2)]

        def turn(at: Any, state: Any, written: Any, read: Any) -> Any:
            state = tf.tanh(tf.matmul(state, weights) + rows[at])
            read = read.write(at, state + tf.cond(at > 0, lambda: read.read(at - 1), lambda: state))
            return at + 1, state, written.write(at // 2, state), read

        loop = tf.while_loop(lambda at, *_: at < turns, turn, [0, tf.constant(start), *arrays])
        stacks = [array.stack() for array in loop[2:]]
        loss = tf.reduce_sum(stacks[0] * rows) + tf.reduce_sum(tf.square(stacks[1])) + tf.reduce_sum(loop[1])
        return session.run([loss, *stacks, *tf.gradients(loss, [rows, weights])], {rows: x})


def test_a_loop_that_writes_arrays_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Any]] = []
    for jit in ("off", "on"):
        monkeypatch.setenv(VARIABLE, jit)
        found.append(_scanned())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_loop_with_a_gradient_copies_no_array_and_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    writes: list[bool] = []
    write = kernel_of("TensorArrayWrite")
    assert write is not None

    def noted(array: Any, *args: Any, **attrs: Any) -> Any:
        result = write(array, *args, **attrs)
        writes.append(result is array)
        return result

    monkeypatch.setattr(
        kernel_lookup, "kernel_of", lambda name: noted if name == "TensorArrayWrite" else kernel_of(name)
    )
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        states = tf.scan(lambda state, row: state * row, x)
        session.run(tf.gradients(states, x), {x: np.ones((7, 2))})
    assert writes.count(False) == 2, "the element before the loop, and the first turn"
    assert len(writes) == 7


def test_a_loop_computes_only_gradients_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    spreads: list[object] = []
    spread = gradient_kernel_of("GatherV2")
    assert spread is not None

    def noted(*args: Any) -> Any:
        spreads.append(args)
        return spread(*args)

    monkeypatch.setattr(
        kernel_lookup, "gradient_kernel_of", lambda name: noted if name == "GatherV2" else gradient_kernel_of(name)
    )
    with tf.Graph().as_default(), tf.Session() as session:
        x, weight = tf.placeholder(tf.float32, [None, 2]), tf.Variable([0.5, 2.0])
        states = tf.scan(lambda state, row: state * weight + row, x)
        of_weight, of_rows = tf.gradients(states[-1], weight), tf.gradients(states[-1], x)
        session.run(tf.global_variables_initializer())
        fed = {x: np.ones((4, 2))}
        alone = session.run(of_weight, fed)
        assert not spreads, "rows are fed, and their gradient is not used"
        both = session.run([*of_weight, *of_rows], fed)
        assert spreads
    np.testing.assert_allclose(alone[0], [2.75, 17], rtol=1e-6)
    np.testing.assert_allclose(both[0], alone[0], rtol=1e-6)
    np.testing.assert_allclose(both[1], [[0.125, 8], [0.25, 4], [0.5, 2], [1, 1]], rtol=1e-6)


@pytest.mark.parametrize("static", [False, True], ids=["shapes", "static values"])
def test_the_number_of_executables_is_bounded(monkeypatch: pytest.MonkeyPatch, static: bool) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    monkeypatch.setattr(compile, "_MAX_SHAPES", 3)
    bounded = programs.ExecutableCache(1)
    for module in (programs, compile):
        monkeypatch.setattr(module, "executables", bounded)
    kept: list[compile.Executable] = []
    program_for = compile.Executable._program_for

    def noted(executable: compile.Executable, inputs: Any) -> Any:
        kept.append(executable)
        return program_for(executable, inputs)

    monkeypatch.setattr(compile.Executable, "_program_for", noted)
    with tf.Graph().as_default(), tf.Session() as session:
        total = tf.get_variable("total", initializer=0.0, use_resource=False)
        session.run(total.initializer)
        x, size = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int32, [])
        rows = tf.fill([size], 1.0) if static else x
        add = tf.assign_add(total, tf.reduce_sum(tf.exp(rows * 0.0)))
        for count in (*range(1, 9), 1):
            session.run(add, {size: count} if static else {x: np.ones(count)})
        assert session.run(total) == 37.0
    executable = kept[-1]
    assert len(executable._programs) <= 3
    assert [program.run._cache_size() for program in executable._programs.values()].count(1) == 1


def test_a_loop_with_a_growing_result_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    start = np.arange(4, dtype=np.float32).reshape(2, 2)
    with tf.Graph().as_default(), tf.Session() as session, compilations() as compiled:
        x = tf.placeholder(tf.float32, [None, None])

        def turn(at: Any, state: Any, found: Any) -> Any:
            chosen = tf.argmax(tf.nn.softmax(tf.matmul(state, state)), 1, output_type=tf.int32)
            return at + 1, tf.reshape(state, [2, -1]), tf.concat([found, chosen[:, None]], 1)

        shapes = [tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([None, None])]
        loop = tf.while_loop(lambda at, *_: at < 5, turn, [0, x, tf.zeros([2, 0], tf.int32)], shape_invariants=shapes)
        _, state, found = session.run(loop, {x: start})
    assert not compiled
    assert found.tolist() == [[1] * 5] * 2
    assert not np.shares_memory(state, start), "the program may change what it has fetched"


def test_the_least_recently_used_executables_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "on")
    bounded = programs.ExecutableCache()
    for module in (programs, compile):
        monkeypatch.setattr(module, "executables", bounded)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.exp(x)
        session.run(y, {x: np.ones(1)})
        monkeypatch.setattr(bounded, "_max_bytes", 2 * bounded._nbytes)
        for count in (2, 1, 3):
            session.run(y, {x: np.ones(count)})
        with compilations() as compiled:
            for count in (1, 3):
                session.run(y, {x: np.ones(count)})
            assert not compiled, "they ran last"
            session.run(y, {x: np.ones(2)})
            assert len(compiled) == 1
