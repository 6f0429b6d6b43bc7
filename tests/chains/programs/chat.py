"""Chat of short questions and answers, with buckets of `legacy_seq2seq` and attention."""

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

QUESTIONS = ["how are you", "who are you", "where is the sea", "what is the time now", "hello", "good bye my friend"]
ANSWERS = ["i am fine", "a model", "it is in the south", "it is late", "hello to you", "bye"]
BUCKETS = [(3, 5), (6, 8)]
PAD, GO, EOS = 0, 1, 2
SIZE, BATCH = 20, 4


def vocabulary():
    words = sorted({word for line in QUESTIONS + ANSWERS for word in line.split()})
    return {word: index for index, word in enumerate(["_PAD", "_GO", "_EOS"] + words)}


def batch(ids, bucket, pairs):
    """Feeds of one bucket: reversed questions, and answers between GO and EOS."""
    source, target = BUCKETS[bucket]
    questions, answers = [], []
    for question, answer in pairs:
        question, answer = [ids[word] for word in question.split()], [ids[word] for word in answer.split()]
        questions.append([PAD] * (source - len(question)) + question[::-1])
        answer = [GO] + answer + [EOS]
        answers.append(answer + [PAD] * (target - len(answer)))
    return np.array(questions).T, np.array(answers).T


def main():
    ids = vocabulary()
    pairs = [[], []]
    for question, answer in zip(QUESTIONS, ANSWERS):
        fits = len(question.split()) <= BUCKETS[0][0] and len(answer.split()) + 2 <= BUCKETS[0][1]
        pairs[0 if fits else 1].append((question, answer))
    sources = [tf.placeholder(tf.int32, [None], "source%d" % i) for i in range(BUCKETS[-1][0])]
    targets = [tf.placeholder(tf.int32, [None], "target%d" % i) for i in range(BUCKETS[-1][1] + 1)]
    weights = [tf.placeholder(tf.float32, [None], "weight%d" % i) for i in range(BUCKETS[-1][1])]

    def network(feed_previous):
        def build(encoded, decoded):
            return tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
                encoded,
                decoded,
                tf.nn.rnn_cell.GRUCell(SIZE),
                num_encoder_symbols=len(ids),
                num_decoder_symbols=len(ids),
                embedding_size=SIZE,
                feed_previous=feed_previous,
            )

        return build

    with tf.variable_scope("chat"):
        _, losses = tf.contrib.legacy_seq2seq.model_with_buckets(
            sources, targets[:-1], targets[1:], weights, BUCKETS, network(False)
        )
    trains = [tf.train.AdagradOptimizer(0.5).minimize(loss) for loss in losses]
    asked = tf.placeholder(tf.int32, [None, BUCKETS[-1][0]], "asked")
    go = tf.fill([tf.shape(asked)[0]], GO)
    with tf.variable_scope("chat", reuse=True), tf.variable_scope(tf.get_variable_scope()):
        outputs, _ = network(True)(tf.unstack(asked, axis=1), [go] * BUCKETS[-1][1])
    answer = tf.stack([tf.argmax(output, 1) for output in outputs], 1)

    with tf.Session() as session:
        initialize(session)
        found = []
        for step in range(60):
            bucket = step % 2
            questions, answers = batch(ids, bucket, pairs[bucket])
            feeds = dict(zip(sources, questions))
            feeds.update(zip(targets, answers))
            feeds[targets[BUCKETS[bucket][1]]] = np.zeros(len(pairs[bucket]))
            shifted = np.concatenate([answers[1:], np.zeros_like(answers[:1])])
            feeds.update(zip(weights, (shifted != PAD).astype(np.float32)))
            found.append(session.run([trains[bucket], losses[bucket]], feeds)[1])
        long = batch(ids, 1, [(question, "bye") for question in QUESTIONS])[0].T
        served = serve(session, {"asked": asked}, {"answer": answer}, {"asked": long})
    words = {index: word for word, index in ids.items()}
    texts = []
    for row in served["answer"]:
        row = list(row)
        texts.append(" ".join(words[index] for index in row[: row.index(EOS) if EOS in row else None]))
    report(found, {"texts": texts})


main()
