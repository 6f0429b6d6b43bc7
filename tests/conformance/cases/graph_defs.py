"""Graphs as GraphDefs: the same calls make the same nodes, attributes and static shapes."""


def cases(tf):
    def described(name):
        def run(tf):
            build(tf, name)
            return nodes(tf.get_default_graph().as_graph_def(add_shapes=True))

        return run

    return {name[6:]: described(name[6:]) for name in globals() if name.startswith("graph_")}


def build(tf, name):
    """Adds the graph ``name`` to the default one."""
    globals()["graph_" + name](tf)


def nodes(graph_def):
    """The nodes in a form that compares and prints well."""
    return [[node.name, node.op, list(node.input), node.device, _attrs(node)] for node in graph_def.node]


def _attrs(node):
    return {
        key: _attr(value) for key, value in node.attr.items() if key not in ("_checked", "_class", "_classes", "_shape")
    }


def _attr(value):
    kind = value.WhichOneof("value")
    if kind == "tensor":
        tensor = value.tensor
        return ["tensor", tensor.dtype, [dim.size for dim in tensor.tensor_shape.dim]]
    if kind == "shape":
        return _shape(value.shape)
    if kind == "list":
        if value.list.shape:
            return [_shape(shape) for shape in value.list.shape]
        return [
            item if isinstance(item, int) else str(item) for field, items in value.list.ListFields() for item in items
        ]
    found = getattr(value, kind) if kind else None
    return found.decode() if isinstance(found, bytes) else round(found, 6) if isinstance(found, float) else found


def _shape(shape):
    return "unknown" if shape.unknown_rank else [dim.size for dim in shape.dim]


def graph_network(tf):
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    labels = tf.placeholder(tf.float32, [None, 10], name="labels")
    with tf.name_scope("hidden"):
        weights = tf.Variable(tf.truncated_normal([784, 100], stddev=0.1), name="weights")
        bias = tf.Variable(tf.constant(0.1, shape=[100]), name="bias")
        hidden = tf.nn.relu(tf.matmul(x, weights) + bias, name="out")
    with tf.name_scope("softmax"):
        weights = tf.Variable(tf.random_uniform([100, 10], -0.1, 0.1, seed=3), name="weights", trainable=False)
        bias = tf.Variable(tf.zeros([10]))
        logits = tf.nn.xw_plus_b(hidden, weights, bias)
    loss = tf.negative(tf.reduce_sum(labels * tf.log(tf.nn.softmax(logits))), name="loss")
    correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
    tf.reduce_mean(tf.cast(correct, tf.float32), name="accuracy")
    tf.identity(loss, name="end")


def graph_operators(tf):
    x, y = tf.placeholder(tf.float32, [2, 3], name="x"), tf.placeholder(tf.float32, [3], name="y")
    i, j = tf.placeholder(tf.int32, [None], name="i"), tf.placeholder(tf.int32, name="j")
    b = tf.placeholder(tf.bool, [2], name="b")
    for made in [
        x + y,
        x - 1,
        1 - x,
        x * 2.0,
        x / y,
        1 / x,
        x // y,
        x % y,
        x**2,
        -x,
        abs(x),
        x < y,
        x <= 1,
        x > y,
        x >= 2.0,
        i + 1,
        i / 2,
        i // 2,
        i % 3,
        i * i,
        i - j,
        j**2,
        b & b,
        b | b,
        b ^ b,
        ~b,
        x[0],
        x[:, 1],
        x[..., 0],
        x[1:, ::2],
        x[tf.newaxis],
        x[:, tf.newaxis, 1:2],
        i[0],
        i[-1:],
        j[0, 1],
        tf.matmul(x, x, transpose_b=True),
    ]:
        assert made.graph is tf.get_default_graph()


def graph_shapes(tf):
    x = tf.placeholder(tf.float32, [None, 4, 3], name="x")
    batch = tf.shape(x)[0]
    tf.reshape(x, [-1, 12])
    tf.reshape(x, [batch, 6, -1])
    tf.reshape(x, tf.stack([batch, 12]))
    tf.reshape(x, tf.concat([tf.shape(x)[:1], [3, 4]], 0))
    tf.transpose(x)
    tf.transpose(x, [1, 0, 2])
    tf.expand_dims(x, 1)
    tf.squeeze(tf.expand_dims(x, -1), [3])
    tf.tile(x, [1, 2, 1])
    tf.concat([x, x], 2)
    tf.stack([x, x], axis=1)
    tf.split(x, 2, axis=1)
    tf.split(x, [1, 2], axis=2)
    tf.unstack(x, axis=2)
    tf.gather(x, [0, 1])
    tf.gather(x, [0, 1], axis=1)
    tf.pad(x, [[0, 0], [1, 1], [0, 2]])
    tf.slice(x, [0, 1, 0], [-1, 2, 3])
    tf.fill([2, 3], 1.0)
    tf.fill(tf.stack([batch, 2]), 0.0)
    tf.zeros_like(x)
    tf.ones([3, 2])
    tf.ones_like(x, dtype=tf.int32)
    tf.range(5)
    tf.range(batch)
    tf.one_hot(tf.argmax(x, 2), 5)
    tf.size(x)
    tf.rank(x)
    tf.reduce_sum(x)
    tf.reduce_sum(x, 1)
    tf.reduce_mean(x, [0, 2], keepdims=True)
    tf.reduce_max(x, axis=-1)
    tf.cast(x, tf.int32)
    tf.where(x > 0.0, x, -x)
    tf.clip_by_value(x, 0.0, 1.0)


def graph_unknown_shapes(tf):
    x = tf.placeholder(tf.float32, name="x")
    y = tf.placeholder(tf.float32, [None, None], name="y")
    for made in [
        x + y,
        x * 2.0,
        tf.reduce_sum(x),
        tf.reduce_sum(x, 0),
        tf.reduce_sum(y, 0),
        tf.matmul(y, y),
        tf.transpose(x),
        tf.transpose(y),
        tf.reshape(x, [2, -1]),
        tf.shape(x),
        tf.shape(y),
        tf.concat([y, y], 0),
        tf.nn.softmax(y),
        tf.placeholder_with_default([1.0, 2.0], [None]),
        tf.argmax(y, 1),
        tf.nn.relu(x),
        tf.expand_dims(x, 0),
        tf.gather(y, 0),
    ]:
        assert made.graph is tf.get_default_graph()


def graph_placed(tf):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="v")
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:1/gpu:0"):
        with tf.control_dependencies([v.initializer]):
            x = tf.identity(v, name="x")
            with tf.name_scope("scope"):
                tf.add(x, 1.0, name="y")
        with tf.colocate_with(w):
            tf.constant([1.0, 2.0], name="beside_w")
        tf.group(v.assign(2.0), w.assign([1.0, 2.0]), name="both")
    tf.global_variables_initializer()
    tf.assign_add(v, x)
    tf.no_op(name="last")


def graph_attributes(tf):
    tf.constant("text")
    tf.constant(["a", "b"])
    tf.constant([[True], [False]])
    tf.constant([1, 2], tf.int64)
    x = tf.placeholder(tf.float32, [1, 8, 8, 2], name="x")
    kernel = tf.constant(1.0, shape=[3, 3, 2, 4])
    tf.nn.conv2d(x, kernel, strides=[1, 2, 2, 1], padding="SAME")
    tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    tf.nn.avg_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME", name="average")
    tf.nn.bias_add(x, [1.0, 2.0])
    tf.nn.l2_loss(x)
    tf.random_normal([2], seed=4)
    tf.nn.in_top_k(tf.zeros([2, 3]), [0, 1], 1)
    tf.nn.top_k(tf.zeros([2, 3]), 2)
    tf.nn.embedding_lookup(tf.zeros([5, 2]), [[0, 1]])
    tf.unsorted_segment_sum(x, [0], 3)
    tf.stop_gradient(x)
