"""Arguments that programs pass less often: axes that a run determines, text, sparse and quantized tensors.

Values of TensorFlow 1.15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf


def _fed(value: Any) -> Any:
    """Returns a tensor with ``value`` in each run, which the graph does not determine."""
    return tf.placeholder_with_default(np.asarray(value), np.shape(value))


@pytest.mark.parametrize("axis", [0, -2, 1, -1])
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax_along_an_axis_of_the_run(function: str, axis: int) -> None:
    matrix, any_rank = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 4.5]], np.float32), tf.placeholder(tf.float32)
    powers = np.exp(matrix)
    shares = powers / powers.sum(axis, keepdims=True)
    expected = shares if function == "softmax" else np.log(shares)
    softmax = getattr(tf.nn, function)
    results = [softmax(matrix, axis=_fed(np.int32(axis))), softmax(any_rank, axis=axis)]
    with tf.Session() as session:
        for found in session.run(results, {any_rank: matrix}):
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(softmax(matrix, axis=_fed(np.int32(100))))


def test_axes_of_tensordot() -> None:
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    with tf.Session() as session:
        pairs = session.run(tf.tensordot(matrix, matrix, _fed(np.array([[0], [1]], np.int32))))
        np.testing.assert_array_equal(pairs, np.tensordot(matrix, matrix, ([0], [1])))
    with pytest.raises(ValueError, match="Index out of range"):
        tf.tensordot(matrix, matrix, _fed(np.int32(1)))
    with pytest.raises(IndexError):
        tf.tensordot(matrix, matrix, [[0], [7]])


def test_reverse_along_axes_of_the_run() -> None:
    with tf.Session() as session:
        assert session.run(tf.reverse([1, 2, 3], [_fed(np.int32(0))])).tolist() == [3, 2, 1]
        assert session.run(tf.reverse([[1, 2], [3, 4]], [False, True])).tolist() == [[2, 1], [4, 3]]


def test_one_hot_of_text() -> None:
    with tf.Session() as session:
        found = session.run(tf.one_hot([0, 2, -1], 3, "a", "b"))
    assert found.tolist() == [[b"a", b"b", b"b"], [b"b", b"b", b"a"], [b"b", b"b", b"b"]]


def test_sums_of_chosen_integers() -> None:
    data, segments = [[1, 2], [3, 4], [5, 6]], ([0, 1, 1], [0, 0, 1])
    with tf.Session() as session:
        assert session.run(tf.sparse_segment_sum(data, *segments)).tolist() == [[4, 6], [3, 4]]
    with pytest.raises(TypeError, match="int32 not in list of allowed values"):
        tf.sparse_segment_mean(data, *segments)


def test_a_dense_tensor_times_a_sparse_one() -> None:
    sparse: Any = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    product = tf.constant([[1.0, 5.0], [1.0, 1.0]]) * sparse
    with tf.Session() as session:
        found = session.run(product)
    assert (found.indices.tolist(), found.values.tolist()) == ([[0, 1]], [10.0])
    assert {op.type for op in sparse.consumers()} >= {"Mul"}
    with pytest.raises(TypeError):
        _ = tf.constant([[1.0, 5.0]]) / sparse


def test_a_new_shape_of_another_integer_type() -> None:
    sparse, shape = tf.SparseTensor([[0, 1]], [2.0], [2, 2]), tf.placeholder(tf.int32)
    with tf.Session() as session:
        assert session.run(tf.sparse_reset_shape(sparse, shape), {shape: [3, 7]}).dense_shape.tolist() == [3, 7]


def test_arguments_of_sparse_split_are_named() -> None:
    with pytest.raises(ValueError, match="num_split is required"):
        tf.sparse_split(sp_input=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="axis is required"):
        tf.sparse_split(sp_input=1, num_split=2)  # pyright: ignore[reportArgumentType]


def test_constants_keep_quantized_types() -> None:
    bytes_ = tf.constant(np.array([1, 200], np.uint8), dtype=tf.quint8)
    assert bytes_.dtype == tf.quint8
    with tf.Graph().as_default() as again:
        tf.import_graph_def(bytes_.graph.as_graph_def(), name="")
        assert again.get_tensor_by_name(bytes_.name).dtype == tf.quint8
    with tf.Session() as session:
        assert session.run(tf.dequantize(bytes_, 0.0, 255.0)).tolist() == [1.0, 200.0]


@pytest.mark.parametrize("function", [tf.space_to_batch, tf.batch_to_space])
def test_blocks_of_unknown_images_have_four_dimensions(function: Callable[..., Any]) -> None:
    unknown = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    assert function(*unknown, block_size=4).shape.as_list() == [None] * 4


@pytest.mark.parametrize("function", [tf.space_to_batch_nd, tf.batch_to_space_nd])
def test_blocks_keep_the_other_dimensions(function: Callable[..., Any]) -> None:
    images, block = tf.placeholder(tf.float32, [None, 8, 8, 2]), tf.placeholder(tf.int32, [2])
    assert function(images, block, tf.placeholder(tf.int32)).shape.as_list() == [None, None, None, 2]


def test_shapes_that_the_graph_determines() -> None:
    with pytest.raises(ValueError, match="ranks differ"):
        tf.betainc(0.5, [0.5], [[0.5]])
    with pytest.raises(ValueError, match="at least rank 2 but is rank 1"):
        tf.fft2d(tf.zeros([2], tf.complex64))
    with pytest.raises(ValueError, match="at least rank 3 but is rank 2"):
        tf.ifft3d(tf.zeros([2, 2], tf.complex64))


def test_sufficient_statistics_return_the_shift_as_a_tensor() -> None:
    with tf.Session() as session:
        shift = tf.nn.sufficient_statistics(tf.zeros([2, 3]), 1, shift=1.5)[3]
        assert session.run(shift) == np.float32(1.5)


def test_orthogonal_initializers_accept_a_gain_of_numpy() -> None:
    for make in (tf.orthogonal_initializer, tf.contrib.framework.convolutional_delta_orthogonal):
        assert make(gain=np.sqrt(2.0))([1, 2, 2]).dtype == tf.float32
    with pytest.raises(ValueError, match="Expected floating point type"):
        tf.contrib.framework.convolutional_delta_orthogonal(dtype=tf.string)


def test_the_device_setter_places_every_type_of_state() -> None:
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        dense, sparse = tf.ConditionalAccumulator(tf.float32), tf.SparseConditionalAccumulator(tf.float32)
        table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, -1)
        devices = [dense.accumulator_ref.device, sparse.accumulator_ref.device, table.resource_handle.device]
    assert devices == ["/job:ps/task:0", "/job:worker", "/job:ps/task:1"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([-1, -1, 0, 0], r"Segment id -1 out of range \[0, 1\), possibly because 'segment_ids' input is not sorted"),
        ([0, 1, 2, 0], r"Segment id 1 out of range \[0, 1\)"),
        ([0, 1, 0, 1], "segment ids are not increasing"),
        ([0, 0, 0, -1], "segment ids must be >= 0"),
    ],
)
def test_unsorted_segments(ids: list[int], message: str) -> None:
    rows, segments = np.ones(4, np.float32), tf.placeholder(tf.int32)
    for result in (tf.segment_sum(rows, segments), tf.sparse_segment_sum(rows, [0, 1, 2, 3], segments)):
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(result, {segments: ids})


@pytest.mark.parametrize(
    ("shape", "indices", "values", "message"),
    [
        ([2, None], [0], [1.0], "expected values rank at least 2, got 1"),
        ([2, 3, 4], [0], [[1.0, 2.0]], "expected values rank at least 3, got 2"),
        (None, [[0]], [[1.0]], r"Input indices should be vector but received shape: \[1,1\]"),
        (None, [0, 1], [[1.0]], "Expected 2 non-empty input values, got 1"),
    ],
)
def test_sparse_gradients_of_another_rank(
    shape: list[int | None] | None, indices: object, values: object, message: str
) -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=shape)
    places, rows = tf.placeholder(tf.int64), tf.placeholder(tf.float32)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(accumulator.apply_grad(places, rows), {places: indices, rows: values})


def test_later_sparse_gradients_have_the_rank_of_the_first() -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32)
    places, rows = tf.placeholder(tf.int64), tf.placeholder(tf.float32)
    add = accumulator.apply_grad(places, rows)
    with tf.Session() as session:
        session.run(add, {places: [0], rows: [1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected values rank 1, got 2"):
            session.run(add, {places: [0], rows: [[1.0]]})


def test_a_handle_keeps_its_session() -> None:
    session = tf.Session()
    handle = session.run(tf.get_session_handle(tf.constant([1.0, 2.0])))
    assert handle.eval().tolist() == [1.0, 2.0]
    handle.delete()
    with pytest.raises(TypeError, match="may have already been deleted"):
        handle.eval()
    session.close()


def test_the_state_of_several_cells_is_a_tuple() -> None:
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(2)])
    with pytest.raises(ValueError, match="Expected state to be a tuple of length 2"):
        cells(tf.zeros([1, 2]), tf.zeros([1, 4]))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("compiled", [False, True])
def test_extremes_of_infinities_are_finite(sign: int, compiled: bool) -> None:
    reduce = tf.unsorted_segment_min if sign > 0 else tf.unsorted_segment_max
    rows, most = tf.placeholder(tf.float32, [4]), sign * np.finfo(np.float32).max
    extremes = reduce(rows, [0, 0, 1, 1], 3)
    config = tf.ConfigProto()
    if compiled:
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    with tf.Session(config=config) as session:
        fed = {rows: sign * np.array([np.inf, np.inf, 2, np.inf], np.float32)}
        found, gradient = session.run([extremes, *tf.gradients(extremes, rows)], fed)
    assert found.tolist() == [most, sign * 2.0, most]
    assert gradient.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_gradients_of_hues_choose_one_channel_in_ties() -> None:
    colours = tf.constant([[[0.5, 0.5, 0.1], [0.5, 0.1, 0.5], [0.1, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.1, 0.1]]])
    expected = [[0.9833, 0.4167, -2], [1.8167, -2, -0.4167], [-2, 0.9833, 0.4167], [3, 0, -2], [1.4, 0.4167, -2.4167]]
    with tf.Session() as session:
        (found,) = session.run(tf.gradients(tf.image.rgb_to_hsv(colours), colours))
    np.testing.assert_allclose(found, [expected], atol=1e-4)


def test_each_number_of_a_vector_is_an_embedding() -> None:
    table = np.array([2.0, 0.5, 3.0])
    with tf.Session() as session:
        assert session.run(tf.nn.embedding_lookup(table, [0, 1], max_norm=1.0)).tolist() == [1.0, 0.5]
        assert session.run(tf.nn.embedding_lookup(table, 0, max_norm=1.0)) == 1.0
