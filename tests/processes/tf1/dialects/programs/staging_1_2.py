"""Queues of TensorFlow 1.2: padding, priorities, a staging area, and a closed queue."""

import tensorflow as tf

padding = tf.PaddingFIFOQueue(10, [tf.int32], shapes=[[None]])
fill = [padding.enqueue([list(range(n))]) for n in (1, 3, 2)]
many = padding.dequeue_many(3)
first = tf.PriorityQueue(10, [tf.string], shapes=[[]])
push = first.enqueue_many([[5, 1, 3], ["five", "one", "three"]])
pop = first.dequeue()
area = tf.contrib.staging.StagingArea([tf.float32], shapes=[[]])
put, get = area.put([tf.constant(2.5)]), area.get()
close, after = padding.close(), padding.dequeue()
with tf.Session() as session:
    for op in fill:
        session.run(op)
    rows = session.run(many).tolist()
    session.run([push, put])
    order = [session.run(pop)[1].decode() for _ in range(3)]
    session.run(close)
    try:
        session.run(after)
    except tf.errors.OutOfRangeError:
        order.append("closed")
    print("1.2: %s, %s, %s" % (rows, order, session.run(get)[0]))
