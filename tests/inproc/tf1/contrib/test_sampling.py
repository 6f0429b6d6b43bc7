"""``stratified_sample``, ``rejection_sample`` and resampling of ``tf.contrib.training``, as in TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf

EQUAL = [1 / 3] * 3


def _example(rows: int | None = None) -> tuple[Any, Any]:
    label = tf.random_uniform([] if rows is None else [rows], 0, 3, tf.int32, seed=1)
    return tf.cast(label, tf.float32) * 10.0, label


def _proportions(build: Callable[[], tuple[Any, Any]], steps: int = 400) -> list[float]:
    """Returns the proportions of classes in 4 * ``steps`` examples, whose data must fit the labels."""
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        data, labels = build()
        with tf.train.MonitoredSession() as session:
            found = [session.run([data, labels]) for _ in range(steps)]
    for values, classes in found:
        np.testing.assert_array_equal(values, classes * 10.0)
    classes = np.concatenate([each for _, each in found])
    assert len(classes) == 4 * steps
    return (np.bincount(classes, minlength=3) / len(classes)).tolist()


def _stratified(rows: int | None, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    data, label = _example(rows)
    (found,), labels = tf.contrib.training.stratified_sample(
        [data], label, *args, enqueue_many=rows is not None, **kwargs
    )
    assert (found.shape.as_list(), labels.shape.as_list()) == ([4], [4])
    return found, labels


def test_classes_have_the_wanted_proportions() -> None:
    found = _proportions(lambda: _stratified(None, [0.5, 0.3, 0.2], 4, init_probs=EQUAL))
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2], atol=0.05)
    found = _proportions(lambda: _stratified(8, [0.6, 0.4, 0.0], 4, init_probs=EQUAL))
    np.testing.assert_allclose(found, [0.6, 0.4, 0.0], atol=0.05)


def test_proportions_of_the_data_are_estimated() -> None:
    def build() -> tuple[Any, Any]:
        found = _stratified(8, [0.2, 0.2, 0.6], 4, name="mine")
        assert [each.op.name for each in tf.global_variables()] == ["mine/class_count"]
        assert len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)) == 2
        return found

    np.testing.assert_allclose(_proportions(build), [0.2, 0.2, 0.6], atol=0.05)


@pytest.mark.parametrize("rows", [None, 8])
def test_examples_are_accepted_by_their_probability(rows: int | None) -> None:
    def build() -> tuple[Any, Any]:
        parts = list(_example(rows))
        found = tf.contrib.training.rejection_sample(
            parts, lambda x: tf.cast(x[1], tf.float32) / 2.0, 4, enqueue_many=rows is not None, runtime_checks=True
        )
        assert len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)) == (1 if rows is None else 2)
        return found[0], found[1]

    np.testing.assert_allclose(_proportions(build), [0, 1 / 3, 2 / 3], atol=0.05)


def test_a_list_of_one_component_stays_a_list() -> None:
    with tf.Graph().as_default():
        found = tf.contrib.training.rejection_sample([tf.zeros([])], lambda x: 1.0, 4)
        assert [each.shape.as_list() for each in found] == [[4]]


@pytest.mark.parametrize(
    ("tensors", "labels", "target", "given", "raised"),
    [
        (0.0, 0, [1.5, -0.5], [0.5, 0.5], tf.errors.InvalidArgumentError),
        (0.0, 0, [0.5, 0.5], [0.5, 0.0, 0.5], ValueError),
        (0.0, 0, [[0.5, 0.5]], [[0.5, 0.5]], ValueError),
        (0.0, [0], [0.5, 0.5], [0.5, 0.5], ValueError),
        (0.0, 0.0, [0.5, 0.5], [0.5, 0.5], TypeError),
    ],
)
def test_invalid_arguments(tensors: Any, labels: Any, target: Any, given: Any, raised: type[Exception]) -> None:
    with tf.Graph().as_default(), pytest.raises(raised):
        tf.contrib.training.stratified_sample([tf.constant(tensors)], labels, target, 4, init_probs=given)


def test_components_with_different_numbers_of_examples() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="compatible"):
            tf.contrib.training.rejection_sample([tf.zeros([3]), tf.zeros([4])], lambda x: 1.0, 4, enqueue_many=True)
        with pytest.raises(ValueError, match="compatible"):
            zeros = tf.zeros([4], tf.int32)
            tf.contrib.training.stratified_sample([tf.zeros([3])], zeros, [1.0], 4, init_probs=[1.0], enqueue_many=True)


@pytest.mark.parametrize("label", [2, -1])
def test_labels_out_of_range(label: int) -> None:
    with tf.Graph().as_default():
        fed = tf.placeholder_with_default(label, [])
        (_, labels) = tf.contrib.training.stratified_sample([tf.zeros([])], fed, [0.5, 0.5], 4, init_probs=[0.5, 0.5])
        with pytest.raises(tf.errors.InvalidArgumentError), tf.train.MonitoredSession() as session:
            session.run(labels)


def test_rows_are_repeated_at_their_rates() -> None:
    x, y = np.array([10.0, 20.0, 30.0], np.float32), np.array([1, 2, 3])
    with tf.Graph().as_default(), tf.Session() as session:
        resampled = tf.contrib.training.resample_at_rate(
            [tf.constant(x), tf.constant(y)], tf.constant([2.0, 1.0, 0.0]), seed=1
        )
        weighted = tf.contrib.training.weighted_resample(
            [tf.constant(x), tf.constant(y)], tf.constant([3.0, 1.0, 0.0]), 1.0
        )
        assert [each.op.name for each in tf.local_variables()][:1] == ["estimate_mean/estimated_mean"]
        session.run([tf.local_variables_initializer(), tf.global_variables_initializer()])
        counts = np.zeros(4), np.zeros(4)
        for _ in range(300):
            (a, b), ((c, d), rates) = session.run([resampled, weighted])
            np.testing.assert_array_equal(a, b * 10)
            np.testing.assert_array_equal(c, d * 10)
            np.testing.assert_allclose(rates, np.where(d == 1, 2.25, 0.75), rtol=1e-3)
            for found, chosen in zip(counts, (b, d), strict=True):
                found += np.bincount(chosen, minlength=4)
    np.testing.assert_allclose(counts[0] / 300, [0, 2, 1, 0], atol=0.4)
    np.testing.assert_allclose(counts[1] / 300, [0, 2.25, 0.75, 0], atol=0.4)
