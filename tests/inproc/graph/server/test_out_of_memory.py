"""A task without memory for a tensor reports an error that names the operation, and continues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headwater import tf
from headwater.errors import ResourceExhaustedError
from headwater.ps.memory import check_memory
from tests.support.cluster import MemoryCluster, memory_cluster

PS = "/job:ps/task:0"
MANY = 10**6


@pytest.fixture
def cluster() -> Iterator[MemoryCluster]:
    with memory_cluster(ps=1, worker=2) as found:
        yield found


def huge(factor: Any) -> Any:
    """Adds operations that compute one number from 3.6 TiB."""
    ones = tf.ones([MANY, MANY]) * factor + tf.to_float(tf.range(MANY))
    return tf.reduce_sum(tf.nn.top_k(ones, MANY).values)


@pytest.mark.parametrize("what", ["initial value", "update"])
def test_the_error_names_task_operation_variable_and_bytes(cluster: MemoryCluster, what: str) -> None:
    with tf.Graph().as_default(), tf.device(PS):
        small = tf.get_variable("small", initializer=np.ones(3, np.float32))
        factor = tf.placeholder(tf.float32, [])
        if what == "update":
            update, name = small.assign_add(huge(factor) * tf.ones(3)).op, "small"
        else:
            large = tf.get_variable("large", [MANY, MANY], initializer=tf.zeros_initializer())
            update, name = large.initializer, "large"
        with tf.Session(cluster.target("worker", 0)) as session, tf.Session(cluster.target("worker", 1)) as other:
            session.run(small.initializer)
            for _ in range(2):
                with pytest.raises(ResourceExhaustedError) as raised:
                    session.run(update, {factor: 1.0})
                for part in (
                    "/job:ps/replica:0/task:0",
                    f"which was to change '{name}'",
                    "3.6 TiB were requested",
                    "free",
                ):
                    assert part in raised.value.message
                assert other.run(small).tolist() == [1.0, 1.0, 1.0]


def test_a_program_is_refused_before_the_system_would_kill_the_process() -> None:
    compiled: Any = jax.jit(lambda: jnp.ones([MANY, MANY], jnp.float32)).lower().compile()
    with pytest.raises(MemoryError, match=f"allocating {4 * MANY**2} bytes"):
        check_memory(compiled)
