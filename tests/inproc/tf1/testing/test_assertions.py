"""The assertions of ``tf.test.TestCase``: each passes when it should, and otherwise names the difference."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.tensorboard_protos import summary_pb2

NAN, INF = float("nan"), float("inf")
Pair = collections.namedtuple("Pair", "x y")


class Case(tf.test.TestCase):
    def runTest(self) -> None: ...


@pytest.fixture
def case() -> Any:
    found = Case()
    found.setUp()
    yield found
    found.tearDown()


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("assertNear", (1.0, 1.05, 0.1)),
        ("assertNear", (INF, INF, 0.0)),
        ("assertArrayNear", ([1, 2], [1.01, 2.01], 0.1)),
        ("assertNDArrayNear", (np.ones(2), np.ones(2) + 0.01, 0.1)),
        ("assertAllEqual", ([1, 2], np.array([1, 2]))),
        ("assertAllEqual", ([1.0, NAN], [1.0, NAN])),
        ("assertAllEqual", (np.array([b"a"], object), [b"a"])),
        ("assertAllEqual", ([], [])),
        ("assertNotAllEqual", ([1, 2], [1, 3])),
        ("assertNotAllEqual", ([1, 2], [1, 2, 3])),
        ("assertAllClose", ([1.0, NAN, INF], [1.0 + 1e-7, NAN, INF])),
        ("assertAllClose", ({"a": [1.0], "b": (2.0, [3.0, 4.0])}, {"a": [1.0], "b": (2.0, [3.0, 4.0])})),
        ("assertAllClose", (Pair(1.0, 2.0), {"x": 1.0, "y": 2.0})),
        ("assertAllClose", ([[1.0], [2.0, 3.0]], [[1.0], [2.0, 3.0]])),
        ("assertNotAllClose", ([1.0], [1.1])),
        ("assertAllCloseAccordingToType", (np.array([1.0], np.float16), [1.0005])),
        ("assertAllGreater", ([2, 3], 1)),
        ("assertAllLess", ([2, 3], 4)),
        ("assertAllGreaterEqual", ([2, 3], 2)),
        ("assertAllLessEqual", ([2, 3], 3)),
        ("assertAllInRange", ([1, 2, 3], 1, 3)),
        ("assertAllInSet", ([1, 1, 2], {1, 2, 3})),
        ("assertDTypeEqual", (np.float32(1), tf.float32)),
        ("assertDeviceEqual", ("/job:ps/gpu:1", "/job:ps/device:GPU:1")),
        ("assertDeviceEqual", (tf.DeviceSpec(job="ps"), "/job:ps")),
        ("assertStartsWith", ("abc", "ab")),
        ("assertItemsEqual", ([1, 2], [2, 1])),
    ],
)
def test_passes(case: Any, method: str, arguments: tuple[Any, ...]) -> None:
    getattr(case, method)(*arguments)


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("assertNear", (1.0, 2.0, 0.5), r"1.0 != 2.0 \+/- 0.5"),
        ("assertArrayNear", ([1, 2], [1], 0.1), "2 != 1"),
        ("assertNDArrayNear", (np.zeros(2), np.ones(2), 0.1), "1.41"),
        ("assertAllEqual", ([1, 2], [1, 3]), r"in 1 of 2 elements: \[1\]: 2 and 3"),
        ("assertAllEqual", ([1, 2], [1]), r"Shape mismatch: expected \(2,\), got \(1,\)"),
        ("assertAllEqual", ([1.0, NAN], [NAN, 1.0]), "in 2 of 2"),
        ("assertNotAllEqual", ([1], [1]), "equal at all elements"),
        ("assertAllClose", ([1.0, 2.0], [1.0, 2.1]), r"a is not close to b .* \[1\]: 2.0 and 2.1"),
        ("assertAllClose", ([1.0], [NAN]), "not close"),
        ("assertAllClose", ({"a": {"b": [1.0]}}, {"a": {"b": [2.0]}}), r"a\[a\]\[b\] is not close"),
        ("assertAllClose", ({"a": 1.0}, {"b": 1.0}), "keys of a and b differ"),
        ("assertNotAllClose", ([1.0], [1.0]), "close at all elements"),
        ("assertAllCloseAccordingToType", (np.array([1.0], np.float32), [1.0005]), "not close"),
        ("assertAllGreater", ([2, 3], 2), "2"),
        ("assertAllLess", ([2, 3], 3), "3"),
        ("assertAllGreaterEqual", ([2, 3], 3), "2"),
        ("assertAllLessEqual", ([2, 3], 2), "3"),
        ("assertAllInRange", ([1, 5, NAN], 1, 3), r"2 elements are not in \[1, 3\]: \[1\]: 5.0; \[2\]: nan"),
        ("assertAllInRange", ([1, 2], 1, 3, True), r"\(1, 3\]"),
        ("assertAllInRange", ([b"a"], 1, 3), "has no order"),
        ("assertAllInSet", ([1, 4], {1}), r"\[4\]"),
        ("assertDTypeEqual", (np.float32(1), tf.float64), "float"),
        ("assertDeviceEqual", ("/gpu:0", "/cpu:0"), "not equal"),
        ("assertStartsWith", ("abc", "b"), "does not start with 'b'"),
    ],
)
def test_fails(case: Any, method: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        getattr(case, method)(*arguments)


def test_long_differences_are_cut(case: Any) -> None:
    with pytest.raises(AssertionError, match=r"in 50 of 50 .*, and 40 more : why"):
        case.assertAllEqual(np.zeros(50), np.ones(50), msg="why")


def test_structures_that_differ(case: Any) -> None:
    with pytest.raises(ValueError, match=r"Can't compare dict to non-dict, a\[x\]"):
        case.assertAllClose({"x": {}}, {"x": [1.0]})
    with pytest.raises(ValueError, match=r"a has 2 items, but b has 1 items"):
        case.assertAllClose([[1.0], [2.0, 3.0]], [[1.0]])


def test_tensors_are_evaluated(case: Any) -> None:
    case.assertAllEqual(tf.constant([1, 2]) + 1, [2, 3])
    case.assertAllClose({"x": tf.constant(2.0) * 3.0}, {"x": 6.0})
    case.assertDTypeEqual(tf.constant(1.0), tf.float32)
    case.assertShapeEqual(np.zeros([2, 3]), tf.zeros([2, 3]))
    with pytest.raises(AssertionError):
        case.assertShapeEqual(np.zeros([2, 3]), tf.zeros([3, 2]))
    with pytest.raises(TypeError, match="np_array must be"):
        case.assertShapeEqual([1], tf.zeros([1]))
    with pytest.raises(TypeError, match="tf_tensor must be"):
        case.assertShapeEqual(np.zeros(1), [1])


def test_errors_of_operations(case: Any) -> None:
    x = tf.placeholder(tf.float32, name="nobody_feeds_me")
    with case.session() as session:
        with case.assertRaisesOpError("must feed a value"):
            session.run(x)
        with case.assertRaisesOpError("Caused by op nobody_feeds_me"):
            session.run(x)
        with case.assertRaisesWithPredicateMatch(tf.errors.InvalidArgumentError, lambda e: e.error_code == 3):
            session.run(x)
        with pytest.raises(AssertionError, match="not as expected"), case.assertRaisesOpError("something else"):
            session.run(x)
    with pytest.raises(AssertionError, match="OpError not raised"), case.assertRaisesOpError("x"):
        pass


def test_messages(case: Any) -> None:
    message = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="a", simple_value=1)])
    case.assertProtoEquals('value { tag: "a" simple_value: 1 }', message)
    case.assertProtoEquals(message, message)
    with pytest.raises(AssertionError):
        case.assertProtoEquals('value { tag: "b" }', message)
    with pytest.raises(AssertionError, match="Value is compared with Summary"):
        case.assertProtoEquals(message.value[0], message)
