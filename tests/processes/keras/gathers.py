"""Prints the values that replicas gather within a compiled function, and outside of it."""

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id


@tf.function
def compiled(x):
    def replica_fn(x):
        return {"rows": x, "large": tf.reduce_sum(x, axis=1, keepdims=True) > 10.0}

    found = strategy.run(replica_fn, args=(x,))
    return strategy.gather(found["rows"], axis=0), strategy.gather(found["large"], axis=1)


own = tf.reshape(tf.range(6, dtype=tf.float32), [2, 3]) + 10.0 * float(rank)
rows, large = compiled(own)
print("rows", rows.numpy().tolist(), "large", large.numpy().tolist(), flush=True)
assert rows.numpy().tolist() == strategy.gather(own, axis=0).numpy().tolist()
try:
    strategy.run(lambda: 1, options=1)
except NotImplementedError as error:
    print("options", "are for TPUs" in str(error), flush=True)
