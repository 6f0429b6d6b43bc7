"""Wrong uses that TensorFlow refuses when the graph is built: of ranks, sizes and element types."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def refused(uses):
    """For each use the class of the error that it gives, or "builds"."""
    found = {}
    for name, build in uses.items():
        try:
            build()
            found[name] = "builds"
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found[name] = type(error).__name__
    return found


def case_ranks_and_sizes(tf):
    m = tf.placeholder(tf.float32, [2, 3])
    v = tf.placeholder(tf.float32, [3])
    s = tf.placeholder(tf.float32, [])
    image = tf.placeholder(tf.float32, [1, 4, 4, 3])
    return refused(
        {
            "tf.matmul(m, v)": lambda: tf.matmul(m, v),
            "tf.matmul(m, m)": lambda: tf.matmul(m, m),
            "tf.nn.bias_add(s, v)": lambda: tf.nn.bias_add(s, v),
            "tf.nn.bias_add(m, m)": lambda: tf.nn.bias_add(m, m),
            "tf.nn.bias_add(m, tf.placeholder(tf.float32, [2]))": lambda: tf.nn.bias_add(
                m, tf.placeholder(tf.float32, [2])
            ),
            "tf.nn.conv2d(m, tf.zeros([1, 1, 3, 1]), [1, 1, 1, 1], 'SAME')": lambda: tf.nn.conv2d(
                m, tf.zeros([1, 1, 3, 1]), [1, 1, 1, 1], "SAME"
            ),
            "tf.nn.conv2d(image, tf.zeros([1, 1, 2, 1]), [1, 1, 1, 1], 'SAME')": lambda: tf.nn.conv2d(
                image, tf.zeros([1, 1, 2, 1]), [1, 1, 1, 1], "SAME"
            ),
            "tf.nn.conv2d(image, tf.zeros([1, 1, 3, 1]), [1, 1, 1], 'SAME')": lambda: tf.nn.conv2d(
                image, tf.zeros([1, 1, 3, 1]), [1, 1, 1], "SAME"
            ),
            "tf.nn.conv2d(image, tf.zeros([5, 5, 3, 1]), [1, 1, 1, 1], 'VALID')": lambda: tf.nn.conv2d(
                image, tf.zeros([5, 5, 3, 1]), [1, 1, 1, 1], "VALID"
            ),
            "tf.nn.conv2d(image, tf.zeros([1, 1, 3, 1]), [1, 1, 1, 1], 'WRONG')": lambda: tf.nn.conv2d(
                image, tf.zeros([1, 1, 3, 1]), [1, 1, 1, 1], "WRONG"
            ),
            "tf.nn.max_pool(m, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')": lambda: tf.nn.max_pool(
                m, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
            ),
            "tf.nn.max_pool(image, [1, 5, 5, 1], [1, 1, 1, 1], 'VALID')": lambda: tf.nn.max_pool(
                image, [1, 5, 5, 1], [1, 1, 1, 1], "VALID"
            ),
            "tf.nn.softmax(s)": lambda: tf.nn.softmax(s),
            "tf.nn.softmax_cross_entropy_with_logits(labels=m, logits=v)": lambda: (
                tf.nn.softmax_cross_entropy_with_logits(labels=m, logits=v)
            ),
            "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=m, logits=m)": lambda: (
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=m, logits=m)
            ),
            "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([0]), logits=m)": lambda: (
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([0]), logits=m)
            ),
            "tf.nn.sigmoid_cross_entropy_with_logits(labels=v, logits=m)": lambda: (
                tf.nn.sigmoid_cross_entropy_with_logits(labels=v, logits=m)
            ),
            "tf.nn.lrn(m)": lambda: tf.nn.lrn(m),
            "tf.nn.top_k(s)": lambda: tf.nn.top_k(s),
            "tf.nn.top_k(v, 4)": lambda: tf.nn.top_k(v, 4),
            "tf.nn.in_top_k(v, tf.constant([0]), 1)": lambda: tf.nn.in_top_k(v, tf.constant([0]), 1),
            "tf.diag_part(m)": lambda: tf.diag_part(m),
            "tf.matrix_diag_part(v)": lambda: tf.matrix_diag_part(v),
            "tf.matrix_inverse(m)": lambda: tf.matrix_inverse(m),
            "tf.cholesky(m)": lambda: tf.cholesky(m),
            "tf.trace(v)": lambda: tf.trace(v),
            "tf.transpose(m, [0])": lambda: tf.transpose(m, [0]),
            "tf.reshape(m, [4])": lambda: tf.reshape(m, [4]),
            "tf.reshape(m, [-1, 4])": lambda: tf.reshape(m, [-1, 4]),
            "tf.concat([m, v], 0)": lambda: tf.concat([m, v], 0),
            "tf.concat([m, tf.zeros([3, 3])], 1)": lambda: tf.concat([m, tf.zeros([3, 3])], 1),
            "tf.concat([m, m], 2)": lambda: tf.concat([m, m], 2),
            "tf.stack([m, v])": lambda: tf.stack([m, v]),
            "tf.unstack(s)": lambda: tf.unstack(s),
            "tf.unstack(m, 3)": lambda: tf.unstack(m, 3),
            "tf.unstack(m, axis=2)": lambda: tf.unstack(m, axis=2),
            "tf.split(m, 2, 1)": lambda: tf.split(m, 2, 1),
            "tf.split(m, [1, 1], 1)": lambda: tf.split(m, [1, 1], 1),
            "tf.expand_dims(m, 4)": lambda: tf.expand_dims(m, 4),
            "tf.squeeze(m, [0])": lambda: tf.squeeze(m, [0]),
            "tf.squeeze(m, [3])": lambda: tf.squeeze(m, [3]),
            "tf.tile(m, [1])": lambda: tf.tile(m, [1]),
            "tf.pad(m, [[1, 1]])": lambda: tf.pad(m, [[1, 1]]),
            "tf.pad(m, [[1, 1], [-3, 1]])": lambda: tf.pad(m, [[1, 1], [-3, 1]]),
            "tf.slice(m, [0], [1])": lambda: tf.slice(m, [0], [1]),
            "m[5]": lambda: m[5],
            "m[0, 0, 0]": lambda: m[0, 0, 0],
            "m[5:]": lambda: m[5:],
            "tf.reverse(m, [2])": lambda: tf.reverse(m, [2]),
            "tf.reverse(m, [0, 0])": lambda: tf.reverse(m, [0, 0]),
            "tf.argmax(m, 2)": lambda: tf.argmax(m, 2),
            "tf.reduce_sum(m, 2)": lambda: tf.reduce_sum(m, 2),
            "tf.reduce_sum(m, [0, 0])": lambda: tf.reduce_sum(m, [0, 0]),
            "tf.cumsum(m, 2)": lambda: tf.cumsum(m, 2),
            "tf.one_hot(tf.constant([1]), [2])": lambda: tf.one_hot(tf.constant([1]), [2]),
            "tf.fill([[2]], 1.0)": lambda: tf.fill([[2]], 1.0),
            "tf.fill([2], [1.0])": lambda: tf.fill([2], [1.0]),
            "tf.range([1])": lambda: tf.range([1]),
            "tf.linspace(0.0, 1.0, [2])": lambda: tf.linspace(0.0, 1.0, [2]),
            "m + tf.zeros([3, 2])": lambda: m + tf.zeros([3, 2]),
            "tf.where(tf.placeholder(tf.bool, [3]), m, m)": lambda: tf.where(tf.placeholder(tf.bool, [3]), m, m),
            "tf.where(tf.placeholder(tf.bool, [2]), m, v)": lambda: tf.where(tf.placeholder(tf.bool, [2]), m, v),
            "tf.boolean_mask(m, tf.placeholder(tf.bool, [3]))": lambda: tf.boolean_mask(
                m, tf.placeholder(tf.bool, [3])
            ),
            "tf.sequence_mask(tf.constant([1]), tf.constant([2]))": lambda: tf.sequence_mask(
                tf.constant([1]), tf.constant([2])
            ),
            "tf.dynamic_partition(m, tf.constant([0, 1, 0]), 2)": lambda: tf.dynamic_partition(
                m, tf.constant([0, 1, 0]), 2
            ),
            "tf.gather_nd(m, tf.constant([[0, 0, 0]]))": lambda: tf.gather_nd(m, tf.constant([[0, 0, 0]])),
            "tf.scatter_nd(tf.constant([[0]]), tf.constant([1.0, 2.0]), [3])": lambda: tf.scatter_nd(
                tf.constant([[0]]), tf.constant([1.0, 2.0]), [3]
            ),
            "tf.einsum('ij,jk->ik', m, m)": lambda: tf.einsum("ij,jk->ik", m, m),
            "tf.tensordot(m, m, 1)": lambda: tf.tensordot(m, m, 1),
            "tf.cross(m, v)": lambda: tf.cross(m, v),
            "tf.nn.embedding_lookup(s, tf.constant([0]))": lambda: tf.nn.embedding_lookup(s, tf.constant([0])),
            "tf.depth_to_space(image, 2)": lambda: tf.depth_to_space(image, 2),
            "tf.space_to_depth(image, 3)": lambda: tf.space_to_depth(image, 3),
            "tf.space_to_batch(image, [[0, 0], [0, 0]], 3)": lambda: tf.space_to_batch(image, [[0, 0], [0, 0]], 3),
            "tf.image.resize_bilinear(m, [2, 2])": lambda: tf.image.resize_bilinear(m, [2, 2]),
            "tf.image.resize_bilinear(image, [2])": lambda: tf.image.resize_bilinear(image, [2]),
            "tf.image.crop_and_resize(image, tf.zeros([2, 3]), tf.constant([0, 0]), [2, 2])": lambda: (
                tf.image.crop_and_resize(image, tf.zeros([2, 3]), tf.constant([0, 0]), [2, 2])
            ),
            "tf.segment_sum(m, tf.constant([[0, 1]]))": lambda: tf.segment_sum(m, tf.constant([[0, 1]])),
            "tf.unsorted_segment_sum(m, tf.constant([0, 1, 2]), 3)": lambda: tf.unsorted_segment_sum(
                m, tf.constant([0, 1, 2]), 3
            ),
            "tf.nn.l2_loss('a')": lambda: tf.nn.l2_loss("a"),
            "tf.meshgrid(m, v)": lambda: tf.meshgrid(m, v),
            "tf.broadcast_to(m, [3, 3])": lambda: tf.broadcast_to(m, [3, 3]),
            "tf.nn.moments(m, [2])": lambda: tf.nn.moments(m, [2]),
            "tf.nn.xw_plus_b(m, m, v)": lambda: tf.nn.xw_plus_b(m, m, v),
            "tf.nn.dropout(m, 1.5)": lambda: tf.nn.dropout(m, 1.5),
            "tf.nn.dropout(m, keep_prob=0.0)": lambda: tf.nn.dropout(m, keep_prob=0.0),
            "tf.cond(v > 0, lambda: m, lambda: m)": lambda: tf.cond(v > 0, lambda: m, lambda: m),
            "tf.while_loop(lambda i: m, lambda i: i, [s])": lambda: tf.while_loop(lambda i: m, lambda i: i, [s]),
            "tf.while_loop(lambda i: i < 1, lambda i: (i, i), [s])": lambda: tf.while_loop(
                lambda i: i < 1, lambda i: (i, i), [s]
            ),
            "tf.map_fn(lambda x: x, s)": lambda: tf.map_fn(lambda x: x, s),
        }
    )


def case_types(tf):
    f, i, b, t = (tf.placeholder(kind, [2]) for kind in (tf.float32, tf.int32, tf.bool, tf.string))
    d = tf.placeholder(tf.float64, [2])
    return refused(
        {
            "f + i": lambda: f + i,
            "f + d": lambda: f + d,
            "f * b": lambda: f * b,
            "t + t": lambda: t + t,
            "t - t": lambda: t - t,
            "t + f": lambda: t + f,
            "b + b": lambda: b + b,
            "-b": lambda: -b,
            "tf.abs(b)": lambda: tf.abs(b),
            "tf.sqrt(i)": lambda: tf.sqrt(i),
            "tf.exp(i)": lambda: tf.exp(i),
            "tf.sigmoid(i)": lambda: tf.sigmoid(i),
            "tf.nn.relu(t)": lambda: tf.nn.relu(t),
            "tf.nn.relu(i)": lambda: tf.nn.relu(i),
            "tf.nn.softmax(i)": lambda: tf.nn.softmax(i),
            "tf.logical_and(i, i)": lambda: tf.logical_and(i, i),
            "tf.logical_not(f)": lambda: tf.logical_not(f),
            "i & f": lambda: i & f,
            "i % f": lambda: i % f,
            "f // i": lambda: f // i,
            "i / 2.0": lambda: i / 2.0,
            "i * 2.5": lambda: i * 2.5,
            "f * 2": lambda: f * 2,
            "tf.pow(i, 2.0)": lambda: tf.pow(i, 2.0),
            "tf.equal(i, f)": lambda: tf.equal(i, f),
            "tf.less(b, b)": lambda: tf.less(b, b),
            "tf.less(t, t)": lambda: tf.less(t, t),
            "tf.maximum(b, b)": lambda: tf.maximum(b, b),
            "tf.reduce_sum(b)": lambda: tf.reduce_sum(b),
            "tf.reduce_mean(t)": lambda: tf.reduce_mean(t),
            "tf.reduce_any(i)": lambda: tf.reduce_any(i),
            "tf.reduce_all(f)": lambda: tf.reduce_all(f),
            "tf.argmax(b)": lambda: tf.argmax(b),
            "tf.argmax(t)": lambda: tf.argmax(t),
            "tf.matmul([b], [b], transpose_b=True)": lambda: tf.matmul([b], [b], transpose_b=True),
            "tf.concat([f, i], 0)": lambda: tf.concat([f, i], 0),
            "tf.stack([f, i])": lambda: tf.stack([f, i]),
            "tf.where(i, f, f)": lambda: tf.where(i, f, f),
            "tf.where(b, f, i)": lambda: tf.where(b, f, i),
            "tf.string_to_number(f)": lambda: tf.string_to_number(f),
            "tf.as_string(t)": lambda: tf.as_string(t),
            "tf.one_hot(f, 3)": lambda: tf.one_hot(f, 3),
            "tf.one_hot(i, 3, 1, 0.0)": lambda: tf.one_hot(i, 3, 1, 0.0),
            "tf.gather(f, f)": lambda: tf.gather(f, f),
            "tf.gather(t, i)": lambda: tf.gather(t, i),
            "tf.range(t)": lambda: tf.range(t),
            "tf.fill(f, 1.0)": lambda: tf.fill(f, 1.0),
            "tf.zeros(f)": lambda: tf.zeros(f),
            "tf.reshape(f, [2.0])": lambda: tf.reshape(f, [2.0]),
            "tf.random_uniform([2], dtype=tf.int32)": lambda: tf.random_uniform([2], dtype=tf.int32),
            "tf.random_uniform([2.0])": lambda: tf.random_uniform([2.0]),
            "tf.random_normal([2], dtype=tf.int32)": lambda: tf.random_normal([2], dtype=tf.int32),
            "tf.nn.dropout(i, 0.5)": lambda: tf.nn.dropout(i, 0.5),
            "tf.nn.l2_normalize(i, 0)": lambda: tf.nn.l2_normalize(i, 0),
            "tf.nn.softmax_cross_entropy_with_logits(labels=i, logits=f)": lambda: (
                tf.nn.softmax_cross_entropy_with_logits(labels=i, logits=f)
            ),
            "tf.nn.sigmoid_cross_entropy_with_logits(labels=i, logits=f)": lambda: (
                tf.nn.sigmoid_cross_entropy_with_logits(labels=i, logits=f)
            ),
            "tf.nn.embedding_lookup(f, f)": lambda: tf.nn.embedding_lookup(f, f),
            "tf.constant('a', tf.float32)": lambda: tf.constant("a", tf.float32),
            "tf.constant(1.5, tf.int32)": lambda: tf.constant(1.5, tf.int32),
            "tf.constant(1, tf.string)": lambda: tf.constant(1, tf.string),
            "tf.constant([1, 'a'])": lambda: tf.constant([1, "a"]),
            "tf.constant([[1], [1, 2]])": lambda: tf.constant([[1], [1, 2]]),
            "tf.constant(1, tf.bool)": lambda: tf.constant(1, tf.bool),
            "tf.constant(None)": lambda: tf.constant(None),
            "tf.convert_to_tensor(f, tf.int32)": lambda: tf.convert_to_tensor(f, tf.int32),
            "tf.Variable(f, dtype=tf.int32)": lambda: tf.Variable(f, dtype=tf.int32),
            "tf.assign(tf.Variable([1.0, 2.0]), i)": lambda: tf.assign(tf.Variable([1.0, 2.0]), i),
            "tf.assign(tf.Variable([1.0, 2.0]), [1.0])": lambda: tf.assign(tf.Variable([1.0, 2.0]), [1.0]),
            "tf.assign(f, f)": lambda: tf.assign(f, f),
            "tf.assign_add(tf.Variable(1), 1.5)": lambda: tf.assign_add(tf.Variable(1), 1.5),
            "tf.scatter_add(tf.Variable([1.0]), [0.0], [1.0])": lambda: tf.scatter_add(
                tf.Variable([1.0]), [0.0], [1.0]
            ),
            "tf.gradients(i, f)": lambda: tf.gradients(i, f),
            "tf.clip_by_value(f, 'a', 'b')": lambda: tf.clip_by_value(f, "a", "b"),
            "tf.clip_by_norm(i, 1)": lambda: tf.clip_by_norm(i, 1),
            "tf.Session().run(None)": lambda: tf.Session().run(None),
            "tf.Session().run(3)": lambda: tf.Session().run(3),
            "tf.Session().run('nothing:0')": lambda: tf.Session().run("nothing:0"),
            "tf.Session().run(f, (f: ['a', 'b']))": lambda: tf.Session().run(f, {f: ["a", "b"]}),
            "tf.Session().run(f, (f: [1.0]))": lambda: tf.Session().run(f, {f: [1.0]}),
            "tf.Session().run(f, ('nothing:0': 1.0))": lambda: tf.Session().run(f, {"nothing:0": 1.0}),
            "tf.Session().run(f, (3: 1.0))": lambda: tf.Session().run(f, {3: 1.0}),
            "tf.Session().run(f, (f: f))": lambda: tf.Session().run(f, {f: f}),
            "tf.Session().run(i, (i: [1.5, 2.5]))": lambda: tf.Session().run(i, {i: [1.5, 2.5]}),
            "tf.Session().run(b, (b: [1, 0]))": lambda: tf.Session().run(b, {b: [1, 0]}),
            "bool(f)": lambda: bool(f),
            "[x for x in tf.placeholder(tf.float32)]": lambda: list(tf.placeholder(tf.float32)),
            "len(f)": lambda: len(f),
            "float(f)": lambda: float(f),
            "f['a']": lambda: f["a"],
            "f[1.5]": lambda: f[1.5],
            "f[b]": lambda: f[b],
            "f[None, ..., ...]": lambda: f[None, ..., ...],
            "tf.train.GradientDescentOptimizer(0.1).minimize(i)": lambda: tf.train.GradientDescentOptimizer(
                0.1
            ).minimize(i),
            "tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))": lambda: (
                tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))
            ),
            "tf.get_variable('v', []) and tf.get_variable('v', [])": lambda: (
                tf.get_variable("v", []) and tf.get_variable("v", [])
            ),
            "tf.get_variable('w')": lambda: tf.get_variable("w"),
            "tf.get_variable('x', [2], initializer=tf.constant([1.0]))": lambda: tf.get_variable(
                "x", [2], initializer=tf.constant([1.0])
            ),
            "tf.get_variable('y', [None])": lambda: tf.get_variable("y", [None]),
        }
    )


def case_needs_of_operations(tf):
    m = tf.placeholder(tf.float32, [2, 3])
    v = tf.placeholder(tf.float32, [3])
    i = tf.placeholder(tf.int32, [3])
    t = tf.placeholder(tf.string, [3])
    b = tf.placeholder(tf.bool, [])
    image = tf.placeholder(tf.float32, [1, 4, 4, 3])
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 3])
    number = tf.Variable([1.0, 2.0, 3.0])
    columns = tf.feature_column
    table = tf.contrib.lookup.index_table_from_tensor
    uses = {
        "while_loop": [
            lambda: tf.while_loop(lambda n: [n < 3, n < 4], lambda n: n + 1, [0]),
            lambda: tf.while_loop(lambda n: v > 0, lambda n: n + 1, [0]),
        ],
        "conv2d": [
            lambda: tf.nn.conv2d(image, tf.zeros([2, 2, 3, 1]), [1, 0, 1, 1], "SAME"),
            lambda: tf.nn.conv2d_transpose(image, tf.zeros([2, 2, 1, 3]), [1, 8, 8], [1, 2, 2, 1]),
            lambda: tf.nn.convolution(image, tf.zeros([2, 2, 3, 1]), "SAME", strides=[2, 2], dilation_rate=[2, 2]),
        ],
        "max_pool": [
            lambda: tf.nn.max_pool(image, [1, 0, 2, 1], [1, 1, 1, 1], "SAME"),
            lambda: tf.nn.max_pool(image, [1, 2, 2, 1], [1, 0, 1, 1], "SAME"),
            lambda: tf.nn.max_pool(image, [1, 2, 2, 1], [1, 1, 1, 1], "same"),
        ],
        "top_k": [lambda: tf.nn.top_k(m, -1), lambda: tf.nn.top_k(m, [1])],
        "images": [
            lambda: tf.image.adjust_contrast(v, 1.0),
            lambda: tf.image.grayscale_to_rgb(image),
            lambda: tf.image.rgb_to_hsv(tf.zeros([2, 2])),
            lambda: tf.image.encode_png(image),
            lambda: tf.image.decode_jpeg(t),
            lambda: tf.image.extract_glimpse(image, [2, 2], tf.zeros([1])),
            lambda: tf.summary.image("a", image, max_outputs=0),
            lambda: tf.summary.image("a", i),
        ],
        "text": [
            lambda: tf.parse_single_example(t, {"a": tf.FixedLenFeature([], tf.int64)}),
            lambda: tf.decode_raw(t, tf.string),
            lambda: tf.string_split("a b"),
            lambda: tf.string_to_number(t, tf.bool),
            lambda: tf.string_to_hash_bucket_fast(t, 0),
        ],
        "queues": [
            lambda: tf.FIFOQueue(3, []),
            lambda: tf.FIFOQueue("a", tf.float32),
            lambda: tf.FIFOQueue(3, [tf.float32, tf.float32]).enqueue_many([m, v]),
            lambda: tf.train.batch([m, v], 2, enqueue_many=True),
            lambda: tf.ConditionalAccumulator(tf.string),
        ],
        "shapes": [
            lambda: tf.zeros([-1]),
            lambda: tf.fill([-1], 1.0),
            lambda: tf.eye(-1),
            lambda: tf.scatter_nd([[0]], [1.0], [[3]]),
            lambda: tf.multinomial(m, [3]),
            lambda: tf.concat([m, m], [0, 1]),
            lambda: tf.slice(m, [0, 0], [-2, 1]),
            lambda: tf.expand_dims(m, 0.5),
            lambda: tf.reverse(m, [0.5]),
            lambda: tf.setdiff1d(m, m),
            lambda: tf.histogram_fixed_width(v, [0.0]),
            lambda: tf.broadcast_to(m, [[2, 3]]),
            lambda: tf.space_to_batch_nd(image, [2, 2], [[0, 0]]),
            lambda: tf.batch_to_space(image, [[0, 0], [0, 0]], 2),
            lambda: tf.depth_to_space(image, 1),
            lambda: tf.fft(tf.complex(1.0, 1.0)),
            lambda: tf.einsum("ij,ij->ij", m),
            lambda: tf.reduce_sum(m, 1.5),
            lambda: tf.argmax(m, 1, output_type=tf.float32),
        ],
        "parts": [
            lambda: tf.dynamic_partition(m, [0, 1], 0),
            lambda: tf.dynamic_stitch([[0]], [m]),
            lambda: tf.dynamic_stitch([i, i], [v]),
            lambda: tf.unsorted_segment_sum(m, [0, 1], -1),
            lambda: tf.unsorted_segment_sum(v, i, 2.0),
            lambda: tf.sparse_segment_sum(m, [0, 1], [0]),
            lambda: tf.sparse_tensor_dense_matmul(sparse, m),
            lambda: tf.sparse_tensor_dense_matmul(sparse, v),
            lambda: tf.sparse_retain(sparse, [True, False]),
            lambda: tf.one_hot(i, 3, on_value=1, dtype=tf.float32),
            lambda: tf.count_up_to(number, 3),
            lambda: tf.identity_n([]),
            lambda: tf.py_func(3, [m], tf.float32),
        ],
        "tables": [
            lambda: table(["a"], num_oov_buckets=-1),
            lambda: table(["a"], dtype=tf.float32),
            lambda: tf.contrib.lookup.HashTable(tf.contrib.lookup.KeyValueTensorInitializer(["a"], [1, 2]), -1),
        ],
        "training": [
            lambda: tf.train.piecewise_constant(i[0], [1.0, 2.0], [1.0, 2.0, 3.0]),
            lambda: tf.estimator.EstimatorSpec("train", loss=v[0], train_op=3),
            lambda: tf.estimator.EstimatorSpec("infer", predictions=3),
            lambda: tf.estimator.EstimatorSpec("infer", predictions=m, export_outputs=3),
            lambda: tf.train.warm_start("/none", 3),
            lambda: columns.numeric_column(3),
            lambda: tf.data.Dataset.range(3).filter(lambda x: x),
            lambda: tf.get_default_graph().gradient_override_map({3: "a"}).__enter__(),
        ],
        "fine": [
            lambda: tf.cond(b, lambda: m, lambda: m),
            lambda: tf.fill([0], 1.0),
            lambda: tf.nn.top_k(m, 0),
            lambda: tf.concat([m, m], 1),
            lambda: tf.train.piecewise_constant(tf.cast(i[0], tf.int64), [1, 2], [1.0, 2.0, 3.0]),
            lambda: tf.one_hot(i, 3, on_value=2.0, dtype=tf.float32),
        ],
    }
    return {name: list(refused(dict(enumerate(every))).values()) for name, every in uses.items()}


def case_imported_again(tf):
    """Names, colocation and devices of graphs that are imported twice, under a device function, and with variables."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.device("/cpu:0"):
            y = tf.identity(x, name="y")
        with tf.colocate_with(y):
            tf.negative(x, name="z")
    proto = graph.as_graph_def()
    found = [
        [op.name, op.device, [group.decode() for group in op.colocation_groups()]]
        for name in ("", "", "inner/", "inner/", "x")
        for op in tf.import_graph_def(proto, return_elements=["x", "z"], name=name)
    ]
    start = tf.Variable([1.0, 2.0], name="start")
    z = tf.import_graph_def(proto, {b"x:0": start}, ["z:0"], name="with_variable")[0]
    gradient = tf.gradients(z, start)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [found, z.name, session.run([z, gradient])]


def case_refused_graphs(tf):
    """Graphs and arguments that cannot be imported."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.colocate_with(tf.identity(x, name="y")):
            tf.add(x, x, name="z")
    proto = graph.as_graph_def()

    def changed(**fields):
        copy = type(proto).FromString(proto.SerializeToString())
        for name, value in fields.items():
            if name == "inputs":
                del copy.node[2].input[:]
                copy.node[2].input.extend(value)
            else:
                setattr(copy.versions, name, value)
        return copy

    lonely = type(proto)(node=[node for node in proto.node if node.name != "y"], versions=proto.versions)
    calls = {
        "an input is missing": lambda: tf.import_graph_def(changed(inputs=["x"])),
        "an input too many": lambda: tf.import_graph_def(changed(inputs=["x", "x", "x"])),
        "another type": lambda: tf.import_graph_def(proto, {"x:0": tf.constant([1, 2])}),
        "no such output": lambda: tf.import_graph_def(changed(inputs=["x", "x:1"])),
        "unknown colocation": lambda: tf.import_graph_def(lonely),
        "producer": lambda: tf.import_graph_def(changed(producer=-1)),
        "variable without a name": lambda: tf.import_graph_def(proto, {"x:0": tf.Variable([1.0, 2.0])}, name=""),
        "element": lambda: tf.import_graph_def(proto, return_elements=["x:y:z"]),
        "output": lambda: tf.import_graph_def(proto, return_elements=["x:1"]),
        "node": lambda: tf.import_graph_def(proto, return_elements=["w"]),
    }
    return refused(calls)
