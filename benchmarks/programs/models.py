"""Trains one of the models below for some seconds; prints the seconds of each phase, the rate of steps and peak memory.

    python models.py clicks --seconds=4

Runs unchanged under TensorFlow 1.15, TensorFlow 2 and ``headwater exec``. Random inputs have the sizes of small real
data; where a docstring says so, the sizes change in every batch.
"""

import argparse
import json
import os
import resource
import tempfile
import time

START = time.perf_counter()

import numpy as np  # noqa: E402  its import is measured
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
IMPORTED = time.perf_counter()
draw = np.random.RandomState(0)
MOST_STEPS = 2000


# Layers -----------------------------------------------------------------------------------------------------------


def weight(*shape):
    """Returns a new variable with weights of this shape."""
    count = len(tf.global_variables())
    return tf.get_variable("w%d" % count, shape, initializer=tf.truncated_normal_initializer(stddev=0.1))


def dense(x, units, activation=None):
    """Multiplies the last axis of ``x``, of any rank, by a matrix; adds a bias."""
    width = int(x.shape[-1])
    flat = tf.matmul(tf.reshape(x, [-1, width]), weight(width, units)) + weight(units)
    y = flat if len(x.shape) == 2 else tf.reshape(flat, tf.concat([tf.shape(x)[:-1], [units]], 0))
    y.set_shape(x.shape[:-1].concatenate([units]))
    return y if activation is None else activation(y)


def convolve(x, channels, size, stride=1, activation=tf.nn.relu):
    """Convolves images."""
    kernel = weight(size, size, int(x.shape[-1]), channels)
    y = tf.nn.conv2d(x, kernel, [1, stride, stride, 1], "SAME") + weight(channels)
    return y if activation is None else activation(y)


def normalize(x):
    """Normalizes channels by the moments of the batch, or of the last axis of sequences."""
    axes = [0, 1, 2] if len(x.shape) == 4 else [-1]
    mean, variance = tf.nn.moments(x, axes, keep_dims=len(axes) == 1)
    scale, shift = weight(int(x.shape[-1])) + 1.0, weight(int(x.shape[-1]))
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)


def classify(logits, optimizer=None):
    """Returns the training step and loss of a classifier, and the placeholder of its labels."""
    labels = tf.placeholder(tf.int32, logits.shape[:-1])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return [(optimizer or tf.train.AdamOptimizer(0.001)).minimize(loss), loss], labels


def image_feeds(x, y, *shape):
    """Returns a function that gives random images and labels."""
    return lambda step: {x: draw.rand(*shape).astype("f"), y: draw.randint(0, 10, shape[0])}


# Models with sizes that change ------------------------------------------------------------------------------------


def clicks():
    """Wide and deep model of clicks; every example has another number of ids."""
    ids, clicked = tf.sparse_placeholder(tf.int64), tf.placeholder(tf.float32, [None, 1])
    table, linear = weight(50000, 16), weight(50000, 1)
    deep = tf.reshape(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"), [-1, 16])
    wide = tf.reshape(tf.nn.embedding_lookup_sparse(linear, ids, None, combiner="sum"), [-1, 1])
    logits = wide + dense(dense(deep, 64, tf.nn.relu), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicked, logits=logits))

    def feed(step):
        counts = draw.randint(1, 16, 200)
        rows = np.repeat(np.arange(200), counts)
        columns = np.concatenate([np.arange(count) for count in counts])
        value = tf.SparseTensorValue(np.stack([rows, columns], 1), draw.randint(0, 50000, len(rows)), [200, 16])
        return {ids: value, clicked: draw.randint(0, 2, (200, 1))}

    return [tf.train.AdagradOptimizer(0.05).minimize(loss), loss], feed


def segments():
    """Embeddings of the distinct ids of a batch, averaged by group; the numbers of both change."""
    ids, groups = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [None])
    distinct, places = tf.unique(ids)
    rows = dense(tf.nn.embedding_lookup(weight(20000, 32), distinct), 32, tf.nn.relu)
    pooled = tf.reshape(tf.segment_mean(tf.gather(rows, places), groups), [-1, 32])
    step, labels = classify(dense(pooled, 10), optimizer=tf.train.AdagradOptimizer(0.1))

    def feed(_):
        count = draw.randint(60, 100)
        group = np.repeat(np.arange(count), draw.randint(1, 30, count))
        return {ids: draw.zipf(1.4, len(group)) % 20000, groups: group, labels: draw.randint(0, 10, count)}

    return step, feed


def masks():
    """Rows divided by a mask: one network for the rows that it selects, another for all others."""
    x, chosen = tf.placeholder(tf.float32, [128, 32]), tf.placeholder(tf.bool, [128])
    first = dense(tf.boolean_mask(x, chosen), 32, tf.nn.relu)
    parts = tf.dynamic_partition(x, tf.cast(chosen, tf.int32), 2)
    places = tf.dynamic_partition(tf.range(128), tf.cast(chosen, tf.int32), 2)
    joined = tf.dynamic_stitch(places, [dense(parts[0], 32, tf.nn.tanh), first])
    step, labels = classify(dense(tf.reshape(joined, [128, 32]), 10))
    feed = image_feeds(x, labels, 128, 32)
    return step, lambda i: {**feed(i), chosen: draw.rand(128) < draw.rand()}


def sentences():
    """Attention over sentences of other lengths in every batch."""
    words = tf.placeholder(tf.int32, [None, None])
    x = tf.nn.embedding_lookup(weight(5000, 64), words)
    for _ in range(2):
        query, key, value = dense(x, 64), dense(x, 64), dense(x, 64)
        scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 8.0)
        x = x + tf.matmul(scores, value)
    step, labels = classify(dense(tf.reduce_mean(x, 1), 10))

    def feed(_):
        batch, length = draw.randint(16, 33), draw.randint(10, 80)
        return {words: draw.randint(0, 5000, (batch, length)), labels: draw.randint(0, 10, batch)}

    return step, feed


def loops():
    """A recurrent network in a loop, over other lengths in every batch."""
    x = tf.placeholder(tf.float32, [None, 32, 16])
    weights, bias = weight(16 + 64, 64), weight(64)
    start = tf.zeros([32, 64])
    states = tf.scan(lambda state, now: tf.tanh(tf.matmul(tf.concat([now, state], 1), weights) + bias), x, start)
    step, labels = classify(dense(states[-1], 10))
    return step, lambda i: {x: draw.rand(draw.randint(5, 60), 32, 16), labels: draw.randint(0, 10, 32)}


def speech():
    """Connectionist temporal classification of sequences of other lengths in every batch."""
    frames, lengths = tf.placeholder(tf.float32, [None, 8, 20]), tf.placeholder(tf.int32, [8])
    targets = tf.sparse_placeholder(tf.int32)
    logits = dense(dense(frames, 64, tf.nn.relu), 20)
    loss = tf.reduce_mean(tf.nn.ctc_loss(targets, logits, lengths))

    def feed(_):
        longest = draw.randint(40, 80)
        counts = draw.randint(3, 10, 8)
        rows = np.repeat(np.arange(8), counts)
        columns = np.concatenate([np.arange(count) for count in counts])
        value = tf.SparseTensorValue(np.stack([rows, columns], 1), draw.randint(0, 19, len(rows)), [8, 10])
        return {frames: draw.rand(longest, 8, 20), lengths: draw.randint(30, longest + 1, 8), targets: value}

    return [tf.train.AdamOptimizer(0.001).minimize(loss), loss], feed


def products():
    """A product of a sparse matrix, with other entries in every batch, and a matrix."""
    entries = tf.sparse_placeholder(tf.float32)
    hidden = tf.nn.relu(tf.sparse_tensor_dense_matmul(entries, weight(5000, 64)) + weight(64))
    step, labels = classify(dense(tf.reshape(hidden, [64, 64]), 10))

    def feed(_):
        rows = np.repeat(np.arange(64), draw.randint(1, 40, 64))
        places = np.stack([rows, draw.randint(0, 5000, len(rows))], 1)
        value = tf.SparseTensorValue(places, draw.rand(len(rows)).astype("f"), [64, 5000])
        return {entries: value, labels: draw.randint(0, 10, 64)}

    return step, feed


def tags():
    """A conditional random field over sentences of other lengths in every batch."""
    x, labels = tf.placeholder(tf.float32, [None, 16, 32]), tf.placeholder(tf.int32, [None, 16])
    scores, moves = dense(x, 9), weight(9, 9)

    def advance(state, now):
        return tf.reduce_logsumexp(state[:, :, None] + moves, 1) + now

    ends = tf.scan(advance, scores[1:], scores[0])[-1]
    pairs = tf.gather_nd(moves, tf.stack([labels[:-1], labels[1:]], -1))
    chosen = tf.reduce_sum(scores * tf.one_hot(labels, 9)) + tf.reduce_sum(pairs)
    loss = (tf.reduce_sum(tf.reduce_logsumexp(ends, 1)) - chosen) / 16.0

    def feed(_):
        length = draw.randint(5, 50)
        return {x: draw.rand(length, 16, 32), labels: draw.randint(0, 9, (length, 16))}

    return [tf.train.AdamOptimizer(0.001).minimize(loss), loss], feed


def calls():
    """A Python function that returns another number of rows in every step."""
    x = tf.placeholder(tf.float32, [None, 16])
    y = tf.py_func(lambda rows: rows[rows[:, 0] > 0], [x], tf.float32)
    y.set_shape([None, 16])
    return tf.reduce_sum(tf.tanh(y)), lambda i: {x: draw.randn(64, 16).astype("f")}


# Models with constant sizes ---------------------------------------------------------------------------------------


def lenet():
    """LeNet on images of 28 × 28."""
    x = tf.placeholder(tf.float32, [None, 28, 28, 1])
    net = tf.nn.max_pool(convolve(x, 32, 5), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    net = tf.nn.max_pool(convolve(net, 64, 5), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    step, labels = classify(dense(dense(tf.reshape(net, [-1, 7 * 7 * 64]), 256, tf.nn.relu), 10))
    return step, image_feeds(x, labels, 32, 28, 28, 1)


def mobilenet():
    """Blocks of depthwise and pointwise convolutions with normalization."""
    x = tf.placeholder(tf.float32, [None, 32, 32, 3])
    net = tf.nn.relu6(normalize(convolve(x, 16, 3, 2, None)))
    for channels, stride in ((32, 1), (64, 2), (64, 1), (128, 2)):
        net = tf.nn.depthwise_conv2d(net, weight(3, 3, int(net.shape[-1]), 1), [1, stride, stride, 1], "SAME")
        net = tf.nn.relu6(normalize(convolve(tf.nn.relu6(normalize(net)), channels, 1, 1, None)))
    step, labels = classify(dense(tf.reduce_mean(net, [1, 2]), 10), optimizer=tf.train.MomentumOptimizer(0.01, 0.9))
    return step, image_feeds(x, labels, 16, 32, 32, 3)


def gan():
    """A generator and a discriminator of images, with a step of each."""
    noise, real = tf.placeholder(tf.float32, [16, 32]), tf.placeholder(tf.float32, [16, 32, 32, 1])
    with tf.variable_scope("generator"):
        net = tf.nn.relu(normalize(tf.reshape(dense(noise, 8 * 8 * 32), [16, 8, 8, 32])))
        for size, channels in ((16, 16), (32, 1)):
            kernel = weight(5, 5, channels, int(net.shape[-1]))
            net = tf.nn.conv2d_transpose(net, kernel, [16, size, size, channels], [1, 2, 2, 1], "SAME")
            net = tf.nn.relu(net) if channels > 1 else tf.tanh(net)
    with tf.variable_scope("discriminator"):
        hidden = convolve(convolve(tf.concat([real, net], 0), 16, 5, 2), 32, 5, 2)
        scores = dense(tf.reshape(hidden, [32, 8 * 8 * 32]), 1)
    truth = tf.constant([[1.0]] * 16 + [[0.0]] * 16)
    fooled = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones([16, 1]), logits=scores[16:]))
    found = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=truth, logits=scores))
    steps = [
        tf.train.AdamOptimizer(0.0002).minimize(loss, var_list=tf.trainable_variables(scope))
        for loss, scope in ((found, "discriminator"), (fooled, "generator"))
    ]
    return [*steps, found, fooled], lambda i: {noise: draw.randn(16, 32), real: draw.rand(16, 32, 32, 1)}


def resnet():
    """A residual network of 50 layers."""
    x = tf.placeholder(tf.float32, [None, 32, 32, 3])
    net = tf.nn.relu(normalize(convolve(x, 16, 3, activation=None)))
    for width, blocks in ((16, 3), (32, 4), (64, 6), (128, 3)):
        for block in range(blocks):
            stride = 2 if width > 16 and not block else 1
            inner = tf.nn.relu(normalize(convolve(net, width, 1, activation=None)))
            inner = tf.nn.relu(normalize(convolve(inner, width, 3, stride, activation=None)))
            inner = normalize(convolve(inner, 4 * width, 1, activation=None))
            net = tf.nn.relu(inner + (net if block else convolve(net, 4 * width, 1, stride, activation=None)))
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9)
    step, labels = classify(dense(tf.reduce_mean(net, [1, 2]), 10), optimizer=optimizer)
    return step, image_feeds(x, labels, 8, 32, 32, 3)


def alexnet():
    """Large kernels, local response normalization and overlapping pools."""
    x = tf.placeholder(tf.float32, [None, 64, 64, 3])
    net = x
    for channels, size, stride in ((32, 7, 2), (64, 5, 1), (96, 3, 1)):
        net = tf.nn.local_response_normalization(convolve(net, channels, size, stride), 4, 1.0, 0.001, 0.75)
        net = tf.nn.max_pool(net, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    step, labels = classify(dense(dense(tf.reshape(net, [-1, 4 * 4 * 96]), 256, tf.nn.relu), 10))
    return step, image_feeds(x, labels, 16, 64, 64, 3)


def pools():
    """Overlapping maximum and average pools between convolutions."""
    x = tf.placeholder(tf.float32, [None, 48, 48, 3])
    net = tf.nn.max_pool(convolve(x, 16, 3), [1, 3, 3, 1], [1, 2, 2, 1], "VALID")
    net = tf.nn.avg_pool(convolve(net, 32, 3), [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    step, labels = classify(dense(tf.reduce_mean(net, [1, 2]), 10))
    return step, image_feeds(x, labels, 16, 48, 48, 3)


def volumes():
    """Convolutions of videos."""
    x = tf.placeholder(tf.float32, [None, 8, 16, 16, 1])
    net = tf.nn.relu(tf.nn.conv3d(x, weight(3, 3, 3, 1, 8), [1, 1, 1, 1, 1], "SAME") + weight(8))
    net = tf.nn.max_pool3d(net, [1, 2, 2, 2, 1], [1, 2, 2, 2, 1], "SAME")
    net = tf.nn.relu(tf.nn.conv3d(net, weight(3, 3, 3, 8, 16), [1, 1, 1, 1, 1], "SAME") + weight(16))
    step, labels = classify(dense(tf.reduce_mean(net, [1, 2, 3]), 10))
    return step, image_feeds(x, labels, 8, 8, 16, 16, 1)


def transformer():
    """Two layers of a transformer with four heads over 32 words."""
    words = tf.placeholder(tf.int32, [16, 32])
    x = tf.nn.embedding_lookup(weight(5000, 64), words) + weight(32, 64)
    for _ in range(2):
        heads = [tf.transpose(tf.reshape(dense(normalize(x), 64), [16, 32, 4, 16]), [0, 2, 1, 3]) for _ in range(3)]
        scores = tf.nn.softmax(tf.matmul(heads[0], heads[1], transpose_b=True) / 4.0)
        mixed = tf.reshape(tf.transpose(tf.matmul(scores, heads[2]), [0, 2, 1, 3]), [16, 32, 64])
        x = x + dense(mixed, 64)
        x = x + dense(dense(normalize(x), 256, tf.nn.relu), 64)
    step, labels = classify(dense(normalize(x), 5000))
    return step, lambda i: {words: draw.randint(0, 5000, (16, 32)), labels: draw.randint(0, 5000, (16, 32))}


def unrolled():
    """An LSTM whose graph repeats the cell 40 times, with clipped gradients."""
    words = tf.placeholder(tf.int32, [16, 40])
    inputs = tf.unstack(tf.nn.embedding_lookup(weight(2000, 64), words), axis=1)
    kernel, bias, memory, hidden, outputs = weight(128, 256), weight(256), tf.zeros([16, 64]), tf.zeros([16, 64]), []
    for now in inputs:
        gates = tf.matmul(tf.concat([now, hidden], 1), kernel) + bias
        write, new, keep, show = tf.split(gates, 4, 1)
        memory = memory * tf.sigmoid(keep + 1.0) + tf.sigmoid(write) * tf.tanh(new)
        hidden = tf.tanh(memory) * tf.sigmoid(show)
        outputs.append(hidden)
    labels = tf.placeholder(tf.int32, [16, 40])
    logits = dense(tf.stack(outputs, 1), 2000)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    variables = tf.trainable_variables()
    clipped, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 5.0)
    step = tf.train.GradientDescentOptimizer(0.5).apply_gradients(zip(clipped, variables))
    return [step, loss], lambda i: {words: draw.randint(0, 2000, (16, 40)), labels: draw.randint(0, 2000, (16, 40))}


def gru():
    """A gated recurrent network in a loop over 30 steps."""
    x = tf.placeholder(tf.float32, [30, 32, 32])
    gates, gates_bias, update, update_bias = weight(96, 128), weight(128), weight(96, 64), weight(64)

    def cell(state, now):
        reset, keep = tf.split(tf.sigmoid(tf.matmul(tf.concat([now, state], 1), gates) + gates_bias), 2, 1)
        new = tf.tanh(tf.matmul(tf.concat([now, reset * state], 1), update) + update_bias)
        return keep * state + (1.0 - keep) * new

    step, labels = classify(dense(tf.scan(cell, x, tf.zeros([32, 64]))[-1], 10))
    return step, lambda i: {x: draw.rand(30, 32, 32), labels: draw.randint(0, 10, 32)}


def seq2seq():
    """An encoder, and a decoder with attention, of 20 words each, in loops."""
    source, target = tf.placeholder(tf.int32, [20, 16]), tf.placeholder(tf.int32, [20, 16])
    table, kernel, mixing = weight(2000, 32), weight(96, 64), weight(128, 64)

    def encode(state, now):
        return tf.tanh(tf.matmul(tf.concat([now, state], 1), kernel))

    def decode(state, now):
        state = encode(state, now)
        shares = tf.nn.softmax(tf.reduce_sum(memory * state, 2), 0)
        return tf.tanh(tf.matmul(tf.concat([state, tf.reduce_sum(memory * shares[:, :, None], 0)], 1), mixing))

    memory = tf.scan(encode, tf.nn.embedding_lookup(table, source), tf.zeros([16, 64]))
    states = tf.scan(decode, tf.nn.embedding_lookup(table, target), memory[-1])
    step, labels = classify(dense(states, 2000))

    def feed(_):
        return {each: draw.randint(0, 2000, (20, 16)) for each in (source, target, labels)}

    return step, feed


def factors():
    """A matrix of ratings as the product of two tables, with Ftrl."""
    rows, rating = [], tf.placeholder(tf.float32, [1000])
    ids = [tf.placeholder(tf.int32, [1000]) for _ in range(2)]
    for each, count in zip(ids, (6000, 4000)):
        rows.append(tf.nn.embedding_lookup(weight(count, 32), each))
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(rows[0] * rows[1], 1) - rating))
    step = [tf.train.FtrlOptimizer(0.1).minimize(loss), loss]
    return step, lambda i: {**{each: draw.randint(0, 4000, 1000) for each in ids}, rating: draw.randint(1, 6, 1000)}


def clusters():
    """Means of clusters of points, assigned in every step."""
    points, means = tf.constant(draw.rand(2000, 8).astype("f")), weight(10, 8)
    distances = tf.reduce_sum(tf.square(tf.expand_dims(points, 1) - means), 2)
    nearest = tf.argmin(distances, 1)
    counts = tf.unsorted_segment_sum(tf.ones([2000, 1]), nearest, 10)
    found = tf.unsorted_segment_sum(points, nearest, 10) / tf.maximum(counts, 1.0)
    return [tf.assign(means, found), tf.reduce_sum(tf.reduce_min(distances, 1))], lambda i: {}


def words():
    """Vectors of words by noise-contrastive estimation."""
    centre, context = tf.placeholder(tf.int32, [128]), tf.placeholder(tf.int64, [128, 1])
    rows = tf.nn.embedding_lookup(weight(10000, 64), centre)
    loss = tf.reduce_mean(tf.nn.nce_loss(weight(10000, 64), weight(10000), context, rows, 32, 10000))
    step = [tf.train.GradientDescentOptimizer(0.1).minimize(loss), loss]
    return step, lambda i: {centre: draw.randint(0, 10000, 128), context: draw.randint(0, 10000, (128, 1))}


def variables():
    """200 small variables with Adam."""
    x = tf.placeholder(tf.float32, [8, 16])
    net = x
    for _ in range(100):
        net = net + dense(net, 16, tf.tanh)
    loss = tf.reduce_mean(tf.square(net))
    return [tf.train.AdamOptimizer(0.001).minimize(loss), loss], lambda i: {x: draw.rand(8, 16)}


def saver():
    """Saves 100 MB in 50 variables in every step."""
    for _ in range(50):
        weight(500, 1000)
    saved = tf.train.Saver(max_to_keep=1)
    path = os.path.join(tempfile.mkdtemp(), "model")
    return lambda session, step: saved.save(session, path, global_step=step)


def tiny():
    """Adds two numbers."""
    x = tf.placeholder(tf.float32, [])
    return x + 1.0, lambda i: {x: 1.0}


def conds():
    """Ten conditions on values that change."""
    x = tf.placeholder(tf.float32, [16, 16])
    net, kernel = x, weight(16, 16)
    for index in range(10):
        high = tf.reduce_mean(net) > 0.0
        net = tf.cond(high, lambda net=net: tf.matmul(net, kernel), lambda net=net, by=index: net * 0.5 + by * 0.01)
    loss = tf.reduce_mean(tf.square(net))
    return [tf.train.GradientDescentOptimizer(0.01).minimize(loss), loss], lambda i: {x: draw.randn(16, 16)}


CHANGING = (clicks, segments, masks, sentences, loops, speech, products, tags, calls)
IMAGES = (lenet, mobilenet, gan, resnet, alexnet, pools, volumes)
SEQUENCES = (transformer, unrolled, gru, seq2seq)
OTHERS = (words, factors, clusters, variables, saver, tiny, conds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    models = {model.__name__: model for model in CHANGING + IMAGES + SEQUENCES + OTHERS}
    parser.add_argument("model", choices=sorted(models))
    parser.add_argument("--seconds", type=float, default=4)
    args = parser.parse_args()
    built = models[args.model]()
    marks = [time.perf_counter()]
    with tf.Session() as session:

        def run(step):
            if callable(built):
                return built(session, step)
            fetches, feed = built
            return session.run(fetches, feed(step))

        session.run(tf.global_variables_initializer())
        marks.append(time.perf_counter())
        run(0)
        marks.append(time.perf_counter())
        times = []
        while sum(times) < args.seconds and len(times) < MOST_STEPS:
            began = time.perf_counter()
            run(len(times) + 1)
            times.append(time.perf_counter() - began)
    late = times[-max(len(times) // 3, 1) :]
    print(
        json.dumps(
            {
                "import_s": IMPORTED - START,
                "build_s": marks[0] - IMPORTED,
                "init_s": marks[1] - marks[0],
                "first_step_s": marks[2] - marks[1],
                "rate": len(times) / sum(times),
                "late_rate": len(late) / sum(late),
                "median_ms": 1e3 * float(np.median(times)),
                "worst_ms": 1e3 * max(times[20:] or times),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
