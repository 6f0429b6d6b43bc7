"""Language model of characters in the cells of `CudnnLSTM`, trained along a text with the state carried on."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

TEXT = "the sea is wide and the land is far and the wind is in the sail and the ship is on the sea . " * 12
LETTERS = sorted(set(TEXT))
SIZE, BATCH, STEPS = 24, 6, 12


def network(tokens, states, reuse=None):
    with tf.variable_scope("model", reuse=reuse):
        embedding = tf.get_variable("embedding", [len(LETTERS), SIZE])
        cells = [tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(SIZE) for _ in range(2)]
        cell = tf.nn.rnn_cell.MultiRNNCell(cells)
        outputs, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embedding, tokens), initial_state=states)
        return tf.layers.dense(outputs, len(LETTERS), name="softmax"), state


def states_of(parts):
    return tuple(tf.nn.rnn_cell.LSTMStateTuple(parts[2 * layer], parts[2 * layer + 1]) for layer in range(2))


def main():
    folder = tempfile.mkdtemp()
    ids = np.array([LETTERS.index(letter) for letter in TEXT])
    rows = ids[: len(ids) // BATCH * BATCH].reshape(BATCH, -1)
    x, y = (tf.placeholder(tf.int32, [BATCH, STEPS]) for _ in range(2))
    carried = [tf.placeholder_with_default(np.zeros([BATCH, SIZE], np.float32), [BATCH, SIZE]) for _ in range(4)]
    logits, last = network(x, states_of(carried))
    loss = tf.contrib.seq2seq.sequence_loss(logits, y, tf.ones([BATCH, STEPS]))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    rate = tf.train.exponential_decay(0.01, tf.train.get_or_create_global_step(), 10, 0.9, staircase=True)
    optimizer = tf.train.RMSPropOptimizer(rate, momentum=0.5)
    train = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    saver = tf.train.Saver(variables)
    losses = []
    with tf.Session() as session:
        initialize(session)
        state = [np.zeros([BATCH, SIZE], np.float32)] * 4
        for step in range(60):
            begin = step * STEPS % (rows.shape[1] - STEPS - 1)
            part = rows[:, begin : begin + STEPS + 1]
            feeds = dict(zip(carried, state))
            feeds.update({x: part[:, :-1], y: part[:, 1:]})
            _, value, state = session.run([train, loss, last], feeds)
            state = [part for pair in state for part in pair]
            losses.append(value)
        path = saver.save(session, os.path.join(folder, "model"))

    with tf.Graph().as_default(), tf.Session() as session:
        asked = tf.placeholder(tf.int32, [None, None], "prefix")
        zeros = [tf.zeros([tf.shape(asked)[0], SIZE]) for _ in range(4)]
        logits, _ = network(asked, states_of(zeros))
        saver = tf.train.Saver(tf.trainable_variables())
        saver.restore(session, path)
        likely = tf.nn.softmax(logits[:, -1])
        prefixes = [[LETTERS.index(letter) for letter in text] for text in ("the s", "and t")]
        served = serve(session, {"prefix": asked}, {"likely": likely}, {"prefix": prefixes})
    shutil.rmtree(folder)
    report(losses, served)


main()
