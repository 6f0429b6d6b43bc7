"""Keras models as estimators, and the learning phase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater import tf
from headwater.errors import UnimplementedError
from headwater.keras.learning_phase import learning_phase, restore_learning_phase, set_learning_phase
from headwater.keras.saving import save_model

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

X = np.random.default_rng(0).random((64, 4), np.float32)
Y = (X.sum(1) > 2).astype(np.int32)


def compiled() -> Any:
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(6, activation="relu", name="hidden"),
            keras.layers.Dense(2, activation="softmax", name="out"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.03), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def batches() -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(16)


def test_an_estimator_trains_like_its_model(tmp_path: Path) -> None:
    model = compiled()
    estimator = tf.keras.estimator.model_to_estimator(model, model_dir=str(tmp_path))
    estimator.train(batches, steps=6)
    estimator.train(batches, max_steps=8)
    for step in (0, 1, 2, 3, 4, 5, 0, 1):  # each call of `train` restarts the input
        start = 16 * (step % 4)
        model.train_on_batch(X[start : start + 16], Y[start : start + 16])
    names = ["hidden/kernel", "hidden/bias", "out/kernel", "out/bias"]
    for name, expected in zip(names, model.get_weights(), strict=True):
        np.testing.assert_allclose(estimator.get_variable_value(name), expected, rtol=1e-5, atol=1e-6)
    assert estimator.get_variable_value("global_step") == 8
    found = estimator.evaluate(batches, steps=4)
    expected = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert found["global_step"] == 8
    assert found["accuracy"] == pytest.approx(expected["accuracy"])
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    first = next(estimator.predict(batches))
    np.testing.assert_allclose(first["out"], model.predict(X[:1], verbose=0)[0], rtol=1e-5)


def test_train_and_evaluate_and_refused_arguments(tmp_path: Path) -> None:
    config = tf.estimator.RunConfig(
        model_dir=str(tmp_path),
        experimental_distribute=tf.contrib.distribute.DistributeConfig(
            train_distribute=tf.contrib.distribute.MirroredStrategy(num_gpus_per_worker=0)
        ),
    )
    estimator = tf.keras.estimator.model_to_estimator(compiled(), config=config)
    evaluated = tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(batches, max_steps=4), tf.estimator.EvalSpec(batches, steps=2)
    )
    assert evaluated is not None
    metrics, _ = evaluated
    assert metrics is not None
    assert set(metrics) == {"loss", "accuracy", "global_step"}
    with pytest.raises(UnimplementedError, match=r"model\.export"):
        estimator.export_saved_model(str(tmp_path / "out"), dict)
    with pytest.raises(ValueError, match="names of the model's inputs"):
        estimator.train(lambda: ({"a": tf.constant(X), "b": tf.constant(X)}, tf.constant(Y)), steps=1)


def test_models_that_it_cannot_take(tmp_path: Path) -> None:
    make = tf.keras.estimator.model_to_estimator
    with pytest.raises(ValueError, match="Either `keras_model`"):
        make()
    with pytest.raises(ValueError, match="but not both"):
        make(compiled(), "x")
    with pytest.raises(ValueError, match="has not been compiled"):
        make(keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]))
    with pytest.raises(ValueError, match="must be 'saver'"):
        make(compiled(), checkpoint_format="checkpoint")
    path = tmp_path / "model.keras"
    model = compiled()
    model.train_on_batch(X, Y)
    save_model(model, path)
    assert make(keras_model_path=str(path), model_dir=str(tmp_path / "dir")).latest_checkpoint() is None


def test_central_storage_trains_as_the_model_itself() -> None:
    alone = compiled()
    alone.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    with tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"]).scope():
        model = compiled()
    model.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    for mine, other in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_old_strategies_name_unsupported_options(tmp_path: Path) -> None:
    distribute = tf.contrib.distribute
    with pytest.raises(ValueError, match="cannot specify both"):
        distribute.MirroredStrategy(num_gpus=1, num_gpus_per_worker=1)
    with pytest.raises(ValueError, match="only specify one"):
        distribute.MirroredStrategy(["/cpu:0"], num_gpus=1)
    with pytest.raises(ValueError, match="sees 0 GPUs"):
        distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2)
    assert distribute.CollectiveAllReduceStrategy().num_replicas_in_sync == 1
    with pytest.raises(NotImplementedError, match="every compute device keeps all variables"):
        tf.distribute.experimental.CentralStorageStrategy(parameter_device="/cpu:0")
    with pytest.raises(ValueError, match="remote_cluster must be None"):
        tf.estimator.RunConfig(experimental_distribute=distribute.DistributeConfig(remote_cluster={}))

    class TwoProcesses(tf.distribute.Strategy):
        num_replicas_in_sync = 2

    with pytest.raises(ValueError, match="in several processes"):
        tf.estimator.RunConfig(train_distribute=TwoProcesses())

    class TwoDevices(TwoProcesses):
        def local_replicas(self) -> tuple[int, int]:
            return 0, 1

    config = tf.estimator.RunConfig(train_distribute=TwoDevices(), model_dir=str(tmp_path))
    with pytest.raises(ValueError, match="trains on one device of each task"):
        tf.estimator.Estimator(lambda features: features, config=config).train(batches, steps=1)


def test_the_learning_phase_stands_for_training() -> None:
    layers = tf.keras.layers
    model = keras.Sequential([keras.Input((1000,)), layers.Dropout(0.5)])
    ones = np.ones((1, 1000), np.float32)
    with pytest.raises(ValueError, match="0 or 1"):
        set_learning_phase(2)
    try:
        set_learning_phase(1)
        assert tf.keras.backend.learning_phase() == learning_phase() == 1
        assert 0 in np.asarray(model(ones))
        assert 0 not in np.asarray(model(ones, training=False))
        assert 0 not in model.predict(ones, verbose=0)
        # As in TensorFlow 1.15, a model that is built meanwhile keeps it.
        later = keras.Sequential([keras.Input((1000,)), layers.Dropout(0.5)])
        assert 0 in later.predict(ones, verbose=0)
    finally:
        restore_learning_phase(None)
    assert 0 not in np.asarray(model(ones))
    assert 0 in np.asarray(later(ones))
