"""One process of TensorFlow 1.8 that is a whole cluster: variables on the server outlive sessions."""

import tensorflow as tf

server = tf.train.Server.create_local_server()
with tf.device("/job:local/task:0"):
    v = tf.Variable(1.0, name="v")
    queue = tf.FIFOQueue(3, [tf.float32], shared_name="q")
add = tf.assign_add(v, 2.0)
put, get = queue.enqueue([v]), queue.dequeue()
with tf.Session(server.target) as session:
    session.run(v.initializer)
    session.run([add])
    session.run(put)
with tf.Session(server.target) as session:
    uninitialized = session.run(tf.report_uninitialized_variables())
    print("1.8: %s, %s, %s" % (session.run(v), session.run(get), uninitialized.tolist()))
tf.Session.reset(server.target)
with tf.Session(server.target) as session:
    print("1.8: then %s" % session.run(tf.report_uninitialized_variables()).tolist())
