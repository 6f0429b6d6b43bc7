"""A custom training loop that a coordinator schedules: ParameterServerStrategy and ClusterCoordinator.

    headwater run --chief --ps 2 --workers 2 examples/coordinator_loop.py

The chief schedules steps. An idle worker reads the variables from the parameter servers, computes gradients for a
batch of its own dataset, and sends them to the parameter servers, which apply them.
"""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=40, help="steps per epoch, of all workers together")
options = parser.parse_args()

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()

strategy = tf.distribute.ParameterServerStrategy(
    resolver if resolver.cluster_spec() else None,
    variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2),
)
words = ["red", "green", "blue", "black"]
tf.keras.utils.set_random_seed(3)

with strategy.scope():
    lookup = tf.keras.layers.StringLookup(vocabulary=words, num_oov_indices=0)
    inputs = tf.keras.Input((3,), dtype="int64")
    features = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(len(words), 4)(inputs))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, "sigmoid")(features))
    optimizer = tf.keras.optimizers.RMSprop(0.05)
    accuracy = tf.keras.metrics.BinaryAccuracy()


def dataset_fn(context):
    """Yields examples of three words, labelled by whether the first word is red."""
    random = np.random.default_rng(context.input_pipeline_id)
    colours = random.choice(words, (512, 3))
    labels = (colours[:, 0] == "red").astype(np.float32)[:, None]
    dataset = tf.data.Dataset.from_tensor_slices((colours, labels))
    return dataset.map(lambda colours, label: (lookup(colours), label)).shuffle(512).repeat().batch(32)


@tf.function
def step_fn(iterator):
    def replica_fn(batch):
        x, y = batch
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            each = tf.keras.losses.BinaryCrossentropy(reduction="none")(y, predicted)
            loss = tf.nn.compute_average_loss(each)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(y, tf.cast(predicted > 0.5, tf.int64))
        return loss

    losses = strategy.run(replica_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)


@tf.function
def per_worker_dataset_fn():
    return strategy.distribute_datasets_from_function(dataset_fn)


per_worker_iterator = iter(coordinator.create_per_worker_dataset(per_worker_dataset_fn))

for epoch in range(options.epochs):
    accuracy.reset_state()
    for _ in range(options.steps):
        coordinator.schedule(step_fn, args=(per_worker_iterator,))
    coordinator.join()
    print(f"epoch {epoch}: accuracy {accuracy.result().numpy():.4f} of {int(accuracy.count.numpy())} examples")

loss = coordinator.schedule(step_fn, args=(per_worker_iterator,))
print(f"loss {loss.fetch():.4f}, done {coordinator.done()}")
