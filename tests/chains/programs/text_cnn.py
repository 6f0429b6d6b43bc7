"""Sentiment of reviews: words by `VocabularyProcessor`, convolutions of several widths, and a predictor."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import report, set_values
from tensorflow.contrib import learn

GOOD, BAD, OTHERS = (
    ["great", "lovely", "fine"],
    ["dull", "awful", "poor"],
    ["film", "the", "was", "plot", "actor's", "It"],
)
LENGTH, SIZE = 8, 12


def reviews():
    numbers = np.random.RandomState(5)
    texts, labels = [], []
    for index in range(96):
        words = list(numbers.choice(OTHERS, numbers.randint(3, 7)))
        words.insert(numbers.randint(0, len(words)), str(numbers.choice(BAD if index % 2 else GOOD)))
        texts.append(" ".join(words) + ".")
        labels.append([index % 2, 1 - index % 2])
    return texts, np.array(labels, np.float32)


def network(x, words, keep):
    with tf.name_scope("embedding"):
        table = tf.get_variable("words", [words, SIZE])
        embedded = tf.expand_dims(tf.nn.embedding_lookup(table, x), -1)
    pooled = []
    for width in (2, 3):
        with tf.variable_scope("conv%d" % width):
            kernel = tf.get_variable("kernel", [width, SIZE, 1, 6])
            bias = tf.get_variable("bias", [6], initializer=tf.constant_initializer(0.1))
            made = tf.nn.conv2d(embedded, kernel, [1, 1, 1, 1], "VALID")
            made = tf.nn.relu(tf.nn.bias_add(made, bias))
            pooled.append(tf.nn.max_pool(made, [1, LENGTH - width + 1, 1, 1], [1, 1, 1, 1], "VALID"))
    features = tf.nn.dropout(tf.reshape(tf.concat(pooled, 3), [-1, 12]), keep)
    weights = tf.get_variable("w", [12, 2])
    bias = tf.get_variable("b", [2], initializer=tf.constant_initializer(0.1))
    return tf.nn.xw_plus_b(features, weights, bias, name="scores"), tf.nn.l2_loss(weights) + tf.nn.l2_loss(bias)


def main():
    folder = tempfile.mkdtemp()
    texts, y = reviews()
    processor = learn.preprocessing.VocabularyProcessor(LENGTH)
    x = np.array(list(processor.fit_transform(texts)))
    processor.save(os.path.join(folder, "vocabulary"))
    asked = tf.placeholder(tf.int32, [None, LENGTH], "x")
    labels = tf.placeholder(tf.float32, [None, 2], "y")
    keep = tf.placeholder_with_default(1.0, [], "keep")
    scores, decay = network(asked, len(processor.vocabulary_), keep)
    errors = tf.nn.softmax_cross_entropy_with_logits(logits=scores, labels=labels)
    loss = tf.reduce_mean(errors) + 0.001 * decay
    accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(scores, 1), tf.argmax(labels, 1))))
    step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.AdamOptimizer(0.02)
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss), global_step=step)
    saver = tf.train.Saver(tf.global_variables(), max_to_keep=2)
    losses = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        set_values(session)
        for index in range(40):
            rows = np.arange(index * 16, index * 16 + 16) % len(x)
            losses.append(session.run([train, loss], {asked: x[rows], labels: y[rows]})[1])
        right = session.run(accuracy, {asked: x, labels: y})
        saver.save(session, os.path.join(folder, "model"), global_step=step)

    with tf.Graph().as_default(), tf.Session() as session:
        path = tf.train.latest_checkpoint(folder)
        tf.train.import_meta_graph(path + ".meta").restore(session, path)
        graph = session.graph
        inputs, outputs = {"x": graph.get_tensor_by_name("x:0")}, {"scores": graph.get_tensor_by_name("scores:0")}
        tf.saved_model.simple_save(session, os.path.join(folder, "served"), inputs, outputs)
    restored = learn.preprocessing.VocabularyProcessor.restore(os.path.join(folder, "vocabulary"))
    predict = tf.contrib.predictor.from_saved_model(os.path.join(folder, "served"))
    ids = np.array(list(restored.transform(["the film was great", "It was a dull plot", "unknown words"])))
    served = predict({"x": ids})
    shutil.rmtree(folder)
    report(losses, {"scores": served["scores"], "ids": ids, "right": right})


main()
