"""``tf.compat.v1`` of TensorFlow 1.15: loops, a critical section, sequences, the profiler, object-based checkpoints."""

import os
import sys

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

total = tf.get_variable("total", initializer=0.0, use_resource=True)
section = tf.CriticalSection(name="adding")
adds = [section.execute(lambda: total.assign_add(1.0, read_value=True)) for _ in range(3)]

column = tf.feature_column.sequence_categorical_column_with_vocabulary_list("words", ["a", "b", "c"])
_, ids = tf.while_loop(
    lambda i, t: i < 5,
    lambda i, t: (i + 1, t.write(i, tf.cast(i * i, tf.float32))),
    [0, tf.TensorArray(tf.float32, 5)],
)
squares = ids.stack()
weights = tf.get_variable("weights", [5], initializer=tf.ones_initializer())
loss = tf.reduce_sum(tf.math.squared_difference(weights * squares, 3.0))
train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss)
checkpoint = tf.train.Checkpoint(weights=weights, total=total)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    added = sorted(session.run(adds))
    first, _ = session.run([loss, train])
    path = checkpoint.save(os.path.join(sys.argv[1], "objects"), session=session)
    session.run([weights.assign([0.0] * 5), total.assign(0.0)])
    checkpoint.restore(path).run_restore_ops(session)
    metadata = tf.RunMetadata()
    session.run(loss, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    floats = tf.profiler.profile(options=dict(tf.profiler.ProfileOptionBuilder.float_operation(), output="none"))
    print(
        "1.15: added %s, back %s, better %s, counted %s, column %s"
        % (
            [float(value) for value in added],
            session.run(total),
            session.run(loss) < first,
            floats.total_float_ops > 0,
            column.name,
        )
    )
