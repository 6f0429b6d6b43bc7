"""A network that TensorFlow differentiates, for a graph with its gradient operations. Python 3.7 must run it."""

from __future__ import annotations

import numpy as np

_random = np.random.RandomState(11)


def _normal(*shape):
    return _random.standard_normal(shape).astype(np.float32) * 0.5


INPUTS = {
    "images": _normal(2, 8, 8, 2),
    "filters": _normal(3, 3, 2, 4),
    "depthwise": _normal(3, 3, 4, 1),
    "bias": _normal(4),
    "scale": np.abs(_normal(4)) + 0.5,
    "weights": _normal(16, 12),
    "labels": np.array([3, 5], np.int32),
    "table": _normal(6, 12),
}


def build(tf):
    """Adds the network to the default graph. Returns its loss and the gradients for all floating inputs, by name."""
    given = {name: tf.placeholder(value.dtype, [None] * value.ndim, name=name) for name, value in INPUTS.items()}
    for name, value in INPUTS.items():
        if name not in ("images", "labels"):
            given[name].set_shape(value.shape)
    given["images"].set_shape([None, 8, 8, 2])
    h = tf.nn.bias_add(tf.nn.conv2d(given["images"], given["filters"], [1, 1, 1, 1], "SAME"), given["bias"])
    h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    h = tf.nn.depthwise_conv2d(h, given["depthwise"], [1, 1, 1, 1], "SAME")
    h = tf.nn.fused_batch_norm(h, given["scale"], given["bias"])[0]
    h = tf.nn.lrn(tf.nn.avg_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), 1, 1.0, 0.5, 0.75)
    h = tf.matmul(tf.reshape(h, [tf.shape(h)[0], 16]), given["weights"])
    activations = [
        tf.nn.relu6,
        tf.nn.elu,
        tf.nn.selu,
        tf.nn.softplus,
        tf.nn.softsign,
        tf.nn.leaky_relu,
        tf.tanh,
        tf.sigmoid,
        lambda v: tf.sqrt(tf.abs(v) + 1),
        lambda v: tf.rsqrt(tf.square(v) + 1),
        lambda v: tf.reciprocal(v * v + 1),
    ]
    h = tf.add_n([activation(h + 0.1) for activation in activations]) / 3
    h = tf.concat(tf.split(h, 3, 1)[::-1], 1) * tf.reduce_mean(h, 0)
    h = tf.pad(h, [[0, 0], [1, 1]], "REFLECT")[:, 1:-1] + tf.pad(h, [[0, 0], [1, 1]])[:, 2:]
    h = tf.maximum(h, 0.1) + tf.minimum(h, 0.3) - tf.squared_difference(h, 1.0)
    h = (
        h
        + tf.nn.embedding_lookup(given["table"], given["labels"])
        + tf.transpose(tf.tile(tf.transpose(h[:, :6]), [2, 1]))
    )
    h = tf.nn.l2_normalize(h, 1) * 3 + tf.stack(tf.unstack(h, axis=1), 1) * tf.reduce_max(h, 1, keepdims=True)
    logits = tf.where(h > 0, h, tf.cast(tf.cast(h, tf.float64), tf.float32) * 0.5)
    hot = tf.one_hot(given["labels"], 12)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=given["labels"], logits=logits))
    loss += tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits_v2(labels=hot, logits=logits))
    loss += tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=hot, logits=logits)) + tf.nn.l2_loss(h) / 9
    sources = [name for name, value in INPUTS.items() if value.dtype == np.float32]
    found = tf.gradients(loss, [given[name] for name in sources])
    fetches = {name: tf.convert_to_tensor(grad) for name, grad in zip(sources, found)}  # noqa: B905 - not in Python 3.7
    return dict(fetches, loss=loss)
