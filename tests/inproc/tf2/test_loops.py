"""Custom training loops in one process: compiled functions, the number of compilations, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.tf2.namespace import tf

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def model_and_batches() -> tuple[Any, Any]:
    tf.keras.utils.set_random_seed(7)
    random = np.random.default_rng(0)
    x = random.normal(size=(12, 3)).astype(np.float32)
    hidden = tf.keras.layers.Dense(4, "tanh", kernel_regularizer=tf.keras.regularizers.L2(0.01))
    model = tf.keras.Sequential([tf.keras.Input((3,)), hidden, tf.keras.layers.Dense(1)])
    return model, tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(4)


def step_on(model: Any, optimizer: Any, batch: Any) -> Any:
    x, y = batch
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        if model.losses:
            loss += tf.add_n(model.losses)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def same_weights(first: Any, second: Any) -> None:
    for ours, theirs in zip(first.weights, second.weights, strict=True):
        np.testing.assert_allclose(np.asarray(ours.value), np.asarray(theirs.value), atol=1e-5)


def test_a_compiled_step_is_traced_once_for_all_iterators_and_trains_as_keras_does() -> None:
    model, dataset = model_and_batches()
    optimizer, traces = tf.keras.optimizers.Adam(0.1), []

    @tf.function
    def step(iterator: Any) -> Any:
        traces.append(1)
        return step_on(model, optimizer, next(iterator))

    for _ in range(3):
        iterator = iter(dataset)
        for _ in range(3):
            step(iterator)
        with pytest.raises(tf.errors.OutOfRangeError):
            step(iterator)
    assert len(traces) == 3  # to learn the batch, to learn the variables, and the final one
    fitted, _ = model_and_batches()
    fitted.compile(tf.keras.optimizers.Adam(0.1), "mse")
    fitted.fit(dataset, epochs=3, shuffle=False, verbose=0)
    same_weights(model, fitted)


def test_parameter_servers_apply_the_updates_of_the_optimizer() -> None:
    plain, dataset = model_and_batches()
    optimizer = tf.keras.optimizers.Adam(0.1)
    for batch in dataset:
        step_on(plain, optimizer, batch)
    # All tasks in one process, as in notebooks; nothing listens at these ports.
    cluster = tf.compat.v1.train.ClusterSpec({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]})
    for job, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        tf.distribute.Server(cluster, job_name=job, task_index=index, protocol="grpc")
    strategy = tf.distribute.experimental.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    )
    with strategy.scope():
        model, _ = model_and_batches()
        served = tf.keras.optimizers.Adam(0.1)
        mean = tf.keras.metrics.Mean()
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def on_replica(batch: Any) -> Any:
        loss = step_on(model, served, batch)
        mean.update_state(loss)
        return loss

    @tf.function
    def step(iterator: Any) -> Any:
        return strategy.run(on_replica, args=(next(iterator),))

    iterator = iter(coordinator.create_per_worker_dataset(lambda: dataset))
    losses = [coordinator.schedule(step, args=(iterator,)) for _ in range(3)]
    coordinator.join()
    assert coordinator.done()
    assert float(mean.result()) == pytest.approx(float(np.mean(coordinator.fetch(losses))), rel=1e-6)
    same_weights(model, plain)
    coordinator.close()


class Penalty(tf.keras.layers.Layer):
    """Returns positive values unchanged, and adds them as a loss."""

    def call(self, inputs: Any) -> Any:
        found = tf.nn.relu(inputs)
        self.add_loss(0.5 * tf.reduce_sum(found))
        return found


def test_functions_of_tf_serve_in_layers_of_programs() -> None:
    inputs = tf.keras.Input((2,))
    model = tf.keras.Model(inputs, Penalty()(inputs))
    assert model.output_shape == (None, 2)

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(model(x, training=True))) + sum(model.losses)
        return loss, tape.gradient(loss, x)

    loss, gradient = step(tf.constant([[1.0, -2.0], [3.0, 0.5]]))
    assert float(loss) == 1 + 9 + 0.25 + 0.5 * 4.5
    np.testing.assert_allclose(gradient, [[2.5, 0.0], [6.5, 1.5]])


def test_a_model_of_lookups_prepares_datasets_of_texts() -> None:
    words = tf.keras.layers.Input(shape=(2,), dtype=tf.string, name="words")
    lookup = tf.keras.layers.StringLookup(vocabulary=["a", "b", "c"], mask_token=None)
    stage = tf.keras.Model({"words": words}, lookup(words))
    texts = {"words": [["a", "c"], ["z", "b"]], "number": [[3], [4]]}
    dataset = tf.data.Dataset.from_tensor_slices(texts).map(
        lambda x: ({"ids": stage({"words": x["words"]})}, x["number"])
    )
    found, numbers = next(iter(dataset.batch(2)))
    np.testing.assert_array_equal(found["ids"], [[1, 3], [0, 2]])
    np.testing.assert_array_equal(numbers, [[3], [4]])
    np.testing.assert_array_equal(stage({"words": np.array(texts["words"])}), [[1, 3], [0, 2]])


def adversaries() -> tuple[Any, Any]:
    """Builds a generator with moving averages, and a discriminator."""
    tf.keras.utils.set_random_seed(5)
    keras = tf.keras
    layers = keras.layers.Dense(3, use_bias=False), keras.layers.BatchNormalization()
    generator = keras.Sequential([keras.Input((2,)), *layers])
    discriminator = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
    return generator, discriminator


def play(models: tuple[Any, Any], optimizers: tuple[Any, Any], noise: Any, real: Any) -> Any:
    """Runs a step of both, as in guides."""
    generator, discriminator = models
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    with tf.GradientTape() as of_generator, tf.GradientTape() as of_discriminator:
        made = generator(noise, training=True)
        said, truth = discriminator(made, training=True), discriminator(real, training=True)
        lost = loss(tf.ones_like(said), said)
        caught = loss(tf.ones_like(truth), truth) + loss(tf.zeros_like(said), said)
    for tape, of, model, optimizer in (
        (of_generator, lost, generator, optimizers[0]),
        (of_discriminator, caught, discriminator, optimizers[1]),
    ):
        gradients = tape.gradient(of, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return lost


@pytest.mark.parametrize("compiled", [True, False])
def test_two_models_with_moving_averages_train_on_parameter_servers(compiled: bool) -> None:
    random = np.random.default_rng(3)
    batches = [(random.normal(size=(4, 2)).astype("f"), random.normal(size=(4, 3)).astype("f")) for _ in range(3)]
    plain, optimizers = adversaries(), (tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.SGD(0.1))
    for noise, real in batches:
        play(plain, optimizers, tf.constant(noise), tf.constant(real))
    strategy = tf.distribute.ParameterServerStrategy()
    with strategy.scope():
        models, own = adversaries(), (tf.keras.optimizers.Adam(0.1), tf.keras.optimizers.SGD(0.1))

    def step(noise: Any, real: Any) -> Any:
        return strategy.run(lambda noise, real: play(models, own, noise, real), args=(noise, real))

    call = tf.function(step) if compiled else step
    for noise, real in batches:
        call(tf.constant(noise), tf.constant(real))
    strategy.read(())
    for ours, theirs in zip(models, plain, strict=True):
        same_weights(ours, theirs)
    assert any(np.any(np.asarray(v.value)) for v in models[0].non_trainable_variables if v.path.endswith("moving_mean"))


def test_models_and_optimizers_belong_together_in_their_order() -> None:
    strategy = tf.distribute.ParameterServerStrategy()
    with strategy.scope():
        models = adversaries()
        own = tf.keras.optimizers.SGD(0.1), tf.keras.optimizers.SGD(0.1)
    noise, real = tf.ones([4, 2]), tf.ones([4, 3])
    with pytest.raises(ValueError, match="in the order of their creation"):
        strategy.run(lambda: play(models, own[::-1], noise, real))
    with strategy.scope():
        tf.keras.optimizers.SGD(0.1)
        tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3)])
        tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3)])
    with pytest.raises(ValueError, match="it is ambiguous which belong together"):
        strategy.run(lambda: play(models, own, noise, real))
    with pytest.raises(NotImplementedError, match="options are for TPUs"):
        strategy.run(lambda: 1, options=3)


def test_arguments_of_variables_have_an_effect_or_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="caching_device"):
        tf.Variable(1.0, caching_device="/cpu:0")
    with pytest.raises(NotImplementedError, match="experimental_implements"):
        tf.function(lambda: 1, experimental_implements="x")
    with pytest.raises(AttributeError, match="Session"):
        _ = tf.Session
    with pytest.raises(RuntimeError, match="non-persistent"), tf.GradientTape() as tape:
        x = tf.Variable(1.0)
        y = x * x
        tape.gradient(y, x)
        tape.gradient(y, x)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def signed(x: Any) -> Any:
        return x + 1

    assert signed([[1, 2]]).numpy().tolist() == [[2.0, 3.0]]
    with pytest.raises(ValueError, match="input_signature"):
        signed([1.0, 2.0])
