"""Random numbers: their distributions, and the effects of seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from headwater import tf

COUNT = 20_000


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def run(*tensors: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensors[0] if len(tensors) == 1 else list(tensors))


class TestDistributions:
    def test_normal(self) -> None:
        values = run(tf.random_normal([COUNT], mean=3.0, stddev=2.0, seed=1))
        assert values.dtype == np.float32
        assert abs(values.mean() - 3) < 0.1
        assert abs(values.std() - 2) < 0.1
        assert values.min() < -2
        assert values.max() > 8

    def test_truncated_normal_stays_within_two_deviations(self) -> None:
        values = run(tf.truncated_normal([COUNT], mean=1.0, stddev=0.5, seed=1, dtype=tf.float64))
        assert values.dtype == np.float64
        assert abs(values - 1).max() <= 1
        # The standard deviation of a normal distribution truncated at two standard deviations.
        assert abs(values.std() - 0.5 * 0.8796) < 0.02

    def test_uniform(self) -> None:
        values = run(tf.random_uniform([COUNT], -1, 3, seed=1))
        assert -1 <= values.min() < -0.99
        assert 2.99 < values.max() < 3
        assert abs(values.mean() - 1) < 0.05

    def test_uniform_integers_have_all_values_but_the_upper_bound(self) -> None:
        values = run(tf.random_uniform([COUNT], -2, 3, tf.int64, seed=1))
        assert values.dtype == np.int64
        assert set(values.tolist()) == {-2, -1, 0, 1, 2}
        assert np.bincount(values + 2).min() > COUNT / 5 * 0.9

    def test_multinomial(self) -> None:
        drawn = run(tf.multinomial(tf.log([[0.1, 0.2, 0.7], [1.0, 1e-30, 1e-30]]), COUNT, seed=1))
        assert drawn.dtype == np.int64
        assert np.abs(np.bincount(drawn[0]) / COUNT - [0.1, 0.2, 0.7]).max() < 0.02
        assert not drawn[1].any()

    def test_gamma_and_poisson(self) -> None:
        gamma, poisson = run(tf.random_gamma([COUNT], [2.0, 9.0], beta=3.0, seed=1), tf.random_poisson(4.0, [COUNT]))
        assert gamma.shape == (COUNT, 2)
        assert np.abs(gamma.mean(0) - [2 / 3, 3]).max() < 0.1
        assert poisson.dtype == np.float32
        assert abs(poisson.mean() - 4) < 0.1
        assert abs(poisson.var() - 4) < 0.3

    def test_shuffle_keeps_rows(self) -> None:
        rows = np.arange(60).reshape(20, 3)
        shuffled = run(tf.random_shuffle(tf.constant(rows), seed=3))
        assert (shuffled != rows).any()
        np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)

    def test_crop_is_a_part(self) -> None:
        whole = np.arange(35).reshape(5, 7)
        places = set()
        with tf.Session() as session:
            crop = tf.random_crop(tf.constant(whole), [2, 3])
            assert crop.shape.as_list() == [2, 3]
            for _ in range(30):
                part = session.run(crop)
                row, column = divmod(int(part[0, 0]), 7)
                np.testing.assert_array_equal(part, whole[row : row + 2, column : column + 3])
                places.add((row, column))
        assert len(places) > 5

    def test_crop_of_something_smaller_fails(self) -> None:
        part = tf.random_crop(tf.placeholder(tf.float32, [None]), [4])
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"Need value.shape >= size"):
            session.run(part, {part.graph.get_tensor_by_name("Placeholder:0"): [1.0, 2.0]})

    def test_dropout_keeps_the_mean(self) -> None:
        dropped = run(tf.nn.dropout(tf.ones([COUNT]), 0.25, seed=1))
        assert set(np.unique(dropped)) == {0, 4}
        assert abs((dropped > 0).mean() - 0.25) < 0.02

    def test_dropout_of_whole_rows(self) -> None:
        dropped = run(tf.nn.dropout(tf.ones([200, 5]), rate=0.5, noise_shape=[None, 1]))
        assert set(dropped.sum(1)) == {0, 10}


class TestSeeds:
    @pytest.mark.parametrize("draw", [tf.random_normal, tf.random_uniform, tf.truncated_normal])
    def test_without_seeds_sessions_differ(self, draw: Callable[..., Any]) -> None:
        numbers = draw([4])
        assert (run(numbers) != run(numbers)).any()

    def test_steps_differ_and_sessions_repeat_with_a_seed(self) -> None:
        numbers = tf.random_normal([4], seed=5)
        runs = []
        for _ in range(2):
            with tf.Session() as session:
                runs.append([session.run(numbers) for _ in range(3)])
        np.testing.assert_array_equal(runs[0], runs[1])
        assert len({tuple(values) for values in runs[0]}) == 3

    def test_operations_differ_with_a_seed_of_the_graph(self) -> None:
        tf.set_random_seed(7)
        first, second = tf.random_normal([4]), tf.random_normal([4])
        one, other = run(first, second)
        assert (one != other).any()
        np.testing.assert_array_equal(run(first, second), [one, other])

    @pytest.mark.parametrize(
        ("graph_seed", "op_seed", "expected"),
        [(None, None, (0, 0)), (None, 5, (87654321, 5)), (3, None, (3, 0)), (3, 5, (3, 5)), (0, 0, (0, 2**31 - 1))],
    )
    def test_attributes(self, graph_seed: int | None, op_seed: int | None, expected: tuple[int, int]) -> None:
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        # The first operation of its graph, so that the seed derived from the number of operations is 0.
        op = (
            tf.random_shuffle(tf.constant([1.0]), seed=op_seed).op
            if op_seed is not None or graph_seed is None
            else None
        )
        if op is not None:
            assert (op.get_attr("seed"), op.get_attr("seed2")) == expected
        else:
            assert tf.get_seed(None) == expected

    def test_stateless_numbers_follow_from_the_seed(self) -> None:
        draw = tf.random.stateless_normal
        one, same, other = run(draw([4], [1, 2]), draw([4], [1, 2]), draw([4], [2, 2]))
        np.testing.assert_array_equal(one, same)
        assert (one != other).any()


class TestCandidates:
    """Sampled classes for losses that evaluate a few of many classes."""

    CLASSES = 50

    def shares(self, drawn: Any) -> Any:
        return np.bincount(drawn, minlength=self.CLASSES) / len(drawn)

    def test_log_uniform(self) -> None:
        true = np.arange(self.CLASSES)[:, None]
        drawn, expected, _ = run(*tf.nn.log_uniform_candidate_sampler(true, 1, COUNT, False, self.CLASSES, seed=1))
        wanted = np.log((true[:, 0] + 2) / (true[:, 0] + 1)) / np.log(self.CLASSES + 1)
        np.testing.assert_allclose(expected[:, 0], COUNT * wanted, rtol=1e-5)
        assert np.abs(self.shares(drawn) - wanted).max() < 0.02

    def test_weights(self) -> None:
        weights = [0.0, 1.0, 4.0, 9.0]
        sampler = tf.nn.fixed_unigram_candidate_sampler
        drawn = run(sampler([[1]], 1, COUNT, False, 4, unigrams=weights, distortion=0.5, seed=1))[0]
        assert np.abs(np.bincount(drawn, minlength=4) / COUNT - np.array([0, 1, 2, 3]) / 6).max() < 0.02

    def test_weights_of_a_file_and_a_shard(self, tmp_path: Any) -> None:
        path = tmp_path / "words"
        path.write_text("the,5\na,2\nrare,1\n")
        sampler = tf.nn.fixed_unigram_candidate_sampler
        drawn = run(sampler([[1]], 1, COUNT, False, 4, str(path), num_reserved_ids=1, num_shards=2, shard=1, seed=1))[0]
        assert np.abs(np.bincount(drawn, minlength=4) / COUNT - np.array([0, 5 / 6, 0, 1 / 6])).max() < 0.02

    def test_unique_samples_keep_the_order_of_their_first_draw(self) -> None:
        count, times = 6, 4000
        sampler = tf.nn.fixed_unigram_candidate_sampler
        op = sampler([[3]], 1, count, True, 8, unigrams=[8.0, 4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0], seed=1)
        firsts, seconds, expected = np.zeros(8), np.zeros(8), []
        with tf.Session() as session:
            for _ in range(times):
                drawn, often = session.run([op.sampled_candidates, op.true_expected_count])
                assert len(set(drawn.tolist())) == count
                firsts[drawn[0]] += 1
                seconds[drawn[1]] += drawn[0] == 0
                expected.append(often[0, 0])
        p = np.array([8, 4, 2, 1, 1, 1, 1, 1]) / 19
        np.testing.assert_allclose(firsts / times, p, atol=0.03)
        np.testing.assert_allclose(seconds[1:] / firsts[0], p[1:] / p[1:].sum(), atol=0.04)
        # 1 - (1 - p)^n for n draws, where n is at least the number of classes.
        tries = np.log1p(-np.array(expected, np.float64)) / np.log1p(-p[3])
        assert np.abs(tries - tries.round()).max() < 0.05
        assert tries.min() > count - 0.5

    def test_seeds(self) -> None:
        def draw(seed: int | None) -> Any:
            return run(tf.nn.log_uniform_candidate_sampler([[0]], 1, 20, True, 1000, seed=seed))[0].tolist()

        assert draw(1) == draw(1) != draw(2)
        assert draw(None) != draw(None)

    def test_more_elements_than_exist(self) -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="unique"):
            run(tf.nn.uniform_candidate_sampler([[0]], 1, 8, True, 7)[0])

    def test_in_a_loop(self) -> None:
        def body(i: Any, total: Any) -> Any:
            return i + 1, total + tf.nn.uniform_candidate_sampler([[0]], 1, 3, True, 3)[0]

        assert run(tf.while_loop(lambda i, _: i < 5, body, [0, np.zeros(3, np.int64)]))[1].sum() == 15

    def test_a_model_is_trained_with_a_few_of_many_classes(self) -> None:
        labels = np.arange(40) % 8
        inputs = np.eye(8, dtype=np.float32)[labels]
        for loss in (tf.nn.sampled_softmax_loss, tf.nn.nce_loss):
            with tf.Graph().as_default(), tf.Session() as session:
                weights = tf.get_variable("w", [8, 8], partitioner=tf.fixed_size_partitioner(2))
                biases = tf.get_variable("b", [8], initializer=tf.zeros_initializer())
                cost = tf.reduce_mean(loss(weights, biases, labels[:, None], inputs, 4, 8))
                train = tf.train.AdagradOptimizer(1.0).minimize(cost)
                whole = tf.matmul(inputs, tf.nn.embedding_lookup(weights, np.arange(8)), transpose_b=True) + biases
                session.run(tf.global_variables_initializer())
                for _ in range(60):
                    session.run(train)
                assert (session.run(tf.argmax(whole, 1)) == labels).all()


class TestDistortedBoundingBox:
    def test_distorted_bounding_boxes_respect_their_limits(self) -> None:
        box = [0.25, 0.25, 0.75, 0.75]
        part = tf.image.sample_distorted_bounding_box(
            [40, 60, 3], [[box]], min_object_covered=0.5, aspect_ratio_range=(0.5, 2.0), area_range=(0.3, 0.6)
        )
        image = tf.slice(np.arange(40 * 60 * 3).reshape(40, 60, 3), part.begin, part.size)
        seen = set()
        with tf.Session() as session:
            for _ in range(200):
                begin, size, bounds, cut = session.run([*part, image])
                height, width = size[:2]
                assert cut.shape == (height, width, 3)
                assert begin[2] == 0
                assert size[2] == -1
                top, left, bottom, right = bounds[0, 0] * [40, 60, 40, 60]
                np.testing.assert_allclose([top, left, bottom, right], [*begin[:2], *(begin + size)[:2]], atol=1e-3)
                assert 0.3 <= height * width / 2400 <= 0.6
                assert 0.45 <= width / height <= 2.1
                shared = max(min(bottom, 30) - max(top, 10), 0) * max(min(right, 45) - max(left, 15), 0)
                assert shared >= 0.5 * 20 * 30 - 1e-3
                seen.add((*begin.tolist(), height, width))
        assert len(seen) > 150

    def test_the_whole_image_where_no_part_fits(self) -> None:
        part = tf.image.sample_distorted_bounding_box(
            [10, 10, 3], [[[0.0, 0.0, 1.0, 1.0]]], min_object_covered=1.0, area_range=(0.1, 0.2), max_attempts=5
        )
        begin, size, bounds = run(*part)
        assert (begin.tolist(), size.tolist(), bounds.tolist()) == ([0, 0, 0], [10, 10, -1], [[[0, 0, 1, 1]]])

    def test_without_boxes(self) -> None:
        part = tf.image.sample_distorted_bounding_box(
            [10, 10, 3], np.zeros([1, 0, 4], np.float32), use_image_if_no_bounding_boxes=True, seed=1
        )
        assert run(part.size)[0] <= 10


def test_stateless_classes_follow_from_their_seed() -> None:
    logits = np.log([[0.1, 0.2, 0.7]]).astype(np.float32)
    drawn, again, other = run(*(tf.random.stateless_categorical(logits, COUNT, seed=[1, last]) for last in (2, 2, 3)))
    assert (drawn == again).all()
    assert (drawn != other).any()
    assert np.abs(np.bincount(drawn[0], minlength=3) / COUNT - [0.1, 0.2, 0.7]).max() < 0.02
