"""Threads of TensorFlow 0.10 that fill a queue, a coordinator that stops them, and batches from the queue."""

import tensorflow as tf

numbers = tf.train.range_input_producer(6, num_epochs=2, shuffle=False)
one = numbers.dequeue()
queue = tf.RandomShuffleQueue(20, 0, [tf.int32, tf.int32], shapes=[[], []], seed=1)
runner = tf.train.QueueRunner(queue, [queue.enqueue([one, tf.mul(one, one)])] * 2)
tf.train.add_queue_runner(runner)
pair = queue.dequeue_many(4)
with tf.Session() as session:
    session.run([tf.initialize_all_variables(), tf.initialize_local_variables()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    seen, squares = [], True
    try:
        while not coordinator.should_stop():
            values, more = session.run(pair)
            seen += values.tolist()
            squares = squares and (values * values == more).all()
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    coordinator.join(threads)
    print("0.10: each twice %s, squares %s" % (sorted(seen) == sorted(list(range(6)) * 2), bool(squares)))
