"""``tf.keras.backend`` and functions that Keras 3 has removed have the results of TensorFlow 1.15. See
``tests/conformance``.
"""

from __future__ import annotations

import keras
import numpy as np
import pytest

from headwater import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases

# Warnings of Keras's own code: arrays of variables, and the location of SciPy's functions.
pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword"),
    pytest.mark.filterwarnings("ignore:Please import:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`"),
]


@pytest.mark.long
@pytest.mark.parametrize("case", stored_cases("keras_backend"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)


def test_gradients_of_inner_tensors_of_a_model() -> None:
    backend = tf.keras.backend
    inputs = keras.Input((2,))
    inner = keras.layers.Dense(3, kernel_initializer="ones")(inputs)
    score = backend.sum(backend.square(inner), axis=1)
    find = backend.function([inputs], [inner, *backend.gradients(score, inner)])
    values, gradient = find([np.array([[1.0, 2.0], [0.0, 1.0]], np.float32)])
    assert np.allclose(gradient, 2 * values)
    with pytest.raises(ValueError, match="gradients of weights are computed by the optimizer"):
        backend.gradients(score, [backend.variable([1.0])])


def test_phases() -> None:
    backend = tf.keras.backend
    with backend.learning_phase_scope(1):
        assert backend.in_train_phase("train", "test") == "train"
    assert backend.in_test_phase("test", lambda: "train", training=0) == "test"


def test_the_session_of_the_backend_initialises_variables_unless_the_program_does() -> None:
    backend = tf.keras.backend
    with tf.Graph().as_default(), tf.Session() as session:
        backend.set_session(session)
        assert backend.get_session() is session
        backend.manual_variable_initialization(True)
        try:
            variable = backend.variable(1.0)
            with pytest.raises(tf.errors.FailedPreconditionError):
                backend.get_value(variable)
        finally:
            backend.manual_variable_initialization(False)
        assert backend.get_value(variable) == 1.0
    with pytest.raises(ValueError, match="is symbolic"):
        backend.eval(keras.Input((2,)))


def test_gradients_and_functions_of_learning_phases() -> None:
    backend = tf.keras.backend
    inputs = keras.Input((3,))
    outputs = keras.layers.Dropout(0.5)(inputs)
    compute = backend.function([inputs, backend.learning_phase()], [outputs])
    ones = np.ones((50, 3), np.float32)
    assert np.array_equal(compute([ones, 0])[0], ones)
    assert 0.0 in compute([ones, 1])[0]


def test_metrics_of_tensors() -> None:
    mean = tf.keras.metrics.MeanTensor()
    mean.update_state([0.0, 1.0, 2.0, 3.0])
    mean.update_state([4.0, 5.0, 6.0, 7.0], sample_weight=[1.0, 0.0, 3.0, 1.0])
    assert np.asarray(mean.result()).tolist() == [2.0, 1.0, 5.0, 5.0]
    with pytest.raises(ValueError, match="same shape"):
        mean.update_state([1.0])
    error = tf.keras.metrics.MeanRelativeError(normalizer=[1.0, 3.0, 2.0, 3.0])
    error.update_state([1.0, 3.0, 2.0, 3.0], [2.0, 4.0, 6.0, 8.0])
    assert float(error.result()) == pytest.approx(1.25)


def test_layers_that_cudnn_had() -> None:
    steps = keras.Input((3, 4))
    for layer in (tf.keras.layers.CuDNNLSTM(5), tf.keras.layers.CuDNNGRU(5)):
        assert layer(steps).shape == (None, 5)
        assert type(layer).from_config(layer.get_config()).units == 5


def test_changes_of_images() -> None:
    image = tf.keras.preprocessing.image
    picture = (np.arange(40) % 7).reshape(4, 5, 2).astype(np.float32)
    moved = image.apply_affine_transform(picture, tx=1, row_axis=0, col_axis=1, channel_axis=2, fill_mode="constant")
    assert np.array_equal(moved[:, :4], picture[:, 1:])
    assert not moved[:, 4].any()
    for change in (image.random_shift, image.random_zoom):
        arguments = (0.1, 0.1) if change is image.random_shift else ((0.9, 1.1),)
        assert change(picture, *arguments, 0, 1, 2).shape == picture.shape
    for change in (image.random_rotation, image.random_shear):
        assert change(picture, 5, 0, 1, 2).shape == picture.shape
    assert image.random_channel_shift(picture, 1.0, 2).shape == picture.shape
    flow = image.ImageDataGenerator(rescale=0.5).flow(
        picture[None, :, :, :1], np.array([1]), batch_size=1, shuffle=False
    )
    images, labels = next(flow)
    assert np.array_equal(images[0], picture[:, :, :1] / 2)
    assert labels.tolist() == [1]
    assert isinstance(flow, image.NumpyArrayIterator)
    assert isinstance(flow, image.Iterator)
