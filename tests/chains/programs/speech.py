"""Speech of tones: spectrograms, convolutions and a GRU, connectionist temporal classification and beam decoding."""

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

TONES, SAMPLES = [300.0, 700.0, 1500.0], 512


def recordings():
    """Waves [count, samples] of words of two or three tones, their lengths in tones, and the tones."""
    numbers = np.random.RandomState(2)
    waves, words = [], []
    for _ in range(24):
        word = numbers.randint(0, 3, numbers.randint(2, 4))
        times = np.arange(SAMPLES) / 4000.0
        parts = [np.sin(2 * np.pi * TONES[tone] * times) for tone in word]
        wave = np.concatenate(parts + [np.zeros(SAMPLES)] * (3 - len(word)))
        waves.append((wave + 0.05 * numbers.randn(3 * SAMPLES)).astype(np.float32))
        words.append(word)
    return np.stack(waves), words


def network(wave, length):
    spectrogram = tf.abs(tf.contrib.signal.stft(wave, 128, 64, fft_length=128))
    mel = tf.contrib.signal.linear_to_mel_weight_matrix(16, 65, 4000, 80.0, 1900.0)
    features = tf.log(tf.tensordot(spectrogram, mel, 1) + 0.1)
    features.set_shape([None, None, 16])
    hidden = tf.layers.conv1d(features, 24, 3, padding="same", activation=tf.nn.relu)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(24), hidden, length, dtype=tf.float32)
    return tf.transpose(tf.layers.dense(outputs, len(TONES) + 1), [1, 0, 2])


def sparse(words):
    indices = [[row, column] for row, word in enumerate(words) for column in range(len(word))]
    return tf.SparseTensorValue(indices, np.concatenate(words).astype(np.int32), [len(words), 3])


def main():
    waves, words = recordings()
    lengths = np.array([8 * len(word) - 1 for word in words], np.int32)
    wave = tf.placeholder(tf.float32, [None, None], "wave")
    length = tf.placeholder(tf.int32, [None], "length")
    labels = tf.sparse_placeholder(tf.int32)
    logits = network(wave, length)
    loss = tf.reduce_mean(tf.nn.ctc_loss(labels, logits, length))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    decoded, likely = tf.nn.ctc_beam_search_decoder(logits, length, beam_width=8, merge_repeated=False)
    distance = tf.reduce_mean(tf.edit_distance(tf.cast(decoded[0], tf.int32), labels))
    dense = tf.sparse_tensor_to_dense(decoded[0], default_value=-1)
    with tf.Session() as session:
        initialize(session)
        losses = []
        for step in range(40):
            rows = [(step * 8 + row) % len(words) for row in range(8)]
            feeds = {wave: waves[rows], length: lengths[rows], labels: sparse([words[row] for row in rows])}
            losses.append(session.run([train, loss], feeds)[1])
        feeds = {wave: waves, length: lengths, labels: sparse(words)}
        wrong = session.run(distance, feeds)
        served = serve(
            session,
            {"wave": wave, "length": length},
            {"tones": dense, "likely": likely},
            {"wave": waves[:5], "length": lengths[:5]},
        )
    served["wrong"] = wrong
    report(losses, served)


main()
