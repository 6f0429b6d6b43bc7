"""Tags of words: characters and words in a bidirectional LSTM, with a conditional random field."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
FIRST, LAST, PLACES = ["Ann", "Bob", "Cyd"], ["Hill", "Lake"], ["Rome", "Oslo", "Bern"]
VERBS, OTHERS = ["visits", "likes"], ["and", "the", "sea"]
SIZE = 16


def corpus():
    """Lines of words and lines of tags."""
    numbers = np.random.RandomState(1)
    for _ in range(80):
        words = [numbers.choice(FIRST), numbers.choice(LAST), numbers.choice(VERBS), numbers.choice(PLACES)]
        tags = ["B-PER", "I-PER", "O", "B-LOC"]
        if numbers.rand() < 0.5:
            del words[1], tags[1]
        for _ in range(numbers.randint(0, 3)):
            words.append(numbers.choice(OTHERS))
            tags.append("O")
        yield " ".join(words), " ".join(tags)


def network(words, length, table, training):
    ids = table.lookup(words)
    embedding = tf.get_variable("embedding", [20, SIZE])
    x = tf.nn.embedding_lookup(embedding, ids)
    capital = tf.not_equal(tf.strings.lower(words), words) if hasattr(tf.strings, "lower") else None
    if capital is not None:
        x = tf.concat([x, tf.expand_dims(tf.to_float(capital), 2)], 2)
    x = tf.transpose(x, [1, 0, 2])
    forward = tf.contrib.rnn.LSTMBlockFusedCell(SIZE)
    backward = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(SIZE, name="backward"))
    outputs = [cell(x, dtype=tf.float32, sequence_length=length)[0] for cell in (forward, backward)]
    logits = tf.layers.dense(tf.transpose(tf.concat(outputs, 2), [1, 0, 2]), len(TAGS))
    return logits, tf.get_variable("transitions", [len(TAGS), len(TAGS)])


def main():
    folder = tempfile.mkdtemp()
    lines = list(corpus())
    words = sorted({word for line, _ in lines for word in line.split() if word != "Bern"})
    with open(os.path.join(folder, "words"), "w") as file:
        file.write("\n".join(words))
    for name, index in (("x", 0), ("y", 1)):
        with open(os.path.join(folder, name), "w") as file:
            file.write("\n".join(line[index] for line in lines))
    table = tf.contrib.lookup.index_table_from_file(os.path.join(folder, "words"), num_oov_buckets=2)
    tags = tf.contrib.lookup.index_table_from_tensor(TAGS)

    def split(x, y):
        x, y = tf.string_split([x]).values, tf.string_split([y]).values
        return x, tf.cast(tags.lookup(y), tf.int32), tf.size(x)

    texts = [tf.data.TextLineDataset(os.path.join(folder, name)) for name in "xy"]
    data = tf.data.Dataset.zip(tuple(texts)).map(split).repeat()
    data = data.padded_batch(16, ([None], [None], []), ("<pad>", 0, 0))
    iterator = data.make_initializable_iterator()
    x, y, length = iterator.get_next()
    with tf.variable_scope("tagger"):
        logits, transitions = network(x, length, table, True)
    likelihood, _ = tf.contrib.crf.crf_log_likelihood(logits, y, length, transitions)
    loss = tf.reduce_mean(-likelihood)
    optimizer = tf.contrib.opt.LazyAdamOptimizer(0.05)
    train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    asked = tf.placeholder(tf.string, [None, None], "words")
    asked_length = tf.placeholder(tf.int32, [None], "length")
    with tf.variable_scope("tagger", reuse=True):
        logits, transitions = network(asked, asked_length, table, False)
    decoded, score = tf.contrib.crf.crf_decode(logits, transitions, asked_length)
    names = tf.contrib.lookup.index_to_string_table_from_tensor(TAGS).lookup(tf.to_int64(decoded))

    with tf.Session() as session:
        initialize(session)
        session.run(iterator.initializer)
        losses = [session.run([train, loss])[1] for _ in range(40)]
        feeds = {
            "words": [["Ann", "Hill", "likes", "Bern", "and"], ["Bob", "visits", "Oslo", "<pad>", "<pad>"]],
            "length": [5, 3],
        }
        served = serve(session, {"words": asked, "length": asked_length}, {"tags": names, "score": score}, feeds)
    shutil.rmtree(folder)
    tagged = [[tag.decode() for tag in row] for row in served["tags"]]
    report(losses, {"tags": tagged, "score": served["score"]})


main()
