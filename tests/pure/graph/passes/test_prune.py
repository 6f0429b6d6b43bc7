"""The operations that a request needs, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import tf
from headwater.errors import InvalidArgumentError
from headwater.graph.passes.prune import RunRequest, prune, verify_pruned


def _names(request: RunRequest) -> list[str]:
    pruned = prune(request)
    verify_pruned(pruned)
    return [op.name for op in pruned.ops]


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_only_required_operations_remain() -> None:
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    c = tf.add(a, b, name="c")
    tf.identity(c, name="d")
    assert _names(RunRequest((c,))) == ["a", "b", "c"]
    assert _names(RunRequest((a,))) == ["a"]
    assert _names(RunRequest((), (), (c.op,))) == ["a", "b", "c"]
    assert _names(RunRequest((c, b), (c,))) == ["b"]


def test_operations_that_compute_a_fed_tensor_are_pruned() -> None:
    a = tf.constant(1, name="a")
    parts = tf.split(tf.identity(tf.constant([1, 2], name="whole"), name="b"), 2, name="parts")
    total = tf.add(parts[0], parts[1], name="total")
    assert "b" in _names(RunRequest((total,), (parts[0],)))
    assert _names(RunRequest((total,), tuple(parts))) == ["total"]
    doubled = tf.add(a, a, name="doubled")
    assert _names(RunRequest((doubled,), (a,))) == ["doubled"]


def test_control_inputs_are_needed() -> None:
    with tf.control_dependencies([tf.no_op(name="before")]):
        a = tf.constant(1, name="a")
    group = tf.group(a, tf.no_op(name="other"), name="group")
    assert _names(RunRequest((a,))) == ["before", "a"]
    assert set(_names(RunRequest((), (), (group,)))) == {"before", "a", "other", "group"}


def test_unordered_reads_precede_updates() -> None:
    v = tf.Variable(1.0, name="v")
    update = v.assign_add(1.0, name="update")
    late = tf.identity(v.value() * 2.0, name="late")
    names = _names(RunRequest((late,), (), (update.op,)))
    assert names.index("update") > names.index("late")
    with tf.control_dependencies([update]):
        after = v.read_value()
    names = _names(RunRequest((after, late)))
    assert names.index("late") < names.index("update") < names.index(after.op.name)


def test_a_placeholder_without_a_value() -> None:
    p = tf.placeholder(tf.float32, [None, 3], name="p")
    with pytest.raises(InvalidArgumentError, match=r"'p' with dtype float32 and shape \(\?, 3\)") as caught:
        prune(RunRequest((p * 2.0,)))
    assert caught.value.op is p.op
    assert "test_prune.py" in caught.value.message
    with pytest.raises(InvalidArgumentError):
        prune(RunRequest((), (), (p.op,)))


def test_a_circle_of_control_inputs() -> None:
    a, b = tf.no_op(name="a"), tf.no_op(name="b")
    a._add_control_input(b)
    b._add_control_input(a)
    with pytest.raises(InvalidArgumentError, match="depends on itself"):
        prune(RunRequest((), (), (a,)))
