"""Translation of number words, with attention, buckets by length, and beam search."""

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

WORDS = ["<unk>", "<s>", "</s>"] + ["w%d" % i for i in range(12)]
SIZE = 24


def sentences():
    """Source lines of 2 to 5 words; a translation is the reversed line."""
    numbers = np.random.RandomState(0)
    return [" ".join(numbers.choice(WORDS[3:], numbers.randint(2, 6))) for _ in range(120)]


def pipeline(table):
    def parse(line):
        source = tf.cast(table.lookup(tf.string_split([line]).values), tf.int32)
        target = source[::-1]
        return source, tf.concat([[1], target], 0), tf.concat([target, [2]], 0), tf.size(source)

    lines = tf.data.Dataset.from_tensor_slices(sentences()).repeat().map(parse)
    bucketed = tf.contrib.data.bucket_by_sequence_length(
        lambda source, fed, target, length: length, [4], [16, 16], padded_shapes=([None], [None], [None], [])
    )
    return lines.apply(bucketed).make_initializable_iterator()


def encode(embedding, source, length):
    cells = [tf.contrib.rnn.LSTMBlockCell(SIZE) for _ in range(2)]
    embedded = tf.nn.embedding_lookup(embedding, source)
    outputs, states = tf.nn.bidirectional_dynamic_rnn(cells[0], cells[1], embedded, length, dtype=tf.float32)
    return tf.concat(outputs, 2), states[0]


def attending(memory, length):
    mechanism = tf.contrib.seq2seq.BahdanauAttention(SIZE, memory, length)
    return tf.contrib.seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(SIZE), mechanism, attention_layer_size=SIZE, name="attention"
    )


def main():
    table = tf.contrib.lookup.index_table_from_tensor(WORDS, default_value=0)
    iterator = pipeline(table)
    source, fed, target, length = iterator.get_next()
    embedding = tf.get_variable("embedding", [len(WORDS), SIZE])
    project = tf.layers.Dense(len(WORDS), use_bias=False, name="project")
    memory, state = encode(embedding, source, length)
    with tf.variable_scope("decoder"):
        cell = attending(memory, length)
        helper = tf.contrib.seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, fed), length + 1)
        first = cell.zero_state(tf.shape(source)[0], tf.float32).clone(cell_state=state.h)
        outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(tf.contrib.seq2seq.BasicDecoder(cell, helper, first, project))
    weights = tf.sequence_mask(length + 1, dtype=tf.float32)
    loss = tf.contrib.seq2seq.sequence_loss(outputs.rnn_output, target, weights)
    train = tf.contrib.layers.optimize_loss(
        loss, tf.train.get_or_create_global_step(), 0.02, "Adam", clip_gradients=5.0, summaries=[]
    )

    line = tf.placeholder(tf.string, [None], "line")
    words = tf.string_split(line)
    dense = tf.sparse_tensor_to_dense(words, default_value="")
    asked_length = tf.reduce_sum(tf.cast(tf.not_equal(dense, ""), tf.int32), 1)
    asked = tf.cast(table.lookup(dense), tf.int32)
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        memory, state = encode(embedding, asked, asked_length)
        beam = [tf.contrib.seq2seq.tile_batch(value, 3) for value in (memory, asked_length, state.h)]
        with tf.variable_scope("decoder"):
            cell = attending(beam[0], beam[1])
            first = cell.zero_state(tf.shape(asked)[0] * 3, tf.float32).clone(cell_state=beam[2])
            decoder = tf.contrib.seq2seq.BeamSearchDecoder(
                cell, embedding, tf.fill([tf.shape(asked)[0]], 1), 2, first, 3, project, length_penalty_weight=0.5
            )
            found, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=8)
    names = tf.contrib.lookup.index_to_string_table_from_tensor(WORDS)
    best = tf.identity(found.predicted_ids[:, :, 0], "ids")
    text = tf.reduce_join(names.lookup(tf.cast(tf.maximum(best, 0), tf.int64)), 1, separator=" ")

    with tf.Session() as session:
        initialize(session)
        session.run(iterator.initializer)
        losses = [session.run(train) for _ in range(60)]
        served = serve(
            session, {"line": line}, {"text": text, "ids": best}, {"line": ["w1 w2 w3", "w7 w3 w9 w1", "w5 w5"]}
        )
    report(losses, {"ids": served["ids"], "text": [value.decode() for value in served["text"]]})


main()
