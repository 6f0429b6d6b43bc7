"""Sequences of different lengths in TensorFlow 0.12: padded batches, and a dynamic network."""

import tensorflow as tf

lengths = tf.train.slice_input_producer([tf.constant([1, 4, 2, 3, 5, 2, 4, 1])], num_epochs=1, shuffle=False)[0]
sequence = tf.cast(tf.range(lengths), tf.float32)
size, rows = tf.train.batch([lengths, sequence], 2, dynamic_pad=True, allow_smaller_final_batch=True)
cell = tf.nn.rnn_cell.GRUCell(4)
_, state = tf.nn.dynamic_rnn(cell, tf.expand_dims(rows, 2), sequence_length=size, dtype=tf.float32)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    found, shapes = [], set()
    try:
        while True:
            many, padded, last = session.run([size, rows, state])
            found += many.tolist()
            shapes.add(last.shape[1])
            assert padded.shape[1] == many.max()
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads)
    print("0.12: lengths %s, state %s" % (sorted(found), sorted(shapes)))
