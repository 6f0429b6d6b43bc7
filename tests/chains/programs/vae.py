"""Variational autoencoder of small pictures, with `tf.contrib.distributions`, whose decoder and encoder are served."""

import numpy as np
import tensorflow as tf
from parts import initialize, report, serve

SIDE, CODES, HIDDEN, BATCH = 6, 2, 24, 16
tfd = tf.contrib.distributions


def pictures():
    """Pictures of one horizontal and one vertical line, with noise."""
    numbers = np.random.RandomState(3)
    found = numbers.uniform(size=(128, SIDE, SIDE)) < 0.05
    for picture in found:
        picture[numbers.randint(SIDE)] = True
        picture[:, numbers.randint(SIDE)] = True
    return found.reshape(128, -1).astype(np.float32)


def encode(pixels):
    with tf.variable_scope("encoder", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(pixels, HIDDEN, tf.nn.tanh, name="hidden")
        loc = tf.layers.dense(hidden, CODES, name="loc")
        scale = tf.layers.dense(hidden, CODES, tf.nn.softplus, name="scale")
        return tfd.MultivariateNormalDiag(loc, scale + 1e-3, name="code")


def decode(code):
    with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
        hidden = tf.layers.dense(code, HIDDEN, tf.nn.tanh, name="hidden")
        logits = tf.layers.dense(hidden, SIDE * SIDE, name="logits")
        return tfd.Independent(tfd.Bernoulli(logits=logits, dtype=tf.float32), reinterpreted_batch_ndims=1)


def check_samples(session, posterior):
    """Draws codes, whose mean and deviation are those of the distribution."""
    drawn, mean, deviation = session.run([posterior.sample(4000, seed=1), posterior.mean(), posterior.stddev()])
    assert np.all(np.abs(drawn.mean(0) - mean) < 6 * deviation / np.sqrt(4000)), "mean of samples"
    np.testing.assert_allclose(drawn.std(0), deviation, rtol=0.1)


def main():
    # Noise is data here: each TensorFlow draws other numbers.
    noise = np.random.RandomState(4).normal(size=(128, CODES)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((pictures(), noise)).repeat().batch(BATCH)
    pixels, drawn = data.make_one_shot_iterator().get_next()
    posterior = encode(pixels)
    prior = tfd.MultivariateNormalDiag(tf.zeros(CODES), tf.ones(CODES))
    code = posterior.mean() + posterior.stddev() * drawn
    evidence = decode(code).log_prob(pixels) - tfd.kl_divergence(posterior, prior)
    loss = -tf.reduce_mean(evidence)
    weighed = tf.reduce_mean(posterior.log_prob(code) - prior.log_prob(code))
    train = tf.train.AdamOptimizer(0.02).minimize(loss)

    asked = tf.placeholder(tf.float32, [None, SIDE * SIDE], "pixels")
    found = encode(asked)
    seen = decode(found.mean()).mean()
    with tf.Session() as session:
        initialize(session)
        losses = [session.run([loss, weighed, train])[:2] for _ in range(80)]
        check_samples(session, encode(tf.constant(pictures()[:3])))
        outputs = {"loc": found.mean(), "scale": found.stddev(), "seen": seen, "entropy": found.entropy()}
        served = serve(session, {"pixels": asked}, outputs, {"pixels": pictures()[:3]})
    report(np.ravel(losses), served)


main()
