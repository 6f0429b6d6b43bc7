"""Word vectors with sampled losses and sparse updates, in the style of TensorFlow 0.9."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(5)
centers = random.randint(0, 20, 60)
contexts = ((centers + 1) % 20).reshape(-1, 1)

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(1)
    inputs = tf.constant(centers, tf.int32)
    labels = tf.constant(contexts, tf.int64)
    vectors = tf.Variable(tf.random_uniform([20, 8], -1.0, 1.0, seed=2))
    embed = tf.nn.embedding_lookup(vectors, inputs)
    nce_w = tf.Variable(tf.truncated_normal([20, 8], stddev=0.3, seed=3))
    nce_b = tf.Variable(tf.zeros([20]))
    loss = tf.reduce_mean(tf.nn.nce_loss(nce_w, nce_b, embed, labels, 5, 20))
    optimizer = tf.train.AdagradOptimizer(1.0).minimize(loss)
    scores = tf.matmul(embed, nce_w, transpose_b=True) + nce_b
    right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(scores, 1), tf.squeeze(labels, [1]))))
    norm = tf.sqrt(tf.reduce_sum(tf.square(vectors), 1, keep_dims=True))
    normal = tf.div(vectors, norm)
with tf.Session(graph=graph) as session:
    tf.initialize_all_variables().run()
    first = loss.eval()
    for _ in range(25):
        optimizer.run()
    lengths = (normal.eval() ** 2).sum(1)
    better = loss.eval() < first / 2 and 0 <= right.eval() <= 1
    print("0.9: better %s, unit vectors %s" % (bool(better), bool(np.allclose(lengths, 1.0))))
