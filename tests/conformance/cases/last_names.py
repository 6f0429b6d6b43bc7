"""Names that came last: critical sections, learned samplers, the profiler, networks whose state is kept."""

import os
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def refused(build, *phrases):
    """The class of the error, and which of ``phrases`` it says."""
    try:
        build()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]
    return "builds"


def case_critical_sections(tf):
    section = tf.CriticalSection(name="mine")
    v = tf.get_variable("v", initializer=0.0, use_resource=True)

    def more():
        before = v.read_value()
        with tf.control_dependencies([before]):
            return v.assign(before + 1.0, read_value=True)

    one, two = section.execute(more), section.execute(more)
    fails = section.execute(lambda: tf.check_numerics(v.read_value() / 0.0, "no number"))
    several = section.execute(lambda: {"a": tf.constant(1), "b": (tf.constant(2), tf.constant(3))})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [sorted(session.run([one, two])), session.run(v)]
        for _ in range(2):  # a step that fails leaves the section
            try:
                session.run(fails)
            except tf.errors.InvalidArgumentError:
                found.append("fails")
        return [*found, session.run(one), session.run(several), section.name]


def case_critical_sections_refused(tf):
    section, other = tf.CriticalSection(), tf.CriticalSection()
    v = tf.get_variable("v", initializer=0.0, use_resource=True)
    section.execute(lambda: v.assign_add(1.0))
    return [
        refused(lambda: section.execute(3)),
        refused(lambda: section.execute(lambda: None)),
        refused(lambda: section.execute(lambda: section.execute(lambda: tf.constant(1))), "would cause deadlocks"),
        refused(lambda: other.execute(lambda: v.assign_add(1.0)), "This execution would access resources"),
        refused(lambda: section.execute(lambda: v.assign_add(2.0))),
        other.name,
    ]


def case_learned_samplers(tf):
    true = tf.constant([[1, 2], [1, 3]], tf.int64)
    drawn = tf.nn.learned_unigram_candidate_sampler(true, 2, 4, False, 5, seed=7)
    all_ = tf.random.learned_unigram_candidate_sampler(true, 2, 5, True, 5)
    with tf.Session() as session:
        found = [[list(t.shape.as_list()), t.dtype.name] for t in drawn]
        first = session.run(drawn.true_expected_count)
        second = session.run(drawn.true_expected_count)
        classes = session.run(drawn.sampled_candidates)
        return [*found, first, second, [0 <= c < 5 for c in classes.tolist()], sorted(session.run(all_[0]).tolist())]


def case_learned_samplers_refused(tf):
    sampler = tf.nn.learned_unigram_candidate_sampler
    with tf.Session() as session:
        return [
            refused(lambda: sampler(tf.zeros([2], tf.int64), 2, 4, False, 5)),
            refused(lambda: session.run(sampler(tf.zeros([1, 2], tf.int64), 2, 6, True, 5)[0]))[:1],
        ]


class Saver:
    """Keeps a state in variables."""

    def __init__(self, tf, sizes):
        self.kept = {name: tf.Variable(tf.ones([1, size]), name=name) for name, size in sizes.items()}

    def state(self, name):
        return self.kept[name]

    def save_state(self, name, value):
        return self.kept[name].assign(value)


def case_networks_whose_state_is_kept(tf):
    weights = tf.constant_initializer(0.5)
    with tf.variable_scope("gru", initializer=weights):
        saver = Saver(tf, {"s": 2})
        outputs, state = tf.nn.static_state_saving_rnn(
            tf.nn.rnn_cell.GRUCell(2), [tf.ones([1, 3]), tf.ones([1, 3])], saver, "s"
        )
    with tf.variable_scope("lstm", initializer=weights):
        pair = Saver(tf, {"c": 2, "h": 2})
        cell = tf.nn.rnn_cell.BasicLSTMCell(2)
        more, _last = tf.nn.static_state_saving_rnn(cell, [tf.ones([1, 3])], pair, ("c", "h"))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run([outputs[-1], state]), session.run(saver.kept["s"])]
        found += [session.run(outputs[-1]), session.run(more), session.run(pair.kept["h"])]
        return [*found, refused(lambda: tf.nn.static_state_saving_rnn(cell, [tf.ones([1, 3])], pair, ("c", "h", "x")))]


def case_accuracies_of_a_batch(tf):
    accuracy = tf.contrib.metrics.accuracy
    right = tf.constant([1, 2, 3, 4])
    with tf.Session() as session:
        return [
            session.run(accuracy(right, tf.constant([1, 2, 0, 0]))),
            session.run(accuracy(right, tf.constant([1, 2, 0, 0]), weights=[1.0, 0.0, 1.0, 2.0])),
            session.run(accuracy(tf.constant(["a"]), tf.constant(["a"]))),
            refused(lambda: accuracy(tf.constant([1.0]), tf.constant([1.0]))),
            refused(lambda: accuracy(right, tf.constant([1, 2, 3, 4], tf.int64))),
            refused(lambda: accuracy(right, tf.constant([1, 2, 3]))),
        ]


def case_losses_of_contrib(tf):
    losses = tf.contrib.losses
    loss = losses.mean_squared_error(tf.constant([1.0, 2.0]), tf.constant([1.0, 4.0]))
    losses.add_loss(tf.constant(1.0))
    with tf.Session() as session:
        return session.run([loss, losses.get_total_loss()]) + [len(losses.get_losses())]  # noqa: RUF005


def case_boxes_of_all_classes(tf):
    boxes = [[[[0, 0, 1, 1]], [[0, 0.1, 1, 1.1]], [[0, -0.1, 1, 0.9]], [[0, 10, 1, 11]], [[0, 10.1, 1, 11.1]]]]
    scores = [[[0.9, 0.01], [0.75, 0.05], [0.6, 0.01], [0.95, 0.0], [0.5, 0.3]]]
    nms = tf.image.combined_non_max_suppression
    found = [
        nms(boxes, scores, 3, 4),
        nms(boxes, scores, 2, 9, score_threshold=0.2, pad_per_class=True),
        nms(boxes, scores, 3, 3, iou_threshold=0.9, clip_boxes=False),
        nms([[[[0, 0, 1, 1], [0, 0, 2, 2]]]], [[[0.5, 0.7]]], 1, 2),
    ]
    with tf.Session() as session:
        values = session.run([list(each) for each in found])
        shapes = [[str(tensor.shape), tensor.dtype.name] for each in found for tensor in each]
        return [
            values,
            shapes,
            list(found[0]._fields),
            refused(lambda: session.run(nms(boxes, scores, 3, 4, iou_threshold=2.0))),
            refused(lambda: nms([1.0], scores, 3, 4)),
        ]


def case_logits_of_columns(tf):
    f = tf.feature_column
    features = {"x": tf.constant([[1.0], [2.0]]), "y": tf.constant([[3.0], [1.0]])}
    columns = [f.numeric_column("x"), f.numeric_column("y")]
    build = tf.estimator.experimental
    linear = build.linear_logit_fn_builder(2, columns)(features=features)
    deep = build.dnn_logit_fn_builder(1, [3], columns, tf.nn.relu, None, None, False)
    found = deep(features=features, mode=tf.estimator.ModeKeys.TRAIN)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [
            session.run(linear),
            str(found.shape),
            [[v.op.name, str(v.shape)] for v in tf.trainable_variables()],
            refused(lambda: build.dnn_logit_fn_builder("2", [3], columns, tf.nn.relu, None, None, False)),
        ]


# The profiler ---------------------------------------------------------------------------------------------------


def network(tf):
    x = tf.placeholder(tf.float32, [4, 3], name="x")
    w = tf.get_variable("layer/w", [3, 5], initializer=tf.ones_initializer())
    b = tf.get_variable("layer/b", [5], initializer=tf.ones_initializer(), trainable=False)
    return x, tf.nn.relu(tf.matmul(x, w, name="layer/product") + b, name="layer/out")


def case_options_of_the_profiler(tf):
    builder = tf.profiler.ProfileOptionBuilder
    made = builder(builder.float_operation()).with_max_depth(3).with_min_parameters(2).with_empty_output()
    made = (
        made.with_node_names(show_name_regexes=["a.*"], hide_name_regexes=["b"]).order_by("params").select(["params"])
    )
    made = made.with_accounted_types(["_trainable_variables"]).account_displayed_op_only(False).with_min_occurrence(1)
    made = made.with_min_execution_time(min_micros=5).with_min_float_operations(7).with_min_memory(min_bytes=9)
    path = os.path.join(tempfile.gettempdir(), "profile")
    return [
        builder.trainable_variables_parameter(),
        builder.float_operation(),
        builder.time_and_memory(),
        builder().build(),
        made.build(),
        builder().with_file_output(path).build()["output"] == "file:outfile=" + path,
        builder().with_stdout_output().build()["output"],
    ]


def case_what_the_profiler_counts(tf):
    network(tf)
    builder, graph = tf.profiler.ProfileOptionBuilder, tf.get_default_graph()
    quiet = {"output": "none"}
    parameters = tf.profiler.profile(graph, options=dict(builder.trainable_variables_parameter(), **quiet))
    floats = tf.profiler.profile(options=dict(builder.float_operation(), **quiet))
    types = tf.profiler.profile(graph, cmd="op", options=dict(builder.float_operation(), **quiet))
    layer = [child for child in parameters.children if child.name == "layer"]
    return [
        parameters.total_parameters,
        floats.total_float_ops,
        [[child.name, child.total_parameters] for child in layer or parameters.children],
        types.total_float_ops,
    ]


def case_what_a_step_took(tf):
    x, y = network(tf)
    metadata = tf.RunMetadata()
    profiler = tf.profiler.Profiler(tf.get_default_graph())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(y, {x: [[1.0] * 3] * 4}, options=options, run_metadata=metadata)
    profiler.add_step(3, metadata)
    builder = tf.profiler.ProfileOptionBuilder
    timed = builder(builder.time_and_memory(min_micros=0, min_bytes=0)).with_empty_output().build()
    advice = profiler.advise({"ExpensiveOperationChecker": {}})
    reports = advice.checkers["ExpensiveOperationChecker"].reports
    return [
        profiler.profile_name_scope(timed).total_exec_micros > 0,
        profiler.profile_operations(timed).total_exec_micros > 0,
        any("top 1 operation type" in report for report in reports),
    ]
