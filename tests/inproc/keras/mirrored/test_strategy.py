"""Strategies outside of `fit`: scopes, replicas, values."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.cluster.config import ClusterConfigError, parse_task_config
from headwater.keras.collectives.group import members_of
from headwater.keras.mirrored.cores import share_of
from headwater.keras.mirrored.inputs import DistributedDataset
from headwater.keras.mirrored.lockstep import Lockstep, current
from headwater.keras.mirrored.replicas import LocalReplicas
from headwater.keras.mirrored.strategy import MirroredStrategy, MultiWorkerMirroredStrategy
from headwater.keras.models import strategy_of
from headwater.keras.strategy import (
    OneDeviceStrategy,
    Strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from headwater.keras.values import PerReplica


def test_without_a_scope_there_is_one_replica() -> None:
    strategy = get_strategy()
    assert type(strategy) is Strategy
    assert (strategy.num_replicas_in_sync, has_strategy(), in_cross_replica_context()) == (1, False, False)
    assert strategy.run(lambda value: value + 1, args=(1,)) == 2
    assert strategy.reduce("SUM", np.array([1.0, 2.0]), axis=0) == 3
    assert strategy.reduce("MEAN", np.array([1.0, 3.0]), axis=0) == 2
    with pytest.raises(ValueError, match="reduce_op must be"):
        strategy.reduce("MOST", 1.0)


def test_models_belong_to_the_scope_that_they_are_made_in() -> None:
    import keras

    strategy = MultiWorkerMirroredStrategy()
    with strategy.scope() as entered:
        assert entered is get_strategy() is strategy
        assert in_cross_replica_context()
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        with (
            strategy.scope(),
            pytest.raises(RuntimeError, match="leave it before"),
            OneDeviceStrategy("/cpu:0").scope(),
        ):
            pass
    assert strategy_of(model) is strategy
    assert strategy_of(keras.Sequential([keras.Input((2,))])) is None


def test_a_device_that_is_not_there_is_reported() -> None:
    with pytest.raises(Exception, match="device GPU:63 does not exist; this process has CPU:0"):
        MirroredStrategy(["/gpu:63"])
    with pytest.raises(ValueError, match="must be distinct"):
        MirroredStrategy(["/cpu:0", "cpu:0"])


def test_functions_know_their_replica() -> None:
    strategy = MirroredStrategy(["/cpu:0"])

    def replica() -> tuple[int, int, float]:
        context = get_replica_context()
        assert context is not None
        return context.replica_id_in_sync_group, context.num_replicas_in_sync, context.all_reduce("SUM", np.float32(2))

    assert strategy.run(replica) == (0, 1, 2.0)


def test_replicas_of_a_process_wait_for_each_other() -> None:
    def body(index: int) -> object:
        found = current()
        assert found is not None
        return found[0].combine(index, index + 1.0, sum)

    assert Lockstep(3).run(body) == [6.0, 6.0, 6.0]

    def fail(index: int) -> object:
        if index == 1:
            raise KeyError("the second")
        return body(index)

    with pytest.raises(KeyError, match="the second"):
        Lockstep(3).run(fail)
    with pytest.raises(RuntimeError, match="replica 1 makes a collective call"):
        Lockstep(3).run(lambda index: body(index) if index else None)


def test_replicas_of_a_process_run_one_after_the_other_between_exchanges() -> None:
    lockstep, order = Lockstep(3), list[tuple[str, int]]()

    def body(index: int) -> None:
        order.append(("before", index))
        lockstep.combine(index, None, lambda _: order.append(("together", index)))
        order.append(("after", index))

    lockstep.run(body)
    assert order == [*(("before", at) for at in range(3)), ("together", 2), *(("after", at) for at in range(3))]


def test_values_of_replicas_are_reduced_and_listed() -> None:
    strategy = MirroredStrategy(["/cpu:0"])
    values = PerReplica([np.array([1.0, 2.0]), np.array([3.0, 6.0])])
    assert list(strategy.reduce("SUM", values)) == [4, 8]
    assert strategy.reduce("MEAN", values, axis=0) == 3
    assert strategy.experimental_local_results(values) == values.values
    assert list(strategy.gather(values, 0)) == [1, 2, 3, 6]


def test_ranks_are_the_chief_then_the_workers() -> None:
    cluster = '{"worker": ["a:1", "b:2"], "chief": ["c:3"], "ps": ["d:4"]}'
    config = parse_task_config(f'{{"cluster": {cluster}, "task": {{"type": "worker", "index": 0}}}}')
    members, rank = members_of(config)
    assert [str(member) for member in members] == ["chief 0 (c:3)", "worker 0 (a:1)", "worker 1 (b:2)"]
    assert rank == 1
    with pytest.raises(ClusterConfigError, match=r"TF_CONFIG task\.type is 'ps', which holds no replica"):
        members_of(
            parse_task_config('{"cluster": {"worker": ["a:1"], "ps": ["d:4"]}, "task": {"type": "ps", "index": 0}}')
        )
    assert members_of(None) == ([], 0)


@pytest.mark.parametrize(
    ("cores", "sharing", "expected"),
    [([0, 1, 2, 3, 4], 2, [[0, 1], [2, 3, 4]]), ([0, 1], 3, [[0, 1]] * 3), ([4, 7], 2, [[4], [7]])],
)
def test_processes_of_a_machine_divide_its_cores(cores: list[int], sharing: int, expected: list[list[int]]) -> None:
    assert [share_of(cores, place, sharing) for place in range(sharing)] == expected


def test_replicas_get_rows_as_tensorflow_divides_them() -> None:
    for rows, expected in ((10, [4, 4, 2]), (5, [2, 2, 1]), (4, [2, 2, 0]), (1, [1, 0, 0])):  # of TensorFlow 2.21
        (batch,) = DistributedDataset([np.arange(rows)], LocalReplicas(), 3)
        assert isinstance(batch, PerReplica)
        assert [len(part) for part in batch.values] == expected
        np.testing.assert_array_equal(np.concatenate(batch.values), np.arange(rows))
