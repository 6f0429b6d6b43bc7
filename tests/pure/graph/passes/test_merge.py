"""Equal operations of a task are merged where some run on the host."""

from __future__ import annotations

import numpy as np

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.merge import merge_equal
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import Compute, Host, TaskPlan, decode_plan, encode_plan
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule, verify_plans

TASK = "/job:localhost/replica:0/task:0"


def merged(*fetches: tf.Tensor, feeds: tuple[tf.Tensor, ...] = ()) -> TaskPlan:
    devices = [parse_device("/job:localhost/replica:0/task:0/device:CPU:0")]
    plans = merge_equal(schedule(partition(place(prune(RunRequest(fetches, feeds)), devices))))
    verify_plans(plans)
    assert decode_plan(encode_plan(plans[TASK])).describe() == plans[TASK].describe()
    return plans[TASK]


def hosts(plan: TaskPlan) -> list[str]:
    return [item.node.type for item in plan.instructions if isinstance(item, Host)]


def computed(plan: TaskPlan) -> list[str]:
    return [node.type for item in plan.instructions if isinstance(item, Compute) for node in item.nodes]


def hashed(ids: tf.Tensor, buckets: int = 100) -> tf.Tensor:
    return tf.strings.to_hash_bucket_fast(tf.as_string(ids), buckets)


def test_chains_of_equal_operations_are_computed_once() -> None:
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        # Pure operations lie between those on the host, with constants of their own.
        chains = [tf.unique(tf.gather(hashed(ids), tf.where(hashed(ids) > 3)[:, 0]))[0] for _ in range(3)]
        plan = merged(tf.add_n(chains), feeds=(ids,))
        assert sorted(hosts(plan)) == ["NumberToHashBucketFast", "Unique", "Where"]
        assert computed(plan).count("Greater") == 1
        with tf.Session() as session:
            given = np.arange(50)
            once, total = (session.run(each, {ids: given}) for each in (chains[0], tf.add_n(chains)))
            np.testing.assert_array_equal(total, 3 * once)


def test_other_attributes_and_constants_differ() -> None:
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        buckets = hashed(ids, 100) + hashed(ids, 101)
        joined = tf.size(tf.strings.join([tf.as_string(ids), "a"])) + tf.size(tf.strings.join([tf.as_string(ids), "b"]))
        plan = merged(buckets, joined, feeds=(ids,))
        assert sorted(hosts(plan)) == sorted(["AsString", *["NumberToHashBucketFast", "Size", "StringJoin"] * 2])


def test_operations_that_are_no_functions_are_not_merged() -> None:
    with tf.Graph().as_default():
        ids = tf.placeholder(tf.int64, [None])
        drawn = [tf.strings.as_string(tf.random.uniform([3], seed=1)) for _ in range(2)]
        called = [tf.py_func(np.sort, [hashed(ids)], tf.int64) for _ in range(2)]
        plan = merged(tf.strings.join(drawn), tf.add_n(called), feeds=(ids,))
        assert hosts(plan).count("AsString") == 2
        assert hosts(plan).count("PyFunc") == 2
        assert hosts(plan).count("NumberToHashBucketFast") == 1


def test_fetched_arrays_are_distinct() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None])
        first, second = hashed(ids), hashed(ids)
        total = first + second
        one, other, both = session.run([first, second, total], {ids: [1, 2, 3]})
        one[:] = -1
        np.testing.assert_array_equal(2 * other, both)
        assert other.min() >= 0
