"""Names that programs rarely use: creators of variables, further heads, evaluations in memory, estimators for TPUs."""

import shutil
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


def tried(call, *phrases):
    """What ``call`` gives, or the class of its error and which of ``phrases`` it says."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return [type(error).__name__] + [phrase in str(error) for phrase in phrases]


def initialised(tf, session):
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])


def case_creators_of_variables(tf):
    seen = []

    def inner(next_creator, **arguments):
        seen.append(["inner", sorted(arguments), arguments["name"], arguments["trainable"]])
        return next_creator(**arguments)

    def outer(next_creator, **arguments):
        seen.append("outer")
        arguments["trainable"] = False
        return next_creator(**arguments)

    with tf.variable_creator_scope(outer):
        with tf.variable_creator_scope(inner):
            v = tf.Variable(1.0, name="v")
            w = tf.get_variable("w", [2])
        u = tf.Variable(2.0)
    with tf.Graph().as_default(), tf.variable_creator_scope(lambda next_creator, **arguments: 7):
        other = tf.Variable(3.0)
    free = tf.Variable(3.0)
    return [seen, v.name, w.name, u.name, free.name, other, len(tf.trainable_variables())]


LOGITS = [[1.0, -1.0, 0.5], [0.0, 2.0, -0.5]]


def head_gives(tf, head, mode, logits, labels, **more):
    """Loss and metrics without areas under curves, or predictions and exports, or the trained variable."""
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        v = tf.Variable(1.0)
        features = {"w": tf.constant([[1.0], [3.0]])}
        if isinstance(logits, dict):
            given = {name: tf.constant(value) * v for name, value in logits.items()}
        else:
            given = tf.constant(logits) * v
        if mode == "train":
            more["train_op_fn"] = lambda loss: tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        if callable(labels):
            labels = labels()
        elif isinstance(labels, dict):
            labels = {name: tf.constant(value) for name, value in labels.items()}
        elif labels is not None:
            labels = tf.constant(labels)
        spec = head.create_estimator_spec(features, mode, given, labels, **more)
        with tf.Session() as session:
            initialised(tf, session)
            if mode == "infer":
                return [
                    {str(name): value for name, value in session.run(spec.predictions).items()},
                    sorted(spec.export_outputs),
                ]
            if mode == "eval":
                session.run([update for _, update in spec.eval_metric_ops.values()])
                metrics = {key: value for key, (value, _) in spec.eval_metric_ops.items() if "auc" not in key}
                return [session.run(spec.loss), session.run(metrics), sorted(spec.eval_metric_ops)]
            session.run(spec.train_op)
            return session.run([spec.loss, v])


def case_several_labels(tf):
    head, matrix = tf.estimator.MultiLabelHead, [[1, 0, 1], [0, 1, 1]]
    sparse = lambda values: lambda: tf.SparseTensor([[0, 0], [1, 0], [1, 1]], values, [2, 2])  # noqa: E731
    own = head(3, thresholds=[0.3], classes_for_class_based_metrics=[1, 2])
    named = head(3, label_vocabulary=["a", "b", "c"], classes_for_class_based_metrics=["b"], name="n")
    square = head(3, loss_fn=lambda labels, logits: tf.reduce_sum(tf.to_float(labels) - logits, 1, keepdims=True))
    return [
        head_gives(tf, head(3), "train", LOGITS, matrix),
        head_gives(tf, head(3, weight_column="w"), "train", LOGITS, matrix),
        head_gives(tf, head(3, loss_reduction="sum"), "train", LOGITS, sparse([0, 1, 2])),
        head_gives(tf, head(3), "train", LOGITS, matrix, regularization_losses=[0.5]),
        head_gives(tf, square, "train", LOGITS, matrix),
        head_gives(tf, own, "eval", LOGITS, matrix),
        head_gives(tf, named, "eval", LOGITS, sparse(["a", "b", "c"])),
        head_gives(tf, head(3, weight_column="w"), "eval", LOGITS, matrix, regularization_losses=[0.5]),
        head_gives(tf, head(3), "infer", LOGITS, None),
        tried(lambda: head_gives(tf, head(3), "train", LOGITS, [[1, 0, 2], [0, 1, 1]]), "must be an integer indicator"),
        tried(lambda: head_gives(tf, head(3), "train", LOGITS, [["a"], ["b"]])),
        tried(lambda: head_gives(tf, head(3), "train", LOGITS, None)),
        tried(lambda: head(1), "n_classes must be > 1"),
        tried(lambda: head(3, label_vocabulary=["a"]), "Length of label_vocabulary must be n_classes (3). Given: 1"),
        tried(lambda: head(3, thresholds=[2.0]), "thresholds must be in (0, 1) range"),
        tried(lambda: head(3, classes_for_class_based_metrics=[4]), "must be in range [0, 2]. Given: 4"),
        tried(lambda: head(3, classes_for_class_based_metrics=["a"]), "label_vocabulary must be provided"),
        [head(3).logits_dimension, head(3).loss_reduction, head(3).name, named.name],
    ]


def case_several_heads(tf):
    e = tf.estimator
    one, two = e.BinaryClassHead(name="b1"), e.RegressionHead(2, name="r2", weight_column="w")
    head = e.MultiHead([one, two], [2.0, 0.5])
    labels = {"b1": [[1], [0]], "r2": [[1.0, 2.0], [3.0, 4.0]]}
    divided = {"b1": [[1.0], [0.0]], "r2": [[-1.0, 0.5], [2.0, -0.5]]}
    return [
        head_gives(tf, head, "train", LOGITS, labels),
        head_gives(tf, head, "train", divided, labels, regularization_losses=[0.25]),
        head_gives(tf, e.MultiHead([one, two]), "train", divided, labels),
        head_gives(tf, head, "eval", LOGITS, labels, regularization_losses=[0.25]),
        head_gives(tf, head, "infer", divided, None),
        [head.logits_dimension, head.loss_reduction, head.name],
        tried(lambda: e.MultiHead([]), "Must specify heads"),
        tried(lambda: e.MultiHead([e.BinaryClassHead()]), "must have name specified"),
        tried(lambda: e.MultiHead([one], [1.0, 2.0]), "must have the same size"),
        tried(lambda: head_gives(tf, head, "train", {"b1": [[1.0]]}, labels), "missing values for head(s): ['r2']"),
        tried(lambda: head_gives(tf, head, "train", LOGITS, {"b1": [[1], [0]]}), "missing values for head(s): ['r2']"),
    ]


def case_features_and_labels_of_exports(tf):
    receiver = tf.estimator.experimental.build_raw_supervised_input_receiver_fn

    def gives(features, labels, *size):
        with tf.Graph().as_default():
            found = receiver(features(), labels(), *size)()
            shown = lambda part: (  # noqa: E731 - short
                {name: [each.dtype.name, str(each.shape)] for name, each in part.items()}
                if isinstance(part, dict)
                else [part.dtype.name, str(part.shape)]
            )
            return [list(found._fields), [shown(part) for part in found]]

    floats, ints = (lambda: tf.placeholder(tf.float32, [3, 2])), (lambda: tf.placeholder(tf.int32, [3]))
    return [
        gives(lambda: {"a": floats()}, ints),
        gives(floats, lambda: {"l": ints()}, 5),
        tried(lambda: gives(lambda: {"a": floats()}, lambda: {"a": ints()}), "Found overlapping keys: {'a'}"),
    ]


def case_evaluations_in_memory(tf):
    e, log, folder = tf.estimator, [], tempfile.mkdtemp()
    hook_of = e.experimental.InMemoryEvaluatorHook

    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        train = tf.group(step.assign_add(1), w.assign_add(1.0))
        return e.EstimatorSpec(mode, loss=w * 1.0, train_op=train, eval_metric_ops={"w": tf.metrics.mean(w)})

    class Hook(e.SessionRunHook):
        def end(self, session):
            log.append(session.run([tf.train.get_global_step(), tf.get_variable_scope().name or "none"][:1]))

    def input_fn():
        return tf.data.Dataset.from_tensors(({"x": 1.0}, 2.0)).repeat(3)

    try:
        estimator = e.Estimator(model_fn, folder)
        hook = hook_of(estimator, input_fn, 2, hooks=[Hook()], name="mem", every_n_iter=2)
        estimator.train(lambda: input_fn().repeat(), hooks=[hook], steps=5)
        written = {}
        for path in tf.gfile.Glob(folder + "/eval_mem/*"):
            for event in tf.train.summary_iterator(path):
                for value in event.summary.value:
                    if value.HasField("simple_value"):
                        written[str(event.step) + " " + value.tag] = value.simple_value
        return [
            log,
            written,
            tried(lambda: hook_of(estimator, input_fn, every_n_iter=0), "invalid every_n_iter=0"),
            tried(lambda: hook_of(estimator, input_fn, every_n_iter=None), "invalid every_n_iter=None"),
        ]
    finally:
        shutil.rmtree(folder)


def case_estimators_for_tpus_without_them(tf):
    seen, folder = [], tempfile.mkdtemp()

    def model_fn(features, labels, mode, params):
        seen.append([mode, sorted(params.items())])
        w = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
        y = tf.matmul(features["x"], w)
        if mode == "infer":
            return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        if mode == "eval":
            metrics = lambda right, found: {"mse": tf.metrics.mean_squared_error(right, found)}  # noqa: E731
            return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metrics, [labels, y]))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        called = tf.py_func(lambda step: seen.append(int(step)) or 0, [tf.train.get_global_step()], tf.int64)
        host = (lambda value: value), {"value": tf.reshape(called, [1])}
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train, host_call=host)

    def input_fn(params):
        seen.append(["input", sorted(params.items())])
        return tf.data.Dataset.from_tensors(({"x": [2.0]}, [1.0])).repeat(8).batch(params["batch_size"])

    try:
        config = tf.estimator.tpu.RunConfig(
            tf.estimator.tpu.TPUConfig(iterations_per_loop=3), model_dir=folder, save_checkpoints_steps=2
        )
        sizes = {"train_batch_size": 2, "eval_batch_size": 4, "predict_batch_size": 1}
        estimator = tf.estimator.tpu.TPUEstimator(model_fn, config=config, use_tpu=False, params={"a": 1}, **sizes)
        estimator.train(input_fn, steps=3)
        found = estimator.evaluate(input_fn, steps=1)
        predicted = next(iter(estimator.predict(lambda params: input_fn(params).map(lambda x, y: x))))
        count = sum(isinstance(each, int) for each in seen)
        return [
            config.tpu_config,
            [config.cluster, config.master, config.evaluation_master, estimator.params],
            [each for each in seen if not isinstance(each, int)],
            [count, found, predicted],
            tried(lambda: estimator.train(lambda: 3, steps=1), "required by TPUEstimator to pass batch size"),
            tried(
                lambda: tf.estimator.tpu.TPUEstimator(model_fn, use_tpu=False), "`config` must be provided with type"
            ),
            tried(
                lambda: tf.estimator.tpu.TPUEstimator(model_fn, config=config, use_tpu=False, params={"batch_size": 2}),
                "reserved",
            ),
            tried(lambda: tf.estimator.tpu.TPUConfig(num_shards=0)),
            tried(lambda: tf.estimator.tpu.TPUConfig(iterations_per_loop=0)),
            tried(lambda: tf.estimator.tpu.TPUConfig(num_cores_per_replica=3)),
            tf.estimator.tpu.TPUConfig(per_host_input_for_training=False).per_host_input_for_training,
            tf.estimator.tpu.RunConfig(evaluation_master="x", master="y").evaluation_master,
            tf.estimator.tpu.RunConfig(master="y").evaluation_master,
            [tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2, tf.estimator.tpu.InputPipelineConfig.BROADCAST],
            tried(lambda: tf.estimator.tpu.TPUEstimatorSpec("eval", loss=1.0, eval_metrics=3)),
            tried(lambda: tf.estimator.tpu.TPUEstimatorSpec("eval", loss=1.0, eval_metrics=(3, [1.0]))),
            tried(lambda: tf.estimator.tpu.TPUEstimatorSpec("eval", loss=1.0, eval_metrics=(len, 3))),
            tried(lambda: tf.estimator.tpu.TPUEstimatorSpec("eval", loss=1.0, eval_metrics=(len, [1.0], 1))),
        ]
    finally:
        shutil.rmtree(folder)
