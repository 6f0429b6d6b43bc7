"""Arguments that must have their effect: each call gives it, and what it gives is compared."""

import os
import tempfile

import numpy as np


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def run(tf, *values):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(values)


def parts(value):
    return [value.indices, value.values, value.dense_shape]


def tried(tf, *calls):
    """For each call of no arguments its value, or the class of its error."""
    found = []
    for call in calls:
        try:
            found.append(call())
        except (TypeError, ValueError, tf.errors.OpError) as error:
            found.append(type(error).__name__)
    return found


def case_checkpoint_of_a_table(tf):
    path = os.path.join(tempfile.mkdtemp(), "model")
    table = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
    vectors = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, [0.5, 0.25], "vectors")
    other = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1, "other", False)
    saver = tf.train.Saver()
    keys, numbers = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    fill = [table.insert(keys, numbers), vectors.insert(numbers, [[1.0, 2.0], [3.0, 4.0]]), other.insert(keys, numbers)]
    with tf.Session() as session:
        session.run(fill)
        saver.save(session, path)
        session.run(table.insert(tf.constant(["c"]), tf.constant([3], tf.int64)))
        saver.restore(session, path)
        found = session.run([table.lookup(tf.constant(["a", "b", "c"])), table.size(), other.size()])
        found.append(session.run(vectors.lookup(tf.constant([2, 7], tf.int64))))
    return [found, sorted(name for name, _ in tf.train.list_variables(path))]


def case_hashers(tf):
    L = tf.contrib.lookup
    keys = tf.constant(["b", "what", "", "a much longer text than eight bytes"])
    strong = L.index_table_from_tensor(["a", "b"], 1000, hasher_spec=L.StrongHashSpec([7, 11]))
    fast = L.index_table_from_tensor(["a", "b"], 1000, hasher_spec=L.FastHashSpec)
    bad = tried(
        tf,
        lambda: L.StrongHashSpec([1]),
        lambda: L.StrongHashSpec(["a", "b"]),
        lambda: L.index_table_from_tensor(["a"], 1, hasher_spec="fasthash"),
        lambda: L.index_table_from_tensor(["a"], 1, hasher_spec=L.HasherSpec("slow", None)).lookup(keys),
    )
    return [run(tf, strong.lookup(keys), fast.lookup(keys)), bad]


def sparse(tf, shape=(2, 3)):
    return tf.SparseTensor([[0, 0], [1, 2]], tf.constant([1.0, -5.0]), shape)


def case_sparse_concat(tf):
    wider = tf.sparse_concat(0, [sparse(tf), sparse(tf, (4, 5))], expand_nonconcat_dim=True)
    older = tf.sparse_concat(None, [sparse(tf), sparse(tf)], concat_dim=1)
    both = tried(tf, lambda: tf.sparse_concat(0, [sparse(tf)], concat_dim=1))
    return [run(tf, *parts(wider), *parts(older)), both]


def case_sparse_reductions(tf):
    found = [
        tf.sparse_reduce_sum(sparse(tf)),
        tf.sparse_reduce_sum(sparse(tf), 1, True),
        tf.sparse_reduce_sum(sparse(tf), reduction_axes=[0]),
        tf.sparse_reduce_sum(sparse(tf), -1, keep_dims=True),
        tf.sparse_reduce_max(sparse(tf), 1),
        tf.sparse_reduce_max(sparse(tf), reduction_axes=0, keep_dims=True),
    ]
    few = [tf.sparse_reduce_sum_sparse(sparse(tf), 1), tf.sparse_reduce_max_sparse(sparse(tf), 0, True)]
    return run(tf, *found, *parts(few[0]), *parts(few[1]))


def case_tensor_protos(tf):
    def made(*args, **kwargs):
        return tf.make_ndarray(tensor=tf.make_tensor_proto(*args, **kwargs)).tolist()

    return tried(
        tf,
        lambda: made([1, 2, 3], shape=[5]),
        lambda: made([1, 2, 3, 4], shape=[2, 2]),
        lambda: made([1, 2, 3], shape=[2]),
        lambda: made([1, 2, 3], shape=[3, 1], verify_shape=True),
        lambda: made([1, 2, 3], shape=[3], verify_shape=True),
        lambda: made([7], shape=[3], allow_broadcast=True),
        lambda: made([7, 8], shape=[3], allow_broadcast=True),
        lambda: made(7, shape=[3], allow_broadcast=True, verify_shape=True),
    )


def case_preferred_types(tf):
    return [
        tf.convert_to_tensor(1, dtype_hint=tf.float32).dtype.name,
        tf.convert_to_tensor(1.5, dtype_hint=tf.int32).dtype.name,
        tried(tf, lambda: tf.convert_to_tensor(1, preferred_dtype=tf.int64, dtype_hint=tf.int64)),
        tf.as_dtype(type_value="int8").name,
    ]


def case_static_values(tf):
    unknown = tf.placeholder(tf.int32, [])
    mixed = tf.stack([unknown, 3])
    return [
        tf.get_static_value(tf.constant([1, 2])).tolist(),
        tf.get_static_value(mixed),
        [str(item) for item in tf.get_static_value(mixed, partial=True)],
    ]


def case_positions_of_batch_normalization(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
    start = (tf.zeros_initializer(), tf.ones_initializer()) * 2
    return run(tf, tf.layers.batch_normalization(x, -1, 0.9, 1e-3, True, True, *start, None, None, None, None, True))


def case_pools_by_rank(tf):
    line = tf.constant(np.arange(12).reshape(1, 6, 2), tf.float32)
    image = tf.constant(np.arange(32).reshape(1, 4, 4, 2), tf.float32)
    volume = tf.constant(np.arange(64).reshape(1, 4, 4, 4, 1), tf.float32)
    found = [tf.nn.max_pool_v2(value, 2, 2, "VALID") for value in (line, image, volume)]
    found += [tf.nn.avg_pool_v2(value, 2, 2, "SAME") for value in (line, image, volume)]
    found.append(tf.nn.max_pool2d(image, [1, 2, 2, 1], [1, 1, 1, 1], "SAME"))
    return [run(tf, *found), tried(tf, lambda: tf.nn.max_pool_v2(tf.ones([2, 2]), 2, 2, "VALID"))]


def case_older_spellings(tf):
    x = tf.constant([[1, 5, 3], [4, 2, 9]])
    return run(
        tf,
        tf.arg_max(x, 1, tf.int32),
        tf.arg_min(x, dimension=0),
        tf.math.reduce_euclidean_norm(tf.constant([[3.0, 4.0]]), 1, True),
        tf.nn.depthwise_conv2d_native(
            tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1], "native"
        ),
    )


def case_py_func_of_structures(tf):
    def function(pair, scale):
        return {"sum": (pair[0] + pair[1]) * scale, "first": pair[0]}

    found = tf.contrib.framework.py_func(
        function,
        ((tf.constant(2.0), tf.constant(3.0)),),
        {"scale": tf.constant(10.0)},
        {"sum": tf.float32, "first": tf.float32},
        {"sum": [], "first": None},
    )
    return [run(tf, found["sum"], found["first"]), str(found["sum"].shape), str(found["first"].shape)]


def case_warm_start_with_other_words(tf):
    folder = tempfile.mkdtemp()
    old, new = os.path.join(folder, "old"), os.path.join(folder, "new")
    for path, words in ((old, "apple\nbanana\norange\n"), (new, "orange\nguava\nbanana\napple\nraspberry\n")):
        with open(path, "w") as file:
            file.write(words)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("rows", initializer=[[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]])
        tf.get_variable("columns", initializer=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, os.path.join(folder, "model"))
    rows = tf.get_variable("rows", [6, 2], partitioner=tf.fixed_size_partitioner(2))
    columns = tf.get_variable("columns", [2, 6])
    backup = lambda shape, dtype=None, partition_info=None: tf.fill(shape, 9.0)  # noqa: E731
    words = tf.train.VocabInfo(new, 5, 1, old, -1, backup)
    tf.train.warm_start(path, ".*", {"rows": words, "columns": words._replace(axis=1, backup_initializer=None)})
    return run(tf, tf.convert_to_tensor(rows), columns)


def case_strategies_by_name(tf):
    return [
        callable(tf.contrib.training.RandomStrategy(num_ps_tasks=2, seed=1)),
        tried(tf, lambda: tf.distribute.ReductionToOneDevice(nonsense=3)),
        tried(tf, lambda: tf.distribute.NcclAllReduce(nonsense=3)),
    ]


def case_meta_graphs_without_defaults(tf):
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    tf.matmul(x, x, transpose_b=True, name="y")
    found = []
    for strips in (False, True):
        proto = tf.train.export_meta_graph(strip_default_attrs=strips)
        node = next(node for node in proto.graph_def.node if node.name == "y")
        names = ["transpose_a", "transpose_b"]
        found.append([[name in node.attr for name in names], proto.meta_info_def.stripped_default_attrs])
    return found


def case_loops_without_gradients(tf):
    x = tf.constant(2.0)

    def loop(back_prop):
        return tf.while_loop(lambda i, _: i < 3, lambda i, y: [i + 1, y * x], [0, x], back_prop=back_prop)[1]

    def of_each(function, **kwargs):
        return tf.gradients(function(lambda a, b=1.0: a * b * x, tf.constant([1.0, 3.0]), back_prop=False, **kwargs), x)

    found = [tf.gradients(loop(back_prop), x) for back_prop in (True, False)]
    none = [of_each(tf.map_fn), of_each(tf.scan), of_each(tf.foldl), of_each(tf.foldr)]
    mixed = tf.gradients(loop(False) * x, x)
    return [run(tf, found[0][0], mixed[0]), found[1][0] is None, [item[0] is None for item in none]]


def case_arrays_by_handle(tf):
    array = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
    again = tf.TensorArray(tf.float32, handle=array.handle, flow=array.flow)
    bad = tried(
        tf,
        lambda: tf.TensorArray(tf.float32),
        lambda: tf.TensorArray(tf.float32, 2, handle=array.handle),
        lambda: tf.TensorArray(tf.float32, handle=array.handle, dynamic_size=True),
        lambda: tf.TensorArray(tf.float32, handle=array.handle, element_shape=[]),
    )
    return [run(tf, again.stack()), bad]


def case_what_rank_checks_say(tf):
    x = tf.placeholder(tf.float32)
    found = []
    with tf.Session() as session:
        for check in (tf.assert_rank, tf.assert_rank_at_least):
            try:
                session.run(check(x, 2, data=["found", tf.range(9)], summarize=4), {x: 1.0})
            except tf.errors.InvalidArgumentError as error:
                found.append([text in error.message for text in ("[found]", "[0 1 2 3...]")])
    return found


def case_jpeg_settings(tf):
    return tried(tf, lambda: tf.image.decode_jpeg(b"", dct_method="INTEGER_ACCURATE").dtype.name)


def case_hash_buckets(tf):
    texts = tf.constant(["", "a", "seven77", "eight888", "nine99999", "seventeen letters", "x" * 100])
    found = [
        tf.string_to_hash_bucket(texts, 1 << 40),
        tf.strings.to_hash_bucket(input=texts, num_buckets=10),
        tf.strings.to_hash_bucket_strong(texts, 1 << 40, [1, 2]),
        tf.strings.to_hash_bucket_fast(texts, 10),
    ]
    return run(tf, *found)


def case_tables_as_arrays(tf):
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = [tf.nn.embedding_lookup(table, [3, 0]), tf.nn.embedding_lookup([table, table + 10], [[1, 2]])]
    half = tf.nn.embedding_lookup(table.astype(np.float16), [1])
    return [run(tf, *found), half.dtype.name]


def case_frozen_graphs(tf):
    x = tf.placeholder(tf.float32, [None], name="x")
    weight = tf.get_variable("weight", initializer=3.0)
    bias = tf.get_variable("bias", initializer=1.0)
    y = tf.identity(x * weight + bias, name="y")
    tf.check_numerics(y, "bad", name="checked")
    tf.get_variable("other", initializer=1.0)
    util = tf.graph_util
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        graph = session.graph.as_graph_def()
        frozen = util.convert_variables_to_constants(session, graph, ["y", "checked"])
        some = util.convert_variables_to_constants(session, graph, ["y"], variable_names_blacklist=["bias"])
        none = util.convert_variables_to_constants(session, graph, ["y"], ["no such"])
    fewer = util.remove_training_nodes(frozen, ["y"])
    found = [[node.name + " " + node.op for node in each.node] for each in (frozen, some, none, fewer)]
    found.append(sorted(node.name for node in util.extract_sub_graph(graph, ["checked"]).node))
    found.append(tried(tf, lambda: util.extract_sub_graph(graph, "y"), lambda: util.extract_sub_graph(1, ["y"])))
    found.append(str(util.tensor_shape_from_node_def_name(y.graph, "x")))
    with tf.Graph().as_default() as other, tf.Session() as session:
        tf.import_graph_def(fewer, name="")
        found.append(session.run("y:0", {other.get_tensor_by_name("x:0"): [2.0, 5.0]}).tolist())
    return found


def case_training_goes_on_after_an_abort(tf):
    tf.train.get_or_create_global_step()
    supervisor = tf.train.Supervisor(logdir=None)
    calls = []

    def step(session):
        calls.append(session)
        if len(calls) == 2:
            raise tf.errors.AbortedError(None, None, "a task was lost")
        if len(calls) == 4:
            supervisor.request_stop()

    tf.train.basic_train_loop(supervisor, step)
    return [len(calls), calls[0] is calls[1], calls[1] is calls[2]]


def case_parts_of_sparse_tensors(tf):
    value = sparse(tf)
    found = [
        tf.sparse.from_dense([[0, 3, 0], [4, 0, 0]]),
        tf.sparse.eye(2, 3),
        tf.sparse.eye(2, dtype=tf.int32),
        tf.sparse.expand_dims(value),
        tf.sparse.expand_dims(value, 0),
        tf.sparse.expand_dims(value, -2),
        tf.sparse.slice(value, [1, 0], [1, 9]),
        tf.sparse_slice(value, [0, 1], [2, 1]),
        tf.sparse.slice(value, [1, 2], [5, 5]),
    ]
    masked = tf.sparse_mask(tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([7, 5, 9])), [5, 6])
    bad = tried(tf, lambda: tf.sparse.expand_dims(value, 5))
    return [run(tf, *[part for each in found for part in parts(each)]), run(tf, masked.values, masked.indices), bad]
