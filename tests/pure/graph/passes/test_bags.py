"""Operations on the ids of safe lookups are combined into one, with TensorFlow's values."""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.bags import combine_bags
from headwater.graph.passes.merge import merge_equal
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import Compute, Host, TaskPlan, decode_plan, encode_plan
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule, verify_plans
from tests.support.loops import use_loops

TASK = "/job:localhost/replica:0/task:0"
INDICES = np.array([[0, 0], [0, 1], [1, 0], [3, 0], [3, 1], [3, 2], [5, 0]])
IDS = np.array([2, 1, -1, 4, 2, 4, -7])
TABLE = np.arange(10, dtype=np.float32).reshape(5, 2) / 8


@pytest.fixture(params=[True, False], ids=["compiled", "numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses compiled loops for all work, or for none."""
    use_loops(monkeypatch, compiled=request.param)


def combined(*fetches: tf.Tensor, feeds: tuple[tf.Tensor, ...] = ()) -> TaskPlan:
    devices = [parse_device("/job:localhost/replica:0/task:0/device:CPU:0")]
    plans = combine_bags(merge_equal(schedule(partition(place(prune(RunRequest(fetches, feeds)), devices)))))
    verify_plans(plans)
    assert decode_plan(encode_plan(plans[TASK])).describe() == plans[TASK].describe()
    return plans[TASK]


def hosts(plan: TaskPlan) -> list[str]:
    return [item.node.type for item in plan.instructions if isinstance(item, Host)]


def computed(plan: TaskPlan) -> list[str]:
    return [node.type for item in plan.instructions if isinstance(item, Compute) for node in item.nodes]


# From TensorFlow 1.15.5, as are the gradients of the sum of squares.
VALUES = {
    "mean": [[0.375, 0.5], [0, 0], [0, 0], [0.833333, 0.958333], [0, 0], [0, 0]],
    "sum": [[0.75, 1.0], [0, 0], [0, 0], [2.5, 2.875], [0, 0], [0, 0]],
    "sqrtn": [[0.53033, 0.707107], [0, 0], [0, 0], [1.443376, 1.659882], [0, 0], [0, 0]],
}
GRADIENTS = {
    "mean": [[0, 0], [0.375, 0.5], [0.930556, 1.138889], [0, 0], [1.111111, 1.277778]],
    "sum": [[0, 0], [1.5, 2.0], [6.5, 7.75], [0, 0], [10.0, 11.5]],
    "sqrtn": [[0, 0], [0.75, 1.0], [2.416667, 2.916667], [0, 0], [3.333333, 3.833333]],
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("fetched", [True, False])
@pytest.mark.parametrize("combiner", VALUES)
def test_values_and_gradients_equal_tensorflows(combiner: str, fetched: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.sparse_placeholder(tf.int64, [None, None])
        table = tf.Variable(TABLE)
        found = tf.nn.safe_embedding_lookup_sparse([table], ids, None, combiner)
        (slope,) = tf.gradients(tf.reduce_sum(found * found), table)
        assert slope is not None
        session.run(tf.global_variables_initializer())
        given = {ids: tf.SparseTensorValue(INDICES, IDS, [6, 3])}
        # Zeros for empty bags are a separate operation only if the program fetches them.
        values, gradient = session.run([found if fetched else found * 1.0, tf.convert_to_tensor(slope)], given)
        np.testing.assert_allclose(values, VALUES[combiner], atol=1e-6)
        np.testing.assert_allclose(gradient, GRADIENTS[combiner], atol=1e-6)


def test_each_lookup_is_one_operation_on_ids() -> None:
    with tf.Graph().as_default():
        columns = [tf.sparse_placeholder(tf.int64, [None, None]) for _ in range(3)]
        table = tf.Variable(TABLE)
        found = [tf.nn.safe_embedding_lookup_sparse([table], ids, default_id=0) for ids in columns]
        feeds = tuple(part for ids in columns for part in (ids.indices, ids.values, ids.dense_shape))
        plan = combined(*found, feeds=feeds)
        assert sorted(hosts(plan)) == ["DistinctBags"] * 3 + ["SparseSegmentMean"] * 3
        assert not {"GreaterEqual", "Cast", "StridedSlice"}.intersection(computed(plan))


@pytest.mark.parametrize("combiner", ["mean", "sum"])
def test_empty_bags_need_no_operations(combiner: str) -> None:
    with tf.Graph().as_default():
        ids, table = tf.sparse_placeholder(tf.int64, [None, None]), tf.Variable(TABLE)
        wide, deep = (tf.nn.safe_embedding_lookup_sparse([table + n], ids, None, combiner) for n in (0.0, 1.0))
        (slope,) = tf.gradients(tf.reduce_sum(wide * deep), table)
        assert slope is not None
        feeds = ids.indices, ids.values, ids.dense_shape
        plan = combined(wide * deep, tf.convert_to_tensor(slope), feeds=feeds)
        sums = f"SparseSegment{combiner.title()}"
        assert hosts(plan) == ["DistinctBags", *[f"{sums}WithNumSegments"] * 2]
        assert not {"Select", "ZerosLike"}.intersection(computed(plan))
        assert computed(plan).count(f"{sums}Grad") == 2
        # A result of the bags that is used elsewhere includes the default ids.
        unmasked = next(op.outputs[0] for op in tf.get_default_graph().get_operations() if op.type == sums)
        plan = combined(wide * deep, unmasked + 1, tf.convert_to_tensor(slope), feeds=feeds)
        assert hosts(plan) == ["DistinctBags", *[sums] * 2]
        assert "Select" in computed(plan)


def test_operations_with_other_consumers_are_kept() -> None:
    with tf.Graph().as_default():
        ids = tf.sparse_placeholder(tf.int64, [None, None])
        found = tf.nn.safe_embedding_lookup_sparse([tf.Variable(TABLE)], ids)
        filled = next(op for op in tf.get_default_graph().get_operations() if op.type == "SparseFillEmptyRows")
        feeds = ids.indices, ids.values, ids.dense_shape
        for other in (filled.outputs[1], filled.outputs[3], filled.outputs[0] + 1):
            assert "SparseFillEmptyRows" in hosts(combined(found, other, feeds=feeds))
        assert "DistinctBags" in hosts(combined(found, feeds=feeds))


@pytest.mark.usefixtures("way")
def test_rows_in_any_order_and_out_of_range() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.sparse_placeholder(tf.int64, [None, None])
        found = tf.nn.safe_embedding_lookup_sparse([tf.constant(TABLE)], ids, combiner="sum")
        shuffled = tf.SparseTensorValue([[3, 0], [0, 0], [3, 1], [1, 0]], [4, 2, 1, 0], [4, 3])
        expected = [[0.5, 0.625], [0, 0.125], [0, 0], [1.25, 1.5]]
        np.testing.assert_allclose(session.run(found, {ids: shuffled}), expected)
        outside = tf.SparseTensorValue([[0, 0], [7, 0]], [1, 2], [6, 3])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\(1, 0\) is invalid: 7 >= 6"):
            session.run(found, {ids: outside})
