"""Arguments without effect are refused; the error names a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import pytest

from headwater import tf


def _no_batches() -> Any:
    raise AssertionError("refused before it is asked")


_NONE: Any = None

CALLS: dict[str, Callable[[], Any]] = {
    "builder": lambda: tf.train.Saver(builder=object()),
    "clear_extraneous_savers": lambda: tf.train.export_meta_graph(clear_extraneous_savers=True),
    "save_debug_info": lambda: tf.train.export_meta_graph(save_debug_info=True),
    "_joint_weight": lambda: tf.contrib.learn.LinearClassifier([], _joint_weight=True),
    "embedding_lr_multipliers": lambda: tf.contrib.learn.DNNClassifier([2], [], embedding_lr_multipliers={"x": 1.0}),
    "eval_metrics": lambda: tf.contrib.learn.Experiment(_NONE, _no_batches, _no_batches, eval_metrics={"x": 1}),
    "export_strategies": lambda: tf.contrib.learn.Experiment(_NONE, _no_batches, _no_batches, export_strategies=[1]),
    "combiner": lambda: tf.contrib.layers.sparse_column_with_keys("x", ["a"], combiner="mean"),
    "fancy_upscaling": lambda: tf.image.decode_jpeg(b"", fancy_upscaling=False),
    "acceptable_fraction": lambda: tf.image.decode_jpeg(b"", acceptable_fraction=0.5),
    "try_recover_truncated": lambda: tf.image.decode_and_crop_jpeg(b"", [0, 0, 1, 1], try_recover_truncated=True),
    "write_images": lambda: tf.keras.callbacks.TensorBoard(write_images=True),
    "profile_batch": lambda: tf.keras.callbacks.TensorBoard(profile_batch="10,20"),
    "embeddings_freq": lambda: tf.keras.callbacks.TensorBoard(embeddings_freq=1),
    "accumulation_fn": lambda: tf.distribute.ReductionToOneDevice(accumulation_fn=tf.add_n),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_refused_by_name(name: str) -> None:
    with tf.Graph().as_default():
        tf.get_variable("v", [])
        with pytest.raises(ValueError, match=name):
            CALLS[name]()


@pytest.mark.parametrize("given", [{"write_images": True}, {"embeddings_freq": 1}, {"profile_batch": 3}], ids=str)
def test_keras_own_board_is_refused_where_it_is_used(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        keras.callbacks.CallbackList([keras.callbacks.TensorBoard(**given)])


def test_the_gradient_of_a_tensor_array_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match=r"tf\.gradients"):
        tf.TensorArray(tf.float32, 2).grad("gradients")


def test_settings_of_a_first_run_config() -> None:
    config = tf.contrib.learn.RunConfig("grpc://ps:1", 3, True, 0.5, save_checkpoints_steps=7)
    assert config.master == "grpc://ps:1"
    assert config.save_checkpoints_steps == 7
    assert config.save_checkpoints_secs is None
    assert config.session_config is not None
    assert config.session_config.intra_op_parallelism_threads == 3
    assert config.session_config.log_device_placement
    assert config.session_config.gpu_options.per_process_gpu_memory_fraction == 0.5
    assert tf.contrib.learn.RunConfig().save_checkpoints_secs == 600
