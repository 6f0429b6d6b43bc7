"""A custom training loop on several workers: GradientTape, tf.function and MultiWorkerMirroredStrategy.

    headwater exec examples/custom_loop.py                                  # one process
    headwater run --workers 2 examples/custom_loop.py

Each worker computes gradients for its share of a batch; all apply the sum. A restart
resumes from the checkpoints of the first worker; the others write theirs to temporary folders.
"""

import argparse
import os

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--steps", type=int, default=30, help="steps per epoch")
parser.add_argument("--batch", type=int, default=64, help="examples per step, of all workers together")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--folder", default="", help="folder for checkpoints; default: no checkpoints")
options = parser.parse_args()
tf.keras.utils.set_random_seed(options.seed)

strategy = tf.distribute.MultiWorkerMirroredStrategy()


def dataset_fn(context):
    """Returns this worker's share of points of two classes, which a curve separates."""
    points = np.random.default_rng(1).uniform(-1, 1, (4096, 2)).astype(np.float32)
    labels = (points[:, 1] > np.sin(3 * points[:, 0])).astype(np.int64)
    dataset = tf.data.Dataset.from_tensor_slices((points, labels))
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.repeat().batch(context.get_per_replica_batch_size(options.batch))


with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(32, "tanh"), tf.keras.layers.Dense(2)])
    optimizer = tf.keras.optimizers.Adam(0.02)
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

dataset = strategy.distribute_datasets_from_function(dataset_fn)


@tf.function
def train_step(iterator):
    def step_fn(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = tf.nn.compute_average_loss(losses(y, logits), global_batch_size=options.batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(y, logits)
        return loss

    per_replica = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)


epoch = tf.Variable(0, dtype=tf.int64, name="epoch")
resolver = strategy.cluster_resolver
is_chief = (
    not resolver.task_type
    or resolver.task_type == "chief"
    or (resolver.task_type == "worker" and resolver.task_id == 0 and "chief" not in resolver.cluster_spec().jobs)
)
folder = options.folder if is_chief else os.path.join(options.folder, f"other_{resolver.task_id}")
manager = None
if options.folder:
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(tf.train.latest_checkpoint(options.folder))

iterator = iter(dataset)
while epoch.numpy() < options.epochs:
    total = 0.0
    for _ in range(options.steps):
        total += train_step(iterator)
    if is_chief:
        print(f"epoch {epoch.numpy()}: loss {total / options.steps:.6f}, accuracy {accuracy.result():.6f}")
    accuracy.reset_state()
    epoch.assign_add(1)
    if manager is not None:
        manager.save()
        if not is_chief:
            tf.io.gfile.rmtree(folder)
