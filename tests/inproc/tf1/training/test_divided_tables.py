"""A table in parts on several ps behaves like a whole one: same rows, same training, errors that name ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from headwater import tf
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.routing import Capacities
from tests.support.cluster import memory_cluster

ROWS = 11
TABLE = np.arange(ROWS * 2, dtype=np.float32).reshape(ROWS, 2) / 7
BATCHES = ([0, 10, 5, 0], [3, 3, 3, 3], [10, 9, 8, 7], [1, 2, 1, 6])


def parts_of(count: int, strategy: str) -> list[Any]:
    """Returns `TABLE` as ``count`` variables."""
    if strategy == "div":
        pieces = np.array_split(TABLE, count)
    else:
        pieces = [TABLE[index::count] for index in range(count)]
    return [tf.Variable(piece, name=f"part_{index}") for index, piece in enumerate(pieces)]


def joined(parts: Sequence[np.ndarray[Any, Any]], strategy: str) -> np.ndarray[Any, Any]:
    if strategy == "div":
        return np.concatenate(parts)
    whole = np.empty_like(TABLE)
    for index, part in enumerate(parts):
        whole[index :: len(parts)] = part
    return whole


@pytest.mark.parametrize("strategy", ["mod", "div"])
@pytest.mark.parametrize("count", [2, 3])
def test_every_id_gives_its_row(count: int, strategy: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64)
        rows = tf.nn.embedding_lookup(parts_of(count, strategy), ids, strategy)
        session.run(tf.global_variables_initializer())
        for wanted in (np.arange(ROWS), np.zeros((2, 3), int), 7, np.array([], int), [[10], [0]], [5] * 40):
            np.testing.assert_array_equal(session.run(rows, {ids: wanted}), TABLE[np.asarray(wanted)])


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_unknown_id_is_named_and_nothing_changes(strategy: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int32, [None])
        parts = parts_of(2, strategy)
        rows = tf.nn.embedding_lookup(parts, ids, strategy)
        train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows * rows))
        session.run(tf.global_variables_initializer())
        for bad in (ROWS, -1, 2**31 - 1, -(2**31)):
            for fetch in (rows, train):
                with pytest.raises(InvalidArgumentError, match=rf"indices\[2\] = {bad} is not in \[0, {ROWS}\)"):
                    session.run(fetch, {ids: [5, 0, bad]})
        np.testing.assert_array_equal(joined(session.run(parts), strategy), TABLE)


def test_parts_of_unlike_sizes_name_the_part() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.nn.embedding_lookup([tf.constant(TABLE[:4]), tf.constant(TABLE[4:6])], ids)
        np.testing.assert_array_equal(session.run(rows, {ids: [6, 3]}), TABLE[[3, 5]])
        with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 5 is row 2 of part 1.* \[4, 2\] rows"):
            session.run(rows, {ids: [6, 5]})


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.5),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
}


def trained(parts: int, optimizer: str, target: str = "", *, replicas: int = 0) -> Any:
    """Returns the table after training on `BATCHES`, in ``parts`` parts."""
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(2) if target else ""):
        table: Any = tf.get_variable(
            "table",
            initializer=tf.constant_initializer(TABLE) if parts == 1 else initial,
            shape=[ROWS, 2],
            partitioner=tf.fixed_size_partitioner(parts) if parts > 1 else None,
        )
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.nn.embedding_lookup(table, ids, "div")
        step = tf.train.get_or_create_global_step()
        chosen = OPTIMIZERS[optimizer]()
        if replicas:
            chosen = tf.train.SyncReplicasOptimizer(chosen, replicas)
        # The loss of a row depends on its position in the batch, so that equal rows have different gradients.
        weights = tf.constant([[1.0], [2.0], [3.0], [4.0]])
        train = chosen.minimize(tf.reduce_sum(weights * rows * rows), global_step=step)
        with tf.train.MonitoredSession(
            tf.train.ChiefSessionCreator(master=target), [chosen.make_session_run_hook(True)] if replicas else []
        ) as session:
            for batch in BATCHES:
                session.run(train, {ids: batch})
            found = session.run(list(table) if parts > 1 else table)
            return np.concatenate(found) if parts > 1 else found


def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
    del dtype
    first = partition_info.var_offset[0]
    return tf.constant(TABLE[first : first + shape[0]])


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_changes_the_rows_that_a_whole_table_changes(optimizer: str) -> None:
    whole = trained(1, optimizer)
    assert not np.array_equal(whole, TABLE)
    for parts in (2, 3):
        np.testing.assert_allclose(trained(parts, optimizer), whole, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("optimizer", ["descent", "momentum"])
def test_on_two_ps(optimizer: str, replicas: int) -> None:
    whole = trained(1, optimizer, replicas=replicas)
    with memory_cluster(ps=2, worker=1) as cluster:
        found = trained(2, optimizer, cluster.target("worker"), replicas=replicas)
    np.testing.assert_allclose(found, whole, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("replicas", [0, 1])
@pytest.mark.parametrize("optimizer", ["momentum", "adagrad", "adam"])
def test_a_small_table_on_one_ps_trains_as_at_home(optimizer: str, replicas: int) -> None:
    whole = trained(1, optimizer, replicas=replicas)
    with memory_cluster(ps=2, worker=1) as cluster:
        found = trained(1, optimizer, cluster.target("worker"), replicas=replicas)
    np.testing.assert_allclose(found, whole, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("optimizer", ["momentum", "adagrad"])
def test_rows_travel_as_bfloat16_where_the_environment_says_so(
    optimizer: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(1, optimizer)
    monkeypatch.setenv("HEADWATER_ROWS_WIRE", "bfloat16")
    np.testing.assert_array_equal(trained(1, optimizer), whole)  # within one process, nothing is sent
    with memory_cluster(ps=2, worker=1) as cluster:
        found = trained(parts, optimizer, cluster.target("worker"))
    error = np.abs(found - whole).max()
    assert 0 < error < 2**-6 * np.abs(whole).max()
    # Rows that no batch used are unchanged: the ps does not round stored values.
    unused = sorted(set(range(ROWS)) - {row for batch in BATCHES for row in batch})
    np.testing.assert_array_equal(found[unused], TABLE[unused])


def test_rows_have_no_other_form_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_ROWS_WIRE", "int8")
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="HEADWATER_ROWS_WIRE is 'int8', not float32 or bfloat16"),
    ):
        tf.nn.embedding_lookup(parts_of(2, "mod"), [1])


def test_rows_of_a_small_table_are_sent_once_and_an_invalid_id_is_named() -> None:
    with memory_cluster(ps=1, worker=1) as cluster, tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            table = tf.Variable(TABLE)
            large = tf.Variable(np.zeros((1000, 2), np.float32))
        ids = tf.placeholder(tf.int64, [None], "ids")
        rows = tf.nn.embedding_lookup(table, ids)
        tf.nn.embedding_lookup(large, ids)
        tf.nn.embedding_lookup(large, tf.placeholder(tf.int64, [30, 100], "many"))
        tf.nn.embedding_lookup(table, tf.unique(ids)[0])
        routed = [op for op in graph.get_operations() if op.type == "RouteIds"]
        assert [op.inputs[0].op.name for op in routed] == ["ids", "many"]
        asked = routed[0].outputs[0]
        with tf.Session(cluster.target("worker")) as session:
            session.run(table.initializer)
            found, wanted = session.run([rows, asked], {ids: [5, 0, 5, 5, 10] * 50})
            np.testing.assert_array_equal(found, TABLE[[5, 0, 5, 5, 10] * 50])
            assert sorted(row for row in wanted if row >= 0) == [0, 5, 10]
            with pytest.raises(InvalidArgumentError, match=rf"indices\[1\] = {ROWS} is not in \[0, {ROWS}\)"):
                session.run(rows, {ids: [5, ROWS]})


def test_gradients_are_rows_of_each_part() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        parts = parts_of(2, "mod")
        loss = tf.reduce_sum(tf.nn.embedding_lookup(parts, [4, 4, 1]) * [[1.0], [2.0], [4.0]])
        found: list[Any] = tf.gradients(loss, parts)
        assert all(isinstance(gradient, tf.IndexedSlices) for gradient in found)
        session.run(tf.global_variables_initializer())
        dense = session.run([tf.convert_to_tensor(gradient) for gradient in found])
        np.testing.assert_array_equal(joined(dense, "mod")[:, 0], [0, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0])


def test_within_branches_and_loops() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        parts, ids, yes = parts_of(2, "mod"), tf.placeholder(tf.int32, [3]), tf.placeholder(tf.bool, [])
        branch = tf.cond(yes, lambda: tf.nn.embedding_lookup(parts, ids), lambda: tf.zeros([3, 2]))
        turns = tf.map_fn(lambda i: tf.nn.embedding_lookup(parts, i[tf.newaxis])[0], ids, tf.float32)
        gradient: list[Any] = tf.gradients(tf.reduce_sum(turns), parts)
        session.run(tf.global_variables_initializer())
        feed = {ids: [9, 0, 9], yes: True}
        np.testing.assert_array_equal(session.run(branch, feed), TABLE[[9, 0, 9]])
        np.testing.assert_array_equal(session.run(branch, feed | {yes: False}), np.zeros((3, 2)))
        np.testing.assert_array_equal(session.run(turns, feed), TABLE[[9, 0, 9]])
        dense = session.run([tf.convert_to_tensor(g) for g in gradient], feed)
        np.testing.assert_array_equal(joined(dense, "mod")[:, 0], [1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0])


def test_sparse_lookups_and_feature_columns() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        parts, whole = parts_of(3, "div"), tf.constant(TABLE)
        sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 2]], tf.constant([9, 9, 2, -1], tf.int64), [4, 3])
        pairs = [
            [tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner=combiner) for table in (parts, whole)]
            for combiner in ("sum", "mean", "sqrtn")
        ]
        table = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([9, 4, 2], tf.int64), [2, 2])
        pairs.append(
            [tf.nn.embedding_lookup_sparse(each, table, None, "div", combiner="sum") for each in (parts, whole)]
        )
        column = tf.feature_column.embedding_column(
            tf.feature_column.categorical_column_with_identity("item", ROWS), 2, initializer=initial
        )
        with tf.variable_scope("columns", partitioner=tf.fixed_size_partitioner(2)):
            layer = tf.feature_column.input_layer({"item": tf.constant([[3], [10], [0]])}, [column])
        session.run(tf.global_variables_initializer())
        for one, other in pairs:
            np.testing.assert_allclose(*session.run([one, other]), rtol=1e-6)
        np.testing.assert_array_equal(session.run(layer), TABLE[[3, 10, 0]])


def wide(parts: int, fetch: Callable[[Any, Any], Any], batches: Sequence[Any]) -> Any:
    """Returns the results of ``fetch(table, rows)`` for each of ``batches``, with a table of ``parts`` parts; then the
    table.

    The batches are large enough for compiled loops over rows.
    """
    table = np.random.default_rng(1).random((300, 4)).astype(np.float32)

    def slice_of(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        del dtype
        first = 0 if partition_info is None else partition_info.var_offset[0]
        return tf.constant(table[first : first + shape[0]])

    with tf.Graph().as_default(), tf.Session() as session:
        partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
        variable = tf.get_variable("table", [300, 4], initializer=slice_of, partitioner=partitioner)
        ids = tf.placeholder(tf.int64, [None])
        wanted = fetch(variable, ids)
        session.run(tf.global_variables_initializer())
        found = [session.run(wanted, {ids: batch}) for batch in batches]
        whole = session.run(list(variable) if parts > 1 else [variable])
    return found, np.concatenate(whole)


SKEWED = [np.random.default_rng(batch).zipf(1.3, 256) % 300 for batch in range(3)]


def compare(fetch: Callable[[Any, Any], Any], **tolerance: float) -> None:
    """Checks that tables in two and in three parts have the results of a whole one."""
    values, table = wide(1, fetch, SKEWED)
    for parts in (2, 3):
        others, other = wide(parts, fetch, SKEWED)
        np.testing.assert_allclose(other, table, **dict[str, Any](tolerance or {"rtol": 1e-5}))
        np.testing.assert_allclose(others, values, rtol=1e-5)


def squares(table: Any, ids: Any) -> Any:
    rows = tf.nn.embedding_lookup(table, ids, "div")
    return tf.reduce_sum(rows * rows * tf.range(1.0, 257.0)[:, tf.newaxis] / 256)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_large_batches_train_as_a_whole_table_does(optimizer: str) -> None:
    def fetch(table: Any, ids: Any) -> Any:
        loss = squares(table, ids)
        with tf.control_dependencies([OPTIMIZERS[optimizer]().minimize(loss)]):
            return tf.identity(loss)

    compare(fetch, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", ["global", "each"])
def test_norms_are_of_a_row_for_each_id_as_in_tensorflow(clip: str) -> None:
    def fetch(table: Any, ids: Any) -> Any:
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        pairs = optimizer.compute_gradients(squares(table, ids))
        gradients, variables = zip(*pairs, strict=True)
        norm = tf.global_norm(gradients)
        if clip == "global":
            clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
        else:
            # Each part's gradient is clipped separately, at a bound that no part reaches, so that the number of parts
            # does not matter.
            clipped = [tf.clip_by_norm(gradient, 1e6) for gradient in gradients]
        doubled = [tf.scalar_mul(2.0, gradient) for gradient in clipped]
        train = optimizer.apply_gradients(zip(doubled, variables, strict=True))
        with tf.control_dependencies([train]):
            return tf.identity(norm)

    compare(fetch)


def test_two_lookups_of_a_table_add_up() -> None:
    def fetch(table: Any, ids: Any) -> Any:
        loss = squares(table, ids) + 2 * squares(table, ids[::-1])
        with tf.control_dependencies([tf.train.AdagradOptimizer(0.1).minimize(loss)]):
            return tf.identity(loss)

    compare(fetch)


def test_each_id_is_asked_for_once() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None])
        parts = parts_of(2, "mod")
        gradients: list[Any] = tf.gradients(tf.reduce_sum(tf.nn.embedding_lookup(parts, ids)), parts)
        session.run(tf.global_variables_initializer())
        routed = [op.outputs[:2] for op in session.graph.get_operations() if op.type == "RouteIds"]
        batch = [4, 4, 1, 4, 10, 1, 3]
        even, odd = session.run(routed[0], {ids: batch})
        assert [row for row in even if row >= 0] == [2, 5]
        assert [row for row in odd if row >= 0] == [0, 1]
        # The slices have a row for each id; their sums have one for each row.
        each = session.run([gradient.indices for gradient in gradients], {ids: batch})
        assert [row for row in each[0] if row >= 0] == [2, 2, 2, 5]
        assert gradients[0].summed.distinct
        assert not gradients[0].distinct


def test_few_sizes_are_compiled() -> None:
    capacities, random = Capacities(4), np.random.default_rng(3)
    seen = set[tuple[int, ...]]()
    for _ in range(500):
        counts = np.bincount(random.integers(0, 4, 256), minlength=4)[np.newaxis]
        room = capacities.of([256])
        if (counts > room).any():
            room = capacities.fitting([256], counts)
        assert (counts <= room).all()
        seen.add(tuple(room[0].tolist()))
    assert len(seen) <= 3
    assert all(max(places) <= 112 for places in seen)
    assert capacities.fitting([256], np.array([[256, 0, 0, 0]]))[0, 0] == 256
    assert capacities.of([1]).tolist() == [[0, 0, 0, 0]]
    assert capacities.fitting([1], np.array([[1, 0, 0, 0]])).max() <= 8
