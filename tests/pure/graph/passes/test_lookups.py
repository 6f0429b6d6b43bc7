"""Lookups in several partitioned tables are joined, if no other operation uses the transferred values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headwater import tf
from headwater.cluster.devices import parse_device
from headwater.graph.passes.lookups import join_lookups
from headwater.graph.passes.partition import partition
from headwater.graph.passes.place import place
from headwater.graph.passes.plan import Compute, Host, Node, Send, TaskPlan, decode_plan, encode_plan
from headwater.graph.passes.prune import RunRequest, prune
from headwater.graph.passes.schedule import schedule, verify_plans

DEVICES = [parse_device(f"/job:{task}/device:CPU:0") for task in ("ps/task:0", "ps/task:1", "worker/task:0")]
WORKER, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


def lookups(parts: Sequence[int], widths: Sequence[int]) -> tuple[Any, Any, list[Any]]:
    """Ids, a loss, and the rows of a table of each width, with so many parts."""
    ids = tf.placeholder(tf.int32, [len(parts), None])
    rows: list[Any] = []
    for index, (count, width) in enumerate(zip(parts, widths, strict=True)):
        table = tf.get_variable(f"table_{index}", [100, width], partitioner=tf.fixed_size_partitioner(count))
        rows.append(tf.nn.embedding_lookup(table, ids[index]))
    return ids, tf.add_n([tf.reduce_sum(each) for each in rows]), rows


def bags(parts: int, *, fetched: bool = False) -> dict[str, TaskPlan]:
    """The plans of a wide and a deep model of two features with bags of ids."""
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(parts, worker_device="/job:worker")):
        features = [tf.sparse_placeholder(tf.int64, [None, 5]) for _ in range(2)]
        loss = tf.zeros([])
        for width, combiner in ((1, "sum"), (4, "mean")):
            for index, ids in enumerate(features):
                partitioner = tf.fixed_size_partitioner(parts)
                table = tf.get_variable(f"table_{width}_{index}", [100, width], partitioner=partitioner)
                loss += tf.reduce_sum(tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner))
        lookups = [op for op in tf.get_default_graph().get_operations() if op.type == "RouteBags"]
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        fed = [part for sparse in features for part in (sparse.indices, sparse.values, sparse.dense_shape)]
        return planned(RunRequest((loss, *[op.outputs[0] for op in lookups[:1] if fetched]), tuple(fed), (train,)))


def planned(request: RunRequest) -> dict[str, TaskPlan]:
    pruned = prune(request)
    plans = dict(join_lookups(schedule(partition(place(pruned, DEVICES))), pruned))
    verify_plans(plans)
    for plan in plans.values():
        assert decode_plan(encode_plan(plan)).describe() == plan.describe()
    return plans


def hosts(plan: TaskPlan) -> list[str]:
    return [item.node.type for item in plan.instructions if isinstance(item, Host)]


def routes(plan: TaskPlan) -> list[Node]:
    """The operations that divide ids among parts."""
    nodes = [item.node for item in plan.instructions if isinstance(item, Host)]
    return [node for node in nodes if node.type.startswith("Route")]


def sent(plan: TaskPlan) -> list[int]:
    """How many tensors each frame has."""
    return [len(item.tensors) for item in plan.instructions if isinstance(item, Send)]


def plans_of(parts: Sequence[int], widths: Sequence[int], *, train: bool = True) -> dict[str, TaskPlan]:
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker")):
        ids, loss, _ = lookups(parts, widths)
        targets = (tf.train.AdagradOptimizer(0.1).minimize(loss),) if train else ()
        return planned(RunRequest((loss,), (ids,), targets))


def test_tables_of_one_width_travel_as_one() -> None:
    plans = plans_of([2] * 5, [4] * 5)
    assert hosts(plans[WORKER]) == ["RouteTables"]
    assert sent(plans[WORKER]) == [2, 2, 1, 1]  # requests with their sizes, then gradients
    assert sent(plans[PS]) == [1]
    (_, update) = [item for item in plans[PS].instructions if isinstance(item, Compute)]
    assert [node.type for node in update.nodes].count("SparseApplyAdagrad") == 5
    assert not [node for node in update.nodes if node.type == "SumEqualRows"]


def test_rows_of_different_width_travel_apart() -> None:
    plans = plans_of([2] * 5, [4, 8, 4, 8, 2])
    assert hosts(plans[WORKER]) == ["RouteTables"]
    assert sent(plans[PS]) == [3]


def test_lookups_without_training_are_joined() -> None:
    assert sent(plans_of([2, 2], [4, 4], train=False)[PS]) == [1]


def test_lookups_of_one_table_are_unchanged() -> None:
    plans = plans_of([2], [4])
    assert hosts(plans[WORKER]) == ["RouteIds"]
    assert sent(plans[PS]) == [1]


def test_tables_with_other_numbers_of_parts_stay_apart() -> None:
    assert sorted(hosts(plans_of([2, 3, 2, 3], [4] * 4)[WORKER])) == ["RouteIds"] * 4


def test_fetched_lookups_are_not_combined() -> None:
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker")):
        ids, loss, _ = lookups([2, 2], [4, 4])
        for op_type, output in (("GatherRouted", 0), ("RouteIds", 0), ("RouteIds", 2)):
            (first, *_) = [op for op in tf.get_default_graph().get_operations() if op.type == op_type]
            plans = planned(RunRequest((loss, first.outputs[output]), (ids,)))
            found = [name for plan in plans.values() for name in plan.fetches]
            assert first.outputs[output].name in found
            joined = op_type == "GatherRouted"
            assert hosts(plans[WORKER]) == (["RouteTables"] if joined else ["RouteIds"] * 2)


@pytest.mark.parametrize("parts", [1, 2])
def test_bags_of_a_wide_and_a_deep_model_are_divided_once(parts: int) -> None:
    plans = bags(parts)
    (route,) = routes(plans[WORKER])
    assert route.type == "RouteBagsOfTables"
    assert route.attrs["combiners"] == ["sum", "sum", "mean", "mean"]
    assert route.attrs["groups"] == [0, 1, 0, 1]
    # For each part the rows, the indices, the numbers of ids, and the weights, with their sizes.
    assert sent(plans[WORKER])[:parts] == [5] * parts
    assert sent(plans[PS])[-1] == 2  # rows of two widths


def test_a_fetched_lookup_in_bags_is_not_joined() -> None:
    found = [node.type for node in routes(bags(2, fetched=True)[WORKER])]
    assert sorted(found) == ["RouteBags", "RouteBagsOfTables"]
