"""Effects of building a graph beyond single operations: names, devices, groups, gradient functions, old spellings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headwater import tf


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


class TestOperators:
    def test_an_array_on_the_left(self) -> None:
        tensor = tf.constant([1.0, 2.0])
        result = np.array([3.0, 4.0], np.float32) * tensor
        assert isinstance(result, tf.Tensor)
        np.testing.assert_array_equal(run(result), [3, 8])

    def test_a_number_takes_the_tensors_type(self) -> None:
        assert (2 * tf.constant(1.5, tf.float64)).dtype == tf.float64
        assert (1 - tf.constant(3, tf.int64)).dtype == tf.int64

    def test_equality_is_identity(self) -> None:
        one, other = tf.constant(1), tf.constant(1)
        assert one != other
        assert len({one, other}) == 2

    def test_a_tensor_as_an_index_needs_no_new_executable(self) -> None:
        rows = tf.constant(np.arange(12.0).reshape(4, 3))
        place = tf.placeholder(tf.int32, [])
        taken = rows[place], rows[place, :], rows[:, place]
        with tf.Session() as session:
            for index in range(3):
                first, second, third = session.run(taken, {place: index})
                np.testing.assert_array_equal(first, np.arange(3) + 3 * index)
                np.testing.assert_array_equal(second, first)
                np.testing.assert_array_equal(third, np.arange(4) * 3 + index)

    def test_the_gradient_of_a_part(self) -> None:
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        place = tf.placeholder(tf.int32, [])
        (gradient,) = tf.gradients(x[place, 1] * 5, x)
        np.testing.assert_array_equal(run(gradient, {place: 1}), [[0, 0], [0, 5]])


class TestGroups:
    def test_one_operation_on_each_device(self) -> None:
        ops = []
        for task in (0, 1, 0):
            with tf.device(f"/job:ps/task:{task}"):
                ops.append(tf.constant(1).op)
        with tf.device("/job:worker/task:0"):
            together = tf.group(*ops)
            alone = tf.group(ops[1])
        assert together.device == "/job:worker/task:0"
        assert [op.device for op in together.control_inputs] == ["/job:ps/task:0", "/job:ps/task:1"]
        assert [op.name for op in together.control_inputs[0].control_inputs] == ["Const", "Const_2"]
        assert alone.device == "/job:ps/task:1"

    def test_a_group_of_nothing_has_a_default_name(self) -> None:
        assert tf.group().name == "group_deps"

    def test_tuple_keeps_none(self) -> None:
        x, nothing, y = tf.tuple([tf.constant(1), None, tf.constant(2)])
        assert nothing is None
        assert run([x, y]) == [1, 2]


class TestGradientFunctions:
    def test_registered_under_a_name(self) -> None:
        name = "TwiceTheGradient"

        @tf.RegisterGradient(name)
        def twice(op: Any, gradient: Any) -> Any:
            return 2 * gradient

        x = tf.constant(3.0)
        with tf.get_default_graph().gradient_override_map({"Identity": name}):
            y = tf.identity(x)
        assert run(tf.gradients(y * y, x)) == [12]
        with pytest.raises(KeyError, match=name):
            tf.RegisterGradient(name)(twice)

    def test_not_differentiable(self) -> None:
        tf.NotDifferentiable("NotDifferentiableTest")
        x = tf.constant(3.0)
        with tf.get_default_graph().gradient_override_map({"Identity": "NotDifferentiableTest"}):
            y = tf.identity(x)
        assert tf.gradients(y, x) == [None]

    def test_hessians(self) -> None:
        x = tf.constant([1.0, 2.0, 3.0])
        (found,) = tf.hessians(tf.reduce_sum(x * x * x) + x[0] * x[1], x)
        np.testing.assert_allclose(run(found), [[6, 1, 0], [1, 12, 0], [0, 0, 18]])

    def test_second_order_through_cross_entropy(self) -> None:
        logits, labels = tf.constant([[0.5, -1.0, 2.0]]), tf.constant([[0.0, 1.0, 0.0]])
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        (gradient,) = tf.gradients(loss, logits)
        assert isinstance(gradient, tf.Tensor)
        (second,) = tf.gradients(gradient[0, 2], logits)
        p = np.exp([0.5, -1, 2]) / np.exp([0.5, -1, 2]).sum()
        np.testing.assert_allclose(run(second), [[-p[2] * p[0], -p[2] * p[1], p[2] * (1 - p[2])]], rtol=1e-5)

    def test_a_partitioned_lookup_gives_rows(self) -> None:
        parts = [tf.constant(np.full((3, 2), value, np.float32)) for value in (1, 2)]
        rows = tf.nn.embedding_lookup(parts, [0, 3, 3])
        gradients: list[Any] = tf.gradients(rows, parts)
        assert all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients)
        first, second = run([tf.unsorted_segment_sum(g.values, g.indices, 3) for g in gradients])
        np.testing.assert_array_equal(first, [[1, 1], [0, 0], [0, 0]])
        np.testing.assert_array_equal(second, [[0, 0], [2, 2], [0, 0]])


def test_rows_that_are_not_there_are_an_error() -> None:
    rows = tf.placeholder_with_default(np.arange(1.0, 5.0).reshape(2, 2), [2, 2])
    for wrong in (
        tf.gather(rows, [-1, 1, 2]),
        tf.gather(rows, [-1, 0], axis=1),
        tf.gather_nd(rows, [[0, -1], [1, 1]]),
        tf.scatter_nd([[-1], [0], [3]], [1.0, 2.0, 3.0], [2]),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=wrong.op.name):
            run(wrong)


class TestOldSpellings:
    def test_concat_and_split_with_the_dimension_first(self) -> None:
        x = tf.constant([[1.0, 2.0]])
        assert tf.concat(0, [x, x]).shape.as_list() == [2, 2]
        assert tf.concat(concat_dim=1, values=[x, x]).shape.as_list() == [1, 4]
        assert [part.shape.as_list() for part in tf.split(1, 2, x)] == [[1, 1], [1, 1]]
        assert len(tf.split(split_dim=1, num_split=2, value=x)) == 2

    def test_names(self) -> None:
        x = tf.constant([1.0, -2.0])
        found = run([tf.mul(x, x), tf.sub(x, x), tf.neg(x), tf.inv(x), tf.pack([x, x]), tf.unpack(x)])
        np.testing.assert_array_equal(found[0], [1, 4])
        np.testing.assert_array_equal(found[1], [0, 0])
        np.testing.assert_array_equal(found[2], [-1, 2])
        np.testing.assert_array_equal(found[3], [1, -0.5])
        assert found[4].shape == (2, 2)
        assert found[5] == [1, -2]

    def test_losses_with_the_logits_first(self) -> None:
        logits, labels = tf.constant([[1.0, 2.0]]), tf.constant([[0.0, 1.0]])
        old = tf.nn.softmax_cross_entropy_with_logits(logits, labels)
        new = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(logits, [1])
        np.testing.assert_allclose(run(old), run(new))
        np.testing.assert_allclose(run(sparse), run(new), rtol=1e-6)
        old = tf.nn.sigmoid_cross_entropy_with_logits(logits, labels)
        new = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        np.testing.assert_allclose(run(old), run(new))

    def test_reverse_with_flags(self) -> None:
        np.testing.assert_array_equal(run(tf.reverse(tf.constant([[1, 2]]), [False, True])), [[2, 1]])

    def test_summaries(self) -> None:
        tf.scalar_summary("a tag", 1.5)
        merged = tf.merge_all_summaries()
        assert tf.Summary.FromString(run(merged)).value[0].tag == "a tag"

    def test_reductions(self) -> None:
        x = tf.constant([[1.0, 2.0]])
        assert tf.reduce_sum(x, reduction_indices=[1], keep_dims=True).shape.as_list() == [1, 1]
        with pytest.raises(ValueError, match=r"axis.*reduction_indices"):
            tf.reduce_sum(x, axis=0, reduction_indices=1)


class TestPythonInAStep:
    def test_py_func_raises_an_error_that_names_the_exception(self) -> None:
        def fail(_: Any) -> Any:
            raise ValueError("not this one")

        with pytest.raises(tf.errors.InvalidArgumentError, match="ValueError: not this one"):
            run(tf.py_func(fail, [1.0], tf.float32))

    def test_py_func_of_another_type(self) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="is double, but expects float"):
            run(tf.py_func(lambda value: np.float64(value), [1.0], tf.float32))

    def test_py_func_without_results(self) -> None:
        seen: list[float] = []
        run(tf.py_func(lambda value: seen.append(float(value)), [2.5], []))
        assert seen == [2.5]

    def test_print_counts_by_session(self, capfd: pytest.CaptureFixture[str]) -> None:
        shown = tf.Print(tf.constant(1), [tf.constant([[1, 2], [3, 4]]), "text"], "here: ", first_n=2, summarize=3)
        for _ in range(2):
            with tf.Session() as session:
                for _ in range(3):
                    session.run(shown)
        assert capfd.readouterr().err == "here: [[1 2][3...]...][text]\n" * 4

    def test_print_of_structures(self, capfd: pytest.CaptureFixture[str]) -> None:
        run(tf.print({"a": tf.constant([1, 2])}, "and {}", tf.constant("text"), sep="|", end="."))
        assert capfd.readouterr().err == "{'a': [1 2]}|and {}|\"text\"."

    def test_assert_says_the_values(self) -> None:
        check = tf.Assert(tf.placeholder_with_default(False, []), ["bad", tf.constant([1, 2, 3, 4])])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[bad\] \[1 2 3\.\.\.\]"):
            run(check)

    def test_checks_of_constants_fail_at_construction(self) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="x < y did not hold"):
            tf.assert_less(2, 1)
        with pytest.raises(ValueError, match="rank 2"):
            tf.assert_rank(tf.constant(1), 2)

    def test_checks_of_fed_values(self) -> None:
        x = tf.placeholder(tf.float32, [None])
        with tf.control_dependencies([tf.assert_positive(x, message="only above")]):
            y = tf.identity(x)
        np.testing.assert_array_equal(run(y, {x: [1.0]}), [1])
        with pytest.raises(tf.errors.InvalidArgumentError, match="only above"):
            run(y, {x: [0.0]})

    def test_check_numerics(self) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="loss : Tensor had NaN values"):
            run(tf.check_numerics(tf.log(tf.constant([-1.0])), "loss"))


class TestSparse:
    def test_feeds_and_fetches(self) -> None:
        sparse = tf.sparse_placeholder(tf.float32, [2, 3])
        value = tf.SparseTensorValue(np.array([[0, 1], [1, 2]]), np.array([3.0, 4.0], np.float32), np.array([2, 3]))
        found, dense = run([sparse, tf.sparse_tensor_to_dense(sparse)], {sparse: value})
        assert isinstance(found, tf.SparseTensorValue)
        np.testing.assert_array_equal(found.indices, value.indices)
        np.testing.assert_array_equal(dense, [[0, 3, 0], [0, 0, 4]])
        assert sparse.get_shape().as_list() == [2, 3]

    def test_shapes_must_fit(self) -> None:
        with pytest.raises(ValueError, match="not compatible"):
            tf.SparseTensor(np.zeros((2, 2), np.int64), [1.0], [2, 2])
