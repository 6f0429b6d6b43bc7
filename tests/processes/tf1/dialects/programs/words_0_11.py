"""Word vectors of TensorFlow 0.11: noise contrastive estimation, a partitioned table, checkpoints."""

import math
import os
import sys

import numpy as np
import tensorflow as tf

WORDS, SIZE, SAMPLED = 20, 8, 5
random = np.random.RandomState(2)
centre = random.randint(0, WORDS, 64)
context = (centre + 1) % WORDS

graph = tf.Graph()
with graph.as_default():
    inputs = tf.placeholder(tf.int32, shape=[64])
    labels = tf.placeholder(tf.int64, shape=[64, 1])
    with tf.variable_scope("tables", partitioner=tf.fixed_size_partitioner(2)):
        embeddings = tf.get_variable(
            "embeddings", [WORDS, SIZE], initializer=tf.random_uniform_initializer(-1.0, 1.0, seed=4)
        )
    vectors = tf.nn.embedding_lookup(embeddings, inputs, partition_strategy="div")
    weights = tf.Variable(tf.truncated_normal([WORDS, SIZE], stddev=1.0 / math.sqrt(SIZE), seed=5))
    biases = tf.Variable(tf.zeros([WORDS]))
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=weights, biases=biases, labels=labels, inputs=vectors, num_sampled=SAMPLED, num_classes=WORDS
        )
    )
    optimizer = tf.train.AdagradOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(weights), 1, keep_dims=True))
    normalized = tf.div(weights, norm)
    scores = tf.batch_matmul(
        tf.expand_dims(vectors, 1),
        tf.expand_dims(tf.transpose(tf.nn.embedding_lookup(weights, tf.range(WORDS))), 0) + tf.zeros([64, 1, 1]),
    )
    init = tf.initialize_all_variables()
    saver = tf.train.Saver()

feeds = {inputs: centre, labels: context[:, None]}
with tf.Session(graph=graph) as session:
    session.run(init)
    for step in range(150):
        _, value = session.run([optimizer, loss], feed_dict=feeds)
    path = saver.save(session, os.path.join(sys.argv[1], "words"), global_step=150)
    best = session.run(scores, feeds)[:, 0].argmax(1)
with tf.Session(graph=graph) as session:
    saver.restore(session, tf.train.latest_checkpoint(sys.argv[1]))
    again = session.run(scores, feeds)[:, 0].argmax(1)
print(
    "0.11: right %s, the same from %s: %s"
    % ((best == context).mean() > 0.9, os.path.basename(path), (best == again).all())
)
