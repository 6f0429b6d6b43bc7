"""Settings, constants and small helpers."""


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(*calls):
    found = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found


def case_config(tf):
    config = tf.config
    found = [
        config.get_soft_device_placement(),
        config.optimizer.get_jit(),
        config.optimizer.get_experimental_options(),
    ]
    config.set_soft_device_placement(True)
    config.optimizer.set_jit(True)
    config.optimizer.set_experimental_options({"constant_folding": False, "min_graph_nodes": 3, "nonsense": True})
    found += [
        config.get_soft_device_placement(),
        config.optimizer.get_jit(),
        config.optimizer.get_experimental_options(),
    ]
    with tf.device("/gpu:0"):
        x = tf.constant([1.0, 2.0]) * 2.0
    with tf.Session() as session:
        found.append(session.run(x))
    config.set_soft_device_placement(False)
    config.optimizer.set_jit(False)
    config.optimizer.set_experimental_options({})
    return found


def case_policies(tf):
    experimental = tf.config.experimental
    found = [experimental.get_device_policy()]
    for policy in ("warn", "explicit", "silent_for_int32", None):
        experimental.set_device_policy(policy)
        found.append(experimental.get_device_policy())
    found += tried(lambda: experimental.set_device_policy("nope"))
    found.append(experimental.get_synchronous_execution())
    experimental.set_synchronous_execution(False)
    found.append(experimental.get_synchronous_execution())
    experimental.set_synchronous_execution(None)
    return [*found, tf.debugging.get_log_device_placement()]


def case_devices(tf):
    return "/job:localhost/replica:0/task:0/device:CPU:0" in tf.config.experimental_list_devices()


def case_saved_model_constants(tf):
    names = [
        "ASSETS_DIRECTORY",
        "ASSETS_KEY",
        "LEGACY_INIT_OP_KEY",
        "MAIN_OP_KEY",
        "SAVED_MODEL_FILENAME_PB",
        "SAVED_MODEL_FILENAME_PBTXT",
        "SAVED_MODEL_SCHEMA_VERSION",
        "VARIABLES_DIRECTORY",
        "VARIABLES_FILENAME",
    ]
    found = [getattr(tf.saved_model, name) for name in names]
    return found + [getattr(tf.saved_model.constants, name) for name in names]


def case_signatures(tf):
    x, y, text = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32, name="y"), tf.placeholder(tf.string)
    model = tf.saved_model
    predict = model.predict_signature_def({"a": x}, {"b": y})
    classify = model.classification_signature_def(text, text, y)
    regress = model.regression_signature_def(text, y)
    found = [model.is_valid_signature(s) for s in (predict, classify, regress)]
    classify.outputs["other"].CopyFrom(classify.outputs["classes"])
    regress.inputs["inputs"].dtype = 1
    predict.outputs.clear() if hasattr(predict.outputs, "clear") else None
    found += [model.is_valid_signature(s) for s in (predict, classify, regress, model.build_signature_def())]
    return [*found, model.contains_saved_model("/nowhere"), model.signature_def_utils.is_valid_signature(None)]


def case_restoring_main_operations(tf):
    tf.Variable(1.0)
    saver = tf.train.Saver()
    restore = tf.get_default_graph().get_operation_by_name(saver.saver_def.restore_op_name)
    op = tf.saved_model.main_op_with_restore(restore)
    return [
        op.type,
        tried(lambda: tf.saved_model.main_op_with_restore(restore.name)),
        tf.saved_model.main_op.main_op_with_restore is not None,
    ]


def case_types(tf):
    found = [sorted(dtype.name for dtype in tf.QUANTIZED_DTYPES), tf.qint16.name, tf.quint16.name]
    return [*found, tf.quint16.as_datatype_enum, tf.qint16.is_quantized]


def case_placement(tf):
    run = tf.graph_util.must_run_on_cpu
    nodes = [tf.constant(value).op for value in ("a", 1.0, 1)] + [tf.Variable(1.0).op, tf.placeholder(tf.int32).op]
    return [[run(node), run(node, True), run(node.node_def)] for node in nodes]


def case_xla(tf):
    a, b = tf.constant(2.0), tf.constant(3.0)
    compiled = tf.xla.experimental.compile(lambda x, y: (x + y, x * y), [a, b])
    with tf.xla.experimental.jit_scope():
        c = a - b
    with tf.Session() as session:
        return session.run([*list(compiled), c])


def case_others(tf):
    with tf.Session() as session:
        fact = session.run(tf.user_ops.my_fact())
    with tf.compat.forward_compatibility_horizon(2030, 1, 1):
        compatible = tf.compat.forward_compatible(2019, 1, 1)
    return [
        fact,
        compatible,
        tf.get_logger().name,
        tf.summary.all_v2_summary_ops(),
        *tried(
            lambda: tf.summary.get_summary_description(tf.constant(1).op.node_def),
            lambda: tf.enable_control_flow_v2() or tf.disable_control_flow_v2(),
        ),
    ]


def case_stubs(tf):
    class Parent:
        def f(self):
            return 1

        @staticmethod
        def g():
            return 2

    class Child(Parent):
        pass

    stubs = tf.test.StubOutForTesting()
    stubs.Set(Parent, "f", lambda self: 5)
    stubs.SmartSet(Child, "g", lambda: 6)
    found = [Child().f(), Child.g(), "g" in vars(Child)]
    stubs.CleanUp()
    return [
        *found,
        Child().f(),
        Child.g(),
        *tried(lambda: stubs.SmartSet(Child, "h", 1), lambda: stubs.Set(Child, "h", 1)),
    ]


def case_queue_runners(tf):
    module = tf.train.queue_runner
    return [
        module.QueueRunner is tf.train.QueueRunner,
        module.start_queue_runners is not None,
        module.add_queue_runner is not None,
    ]


def case_shapes(tf):
    check, x, y = tf.debugging.assert_shapes, tf.zeros([2, 3]), tf.zeros([3, 4])
    unknown, other = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None, 3])
    found = tried(
        lambda: check({x: ("N", "D"), y: ("D", 4)}).type,
        lambda: check({x: ("N", "N")}),
        lambda: check({x: (2,)}),
        lambda: check({x: ("*", 3), y: (..., "D")}).type,
        lambda: check({x: (None, ".")}).type,
        lambda: check({x: ("N", "*")}),
        lambda: check({tf.constant(1.0): (1,)}).type,
        lambda: check({tf.constant(1.0): ()}).type,
        lambda: check({x: ()}),
        lambda: check({x: (3, "D")}),
    )
    op = check({unknown: ("N", "D"), other: ("N", 3)})
    with tf.Session() as session:
        for first, second in (([[1.0], [2.0]], [[1.0] * 3] * 2), ([1.0], [[1.0] * 3]), ([[1.0]], [[1.0] * 3] * 2)):
            found += tried(lambda f=first, s=second: session.run(op, {unknown: f, other: s}))
    return found


def case_clusters(tf):
    resolver = tf.distribute.cluster_resolver
    one = resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]}), task_type="worker", task_id=1
    )
    two = resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["d:1"], "chief": ["e:1"]}))
    three = resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": {1: "d:1"}}))
    four = resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": {1: "x:1", 5: "y:1"}}))
    union = resolver.UnionResolver(one, two)
    return [
        union.cluster_spec().as_dict(),
        union.task_type,
        union.task_id,
        union.master("worker", 2),
        union.master(),
        *tried(
            lambda: resolver.UnionResolver(),
            lambda: resolver.UnionResolver(1),
            lambda: resolver.UnionResolver(three, four).cluster_spec().as_dict(),
            lambda: resolver.UnionResolver(one, nonsense=1),
            lambda: resolver.UnionResolver(one, three).cluster_spec().as_dict(),
            lambda: resolver.UnionResolver(one, task_type="ps", task_id=0).task_type,
        ),
    ]
