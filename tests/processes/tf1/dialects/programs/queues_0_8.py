"""Softmax regression of TensorFlow 0.8: examples from files through queues, a supervisor, summaries."""

import os

import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("folder", "", "where everything goes")
flags.DEFINE_integer("batch_size", 16, "examples in a batch")


def write_examples(path):
    random = np.random.RandomState(0)
    writer = tf.python_io.TFRecordWriter(path)
    for _ in range(200):
        x = random.rand(4).astype(np.float32)
        feature = {
            "x": tf.train.Feature(bytes_list=tf.train.BytesList(value=[x.tobytes()])),
            "y": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(x.argmax())])),
        }
        writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    writer.close()


def inputs(path):
    queue = tf.train.string_input_producer([path])
    _, serialized = tf.TFRecordReader().read(queue)
    features = tf.parse_single_example(
        serialized, features={"x": tf.FixedLenFeature([], tf.string), "y": tf.FixedLenFeature([], tf.int64)}
    )
    x = tf.decode_raw(features["x"], tf.float32)
    x.set_shape([4])
    return tf.train.shuffle_batch(
        [x, tf.cast(features["y"], tf.int32)], batch_size=FLAGS.batch_size, capacity=100, min_after_dequeue=50
    )


def main(_):
    path = os.path.join(FLAGS.folder, "train.tfrecords")
    write_examples(path)
    images, labels = inputs(path)
    w = tf.Variable(tf.zeros([4, 4]), name="w")
    b = tf.Variable(tf.zeros([4]), name="b")
    logits = tf.add(tf.matmul(images, w), b)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(logits, labels)
    loss = tf.reduce_mean(sparse)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    rate = tf.train.exponential_decay(2.0, global_step, 100, 0.9, staircase=True)
    train_op = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=global_step)
    tf.scalar_summary("loss", loss)
    tf.histogram_summary("w", w)
    summary_op = tf.merge_all_summaries()
    supervisor = tf.train.Supervisor(
        logdir=FLAGS.folder, init_op=tf.initialize_all_variables(), summary_op=None, global_step=global_step
    )
    with supervisor.managed_session("") as session:
        first = session.run(loss)
        for step in range(60):
            if supervisor.should_stop():
                break
            _, value = session.run([train_op, loss])
            if step % 20 == 0:
                supervisor.summary_computed(session, session.run(summary_op))
        print("0.8: better %s after %d steps" % (value < first / 1.5, session.run(global_step)))
    supervisor.stop()


if __name__ == "__main__":
    tf.app.run()
