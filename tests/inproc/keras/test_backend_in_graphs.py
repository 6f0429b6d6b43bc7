"""``tf.keras.backend`` in programs of graphs adds operations, as in TensorFlow 1.15, whose values these are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from headwater import tf

K = tf.keras.backend


@pytest.fixture(autouse=True)
def session() -> Generator[Any]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_variables_are_updated_and_saved(session: Any, tmp_path: Path) -> None:
    variable = K.variable(3.0, name="v")
    change = K.update(variable, variable * 2)
    session.run(tf.global_variables_initializer())
    session.run(change)
    assert variable.name == "v:0"
    assert tf.trainable_variables() == [variable]
    assert session.run(K.square(variable)) == 36.0
    saver = tf.train.Saver([variable])
    path = saver.save(session, str(tmp_path / "model"))
    K.set_value(variable, 7.0)
    assert K.get_value(variable) == 7.0
    saver.restore(session, path)
    assert K.batch_get_value([variable]) == [6.0]


def test_moving_averages_begin_with_the_first_value(session: Any) -> None:
    average = K.variable([5.0, 5.0])
    update = K.moving_average_update(average, K.constant([1.0, 2.0]), 0.9)
    session.run(tf.global_variables_initializer())
    session.run(update)
    assert np.allclose(session.run(average), [1.0, 2.0])


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda: K.random_normal((100, 100), 1.0, 2.0), 1.0, 2.0),
        (lambda: K.random_uniform((100, 100), 1.0, 2.0), 1.5, 0.29),
        (lambda: K.random_binomial((100, 100), 0.3), 0.3, 0.46),
        (lambda: K.truncated_normal((100, 100), 1.0, 2.0), 1.0, 1.76),
        (lambda: K.dropout(K.ones((100, 100)), 0.5), 1.0, 1.0),
        (lambda: K.random_normal(K.shape(K.ones((100, 100)))), 0.0, 1.0),
    ],
)
def test_random_numbers_are_drawn_in_each_step(
    session: Any, draw: Callable[[], Any], mean: float, deviation: float
) -> None:
    numbers = draw()
    session.run(tf.global_variables_initializer())
    first, second = session.run(numbers), session.run(numbers)
    assert (first != second).any()
    assert first.mean() == pytest.approx(mean, abs=0.1)
    assert first.std() == pytest.approx(deviation, abs=0.1)


def test_functions_update_variables_with_each_call() -> None:
    inputs, count = K.placeholder((None, 2)), K.variable(1.0)
    compute = K.function([inputs], [K.sum(inputs) * count], updates=[(count, count + 1)])
    assert [float(compute([np.ones((2, 2))])[0]) for _ in range(3)] == [4.0, 8.0, 12.0]
    with pytest.raises(ValueError, match="Invalid argument 'other'"):
        K.function([inputs], [inputs], other=1)
    outputs = K.in_train_phase(inputs * 2, inputs)
    phased = K.function([inputs, K.learning_phase()], [outputs])
    assert [float(phased([np.ones((1, 2)), phase])[0][0, 0]) for phase in (0, 1)] == [1.0, 2.0]


def test_recurrences_and_maps_over_tensors(session: Any) -> None:
    steps = tf.placeholder_with_default(np.arange(12.0, dtype=np.float32).reshape(2, 3, 2), [None, 3, 2])
    mask = K.constant([[1, 1, 0], [1, 1, 1]])

    def step(value: Any, states: Any) -> Any:
        total = value + states[0]
        return total, [total]

    start = K.zeros_like(steps[:, 0])
    last, outputs, _ = K.rnn(step, steps, [start])
    masked, _, _ = K.rnn(step, steps, [start], mask=mask)
    assert session.run(last).tolist() == [[6.0, 9.0], [24.0, 27.0]]
    assert session.run(masked).tolist() == [[2.0, 4.0], [24.0, 27.0]]
    assert session.run(outputs).shape == (2, 3, 2)
    rows = steps[0]
    assert session.run(K.map_fn(K.sum, rows)).tolist() == [1.0, 5.0, 9.0]
    assert session.run(K.foldl(lambda a, b: a * 2 + b, rows)).tolist() == [8.0, 15.0]
    assert session.run(K.foldr(lambda a, b: a * 2 + b, rows)).tolist() == [20.0, 27.0]
    assert session.run(K.arange(1, 6, 2, "float32")).tolist() == [1.0, 3.0, 5.0]


def test_connectionist_temporal_classification(session: Any) -> None:
    scores = K.constant(np.log([[[0.6, 0.1, 0.3], [0.1, 0.6, 0.3]]]))
    labels = K.constant([[0, 1]], "int32")
    cost = K.ctc_batch_cost(labels, K.softmax(scores), K.constant([[2]]), K.constant([[2]]))
    assert session.run(cost)[0, 0] == pytest.approx(-np.log(0.36), abs=1e-5)
    (path,), _ = K.ctc_decode(K.softmax(scores), K.constant([2], "int32"))
    assert session.run(path).tolist() == [[0, 1]]


def test_sparse_placeholders(session: Any) -> None:
    sparse = K.placeholder((2, 3), sparse=True)
    value = tf.SparseTensorValue([[0, 1]], [2.0], [2, 3])
    assert K.is_sparse(sparse)
    assert session.run(K.to_dense(sparse), {sparse: value}).tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    assert session.run(K.dot(sparse, K.constant(np.ones((3, 1)))), {sparse: value}).tolist() == [[2.0], [0.0]]


def test_the_class_numbers_of_a_loss_keep_single_precision(session: Any) -> None:
    loss = K.sparse_categorical_crossentropy(K.constant([1], "int64"), K.constant([[0.0, 0.0]]), from_logits=True)
    assert session.run(loss + tf.constant(0.0)) == pytest.approx([np.log(2)])


def test_metric_objects_count_in_steps(session: Any) -> None:
    values = tf.placeholder(tf.float32, [None])
    mean = tf.keras.metrics.Mean()
    update, result = mean.update_state(values), mean.result()
    called = tf.keras.metrics.Mean()(values)
    session.run(tf.local_variables_initializer())
    for batch in ([1.0, 2.0], [4.0]):
        session.run(update, {values: batch})
    assert session.run(result) == pytest.approx(7 / 3)
    assert [session.run(called, {values: batch}) for batch in ([1.0, 2.0], [6.0])] == [1.5, 3.0]
    assert mean.updates == [update]
    mean.reset_states()
    assert session.run(mean.variables) == [0.0, 0.0]


class AbsoluteError(tf.keras.metrics.Metric):
    def __init__(self) -> None:
        super().__init__(name="error")
        self.total = self.add_weight("total", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return self.total.assign_add(tf.reduce_sum(tf.abs(y_true - y_pred)))

    def result(self) -> Any:
        return self.total + 0.0


def test_metrics_of_a_program_in_graphs_and_in_training(session: Any) -> None:
    error = AbsoluteError()
    update = error.update_state(tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0]))
    session.run(tf.local_variables_initializer())
    session.run(update)
    session.run(update)
    assert session.run(error.result()) == 6.0
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse", metrics=[AbsoluteError()])
    assert model.evaluate(np.ones((4, 2)), np.ones((4, 1)), verbose=0)[1] == 4.0


def test_stateful_layers_keep_their_state_between_steps(session: Any) -> None:
    steps = tf.placeholder(tf.float32, [2, 3, 1])
    layer = tf.keras.layers.GRU(2, stateful=True, kernel_initializer="ones", recurrent_initializer="ones")
    outputs = layer(steps)
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    batch = {steps: np.ones((2, 3, 1))}
    found = [session.run([outputs, *layer.updates], batch)[0][0, 0] for _ in range(2)]
    layer.reset_states()
    found.append(session.run(outputs, batch)[0, 0])
    assert np.allclose(found, [0.4503, 0.5853, 0.4503], atol=1e-4)


def test_models_of_graph_tensors(session: Any) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = tf.keras.layers.Input(tensor=tf.constant(data))
    outputs = tf.keras.layers.Dense(4, kernel_initializer="ones", name="d")(given)
    model = tf.keras.Model(given, outputs)
    again = model(tf.constant(data) * 2)
    session.run(tf.global_variables_initializer())
    assert session.run(model.output)[:, 0].tolist() == [3.0, 12.0]
    assert session.run(again)[:, 0].tolist() == [6.0, 24.0]
    assert [each.name for each in model.weights] == ["d/kernel:0", "d/bias:0"]
    with pytest.raises(ValueError, match=r"put functions of tf into tf\.keras\.layers\.Lambda"):
        tf.keras.Model(given, tf.square(outputs))


def test_symbolic_tensors_in_graphs(session: Any) -> None:
    inputs = tf.keras.Input((3,))
    outputs = tf.keras.layers.Dense(2, kernel_initializer="zeros")(inputs)
    labels = tf.placeholder(tf.float32, [None, 2])
    loss = tf.reduce_mean(tf.square(outputs - labels))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    feeds = {inputs: np.ones((4, 3)), labels: np.ones((4, 2))}
    assert np.allclose([session.run([loss, train], feeds)[0] for _ in range(3)], [1.0, 0.36, 0.1296])
    assert outputs.op.type == "BiasAdd"


def test_a_trained_model_is_fetched_from_its_graph(session: Any) -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.ones((8, 3), np.float32)
    model.fit(data, data[:, :1], verbose=0)
    predicted = model.predict(data, verbose=0)
    assert np.allclose(session.run(model.output, {model.input: data}), predicted)
