"""Estimators with models of their own: names of variables, metrics, predictions, exports."""

import os
import tempfile

import numpy as np

_numbers = np.random.RandomState(1)
X = _numbers.standard_normal((48, 2)).astype(np.float32)
WORDS = np.array(["a", "b", "c", "d"])[_numbers.randint(0, 4, 48)]
TWO = (X[:, 0] > 0).astype(np.int64)
THREE = _numbers.randint(0, 3, 48).astype(np.int64)
NUMBERS = X.sum(1).astype(np.float32)


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, (code, labels) in MODELS.items():
        found[name] = lambda tf, code=code, labels=labels: trained(tf, code, labels)
    return found


MODELS = {
    "linear, two classes": ("E.LinearClassifier(wide, folder, config=config)", TWO),
    "linear, three classes": ("E.LinearClassifier(wide, folder, 3, config=config)", THREE),
    "linear, numbers": ("E.LinearRegressor(wide, folder, config=config)", NUMBERS),
    "linear, descent": ("E.LinearClassifier([x], folder, optimizer=tf.train.GradientDescentOptimizer(.1))", TWO),
    "deep": ("E.DNNClassifier([4, 3], deep, folder, config=config)", TWO),
    "deep, three classes": ("E.DNNClassifier([4], [x], folder, n_classes=3, optimizer='SGD', config=config)", THREE),
    "deep, numbers": ("E.DNNRegressor([4], deep, folder, activation_fn=tf.tanh, batch_norm=True)", NUMBERS),
    "both": (
        "E.DNNLinearCombinedClassifier(folder, linear_feature_columns=wide, dnn_feature_columns=deep, "
        "dnn_hidden_units=[3], config=config)",
        TWO,
    ),
}


def columns(tf):
    F = tf.feature_column
    x = F.numeric_column("x", 2)
    words = F.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
    wide = [x, words, F.crossed_column([words, "w"], 5)]
    deep = [x, F.indicator_column(words), F.embedding_column(words, 2)]
    return x, wide, deep


def batches(tf, labels):
    def input_fn():
        features = {"x": tf.constant(X), "w": tf.constant(WORDS)}
        return tf.data.Dataset.from_tensor_slices((features, tf.constant(labels))).repeat(3).batch(16)

    return input_fn


def trained(tf, code, labels):
    folder = tempfile.mkdtemp()
    x, wide, deep = columns(tf)
    config = tf.estimator.RunConfig(tf_random_seed=1)
    names = {"tf": tf, "E": tf.estimator, "x": x, "wide": wide, "deep": deep, "folder": folder, "config": config}
    estimator = eval(code, names)
    estimator.train(batches(tf, labels))
    metrics = estimator.evaluate(batches(tf, labels), steps=2)
    first = next(estimator.predict(batches(tf, labels)))
    names = [name for name in estimator.get_variable_names() if "/Ftrl" not in name and "/Adagrad" not in name]
    found = [
        sorted(names),
        sorted(metrics),
        [[key, first[key].shape] for key in sorted(first)],
    ]
    if "Linear" in code and "DNN" not in code:
        found.append(sorted((key, float(value)) for key, value in metrics.items()))
    return found


def case_vocabulary_of_labels_and_weights(tf):
    x, _, _ = columns(tf)
    labels = np.array(["no", "yes"])[TWO]

    def input_fn():
        features = {"x": tf.constant(X), "weight": tf.constant(np.arange(48, dtype=np.float32))}
        return tf.data.Dataset.from_tensor_slices((features, tf.constant(labels))).repeat(2).batch(16)

    estimator = tf.estimator.LinearClassifier(
        [x],
        tempfile.mkdtemp(),
        label_vocabulary=["no", "yes"],
        weight_column="weight",
        loss_reduction=tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
    )
    estimator.train(input_fn)
    metrics = sorted((key, float(value)) for key, value in estimator.evaluate(input_fn).items())
    first = next(estimator.predict(input_fn))
    return [metrics, first["classes"], first["all_classes"]]


def case_export(tf):
    x, _, _ = columns(tf)
    estimator = tf.estimator.LinearClassifier([x], tempfile.mkdtemp())
    estimator.train(batches(tf, TWO))
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2], "x")}
    )
    parsing = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        tf.feature_column.make_parse_example_spec([x])
    )
    folder = tempfile.mkdtemp()
    parsed = estimator.export_saved_model(folder, parsing)
    found = [os.path.dirname(parsed).decode() == folder, sorted(os.listdir(parsed.decode()))]
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.extend([1.0, -1.0])
    expected = next(estimator.predict(lambda: tf.data.Dataset.from_tensors({"x": tf.constant([[1.0, -1.0]])})))
    with tf.Graph().as_default(), tf.Session() as session:
        proto = tf.saved_model.loader.load(session, ["serve"], parsed.decode())
        found.append([[key, proto.signature_def[key].method_name] for key in sorted(proto.signature_def)])
        signature = proto.signature_def["predict"]
        scores = session.run(
            signature.outputs["probabilities"].name, {signature.inputs["examples"].name: [example.SerializeToString()]}
        )
        found.append(bool(np.allclose(scores[0], expected["probabilities"])))
    exporter = tf.estimator.FinalExporter("last", parsing)
    spec = tf.estimator.EvalSpec(batches(tf, TWO), steps=None, exporters=exporter, throttle_secs=0)
    result = tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(batches(tf, TWO), max_steps=12), spec)
    found += [len(result[1]), os.listdir(os.path.join(estimator.model_dir, "export")), receiver is not None]
    return found


def case_saved_models(tf):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.Variable([[1.0], [2.0]], name="w")
    y = tf.matmul(x, w, name="y")
    folder = os.path.join(tempfile.mkdtemp(), "model")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"in": x}, {"out": y})
    found = [tf.saved_model.loader.maybe_saved_model_directory(folder), sorted(os.listdir(folder))]
    with tf.Graph().as_default(), tf.Session() as session:
        proto = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], folder)
        signature = proto.signature_def[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        found.append(session.run(signature.outputs["out"].name, {signature.inputs["in"].name: [[1.0, 1.0]]}))
        found += [signature.inputs["in"].name, list(proto.meta_info_def.tags)]
    for tags, place in ((["other"], folder), (["serve"], folder + "x")):
        try:
            with tf.Graph().as_default(), tf.Session() as session:
                tf.saved_model.load(session, tags, place)
            found.append(None)
        except (RuntimeError, OSError) as error:
            found.append(type(error).__name__)
    return found
