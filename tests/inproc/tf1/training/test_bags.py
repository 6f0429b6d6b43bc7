"""Rows of a table on a ps combined in bags: same results as in one process, fewer bytes, for any bag sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import InvalidArgumentError
from tests.support.cluster import memory_cluster
from tests.support.compilations import compilations
from tests.support.cuts import Cuts

ROWS, DIM, BATCH = 400, 16, 32
Array = np.ndarray[Any, Any]
TABLE: Array = np.random.default_rng(5).standard_normal((ROWS, DIM)).astype(np.float32)

Batch = tuple[Array, Array, Array]
"""The positions of ids, the ids, and their weights."""


class Counted(Cuts):
    """Cuts nothing, and counts the bytes that are sent.

    Attributes:
      payload: number of bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.payload = 0

    def pass_on(self, frame: Frame, channel: Channel) -> None:
        self.payload += sum(np.asarray(tensor).nbytes for tensor in frame.tensors)
        super().pass_on(frame, channel)


def batch(seed: int, least: int, most: int) -> Batch:
    """Returns ``BATCH`` bags with the given number of ids."""
    random = np.random.default_rng(seed)
    counts = random.integers(least, most + 1, BATCH)
    where = [[bag, place] for bag, count in enumerate(counts) for place in range(count)]
    n = len(where)
    return np.array(where, np.int64).reshape(-1, 2), random.zipf(1.2, n) % ROWS, random.random(n).astype("f") + 0.1


LONG = pytest.mark.long

POOLED, FEW = batch(1, 10, 20), batch(2, 1, 1)


def table_in(parts: int) -> Any:
    def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        del dtype
        first = 0 if partition_info is None else partition_info.var_offset[0]
        return tf.constant(TABLE[first : first + shape[0]])

    cut = tf.fixed_size_partitioner(parts) if parts > 1 else None
    return tf.get_variable("table", [ROWS, DIM], initializer=initial, partitioner=cut)


def fed(ids: Any, weights: Any, values: Batch, width: int = 40) -> dict[Any, Any]:
    where, rows, given = values
    shape = [BATCH, width]
    return {ids: (where, rows, shape), weights: (where, given, shape)}


Lookup = Callable[[Any, Any, Any], Any]
"""Expressions of a table, ids and weights."""


@contextmanager
def program(
    lookup: Lookup, parts: int, *, on_ps: bool, optimizer: Any = None, clip: float = 0.0
) -> Iterator[tuple[Callable[[Batch], float], Callable[[], Array], Counted]]:
    """Builds a program that trains a table; returns its step, the table, and the counter of its bytes."""
    counted = Counted()
    with memory_cluster(ps=2, worker=1, cuts=counted) as cluster, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(2) if on_ps else ""):
            table = table_in(parts)
            ids, weights = tf.sparse_placeholder(tf.int64, [BATCH, 40]), tf.sparse_placeholder(tf.float32)
            bags = lookup(table, ids, weights)
            loss = tf.reduce_sum(bags * bags * tf.range(1.0, 1 + tf.cast(tf.shape(bags)[0], tf.float32))[:, None]) / 99
            chosen = optimizer or tf.train.AdagradOptimizer(0.1)
            pairs = chosen.compute_gradients(loss)
            if clip:
                gradients, variables = zip(*pairs, strict=True)
                pairs = list(zip(tf.clip_by_global_norm(gradients, clip)[0], variables, strict=True))
            train = chosen.apply_gradients(pairs)
            initial = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker") if on_ps else "") as session:
            session.run(initial)
            parts_of = list(table) if parts > 1 else [table]
            yield (
                lambda values: float(session.run([loss, train], fed(ids, weights, values))[0]),
                lambda: np.concatenate(session.run(parts_of)),
                counted,
            )


def trained(lookup: Lookup, parts: int, batches: Sequence[Batch], **options: Any) -> tuple[list[float], Array, int]:
    """Returns the losses of some steps, the table after them, and the bytes of the last step."""
    with program(lookup, parts, **options) as (step, table, counted):
        losses = [step(each) for each in batches[:-1]]
        before = counted.payload
        losses.append(step(batches[-1]))
        travelled = counted.payload - before
        return losses, table(), travelled


def plain(combiner: str, *, weighted: bool = False) -> Lookup:
    return lambda table, ids, weights: tf.nn.embedding_lookup_sparse(
        table, ids, weights if weighted else None, "div", combiner=combiner
    )


def safe(combiner: str, *, weighted: bool = False, default_id: int | None = None) -> Lookup:
    return lambda table, ids, weights: tf.nn.safe_embedding_lookup_sparse(
        table, ids, weights if weighted else None, combiner, default_id
    )


def several(*lookups: Lookup) -> Lookup:
    """Adds up the results of several lookups of the same ids, which are joined."""
    return lambda table, ids, weights: tf.add_n([lookup(table, ids, weights) for lookup in lookups])


def of_rows(table: Any, ids: Any, weights: Any) -> Any:
    """Computes the same as a mean, with rows that are sent to the worker and combined there."""
    del weights
    rows, places = tf.unique(ids.values)
    return tf.sparse_segment_mean(tf.nn.embedding_lookup(table, rows, "div"), places, tf.to_int32(ids.indices[:, 0]))


@pytest.mark.parametrize(
    ("parts", "lookup"),
    [
        pytest.param(1, plain("sum"), id="sum", marks=LONG),
        pytest.param(2, plain("sqrtn", weighted=True), id="weighted root"),
        pytest.param(2, safe("mean"), id="safe mean", marks=LONG),
        pytest.param(1, safe("mean", weighted=True, default_id=3), id="weighted with default"),
        pytest.param(2, several(safe("mean"), safe("sum"), safe("sqrtn")), id="several"),
        pytest.param(
            2, several(safe("mean", weighted=True), safe("sqrtn", weighted=True)), id="several weighted", marks=LONG
        ),
    ],
)
def test_a_table_on_a_ps_trains_like_a_local_table(lookup: Lookup, parts: int) -> None:
    batches = [POOLED, FEW]
    losses, table, _ = trained(lookup, 1, batches, on_ps=False)
    found, other, _ = trained(lookup, parts, batches, on_ps=True)
    np.testing.assert_allclose(found, losses, rtol=2e-6)
    np.testing.assert_allclose(other, table, rtol=1e-6, atol=1e-6)
    assert not np.array_equal(table, TABLE)


@pytest.mark.parametrize(("parts", "clip"), [(1, 0.0), pytest.param(2, 0.5, marks=LONG)])
def test_bags_travel_where_they_are_fewer_bytes(parts: int, clip: float) -> None:
    pooled, rows = [
        trained(each, parts, [POOLED, POOLED], on_ps=True, clip=clip)[2] for each in (plain("mean"), of_rows)
    ]
    bags = 2 * parts * BATCH * DIM * 4  # the rows, and their gradients back
    assert bags < pooled < bags + 6 * len(POOLED[1]) + 600
    assert pooled < rows * (0.45 if parts == 1 else 0.7)
    # For bags of one id, rows are sent, each once.
    few, rows = [trained(each, parts, [FEW, FEW], on_ps=True, clip=clip)[2] for each in (plain("mean"), of_rows)]
    assert few < rows * 1.35


def test_bags_of_other_sizes_are_not_compiled_again() -> None:
    with program(safe("mean"), 2, on_ps=True) as (step, _, _):
        step(batch(1, 19, 21))
        with compilations() as compiled:
            for seed in range(2, 8):
                step(batch(seed, 16, 18))
        assert len(compiled) == 0


def test_clipped_gradients_train_alike() -> None:
    losses, table, _ = trained(plain("mean"), 1, [POOLED, POOLED], on_ps=False, clip=0.1)
    found, other, _ = trained(plain("mean"), 2, [POOLED, POOLED], on_ps=True, clip=0.1)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    np.testing.assert_allclose(other, table, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("combiner", [pytest.param("sum", marks=LONG), "mean", pytest.param("sqrtn", marks=LONG)])
def test_weights_have_gradients(combiner: str) -> None:
    def slopes(on_ps: bool) -> list[Array]:
        with memory_cluster(ps=2, worker=1) as cluster, tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(2) if on_ps else ""):
                ids, weights = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.float32)
                bags = tf.nn.embedding_lookup_sparse(table_in(2), ids, weights, "div", combiner=combiner)
                (slope,) = tf.gradients(tf.reduce_sum(bags * bags), weights.values)
                initial = tf.global_variables_initializer()
            with tf.Session(cluster.target("worker") if on_ps else "") as session:
                session.run(initial)
                return [session.run(slope, fed(ids, weights, each)) for each in (POOLED, FEW)]

    for there, home in zip(slopes(True), slopes(False), strict=True):
        np.testing.assert_allclose(there, home, rtol=1e-4, atol=1e-4)


def test_bad_and_missing_ids() -> None:
    with memory_cluster(ps=2, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(2)):
            table = table_in(2)
            ids = tf.sparse_placeholder(tf.int64)
            bags = tf.nn.embedding_lookup_sparse(table, ids, None, "div", combiner="sum")
            filled = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum", default_id=7)
            zeros = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean")
            weights = tf.sparse_placeholder(tf.float32)
            weighted = tf.nn.safe_embedding_lookup_sparse(table, ids, weights, default_id=7)
            wrong = tf.nn.safe_embedding_lookup_sparse(table, ids, default_id=ROWS)
            cube = tf.nn.safe_embedding_lookup_sparse(table, tf.sparse_placeholder(tf.int64, name="cube"))
            yes = tf.placeholder(tf.bool, [])
            branch = tf.cond(yes, lambda: tf.nn.embedding_lookup_sparse(table, ids, None, "div"), lambda: zeros)
            initial = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker")) as session:
            session.run(initial)
            pair = [[0, 0], [0, 1]], [5, 9], [1, 2]
            np.testing.assert_allclose(session.run(branch, {ids: pair, yes: True}), TABLE[[5, 9]].mean(0)[None])
            none = np.empty((0, 2), np.int64), np.empty(0, np.int64), [3, 4]
            assert session.run(bags, {ids: none}).shape == (0, DIM)
            np.testing.assert_array_equal(session.run(zeros, {ids: none}), np.zeros((3, DIM)))
            nothing = {ids: none, weights: (none[0], np.empty(0, np.float32), none[2])}
            np.testing.assert_array_equal(session.run(weighted, nothing), TABLE[[7, 7, 7]])
            with pytest.raises(InvalidArgumentError, match=rf"= {ROWS} is not in \[0, {ROWS}\)"):
                session.run(wrong, nothing)
            some = [[0, 0], [2, 0], [2, 1]], [5, -1, 9], [4, 2]
            found = session.run([filled, zeros], {ids: some})
            np.testing.assert_array_equal(found[0], TABLE[[5, 7, 9, 7]])
            np.testing.assert_array_equal(found[1], TABLE[[5, 0, 9, 0]] * [[1], [0], [1], [0]])
            for fetch, place in ((bags, 1), (zeros, 1)):
                with pytest.raises(InvalidArgumentError, match=rf"indices\[{place}\] = {ROWS} is not in \[0, {ROWS}\)"):
                    session.run(fetch, {ids: ([[0, 0], [1, 0]], [5, ROWS], [2, 1])})
            with pytest.raises(InvalidArgumentError, match="segment ids are not increasing"):
                session.run(bags, {ids: ([[1, 0], [0, 0]], [5, 6], [2, 1])})
            with pytest.raises(InvalidArgumentError, match=rf"= -1 is not in \[0, {ROWS}\)"):
                session.run(bags, {ids: some})
            assert cube.shape.as_list()[-1] == DIM


def test_feature_columns_with_several_ids() -> None:
    column = tf.feature_column
    words = [[b"a", b"b", b"c"], [b"d", b"", b""]]

    def built(on_ps: bool) -> list[Array]:
        with memory_cluster(ps=2, worker=1) as cluster, tf.Graph().as_default():
            with tf.device(tf.train.replica_device_setter(2) if on_ps else ""):
                found = column.categorical_column_with_hash_bucket("word", 50)
                start = tf.random_uniform_initializer(seed=3)
                wide = column.linear_model({"word": tf.constant(words)}, [found])
                deep = column.input_layer(
                    {"word": tf.constant(words)}, [column.embedding_column(found, 4, initializer=start)]
                )
                loss = tf.reduce_sum(deep * deep) + tf.reduce_sum(wide - 1) ** 2
                train = tf.train.FtrlOptimizer(0.1).minimize(loss)
                initial = tf.global_variables_initializer()
            with tf.Session(cluster.target("worker") if on_ps else "") as session:
                session.run(initial)
                session.run(train)
                return session.run([wide, deep])

    for there, home in zip(built(True), built(False), strict=True):
        np.testing.assert_allclose(there, home, rtol=1e-5)
