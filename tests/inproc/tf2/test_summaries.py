"""``tf.summary`` of TensorFlow 2: the events in a folder, also of functions that cannot be compiled."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from headwater.tf2.namespace import tf


def written(folder: Path) -> dict[str, tuple[int, str, list[int]]]:
    """Returns for each tag the step, the plugin that shows it, and the shape."""
    (path,) = folder.iterdir()
    return {
        value.tag: (
            event.step,
            value.metadata.plugin_data.plugin_name,
            [dim.size for dim in value.tensor.tensor_shape.dim],
        )
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }


def test_summaries_are_written_to_event_files(tmp_path: Path) -> None:
    writer = tf.summary.create_file_writer(tmp_path / "events")
    step = tf.Variable(7, dtype=tf.int64)

    @tf.function
    def doubled(x: Any) -> Any:
        tf.summary.scalar("inside", tf.reduce_sum(x), step=9)
        return x * 2

    with writer.as_default():
        assert tf.summary.scalar("loss", tf.constant(1.5), step=3, description="of a batch")
        assert tf.summary.text("words", "hello", step=1)
        assert tf.summary.histogram("values", [1.0, 2.0, 3.0], step=2, buckets=2)
        assert tf.summary.image("pictures", tf.zeros([2, 2, 2, 3]), step=4)
        assert tf.summary.audio("sounds", tf.zeros([1, 8, 1]), 8000, step=4)
        with pytest.raises(ValueError, match="No step set"):
            tf.summary.scalar("loss", 1.0)
        with pytest.raises(ValueError, match="scalar"):
            tf.summary.scalar("loss", [1.0], step=1)
        tf.summary.experimental.set_step(step)
        with tf.name_scope("part"):
            tf.summary.scalar("loss", 2.0)
        with tf.summary.record_if(False):
            assert not tf.summary.scalar("nothing", 1.0)
            assert not tf.summary.should_record_summaries()
        assert doubled(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
    assert not tf.summary.scalar("nothing", 1.0, step=1)
    with writer.as_default(step=11):
        tf.summary.write("tensor", tf.ones([2, 3]))
    tf.summary.experimental.set_step(None)
    writer.close()
    with pytest.raises(RuntimeError, match="already closed"), writer.as_default():
        pass
    with tf.summary.create_noop_writer().as_default():
        assert not tf.summary.scalar("nothing", 1.0, step=1)
    assert written(tmp_path / "events") == {
        "loss": (3, "scalars", []),
        "words": (1, "text", []),
        "values": (2, "histograms", [2, 3]),
        "pictures": (4, "images", [4]),
        "sounds": (4, "audio", [1, 2]),
        "part/loss": (7, "scalars", []),
        "inside": (9, "scalars", []),
        "tensor": (11, "", [2, 3]),
    }


def test_the_warning_of_an_uncompiled_function_names_the_line(caplog: pytest.LogCaptureFixture) -> None:
    @tf.function(autograph=False)
    def branches(x: Any) -> Any:
        if x > 0:
            return x
        return -x

    with caplog.at_level(logging.WARNING, "headwater"):
        assert float(branches(tf.constant(-2.0))) == 2.0
    (record,) = [
        record.getMessage() for record in caplog.records if "needs the value of a tensor" in record.getMessage()
    ]
    assert "test_summaries.py" in record
    assert "if x > 0:" in record
    assert "tf.cond, tf.while_loop or tf.where" in record
