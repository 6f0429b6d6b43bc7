"""Bags of any number of ids in `DynamicEmbedding`, compared with TensorFlow's ``safe_embedding_lookup_sparse``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.errors import InvalidArgumentError
from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

from headwater import tf
from headwater.keras.embeddings.bags import Bags
from headwater.keras.layers import DynamicEmbedding
from headwater.keras.programs import contents
from headwater.ps.tables.cluster import LocalTables
from headwater.tables import Initializer
from tests.inproc.keras.test_parameter_server_strategy import Cluster

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Explicitly requested dtype int64:UserWarning"),
]

BAGS = [[1, 2], [], [3], [4, 5, 6, 1], [2, 2], [6], [5, 3, 1], [4]]
WEIGHTS = [[1, 0.5], [], [2], [0.25, 0.5, 0.75, 1.5], [1, 3], [0.5], [2, 1, 0.25], [4]]
TARGETS = np.array([[1], [2], [-1], [0.5], [3], [-2], [0.25], [1.5]], np.float32)

#: The losses of three steps, and the outputs after them, with TensorFlow 1.15's ``safe_embedding_lookup_sparse``: rows
#: of 0.1, ``GradientDescentOptimizer(0.5)`` and the output ``rows @ [1, -0.5]``.
EXPECTED: dict[tuple[str, bool], tuple[list[float], list[float]]] = {
    ("sum", False): (
        [2.590938, 1.265913, 1.035744],
        [1.522653, 0.0, -0.33298, 0.334224, 2.690835, -0.704662, 0.012938, 0.692967],
    ),
    ("sum", True): (
        [2.478301, 4.045012, 8.096753],
        [2.209432, 0.0, -0.837338, 1.024951, 13.592999, -0.171466, 0.25098, 6.098759],
    ),
    ("mean", False): (
        [2.656875, 1.971301, 1.516493],
        [0.819293, 0.0, -0.341491, 0.091602, 1.352101, -0.725503, 0.026098, 0.672126],
    ),
    ("mean", True): (
        [2.656875, 1.999805, 1.550403],
        [0.692882, 0.0, -0.34256, 0.086713, 1.318378, -0.725379, 0.013826, 0.643428],
    ),
    ("sqrtn", False): (
        [2.629814, 1.62899, 1.185482],
        [1.278189, 0.0, -0.334856, 0.22828, 2.137327, -0.703165, 0.075289, 0.694464],
    ),
    ("sqrtn", True): (
        [2.638289, 1.779531, 1.306197],
        [1.031386, 0.0, -0.336135, 0.196226, 1.854117, -0.710127, 0.051997, 0.648512],
    ),
}


def padded(values: Any, fill: float, dtype: Any) -> Any:
    return np.array([[*row, *[fill] * (4 - len(row))] for row in values], dtype)


def ragged(values: Any, dtype: Any) -> Any:
    found = np.empty(len(values), object)
    for at, row in enumerate(values):
        found[at] = np.array(row, dtype)
    return found


def sparse(values: Any, dtype: Any) -> Any:
    places = np.array([[row, at] for row, bag in enumerate(values) for at in range(len(bag))], np.int64)
    return tf.SparseTensor(places, np.concatenate([np.array(row, dtype) for row in values]), [len(values), 4])


def as_padded(weighted: bool) -> Any:
    x = {"bag": padded(BAGS, -1, np.int64)}
    return {**x, "weights": padded(WEIGHTS, 7, np.float32)} if weighted else x


def as_sequences(weighted: bool) -> Any:
    x = {"bag": ragged(BAGS, np.int64)}
    return {**x, "weights": ragged(WEIGHTS, np.float64)} if weighted else x


def as_sparse(weighted: bool) -> Any:
    x = {"bag": sparse(BAGS, np.int64)}
    return {**x, "weights": sparse(WEIGHTS, np.float32)} if weighted else x


def model_of(combiner: str, weighted: bool) -> Any:
    given = {"bag": keras.Input((None,), dtype="int64", name="bag")}
    if weighted:
        given["weights"] = keras.Input((None,), name="weights")
    initializer = Initializer(kind="constant", a=0.1)
    table = DynamicEmbedding(2, combiner=combiner, padding=-1, initializer=initializer, name="rows")
    rows = table(given["bag"], weights=given["weights"]) if weighted else table(given["bag"])
    out = keras.layers.Dense(1, use_bias=False, trainable=False, name="out")
    model = keras.Model(given, out(rows), name="model")
    out.set_weights([np.array([[1], [-0.5]], np.float32)])
    model.compile(keras.optimizers.SGD(0.5), "mse")
    return model


@pytest.mark.parametrize("made", [as_padded, as_sequences, as_sparse])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_one_process_trains_as_tensorflow(combiner: str, weighted: bool, made: Callable[[bool], Any]) -> None:
    strategy = ParameterServerStrategy()
    with strategy.scope():
        model = model_of(combiner, weighted)
    data: Any = (made(weighted), TARGETS)
    settings: dict[str, Any] = {"shuffle": False, "batch_size": 8}
    if made is as_sparse:
        data, settings = (tf.data.Dataset.from_tensor_slices(data).batch(8),), {}
    losses, outputs = EXPECTED[combiner, weighted]
    history = model.fit(*data, epochs=3, verbose=0, **settings).history["loss"]
    np.testing.assert_allclose(history, losses, rtol=1e-5)
    predicted = model.predict(data[0], verbose=0)
    np.testing.assert_allclose(predicted[:, 0], outputs, rtol=1e-4, atol=1e-6)
    for served in strategy._models_to_serve():
        served.close()


@pytest.mark.parametrize("consistency", ["sync", "async"])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_clusters_train_as_tensorflow(combiner: str, consistency: str) -> None:
    """Two workers divide each synchronous batch; in asynchronous training, a single worker makes all updates."""
    workers = 2 if consistency == "sync" else 1
    cluster = Cluster(lambda: model_of(combiner, True), workers=workers, servers=2, consistency=consistency)
    tables = LocalTables(2)
    for worker, served in enumerate(cluster.served):
        assert served._dynamic is not None
        served._dynamic.use(tables.client(worker))
    losses, outputs = EXPECTED[combiner, True]
    for history in cluster.fit(as_sequences(True), TARGETS, batch_size=8, epochs=3, shuffle=False):
        np.testing.assert_allclose(history.history["loss"], losses, rtol=1e-4)
    for model in cluster.models:
        predicted = model.predict(as_sequences(True), verbose=0)
        np.testing.assert_allclose(predicted[:, 0], outputs, rtol=1e-3, atol=1e-5)
    cluster.stop()
    tables.stop()


def test_columns_of_a_parquet_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"bag": BAGS, "weights": WEIGHTS}), tmp_path / "bags.parquet")
    table = pq.read_table(tmp_path / "bags.parquet")
    x = {name: table[name].to_numpy() for name in ("bag", "weights")}
    strategy = ParameterServerStrategy()
    with strategy.scope():
        model = model_of("mean", True)
    losses, _ = EXPECTED["mean", True]
    history = model.fit(x, TARGETS, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(history, losses, rtol=1e-5)
    # The batches of one shape need one executable, whatever the sizes of their bags.
    model.fit({name: values[::-1] for name, values in x.items()}, TARGETS, batch_size=4, verbose=0)
    model.save(tmp_path / "bags.keras")
    loaded = keras.saving.load_model(tmp_path / "bags.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), model.predict(x, verbose=0), rtol=1e-6)
    few = {name: values[:3] for name, values in x.items()}
    np.testing.assert_allclose(loaded.predict_on_batch(few), model.predict(x, verbose=0)[:3], rtol=1e-6)
    for served in strategy._models_to_serve():
        served.close()


def test_sizes_of_bags_compile_nothing() -> None:
    strategy = ParameterServerStrategy()
    with strategy.scope():
        model = model_of("sum", False)
    rng = np.random.default_rng(0)
    x = {"bag": ragged([rng.integers(0, 9, rng.integers(0, 50)) for _ in range(64)], np.int64)}
    model.fit(x, np.ones((64, 1)), batch_size=8, epochs=2, verbose=0)
    (served,) = strategy._models_to_serve()
    step: Any = served._step
    assert step._compiled._cache_size() <= 2  # by the number of pooled rows that are received
    served.close()


def test_several_bags_are_joined_stacked_and_sliced() -> None:
    one, two = [[1, 2], [3], []], [[4], [], [5, 6]]

    def made(given: Any, pools: Any) -> Any:
        joined = pools(keras.layers.Concatenate()([given["one"], given["two"]]))
        stacked = pools(keras.ops.stack([given["two"], given["one"]], axis=1))
        return keras.layers.Concatenate()([joined, stacked[:, 1]])

    given = {name: keras.Input((None,), dtype="int64", name=name) for name in ("one", "two")}
    with ParameterServerStrategy().scope():
        model = keras.Model(given, made(given, DynamicEmbedding(3, combiner="mean", padding=-1, initializer="normal")))
        model.compile("sgd", "mse")
    bags = {"one": ragged(one, np.int64), "two": ragged(two, np.int64)}
    dense = {"one": padded(one, -1, np.int64), "two": padded(two, -1, np.int64)}
    np.testing.assert_allclose(model.predict(bags, verbose=0), model.predict(dense, verbose=0), rtol=1e-6)


def refused(make: Callable[[Any, Any], Any], error: type[Exception], why: str, x: Any = None) -> None:
    bag, weights = keras.Input((None,), dtype="int64", name="bag"), keras.Input((None,), name="weights")
    with ParameterServerStrategy().scope(), pytest.raises(error, match=why):
        model = keras.Model({"bag": bag, "weights": weights}, make(bag, weights))
        model.compile("sgd", "mse")
        model.fit(as_sequences(True) if x is None else x, TARGETS, verbose=0)


def test_what_pooling_cannot_do_is_refused() -> None:
    def pooled(bag: Any, weights: Any) -> Any:
        return DynamicEmbedding(2, combiner="sum", name="rows")(bag, weights=weights)

    refused(
        lambda bag, weights: DynamicEmbedding(2, name="rows")(bag, weights=weights), ValueError, "require a combiner"
    )

    def computed(bag: Any, weights: Any) -> Any:
        return pooled(bag, keras.ops.exp(weights))

    refused(computed, ValueError, "uses them for 'exp'")
    refused(computed, ValueError, "must be an input of the model", as_padded(True))
    refused(lambda bag, _: keras.ops.sum(DynamicEmbedding(2, name="rows")(bag), 1), ValueError, "needs a combiner")
    refused(
        lambda bag, weights: pooled(bag, None) + keras.ops.sum(weights, 1, keepdims=True),
        ValueError,
        "holds bags of any",
    )
    fewer = {"bag": ragged(BAGS, np.int64), "weights": ragged([[1], *WEIGHTS[1:]], np.float32)}
    refused(pooled, InvalidArgumentError, r"the bag at \d has 2 ids and 1 weights", fewer)
    cubes = tf.data.Dataset.from_tensors(({"bag": tf.SparseTensor([[0, 0, 0]], [1], [1, 1, 1])}, TARGETS[:1]))
    with ParameterServerStrategy().scope():
        model = model_of("sum", False)
    with pytest.raises(ValueError, match=r"bags have two dimensions.*shape \(1, 1, 1\)"):
        model.fit(cubes, verbose=0)


def test_the_digest_of_bags_depends_on_their_ids_and_sizes() -> None:
    bags = [([1, 2, 3], [0, 1, 3]), ([1, 2, 3], [0, 2, 3]), ([1, 2, 4], [0, 1, 3]), ([b"1", b"2", b"3"], [0, 1, 3])]
    kinds = [np.int64, np.int64, np.int64, object]
    found = [contents((Bags(np.array(ids, kind), ends), None)) for (ids, ends), kind in zip(bags, kinds, strict=True)]
    assert len({*found, contents((np.array([1, 2, 3]), None))}) == 5
    assert contents(Bags(np.array([1, 2, 3]), [0, 1, 3])) == found[0]
