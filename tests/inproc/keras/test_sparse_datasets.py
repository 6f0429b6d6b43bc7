"""Datasets of sparse elements as data of Keras models: bags of ids, and refusals that name a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from jax.experimental.sparse import BCOO

from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

from headwater import tf
from headwater.keras.layers import DynamicEmbedding
from headwater.keras.mirrored.shards import Share
from headwater.keras.parameter_server.batches import part_of
from tests.inproc.keras.test_parameter_server_strategy import Cluster
from tests.support.mirrored import with_workers

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

BAGS = [[1, 2], [], [3], [4, 5, 6]]


def dataset() -> Any:
    places = [[row, at] for row, bag in enumerate(BAGS) for at in range(len(bag))]
    ids = [each for bag in BAGS for each in bag]
    rows = tf.SparseTensor(np.array(places, np.int64), np.array(ids, np.int64), [4, 3])
    return tf.data.Dataset.from_tensor_slices(({"bag": rows}, np.ones((4, 1), np.float32))).batch(2)


def dense(features: Any, label: Any) -> Any:
    bag = tf.sparse.to_dense(tf.sparse.reset_shape(features["bag"], [2, 3]), -1)
    bag.set_shape([None, 3])
    return {"bag": bag}, label


def test_bags_of_any_length() -> None:
    def losses(data: Any) -> Any:
        with ParameterServerStrategy().scope():
            bag = keras.Input((3,), dtype="int64", name="bag")
            rows = DynamicEmbedding(2, combiner="sqrtn", padding=-1, initializer="normal")(bag)
            model = keras.Model({"bag": bag}, keras.layers.Dense(1, kernel_initializer="ones")(rows))
            model.compile("sgd", "mse")
        return model.fit(data, epochs=3, verbose=0).history["loss"]

    found = losses(dataset())
    assert found[-1] < found[0]
    assert found == pytest.approx(losses(dataset().map(dense)))


def test_models_without_bags_refuse_them() -> None:
    with ParameterServerStrategy().scope():
        served = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        served.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no DynamicEmbedding that pools them"):
        served.fit(dataset().map(lambda features, label: (features["bag"], label)), verbose=0)
    alone = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    alone.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"sparse or ragged components.*SparseTensorSpec.*tf\.sparse\.to_dense"):
        alone.fit(dataset().map(lambda features, label: (features["bag"], label)), verbose=0)


@pytest.mark.parametrize("make", [BCOO.fromdense, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_batches_with_sparse_arrays_are_refused_where_rows_are_divided(make: Any) -> None:
    batch = make(np.eye(4, dtype=np.float32)), np.ones(4, np.float32)
    with pytest.raises(ValueError, match="a batch has a sparse array"):
        Share(count=2, index=0, seed=0).of_batch(batch)
    with pytest.raises(ValueError, match="a batch has a sparse array"):
        part_of(batch, 0, 1, 2)


def test_predict_and_evaluate_take_sparse_rows_as_in_one_process() -> None:
    rows = np.diag(np.arange(10, dtype=np.float32))
    sparse = scipy.sparse.csr_matrix(rows)

    def make() -> Any:
        model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
        return model

    def results(model: Any) -> tuple[Any, Any]:
        predicted = model.predict(sparse, batch_size=4, verbose=0)
        return predicted, model.evaluate(sparse, np.zeros((10, 1), np.float32), batch_size=4, verbose=0)

    cluster = Cluster(make, consistency="sync")
    found = [*with_workers(2, lambda _, mirror: results(mirror(make()))), results(cluster.models[0])]
    for predicted, evaluated in found:
        np.testing.assert_allclose(predicted[:, 0], np.arange(10))
        assert evaluated == pytest.approx(28.5)
    cluster.stop()
