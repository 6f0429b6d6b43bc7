"""Linear and deep models of ``tf.contrib.learn``. All expected values are TensorFlow 1.15's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater import tf

X = np.random.RandomState(0).randn(8, 2).astype(np.float32)
Y = X[:, 0] * 2 + X[:, 1]
CLASSES = (Y > 0).astype(np.int32)
PLACES = [[0, 0], [1, 0], [2, 0]]


def _descent() -> tf.train.Optimizer:
    return tf.train.GradientDescentOptimizer(0.1)


def _array_column() -> Any:
    return tf.contrib.layers.real_valued_column("", dimension=2)


def _columns() -> dict[str, Any]:
    layers = tf.contrib.layers
    x = layers.real_valued_column("x", dimension=2)
    k, w = layers.sparse_column_with_integerized_feature("k", 4), layers.sparse_column_with_hash_bucket("w", 5)
    return {"x": x, "k": k, "w": w, "b": layers.bucketized_column(x, [0.0])}


def _inputs():
    features = {
        "x": tf.constant([[1.0, -1.0], [0.5, 2.0], [-1.5, 0.25]]),
        "w": tf.SparseTensor(PLACES, ["a", "b", "c"], [3, 1]),
        "k": tf.SparseTensor(PLACES, tf.constant([2, 0, 1], tf.int64), [3, 1]),
    }
    return features, tf.constant([1.0, -2.0, 0.5])


def _save_deep_model(folder: Path) -> None:
    shapes = {
        "dnn/input_from_feature_columns/w_embedding/weights": [5, 2],
        "dnn/hiddenlayer_0/weights": [12, 3],
        "dnn/hiddenlayer_0/biases": [3],
        "dnn/logits/weights": [3, 1],
        "dnn/logits/biases": [1],
        "dnn/regression_head/dnn/learning_rate": [],
    }
    with tf.Graph().as_default(), tf.Session() as session:
        for name, shape in shapes.items():
            values = np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
            tf.get_variable(name, initializer=tf.constant(values))
        tf.train.create_global_step()
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(folder / "model.ckpt"), 0)


@pytest.mark.parametrize(
    ("clip", "loss", "scores", "bias", "difference"),
    [
        pytest.param(None, 1.0128802, [1.8713577, -0.59349436, -0.048742652], 0.65356344, 0.5763735, id="free"),
        pytest.param(0.5, 1.5983739, [2.0725744, -0.10228878, 0.29167813], 0.9279732, 0.9206546, id="clipped"),
    ],
)
def test_a_deep_regressor(
    tmp_path: Path, clip: float | None, loss: float, scores: list[float], bias: float, difference: float
) -> None:
    """The checkpoint, with TensorFlow's names, is continued."""
    _save_deep_model(tmp_path)
    layers, made = tf.contrib.layers, _columns()
    columns = [made["x"], layers.one_hot_column(made["k"]), layers.embedding_column(made["w"], 2), made["b"]]
    regressor = tf.contrib.learn.DNNRegressor(
        [3], columns, str(tmp_path), optimizer=_descent(), activation_fn=tf.tanh, gradient_clip_norm=clip
    )
    np.testing.assert_allclose(
        list(regressor.predict_scores(input_fn=_inputs)), [2.1037853, 0.08978397, 0.44497687], rtol=1e-5
    )
    regressor.fit(input_fn=_inputs, steps=2)
    found = regressor.evaluate(
        input_fn=_inputs, steps=1, metrics={"d": lambda predictions, labels: tf.metrics.mean(predictions - labels)}
    )
    assert found == pytest.approx({"loss": loss, "d": difference, "global_step": 2}, rel=1e-5)
    np.testing.assert_allclose(list(regressor.predict(input_fn=_inputs)), scores, rtol=1e-5)
    assert regressor.get_variable_value("dnn/logits/biases").tolist() == pytest.approx([bias], rel=1e-5)
    assert regressor.get_variable_names() == [
        "dnn/hiddenlayer_0/biases",
        "dnn/hiddenlayer_0/weights",
        "dnn/input_from_feature_columns/w_embedding/weights",
        "dnn/logits/biases",
        "dnn/logits/weights",
        "dnn/regression_head/dnn/learning_rate",
        "global_step",
    ]


def test_a_linear_regressor_of_arrays(tmp_path: Path) -> None:
    regressor = tf.contrib.learn.LinearRegressor([_array_column()], str(tmp_path), optimizer=_descent())
    with pytest.raises(tf.contrib.learn.NotFittedError, match="Couldn't find trained model at"):
        regressor.predict(X)
    regressor.fit(X, Y, steps=3)
    assert regressor.evaluate(X, Y) == pytest.approx({"loss": 0.49238664, "global_step": 3}, rel=1e-5)
    # The loss is the mean over batches, whatever their sizes.
    assert regressor.evaluate(X, Y, batch_size=3)["loss"] == pytest.approx(0.43975016, rel=1e-5)
    scores = [2.738247, 2.9614992, 2.0976067]
    for found in (regressor.predict(X[:3]), regressor.predict_scores(X[:3], as_iterable=False)):
        np.testing.assert_allclose(list(found), scores, rtol=1e-5)
    (first,) = regressor.predict(X[:1], outputs=["scores"])
    assert first == pytest.approx({"scores": scores[0]}, rel=1e-5)
    by_name = regressor.predict(X[:3], outputs=["scores"], as_iterable=False)
    np.testing.assert_allclose(by_name["scores"], scores, rtol=1e-5)
    with pytest.raises(ValueError, match="Expected to run at least one output from"):
        list(regressor.predict(X, outputs=["nix"]))
    mean = tf.contrib.learn.MetricSpec(tf.contrib.metrics.streaming_mean_absolute_error)
    assert regressor.evaluate(X, Y, metrics={"mae": mean})["mae"] == pytest.approx(0.5189279, rel=1e-5)
    assert regressor.get_variable_names() == ["global_step", "linear//weight", "linear/bias_weight"]


def test_arguments_of_a_linear_regressor(tmp_path: Path) -> None:
    def fitted(name: str, labels: Any = Y, **settings: Any) -> Any:
        made = tf.contrib.learn.LinearRegressor(
            [_array_column()], str(tmp_path / name), optimizer=_descent(), **settings
        )
        return made.fit(X, labels, steps=3)

    both = fitted("both", np.stack([Y, -Y], 1), label_dimension=2).predict(X[:2], as_iterable=False)
    np.testing.assert_allclose(both, [[1.7217162, -1.7217162], [1.8694874, -1.8694874]], rtol=1e-5)
    clipped = fitted("clipped", gradient_clip_norm=0.5).evaluate(X, Y)
    assert clipped["loss"] == pytest.approx(5.344184, rel=1e-5)
    doubled = fitted("doubled", feature_engineering_fn=lambda features, labels: ({"": features * 2}, labels))
    assert doubled.evaluate(X, Y)["loss"] == pytest.approx(0.02922099, rel=1e-4)

    def weighted():
        weights = tf.constant([[1.0], [2], [0], [1], [1], [3], [1], [1]])
        return {"": tf.constant(X), "wt": weights}, tf.constant(Y)

    heavy = tf.contrib.learn.LinearRegressor(
        [_array_column()], str(tmp_path / "heavy"), weight_column_name="wt", optimizer=_descent()
    ).fit(input_fn=weighted, steps=3)
    assert heavy.evaluate(input_fn=weighted, steps=1)["loss"] == pytest.approx(0.4074579, rel=1e-5)
    np.testing.assert_allclose(heavy.get_variable_value("linear//weight"), [[0.8164776], [0.9566322]], rtol=1e-5)
    with pytest.raises(ValueError, match="_joint_weights is not supported"):
        fitted("refused", _joint_weights=True)


def test_predictions_of_classifiers(tmp_path: Path) -> None:
    two = tf.contrib.learn.LinearClassifier([_array_column()], str(tmp_path / "two"), optimizer=_descent())
    two.fit(X, CLASSES, steps=3)
    found = next(iter(two.predict(X[:1], outputs=["classes", "probabilities", "logits", "logistic"])))
    np.testing.assert_allclose(found["logits"], [0.38262403], rtol=1e-5)
    np.testing.assert_allclose(found["logistic"], [0.59450585], rtol=1e-5)
    np.testing.assert_allclose(found["probabilities"], [0.40549418, 0.59450585], rtol=1e-5)
    assert found["classes"] == 1
    three = tf.contrib.learn.LinearClassifier([_array_column()], str(tmp_path / "three"), 3, optimizer=_descent())
    labels = np.arange(8) % 3
    three.fit(X, labels, steps=3)
    expected = {"loss": 1.0667632, "accuracy": 0.625, "global_step": 3}
    assert three.evaluate(X, labels) == pytest.approx(expected, rel=1e-5)
    (found,) = three.predict(X[:1], outputs=["classes", "logits"])
    np.testing.assert_allclose(found["logits"], [0.074556, -0.02486228, -0.04969373], rtol=1e-4)
    assert found["classes"] == 0
    with pytest.raises(ValueError, match="label_keys is not supported for n_classes=2"):
        tf.contrib.learn.LinearClassifier([_array_column()], label_keys=["no", "yes"])


def test_names_of_variables(tmp_path: Path) -> None:
    learn, layers, made = tf.contrib.learn, tf.contrib.layers, _columns()
    wide = [*made.values(), layers.crossed_column([made["w"], made["k"]], 10)]
    deep = [made["x"], layers.embedding_column(made["w"], 2)]

    def names(estimator: Any, labels: Any = (1, 0, 1)) -> list[str]:
        estimator.fit(input_fn=lambda: (_inputs()[0], tf.constant(labels)), steps=1)
        assert not [name for name in estimator.get_variable_names() if estimator.get_variable_value(name) is None]
        return estimator.get_variable_names()

    linear_names = [
        "linear/bias_weight",
        "linear/k/weights",
        "linear/k_X_w/weights",
        "linear/w/weights",
        "linear/x/weight",
        "linear/x_bucketized/weights",
    ]
    deep_names = [
        "dnn/hiddenlayer_0/biases",
        "dnn/hiddenlayer_0/weights",
        "dnn/input_from_feature_columns/w_embedding/weights",
        "dnn/logits/biases",
        "dnn/logits/weights",
    ]
    linear = learn.LinearClassifier(wide, str(tmp_path / "linear"), optimizer=_descent())
    assert names(linear) == ["global_step", *linear_names]
    adam = learn.LinearClassifier([made["x"]], str(tmp_path / "adam"), optimizer=tf.train.AdamOptimizer())
    powers = [f"linear/binary_logistic_head/train_op/beta{number}_power" for number in (1, 2)]
    assert [name for name in names(adam) if "power" in name] == powers
    classifier = learn.DNNClassifier([4], deep, str(tmp_path / "deep"), 3, optimizer=_descent())
    assert names(classifier) == [*deep_names, "dnn/multi_class_head/dnn/learning_rate", "global_step"]
    settings: dict[str, Any] = {
        "linear_feature_columns": wide,
        "linear_optimizer": _descent(),
        "dnn_feature_columns": deep,
        "dnn_optimizer": _descent(),
        "dnn_hidden_units": [4],
    }
    rates = ["dnn/learning_rate", "linear/learning_rate"]
    both = learn.DNNLinearCombinedClassifier(str(tmp_path / "both"), **settings)
    expected = [*(f"binary_logistic_head/{rate}" for rate in rates), *deep_names, "global_step", *linear_names]
    assert names(both) == expected
    numbers = learn.DNNLinearCombinedRegressor(str(tmp_path / "numbers"), **settings)
    expected = [*deep_names, "global_step", *linear_names, *(f"regression_head/{rate}" for rate in rates)]
    assert names(numbers, (1.0, 0.0, 1.0)) == expected
    core = learn.LinearClassifier([tf.feature_column.numeric_column("x", 2)], str(tmp_path / "core"))
    assert "linear/linear_model/x/weights" in names(core)


def test_scikit_learns_interface(tmp_path: Path) -> None:
    learn = tf.contrib.learn
    regressor = learn.SKCompat(
        learn.LinearRegressor([_array_column()], str(tmp_path / "regressor"), optimizer=_descent())
    )
    assert regressor.fit(X, Y, steps=3, batch_size=8) is regressor
    assert regressor.score(X, Y) == pytest.approx({"loss": 0.49238664, "global_step": 3}, rel=1e-5)
    np.testing.assert_allclose(regressor.predict(X[:3])["scores"], [2.738247, 2.9614992, 2.0976067], rtol=1e-5)
    mean = learn.MetricSpec(tf.contrib.metrics.streaming_mean_absolute_error)
    assert regressor.score(X, Y, metrics={"mae": mean})["mae"] == pytest.approx(0.5189279, rel=1e-5)
    with pytest.raises(ValueError, match="Metrics argument should be None or dict"):
        regressor.score(X, Y, metrics=[1])  # type: ignore[arg-type]
    classifier = learn.SKCompat(
        learn.LinearClassifier([_array_column()], str(tmp_path / "classifier"), optimizer=_descent())
    ).fit(X, CLASSES, steps=3)
    predicted = classifier.predict(X, batch_size=3)
    assert sorted(predicted) == ["classes", "logistic", "logits", "probabilities"]
    assert predicted["classes"].tolist() == [1] * 8
    assert predicted["probabilities"].shape == (8, 2)


@pytest.mark.parametrize("kind", ["numbers", "classes", "any"])
def test_exports(tmp_path: Path, kind: str) -> None:
    learn, x = tf.contrib.learn, tf.contrib.layers.real_valued_column("x", dimension=2)

    def model(features: Any, labels: Any, mode: str):
        y = tf.contrib.layers.linear(features["x"], 1, weights_initializer=tf.zeros_initializer())[:, 0]
        if mode == learn.ModeKeys.INFER:
            return learn.ModelFnOps(mode, {"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        return learn.ModelFnOps(mode, {"y": y}, loss, tf.contrib.layers.optimize_loss(loss, None, 0.1, "SGD"))

    made: dict[str, tuple[Any, Any, str, str, str, list[float]]] = {
        "numbers": (learn.LinearRegressor, Y, "None", "inputs", "outputs", [2.8525522]),
        "classes": (learn.LinearClassifier, CLASSES, "None", "inputs", "scores", [0.40159896, 0.598401]),
        "any": (None, Y, "default_output_alternative", "examples", "y", [2.8525522]),
    }
    create, labels, alternative, given, result, expected = made[kind]
    estimator = (
        create([x], str(tmp_path / "model"), optimizer=_descent())
        if create
        else learn.Estimator(model, str(tmp_path / "model"))
    )
    estimator.fit(input_fn=lambda: ({"x": tf.constant(X)}, tf.constant(labels)), steps=3)
    spec = tf.contrib.layers.create_feature_spec_for_parsing([x])

    def serving() -> tf.contrib.learn.InputFnOps:
        examples = tf.placeholder(tf.string, [None])
        return tf.contrib.learn.InputFnOps(tf.parse_example(examples, spec), None, {"examples": examples})

    chosen = serving if kind == "classes" else learn.build_parsing_serving_input_fn(spec)
    folder = estimator.export_savedmodel(str(tmp_path / "exports"), chosen)
    numbers = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": numbers})).SerializeToString()
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], folder.decode()).signature_def
        assert sorted(signatures) == [f"default_input_alternative:{alternative}", "serving_default"]
        default = signatures["serving_default"]
        found = session.run(default.outputs[result].name, {default.inputs[given].name: [example]})
    np.testing.assert_allclose(found[0], expected if kind == "classes" else expected[0], rtol=1e-5)
    assert found.shape == ((1, 2) if kind == "classes" else (1,))


def test_inputs_from_columns_are_ordered_by_class() -> None:
    layers, made = tf.contrib.layers, _columns()
    columns = [made["x"], layers.one_hot_column(made["k"]), made["b"]]
    parts: dict[Any, tf.Tensor] = {}
    with tf.Graph().as_default(), tf.Session() as session:
        features = _inputs()[0]
        half = tf.constant_initializer(0.5)
        table = layers.embedding_column(made["w"], 2, initializer=half)
        net = layers.input_from_feature_columns(features, [*columns, table], cols_to_outs=parts)
        again = layers.input_from_feature_columns(features, [table])
        names = [variable.name for variable in tf.model_variables()]
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(net)[0].tolist() == [0, 1, 1, 0, 0.5, 0.5, 0, 0, 1, 0, 1, -1]
        assert list(parts) == [made["b"], table, columns[1], made["x"]]
        assert session.run(again).tolist() == [[0.5, 0.5]] * 3
        assert names == [f"input_from_feature_columns{end}/w_embedding/weights:0" for end in ("", "_1")]
        with pytest.raises(ValueError, match="Error creating input layer for column: k"):
            layers.input_from_feature_columns(features, [made["k"]])


def test_tables_begin_with_a_deviation_of_the_number_of_categories() -> None:
    layers = tf.contrib.layers
    column = layers.embedding_column(layers.sparse_column_with_hash_bucket("w", 10000), 4)
    with tf.Graph().as_default(), tf.Session() as session:
        layers.input_from_feature_columns({"w": tf.SparseTensor([[0, 0]], ["a"], [1, 1])}, [column])
        session.run(tf.global_variables_initializer())
        # A normal distribution that is cut at two deviations has 0.88 of its deviation.
        assert np.std(session.run(tf.global_variables()[0])) == pytest.approx(0.0088, rel=0.02)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("w k", [0, 14, 7], id="w k"),
        pytest.param("w b", [22, 36, 30], id="w b"),
        pytest.param("v k", [0, 14, 7], id="vocabulary"),
        pytest.param("v k key", [10, 10, 4], id="key"),
        pytest.param("nested", [32, 20, 8], id="nested"),
        pytest.param("b", [4, 6, 6], id="b"),
    ],
)
def test_weighted_sums_of_columns(kind: str, expected: list[int]) -> None:
    """The sum of the numbers of an example's categories, which are hashes in crossed columns."""
    layers = tf.contrib.layers
    k, w = layers.sparse_column_with_integerized_feature("k", 4), layers.sparse_column_with_hash_bucket("w", 7)
    v = layers.sparse_column_with_keys("w", ["a", "b"])
    b = layers.bucketized_column(layers.real_valued_column("x", dimension=2), [0.0, 1.0])
    column = {
        "w k": layers.crossed_column([w, k], 20),
        "w b": layers.crossed_column([w, b], 20),
        "v k": layers.crossed_column([v, k], 20),
        "v k key": layers.crossed_column([v, k], 20, hash_key=7),
        "nested": layers.crossed_column([layers.crossed_column([w, k], 20), b], 20),
        "b": b,
    }[kind]
    with tf.Graph().as_default(), tf.Session() as session:
        features = {
            "w": tf.SparseTensor(PLACES, ["a", "b", "c"], [3, 1]),
            "k": tf.SparseTensor(PLACES, tf.constant([1, 2, 3], tf.int64), [3, 1]),
            "x": tf.constant([[-1.0, 0.5], [2.0, 0.5], [0.3, 1.5]]),
        }
        sums, weights, bias = layers.weighted_sum_from_feature_columns(features, [column], 1)
        (variable,) = weights[column]
        assert variable.name == f"weighted_sum_from_feature_columns/{column.name}/weights:0"
        assert bias.name == "weighted_sum_from_feature_columns/bias_weight:0"
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run(tf.assign(variable, tf.to_float(tf.range(variable.shape[0]))[:, None]))
        assert session.run(sums)[:, 0].tolist() == expected
        table = layers.embedding_column(w, 2)
        with pytest.raises(ValueError, match="Error creating weighted sum for column: w_embedding"):
            layers.weighted_sum_from_feature_columns(features, [table], 1)


DRAWN = np.random.RandomState(0).randn(40, 3).astype(np.float32)
SIGNS = (DRAWN.sum(1) > 0).astype(np.int64)
LARGEST = np.abs(DRAWN).argmax(1).astype(np.int64)
SUMS = (DRAWN @ [1.0, 2.0, -1.0]).astype(np.float32)[:, None]


def _drawn(labels: Any) -> Any:
    return lambda: ({"x": tf.constant(DRAWN)}, tf.constant(labels))


def _trained(kind: str, labels: Any, folder: Path, **settings: Any) -> Any:
    columns = [tf.contrib.layers.real_valued_column("x", dimension=3)]
    if "Combined" in kind:
        settings |= {"linear_feature_columns": columns, "dnn_feature_columns": columns, "dnn_hidden_units": [3]}
    else:
        settings |= {"feature_columns": columns} | ({"hidden_units": [4]} if "DNN" in kind else {})
    return getattr(tf.contrib.learn, kind)(model_dir=str(folder), **settings).fit(input_fn=_drawn(labels), steps=5)


@pytest.mark.parametrize(
    ("kind", "labels", "settings", "name", "bias", "slot"),
    [
        ("LinearClassifier", SIGNS, {}, "linear/binary_logistic_head", [0.09589472], [0.12105688]),
        (
            "LinearClassifier",
            LARGEST,
            {"n_classes": 3},
            "linear/multi_class_head",
            [0.02155238, 0.05264995, -0.07261041],
            [0.10095437, 0.10588817, 0.11158349],
        ),
        ("LinearRegressor", SUMS, {"optimizer": "Adam"}, "linear/regression_head", [0.29722384], [11.599929]),
    ],
)
def test_a_centered_bias_is_trained_by_itself(
    tmp_path: Path, kind: str, labels: Any, settings: dict[str, Any], name: str, bias: list[float], slot: list[float]
) -> None:
    if "optimizer" in settings:
        settings = {"optimizer": tf.train.AdamOptimizer(0.1)}
    made = _trained(kind, labels, tmp_path, enable_centered_bias=True, **settings)
    found = tf.train.load_variable(str(tmp_path), f"{name}/centered_bias_weight")
    np.testing.assert_allclose(found, bias, rtol=1e-5)
    found = tf.train.load_variable(str(tmp_path), f"{name}/{name}/centered_bias_weight/Adagrad")
    np.testing.assert_allclose(found, slot, rtol=1e-5)
    assert made.evaluate(input_fn=_drawn(labels), steps=1)["loss"] < 3


@pytest.mark.parametrize(
    ("kind", "labels", "settings", "names"),
    [
        (
            "LinearClassifier",
            SIGNS,
            {},
            """
            global_step linear/bias_weight linear/bias_weight/d/linear/bias_weight/part_0/Ftrl
            linear/bias_weight/d/linear/bias_weight/part_0/Ftrl_1 linear/x/weight
            linear/x/weight/head/linear/x/weight/part_0/Ftrl linear/x/weight/head/linear/x/weight/part_0/Ftrl_1""",
        ),
        (
            "LinearRegressor",
            SUMS,
            {"optimizer": "Adam", "enable_centered_bias": True},
            """
            global_step linear/bias_weight linear/bias_weight/ear/bias_weight/part_0/Adam
            linear/bias_weight/ear/bias_weight/part_0/Adam_1 linear/regression_head/centered_bias_weight
            linear/regression_head/linear/regression_head/centered_bias_weight/Adagrad
            linear/regression_head/train_op/beta1_power linear/regression_head/train_op/beta2_power linear/x/weight
            linear/x/weight/linear/x/weight/part_0/Adam linear/x/weight/linear/x/weight/part_0/Adam_1""",
        ),
        (
            "DNNClassifier",
            SIGNS,
            {},
            """
            dnn/binary_logistic_head/dnn/learning_rate dnn/hiddenlayer_0/biases
            dnn/hiddenlayer_0/biases//hiddenlayer_0/biases/part_0/Adagrad dnn/hiddenlayer_0/weights
            dnn/hiddenlayer_0/weights/hiddenlayer_0/weights/part_0/Adagrad dnn/logits/biases
            dnn/logits/biases/dnn/dnn/logits/biases/part_0/Adagrad dnn/logits/weights
            dnn/logits/weights/nn/dnn/logits/weights/part_0/Adagrad global_step""",
        ),
        (
            "DNNLinearCombinedRegressor",
            SUMS,
            {},
            """
            dnn/hiddenlayer_0/biases dnn/hiddenlayer_0/biases/yer_0/biases/part_0/Adagrad dnn/hiddenlayer_0/weights
            dnn/hiddenlayer_0/weights/er_0/weights/part_0/Adagrad dnn/logits/biases
            dnn/logits/biases/ogits/biases/part_0/Adagrad dnn/logits/weights
            dnn/logits/weights/gits/weights/part_0/Adagrad global_step linear/bias_weight
            linear/bias_weight/ear/bias_weight/part_0/Ftrl linear/bias_weight/ear/bias_weight/part_0/Ftrl_1
            linear/x/weight linear/x/weight/linear/x/weight/part_0/Ftrl
            linear/x/weight/linear/x/weight/part_0/Ftrl_1 regression_head/dnn/learning_rate
            regression_head/linear/learning_rate""",
        ),
    ],
)
def test_checkpoints_have_the_names_of_slots(
    tmp_path: Path, kind: str, labels: Any, settings: dict[str, Any], names: str
) -> None:
    if "optimizer" in settings:
        settings = {**settings, "optimizer": tf.train.AdamOptimizer(0.1)}
    _trained(kind, labels, tmp_path, **settings)
    assert sorted(name for name, _ in tf.train.list_variables(str(tmp_path))) == names.split()


def test_outputs_and_graphs_of_an_export(tmp_path: Path) -> None:
    made = _trained("LinearClassifier", SIGNS, tmp_path / "model")

    def inputs() -> Any:
        examples = tf.placeholder(tf.string, [None])
        features = tf.parse_example(examples, {"x": tf.FixedLenFeature([3], tf.float32)})
        return tf.contrib.learn.InputFnOps(features, None, {"examples": examples})

    folder = str(tmp_path / "exported")
    with pytest.raises(ValueError, match=r"default_output_alternative: x, but available .* are: \[None\]"):
        made.export_savedmodel(folder, inputs, "x")
    with pytest.raises(ValueError, match="must specify no transforms"):
        made.export_savedmodel(folder, inputs, graph_rewrite_specs=[(("serve",), ("fold_constants",))])
    with pytest.raises(NotImplementedError, match="only the tag"):
        made.export_savedmodel(folder, inputs, graph_rewrite_specs=[(("serve",), ()), (("fast",), ("x",))])
    path = made.export_savedmodel(folder, inputs, graph_rewrite_specs=[(("serve",), ())])
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], path.decode()).signature_def
    assert sorted(signatures) == ["default_input_alternative:None", "serving_default"]
    assert sorted(signatures["serving_default"].outputs) == ["classes", "scores"]


def test_settings_by_name() -> None:
    column = tf.contrib.layers.real_valued_column("x")
    made = tf.contrib.learn.LinearClassifier([column])
    wrapped = tf.contrib.learn.SKCompat(made)
    assert (list(made.get_params()), wrapped.get_params(), wrapped.get_params(deep=False)) == (["params"], {}, {})
    assert wrapped.set_params() is wrapped
    with pytest.raises(ValueError, match="Invalid parameter model_dir for estimator LinearClassifier"):
        made.set_params(model_dir="a")
    with pytest.raises(ValueError, match="Invalid parameter bogus for estimator SKCompat"):
        wrapped.set_params(bogus=1)
