"""Optimizers of TensorFlow 1.15's ``tf.keras`` and ``tf.train`` in `fit`. All values are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
optimizers, schedules = tf.keras.optimizers, tf.keras.optimizers.schedules
X = np.array([[1.0, 2.0], [3.0, -1.0], [-2.0, 0.5], [0.5, 0.5], [1.0, -1.0]], np.float32)
Y = np.array([[1.0], [2.0], [-1.0], [0.0], [3.0]], np.float32)


def model_of(optimizer: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(2, activation="tanh", input_shape=(2,)), layers.Dense(1)])
    kernels = np.array([[0.1, 0.2], [-0.3, 0.4]], np.float32), np.array([[0.5], [-0.6]], np.float32)
    model.set_weights([kernels[0], np.zeros(2, np.float32), kernels[1], np.array([0.05], np.float32)])
    model.compile(optimizer, loss="mse")
    return model


def fit(model: Any, epochs: int = 5, callbacks: Any = None) -> Any:
    return model.fit(X, Y, batch_size=5, epochs=epochs, shuffle=False, verbose=0, callbacks=callbacks).history


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: optimizers.SGD(0.1), [0.656877, 0.555617, 0.518479, 0.56672]),
        (lambda: optimizers.SGD(), [2.203006, 0.18229, 0.434931, 0.146861]),
        (lambda: optimizers.SGD(lr=0.1, decay=0.5), [0.919462, 0.439341, 0.507026, 0.454733]),
        (lambda: optimizers.SGD(0.1, momentum=0.9), [1.12109, 1.217552, 0.91145, 1.148116]),
        (lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, decay=0.1), [0.766456, 1.113308, 0.899581, 0.923456]),
        (lambda: optimizers.SGD(0.1, momentum=0.9, clipnorm=0.3), [1.319369, 0.343137, 0.486547, 0.444323]),
        (lambda: optimizers.SGD(0.1, clipvalue=0.05), [2.584506, 0.125, 0.425, 0.075]),
        (
            lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 2, 0.5, staircase=True)),
            [0.815706, 0.464122, 0.511549, 0.48375],
        ),
        (
            lambda: optimizers.SGD(schedules.ExponentialDecay(0.1, 2, 0.5), decay=0.2),
            [1.031217, 0.397188, 0.501872, 0.40591],
        ),
        (lambda: optimizers.SGD(schedules.PolynomialDecay(0.1, 3, 0.01)), [1.016978, 0.397891, 0.502761, 0.407701]),
        (
            lambda: optimizers.SGD(schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01])),
            [0.815706, 0.455315, 0.510971, 0.47498],
        ),
        (
            lambda: optimizers.SGD(schedules.InverseTimeDecay(0.1, 2, 0.5, staircase=True)),
            [0.754375, 0.497813, 0.51402, 0.517043],
        ),
        (lambda: optimizers.RMSprop(), [2.693263, 0.110583, 0.410565, 0.060598]),
        (lambda: optimizers.RMSprop(0.1, decay=0.3), [0.507823, 0.623955, 0.806086, 0.498102]),
        (lambda: optimizers.RMSprop(0.1, rho=0.5, epsilon=0.1), [0.674811, 0.54217, 0.710965, 0.451829]),
        (lambda: optimizers.RMSprop(0.1, momentum=0.5), [0.572744, 0.929354, 1.239205, 0.606855]),
        (lambda: optimizers.RMSprop(0.1, momentum=0.5, epsilon=0.1), [0.550494, 0.881955, 0.977608, 0.630859]),
        (lambda: optimizers.RMSprop(0.1, centered=True), [0.442901, 0.717178, 0.907824, 0.5084]),
        (lambda: optimizers.RMSprop(0.1, centered=True, epsilon=0.1), [0.465177, 0.675545, 0.779435, 0.511254]),
        (
            lambda: optimizers.RMSprop(0.1, centered=True, momentum=0.5, epsilon=0.1),
            [0.550123, 0.896125, 0.98819, 0.635169],
        ),
        (lambda: optimizers.Adagrad(), [2.758193, 0.103201, 0.403095, 0.053207]),
        (lambda: optimizers.Adagrad(0.1, initial_accumulator_value=0.5), [1.191519, 0.365779, 0.583441, 0.313984]),
        (lambda: optimizers.Adagrad(0.1, epsilon=0.1, decay=0.2), [1.356502, 0.31653, 0.570095, 0.267247]),
        (lambda: optimizers.Adagrad(0.1, initial_accumulator_value=0.0), [1.09702, 0.378303, 0.624168, 0.317899]),
        (lambda: optimizers.Adadelta(), [2.786291, 0.100007, 0.400007, 0.050007]),
        (lambda: optimizers.Adadelta(1.0, rho=0.9, epsilon=1e-3, decay=0.1), [0.867456, 0.443058, 0.653643, 0.367512]),
        (lambda: optimizers.Adam(), [2.744771, 0.104999, 0.404998, 0.054999]),
        (
            lambda: optimizers.Adam(0.1, beta_1=0.8, beta_2=0.9, epsilon=0.1, decay=0.1),
            [1.006177, 0.454952, 0.673805, 0.411666],
        ),
        (lambda: optimizers.Adam(0.1, amsgrad=True, beta_2=0.5), [0.788024, 0.561911, 0.774156, 0.508047]),
        (lambda: optimizers.Adam(0.1, epsilon=None), [0.777896, 0.571178, 0.817213, 0.519399]),
        (lambda: optimizers.Adam(0.1, epsilon=0), [0.777896, 0.571178, 0.817213, 0.519399]),
        (lambda: optimizers.Adamax(), [2.744845, 0.104992, 0.404988, 0.054996]),
        (
            lambda: optimizers.Adamax(0.1, beta_1=0.8, beta_2=0.9, epsilon=0.1, decay=0.1),
            [0.973115, 0.467153, 0.680921, 0.428928],
        ),
        (lambda: optimizers.Nadam(), [2.75202, 0.104041, 0.404039, 0.054043]),
        (
            lambda: optimizers.Nadam(lr=0.1, beta_1=0.8, beta_2=0.9, epsilon=0.1),
            [0.899122, 0.463364, 0.664633, 0.399735],
        ),
        (lambda: optimizers.Nadam(0.1, schedule_decay=0.5), [0.928712, 0.442348, 0.673592, 0.375809]),
        (lambda: optimizers.Nadam(0.1, decay=0.5), [0.920124, 0.444629, 0.673967, 0.376349]),
        (lambda: optimizers.Nadam(0.1, clipnorm=0.1), [0.790489, 0.52976, 0.767933, 0.45494]),
        (lambda: optimizers.Nadam(0.1, epsilon=None), [0.920124, 0.444629, 0.673967, 0.376349]),
        (lambda: optimizers.Ftrl(), [2.904153, 0.085994, 0.253944, 0.045723]),
        (
            lambda: optimizers.Ftrl(
                0.1,
                learning_rate_power=-0.7,
                initial_accumulator_value=0.2,
                l1_regularization_strength=0.01,
                l2_regularization_strength=0.02,
                decay=0.1,
            ),
            [2.109436, 0.209163, 0.315118, 0.176927],
        ),
        (lambda: optimizers.Ftrl(0.1, l2_shrinkage_regularization_strength=0.3), [1.770486, 0.318896, 0.326, 0.304408]),
        (lambda: "sgd", [2.203006, 0.18229, 0.434931, 0.146861]),
        (lambda: "rmsprop", [2.693263, 0.110583, 0.410565, 0.060598]),
        (lambda: "adagrad", [2.757386, 0.103225, 0.403224, 0.053227]),
        (lambda: "adadelta", [2.786291, 0.100007, 0.400007, 0.050007]),
        (lambda: "adam", [2.744771, 0.104999, 0.404998, 0.054999]),
        (lambda: "adamax", [2.744845, 0.104992, 0.404988, 0.054996]),
        (lambda: "nadam", [2.75202, 0.104041, 0.404039, 0.054043]),
        (lambda: "ftrl", [2.904153, 0.085994, 0.253944, 0.045723]),
        (lambda: "Nadam", [2.75202, 0.104041, 0.404039, 0.054043]),
        (lambda: tf.train.MomentumOptimizer(0.1, 0.9), [1.12109, 1.217552, 0.91145, 1.148116]),
        (lambda: tf.train.AdamOptimizer(0.1, epsilon=0.1), [1.541717, 0.323383, 0.525011, 0.293666]),
        (lambda: tf.train.GradientDescentOptimizer(0.1), [0.656877, 0.555617, 0.518479, 0.56672]),
        (lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), [0.690513, 1.108034, 0.929554, 0.833874]),
        (lambda: tf.train.AdagradOptimizer(0.1), [1.118003, 0.376007, 0.614106, 0.31701]),
        (lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-3), [0.547262, 0.567118, 0.738914, 0.434992]),
        (lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5), [0.527368, 0.749442, 0.651137, 0.709405]),
        (lambda: tf.train.RMSPropOptimizer(0.1, epsilon=0.1, centered=True), [0.694053, 0.547336, 0.537693, 0.531867]),
        (
            lambda: tf.train.FtrlOptimizer(
                0.1, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.02
            ),
            [1.552237, 0.345822, 0.442371, 0.316501],
        ),
        (lambda: optimizers.SGD(0.5, lr=0.1), [0.656877, 0.555617, 0.518479, 0.56672]),
        (
            lambda: optimizers.get({"class_name": "Nadam", "config": {"learning_rate": 0.1, "decay": 0.1}}),
            [0.920124, 0.444629, 0.673967, 0.376349],
        ),
        (
            lambda: optimizers.SGD.from_config(optimizers.SGD(0.1, decay=0.25).get_config()),
            [0.81119, 0.480081, 0.511391, 0.498542],
        ),
    ],
)
def test_five_updates(make: Callable[[], Any], expected: list[float]) -> None:
    model = model_of(make())
    loss = fit(model)["loss"][-1]
    kernel, *_, bias = model.get_weights()
    np.testing.assert_allclose([loss, kernel[0, 0], kernel[1, 1], bias[0]], expected, rtol=2e-5, atol=2e-6)


def test_settings_that_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Expected decay >= 0, received: -0.1"):
        optimizers.SGD(0.1, decay=-0.1)
    rate = tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 1, 0.5)
    with pytest.raises(NotImplementedError, match=r"a tensor as learning_rate: use an optimizer of tf.keras"):
        model_of(tf.train.GradientDescentOptimizer(rate))
    with pytest.raises(NotImplementedError, match=r"ProximalAdagradOptimizer is not supported"):
        model_of(tf.train.ProximalAdagradOptimizer(0.1))


@pytest.mark.parametrize(
    ("make", "losses", "later"),
    [
        (
            lambda: optimizers.SGD(lr=0.1, decay=0.5, momentum=0.9),
            [2.786350965499878, 1.5105375051498413, 0.7907520532608032, 0.6380060911178589],
            [0.8759981989860535, 1.362750768661499],
        ),
        (
            lambda: optimizers.Nadam(lr=0.1),
            [2.786350965499878, 1.8977266550064087, 1.503515601158142, 1.339687705039978],
            [1.2601051330566406, 1.2200719118118286],
        ),
    ],
)
def test_rates_of_callbacks_and_saved_states(
    make: Callable[[], Any], losses: list[float], later: list[float], tmp_path: Path
) -> None:
    model = model_of(make())
    slower = tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=100)
    history = fit(model, 4, [slower])
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-5)
    assert "lr" in history
    np.testing.assert_allclose(history["lr"], [0.1, 0.1, 0.05, 0.025])
    assert np.isclose(tf.keras.backend.get_value(model.optimizer.lr), 0.0125)
    for name in ("model.keras", "model.h5"):
        model.save(str(tmp_path / name))
        loaded = tf.keras.models.load_model(str(tmp_path / name))
        assert isinstance(loaded.optimizer, type(make()))
        np.testing.assert_allclose(fit(loaded, 2)["loss"], later, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: optimizers.Nadam(0.1, schedule_decay=0.3), [0.625613, 1.61089, 2.606381]),
        (lambda: optimizers.SGD(0.1, decay=0.5), [0.535808, 1.071616, 1.607424]),
        (lambda: optimizers.Adagrad(0.1, epsilon=0.3), [0.727482, 1.702852, 2.694311]),
        (lambda: optimizers.RMSprop(0.1, epsilon=0.3), [0.36242, 1.180813, 2.106223]),
    ],
)
def test_five_updates_in_a_graph(make: Callable[[], Any], expected: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0, 3.0], use_resource=True)
        updates = make().get_updates(tf.reduce_sum(tf.square(v)), [v])
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(updates)
        np.testing.assert_allclose(session.run(v), expected, rtol=1e-5)
        if len(tf.global_variables()) == 6:  # Nadam's
            assert "Nadam/momentum_cache" in [variable.op.name for variable in tf.global_variables()]
