"""Training loops, and loops over checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater.tf1.compat import tf


def test_a_basic_loop() -> None:
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        increment = step.assign_add(1)
        sv = tf.train.Supervisor()
        seen: list[int] = []

        def train(sess: Any, last: int, by: str) -> None:
            seen.append(int(sess.run(increment)))
            if seen[-1] == last:
                sv.request_stop()
            assert by == "one"

        tf.train.basic_train_loop(sv, train, args=(3,), kwargs={"by": "one"})
    assert seen == [1, 2, 3]


def test_checkpoints_iterator_yields_new_checkpoints(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        v = tf.Variable(1.0)
        saver = tf.train.Saver()
        asked: list[int] = []

        def save_another() -> bool:
            asked.append(1)
            if len(asked) < 3:
                saver.save(sess, str(tmp_path / "m"), global_step=len(asked))
            return len(asked) == 3

        with tf.Session() as sess:
            sess.run(v.initializer)
            found = list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0, timeout_fn=save_another))
    assert found == [str(tmp_path / "m-1"), str(tmp_path / "m-2")]
    assert list(tf.train.checkpoints_iterator(str(tmp_path / "none"), timeout=0)) == []


def test_a_worker_waits_for_no_more_steps_than_there_are() -> None:
    """The loss is TensorFlow 1.15's."""
    slim = tf.contrib.slim
    server = tf.train.Server.create_local_server()

    def train(**options: Any) -> float | None:
        with tf.Graph().as_default(), tf.device("/job:local/task:0"):
            w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
            loss = w * w
            train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
            return slim.learning.train(train_op, None, master=server.target, number_of_steps=3, **options)

    train()
    assert train(is_chief=False, startup_delay_steps=100) == pytest.approx(1.0485759)


def test_names_of_summaries_of_gradients() -> None:
    """The tags are TensorFlow 1.15's."""
    slim, training = tf.contrib.slim.learning, tf.contrib.training
    for module, separator in ((slim, "/"), (training, "_")):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("a/w", [2], initializer=tf.zeros_initializer())
            tf.train.get_or_create_global_step()
            module.create_train_op(tf.reduce_sum(w), tf.train.GradientDescentOptimizer(0.1), summarize_gradients=True)
            session.run(w.initializer)
            made = [*tf.get_collection(tf.GraphKeys.SUMMARIES), *module.add_gradients_summaries([(w * 2.0, w)])]
            tags = [tf.Summary.FromString(session.run(each)).value[0].tag for each in made]
        names = [f"a/w{separator}gradient", f"a/w{separator}gradient_norm"]
        assert tags == ["summarize_grads/a/w_gradient", "summarize_grads/a/w_gradient_norm", *names]
