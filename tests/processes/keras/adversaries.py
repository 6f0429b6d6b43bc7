"""Two models in one loop on parameter servers: a generator with batch normalisation, and a discriminator."""

import numpy as np
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id).join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
tf.keras.utils.set_random_seed(3)
with strategy.scope():
    keras = tf.keras
    made = keras.layers.Dense(2, use_bias=False), keras.layers.BatchNormalization(momentum=0.9, scale=False)
    generator = keras.Sequential([keras.Input((2,)), *made])
    discriminator = keras.Sequential([keras.Input((2,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    generator_optimizer = keras.optimizers.Adam(0.05)
    discriminator_optimizer = keras.optimizers.Adam(0.02)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)


def dataset_fn(context):
    random = np.random.default_rng(context.input_pipeline_id)
    pairs = random.normal(size=(256, 2)), random.normal(loc=3.0, scale=0.2, size=(256, 2))
    return tf.data.Dataset.from_tensor_slices(tuple(part.astype(np.float32) for part in pairs)).repeat().batch(32)


@tf.function
def step(iterator):
    def replica_fn(noise, real):
        with tf.GradientTape() as of_generator, tf.GradientTape() as of_discriminator:
            fake = generator(noise, training=True)
            said, truth = discriminator(fake, training=True), discriminator(real, training=True)
            lost = cross_entropy(tf.ones_like(said), said)
            caught = cross_entropy(tf.ones_like(truth), truth) + cross_entropy(tf.zeros_like(said), said)
        gradients = of_generator.gradient(lost, generator.trainable_variables)
        generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables, strict=True))
        gradients = of_discriminator.gradient(caught, discriminator.trainable_variables)
        discriminator_optimizer.apply_gradients(zip(gradients, discriminator.trainable_variables, strict=True))
        return tf.reduce_mean(fake)

    return strategy.run(replica_fn, args=next(iterator))


coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
per_worker_dataset = coordinator.create_per_worker_dataset(
    lambda: strategy.distribute_datasets_from_function(dataset_fn)
)
iterator = iter(per_worker_dataset)
means = [coordinator.schedule(step, args=(iterator,)) for _ in range(40)]
coordinator.join()
found = coordinator.fetch(means)
print(f"from {np.mean(found[:10]):.2f} to {np.mean(found[-10:]):.2f}")
strategy.read(())
deviation = float(np.sqrt(generator.layers[-1].moving_variance.numpy()).mean())
print(f"moved {float(np.abs(generator.layers[-1].moving_variance.numpy() - 1).max()):.4f} deviation {deviation:.2f}")
