"""Datasets of dense, sparse, ragged and nested elements in TensorFlow 2, run by TensorFlow and by Headwater.

With an interpreter that has TensorFlow 2, ``python composite_cases.py > ../../data/tf2/composites.json`` records its
answers.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Dataset = Any


def sparse_rows(tf: Any) -> Any:
    """A sparse matrix with rows [1, 2], [], [3], [4, 5, 6]."""
    places = [[0, 0], [0, 1], [2, 0], [3, 0], [3, 1], [3, 2]]
    return tf.SparseTensor(np.array(places, np.int64), np.arange(1, 7, dtype=np.int32), [4, 3])


def dense(tf: Any) -> Dataset:
    return tf.data.Dataset.from_tensor_slices(np.array([[1, 2], [0, 0], [3, 0], [4, 5]], np.int32))


def sparse(tf: Any) -> Dataset:
    return tf.data.Dataset.from_tensor_slices(sparse_rows(tf))


def ragged(tf: Any) -> Dataset:
    return tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [], [[4]], [[5, 6], [], [7]]]))


def nested(tf: Any) -> Dataset:
    rows = {"a": sparse_rows(tf), "b": {"r": tf.ragged.constant([[1, 2], [], [3], [4, 5, 6]]), "n": np.arange(4)}}
    return tf.data.Dataset.from_tensor_slices(rows)


KINDS = {"dense": dense, "sparse": sparse, "ragged": ragged, "nested": nested}


def total(tf: Any, element: Any) -> Any:
    """The sum of all values of an element, int32."""
    if isinstance(element, dict):
        return total(tf, element["a"])
    if isinstance(element, tf.SparseTensor):
        return tf.reduce_sum(element.values)
    if isinstance(element, tf.RaggedTensor):
        return tf.reduce_sum(element.flat_values)
    return tf.reduce_sum(element)


def doubled(tf: Any, element: Any) -> Any:
    if isinstance(element, dict):
        return {name: doubled(tf, part) for name, part in element.items()}
    if isinstance(element, tf.SparseTensor):
        return tf.SparseTensor(element.indices, element.values * 2, element.dense_shape)
    return element * 2


def joined(tf: Any, window: Any, size: int) -> Any:
    """A dataset of batches of the elements of a window: a dataset, or a structure of datasets."""
    if isinstance(window, dict):
        return tf.data.Dataset.zip({name: joined(tf, part, size) for name, part in window.items()})
    return window.batch(size)


def shown(tf: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shown(tf, part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [shown(tf, part) for part in value]
    if isinstance(value, tf.SparseTensor):
        return ["sparse", *(_listed(part) for part in (value.indices, value.values, value.dense_shape))]
    if isinstance(value, tf.RaggedTensor):
        return ["ragged", _listed(value.to_list()), value.row_splits.dtype.name]
    return _listed(value)


def _listed(value: Any) -> Any:
    """Nested lists of numbers and text."""
    found = value if isinstance(value, list) else np.asarray(value).tolist()
    return json.loads(json.dumps(found, default=lambda text: text.decode()))


def described(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {name: described(part) for name, part in spec.items()}
    if isinstance(spec, tuple):
        return [described(part) for part in spec]
    if not hasattr(spec, "shape"):
        return type(spec).__name__
    rank = spec.shape.rank
    kind = "TensorSpec" if getattr(spec, "ragged_rank", 1) == 0 else type(spec).__name__
    return [kind, None if rank is None else spec.shape.as_list(), spec.dtype.name]


def outcome(tf: Any, dataset: Any) -> Any:
    return [[shown(tf, element) for element in dataset], described(dataset.element_spec)]


def _saved(tf: Any, dataset: Dataset) -> Dataset:
    folder = tempfile.mkdtemp()
    dataset.save(folder)
    loaded = tf.data.Dataset.load(folder)
    kept = [shown(tf, element) for element in loaded]
    shutil.rmtree(folder)
    return [kept, described(loaded.element_spec)]


def _in_a_file(tf: Any, dataset: Dataset, keep: Callable[[Any, str], Any]) -> Any:
    folder = tempfile.mkdtemp()
    made = keep(dataset, str(Path(folder) / "kept"))
    found = [outcome(tf, made), outcome(tf, made)]
    shutil.rmtree(folder)
    return found[0] if found[0] == found[1] else ["differs", found]


def _iterators(tf: Any, dataset: Dataset) -> Any:
    iterator = iter(dataset)
    first = shown(tf, next(iterator))
    rest = [shown(tf, iterator.get_next())]
    maybe = iterator.get_next_as_optional()
    return [first, rest, shown(tf, maybe.get_value()), bool(maybe.has_value()), described(iterator.element_spec)]


def _in_a_function(tf: Any, dataset: Dataset) -> Any:
    @tf.function
    def step(element: Any) -> Any:
        return total(tf, element), doubled(tf, element)

    return [shown(tf, step(element)) for element in dataset]


def _for_numpy(tf: Any, dataset: Dataset) -> Any:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(part) for name, part in value.items()}
        return (
            [plain(part) for part in value]
            if getattr(getattr(value, "dtype", None), "kind", "") == "O"
            else np.asarray(value).tolist()
        )

    return [plain(element) for element in dataset.as_numpy_iterator()]


def _generated(tf: Any, dataset: Dataset) -> Any:
    found = list(dataset)
    return outcome(tf, tf.data.Dataset.from_generator(lambda: iter(found), output_signature=dataset.element_spec))


def _scanned(tf: Any, dataset: Dataset) -> Any:
    return outcome(tf, dataset.scan(np.int32(0), lambda state, each: (state + total(tf, each), (state, each))))


def _chosen(tf: Any, dataset: Dataset) -> Any:
    choice = tf.data.Dataset.from_tensor_slices(np.array([1, 0, 0, 1], np.int64))
    two = dataset.map(lambda each: doubled(tf, each))
    return outcome(tf, tf.data.Dataset.choose_from_datasets([dataset, two], choice))


def _sampled(tf: Any, dataset: Dataset) -> Any:
    weights = tf.data.Dataset.from_tensors([0.0, 1.0]).repeat()
    return outcome(tf, tf.data.Dataset.sample_from_datasets([dataset.skip(2), dataset], weights).take(3))


def _refused(tf: Any, make: Callable[[], Any]) -> Any:
    try:
        return outcome(tf, make())
    except (TypeError, ValueError) as error:
        return type(error).__name__
    except tf.errors.OpError as error:
        return type(error).__name__


def _failing(tf: Any, dataset: Dataset) -> Any:
    def checked(each: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_less(total(tf, each), 7)]):
            return doubled(tf, each)

    return outcome(tf, dataset.map(checked).ignore_errors())


def _resampled(tf: Any, dataset: Dataset) -> Any:
    kinds = tf.data.Dataset.zip((tf.data.Dataset.range(4), dataset))
    made = kinds.rejection_resample(lambda n, each: tf.cast(n % 2, tf.int32), [1.0, 0.0], [0.5, 0.5], seed=1)
    return outcome(tf, made)


METHODS: dict[str, Callable[[Any, Any], Any]] = {
    "elements": outcome,
    "map": lambda tf, data: outcome(tf, data.map(lambda each: doubled(tf, each))),
    "map in parallel": lambda tf, data: outcome(tf, data.map(lambda each: total(tf, each), num_parallel_calls=2)),
    "filter": lambda tf, data: outcome(tf, data.filter(lambda each: total(tf, each) > 3)),
    "flat_map": lambda tf, data: outcome(
        tf, data.flat_map(lambda each: tf.data.Dataset.from_tensors(each).repeat(2)).take(3)
    ),
    "interleave": lambda tf, data: outcome(
        tf, data.interleave(lambda each: tf.data.Dataset.from_tensors(each).repeat(2), cycle_length=2).take(3)
    ),
    "interleave whole datasets": lambda tf, data: outcome(
        tf, tf.data.Dataset.range(2).interleave(lambda n: data.skip(n), cycle_length=2)
    ),
    "scan": _scanned,
    "reduce": lambda tf, data: shown(tf, data.reduce(np.int32(0), lambda state, each: state + total(tf, each))),
    "reduce to an element": lambda tf, data: shown(
        tf, data.skip(2).reduce(next(iter(data)), lambda state, each: doubled(tf, state))
    ),
    "batch": lambda tf, data: _refused(tf, lambda: data.batch(3)),
    "batch without a remainder": lambda tf, data: outcome(tf, data.batch(2, drop_remainder=True)),
    "batch twice": lambda tf, data: outcome(tf, data.batch(2).batch(2)),
    "unbatch": lambda tf, data: outcome(tf, data.batch(3).unbatch()),
    "padded_batch": lambda tf, data: _refused(tf, lambda: data.padded_batch(3)),
    "ragged_batch": lambda tf, data: outcome(tf, data.ragged_batch(3)),
    "rebatch": lambda tf, data: _refused(tf, lambda: data.batch(3).rebatch(2)),
    "rebatch in turn": lambda tf, data: _refused(tf, lambda: data.batch(2).rebatch([1, 2])),
    "window": lambda tf, data: outcome(tf, data.window(3).flat_map(lambda window: joined(tf, window, 2))),
    "group_by_window": lambda tf, data: outcome(
        tf,
        data.group_by_window(
            lambda each: tf.cast(total(tf, each) % 2, tf.int64), lambda key, window: window.batch(2), 2
        ),
    ),
    "group_by_window of sizes": lambda tf, data: outcome(
        tf,
        data.group_by_window(
            lambda each: tf.cast(total(tf, each) % 2, tf.int64),
            lambda key, window: window.batch(3),
            window_size_func=lambda key: key + 1,
        ),
    ),
    "bucket_by_sequence_length": lambda tf, data: outcome(
        tf, data.bucket_by_sequence_length(lambda each: total(tf, each), [3], [2, 2], no_padding=True)
    ),
    "zip": lambda tf, data: outcome(tf, tf.data.Dataset.zip({"x": data, "y": (data, tf.data.Dataset.range(3))})),
    "concatenate": lambda tf, data: outcome(tf, data.concatenate(data.skip(3))),
    "choose_from_datasets": _chosen,
    "sample_from_datasets": _sampled,
    "shard": lambda tf, data: outcome(tf, data.shard(2, 1)),
    "shuffle": lambda tf, data: sorted(int(total(tf, each)) for each in data.shuffle(3, seed=1)),
    "repeat": lambda tf, data: outcome(tf, data.repeat(2).skip(3).take(2)),
    "cache": lambda tf, data: outcome(tf, data.cache().repeat(2).skip(3)),
    "cache in a file": lambda tf, data: _in_a_file(tf, data, lambda made, path: made.cache(path)),
    "snapshot": lambda tf, data: _in_a_file(tf, data, lambda made, path: made.snapshot(path)),
    "save and load": _saved,
    "prefetch": lambda tf, data: outcome(tf, data.prefetch(tf.data.AUTOTUNE)),
    "enumerate": lambda tf, data: outcome(tf, data.enumerate(5).take(2)),
    "take_while": lambda tf, data: outcome(tf, data.take_while(lambda each: total(tf, each) < 4)),
    "ignore_errors": _failing,
    "rejection_resample": _resampled,
    "get_single_element": lambda tf, data: shown(tf, data.take(1).get_single_element()),
    "map_and_batch": lambda tf, data: outcome(
        tf, data.apply(tf.data.experimental.map_and_batch(lambda each: doubled(tf, each), 2))
    ),
    "from_tensors": lambda tf, data: outcome(tf, tf.data.Dataset.from_tensors((next(iter(data)), 5)).repeat(2)),
    "slices of a batch": lambda tf, data: outcome(tf, tf.data.Dataset.from_tensor_slices(next(iter(data.batch(2))))),
    "from_generator": _generated,
    "iterators": _iterators,
    "in a function": _in_a_function,
    "as_numpy_iterator": _for_numpy,
    "cardinality": lambda tf, data: [int(data.cardinality()), int(data.batch(3).cardinality())],
}


# Single cases ---------------------------------------------------------------------------------------------------------


def unknown_sizes_as_ragged_batches(tf: Any) -> Any:
    counts = tf.data.Dataset.range(1, 4).map(lambda n: (tf.fill([n, 2], n), tf.fill([2, n], n), n))
    narrow = counts.map(lambda one, two, three: one).ragged_batch(2, True, tf.int32)
    return [outcome(tf, counts.ragged_batch(2)), outcome(tf, narrow)]


def sparse_batches(tf: Any) -> Any:
    return outcome(tf, tf.data.Dataset.range(1, 4).map(lambda n: tf.range(n)).sparse_batch(2, [5]))


def padded_buckets(tf: Any) -> Any:
    words = tf.data.Dataset.range(1, 7).map(lambda n: tf.range(n))
    made = words.bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 2])
    whole = words.take(4).bucket_by_sequence_length(tf.size, [3, 5], [2, 2, 2], pad_to_bucket_boundary=True)
    return [outcome(tf, made), outcome(tf, whole)]


def numbers(tf: Any) -> Any:
    counted = tf.data.Dataset.counter(5, -2, tf.int32).take(3)
    drawn = list(tf.data.Dataset.random(seed=4).take(3))
    unique = tf.data.Dataset.from_tensor_slices([1, 2, 1, 3, 2]).unique()
    return [outcome(tf, counted), len({int(each) for each in drawn}), drawn[0].dtype.name, outcome(tf, unique)]


def static_dense_shapes(tf: Any) -> Any:
    def doubled_again(each: Any) -> Any:
        return tf.SparseTensor(each.indices, each.values * 2, each.dense_shape)

    return [described(data.map(doubled_again).element_spec) for data in (sparse(tf), sparse(tf).batch(2))]


def ragged_generator(tf: Any) -> Any:
    signature = (tf.RaggedTensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.string))
    rows = [([[1], [2, 3]], "a"), ([[]], "b")]
    made = tf.data.Dataset.from_generator(
        lambda: ((tf.ragged.constant(row, tf.int32, ragged_rank=1), name) for row, name in rows),
        output_signature=signature,
    )
    return [outcome(tf, made), outcome(tf, made.batch(2))]


def methods_of_ragged_tensors(tf: Any) -> Any:
    rows = tf.ragged.constant([[1, 2], [], [3]])
    deep = tf.ragged.constant([[[1], [2, 3]], [[4]]])
    made = [rows.values, rows.row_splits, rows.row_lengths(), rows.value_rowids(), rows.nrows(), rows.to_tensor(9)]
    made += [rows[0], rows[:, :1], rows[1:], rows + 1, 2 * rows, rows == 2, rows != 2, -rows, rows > 1]
    made += [rows.to_sparse(), rows.with_values([7, 8, 9]), deep.flat_values, deep.bounding_shape(), deep[0]]
    made += [*deep.nested_row_splits, *list(deep), tf.RaggedTensor.from_sparse(rows.to_sparse())]
    made += [tf.RaggedTensor.from_tensor([[1, 0], [2, 3]], padding=0), tf.RaggedTensor.from_row_lengths([1, 2], [2, 0])]
    told = [rows.shape.as_list(), rows.ragged_rank, deep.ragged_rank, rows.dtype.name, repr(rows), deep.to_list()]
    return [[shown(tf, each) for each in made], told, rows.numpy().tolist()[0].tolist(), tf.is_tensor(rows)]


def methods_of_sparse_tensors(tf: Any) -> Any:
    rows = sparse_rows(tf)
    floats = tf.cast(rows, tf.float32)
    made = [rows.indices, rows.values, rows.dense_shape, floats / 2.0, floats * [[1.0], [2.0], [3.0], [4.0]]]
    made += [tf.sparse.to_dense(rows), tf.sparse.from_dense([[0, 1]]), tf.sparse.reduce_sum(rows, 1)]
    made += [tf.sparse.concat(1, [rows, rows]), tf.sparse.retain(rows, rows.values > 2), tf.sparse.transpose(rows)]
    made += [tf.sparse.sparse_dense_matmul(floats, tf.eye(3)), tf.sparse.slice(rows, [2, 0], [2, 2])]
    made += [tf.sparse.map_values(tf.multiply, rows, 3)]
    return [[shown(tf, each) for each in made], rows.shape.as_list(), rows.dtype.name, tf.is_tensor(rows)]


def words_of_lines(tf: Any) -> Any:
    lines = tf.data.Dataset.from_tensor_slices(["a b", "", "c d e"])
    return [
        outcome(tf, lines.map(tf.strings.split)),
        outcome(tf, lines.batch(2).map(tf.strings.split)),
        shown(tf, tf.strings.split(["a,b", "c"], sep=",")),
    ]


def gradients_through_ragged_values(tf: Any) -> Any:
    weights = tf.Variable([1.0, 2.0, 3.0, 4.0])
    ids = tf.ragged.constant([[0, 1], [], [3]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.reduce_sum(tf.gather(weights, ids), axis=1) ** 2)
    found = tape.gradient(loss, weights)
    return shown(tf, tf.convert_to_tensor(found))


def captured_in_a_map(tf: Any) -> Any:
    rows = tf.ragged.constant([[1, 2], [], [3]])
    matrix = tf.cast(sparse_rows(tf), tf.float32)
    made = tf.data.Dataset.range(3).map(lambda n: (rows[n], tf.gather(rows, [n]), tf.sparse.reduce_sum(matrix)))
    return outcome(tf, made)[0]


def _example(tf: Any, **features: Any) -> bytes:
    kinds = {int: ("int64_list", "Int64List"), float: ("float_list", "FloatList"), bytes: ("bytes_list", "BytesList")}
    made = {}
    for name, values in features.items():
        field, kind = kinds[type(values[0]) if values else int]
        made[name] = tf.train.Feature(**{field: getattr(tf.train, kind)(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


def ragged_features(tf: Any) -> Any:
    feature = tf.io.RaggedFeature
    texts = [
        _example(tf, v=[1.0, 2.0, 3.0], n=[2, 1], s=[0, 2, 3], l=[2, 3], b=[0, 2], r=[0, 0, 1], o=[0, 1, 2]),
        _example(tf, v=[4.0], n=[0, 1], s=[0, 0, 1], l=[0, 1], b=[0, 0], r=[1], o=[0, 2]),
        _example(tf, s=[0], o=[0]),
    ]
    features = {
        "v": feature(tf.float32),
        "lengths": feature(tf.float32, "v", [feature.RowLengths("n")]),
        "splits": feature(tf.float32, "v", [feature.RowSplits("s")]),
        "limits": feature(tf.float32, "v", [feature.RowLimits("l")]),
        "starts": feature(tf.float32, "v", [feature.RowStarts("b")]),
        "ids": feature(tf.float32, "v", [feature.ValueRowIds("r")]),
        "uniform": feature(tf.float32, "v", [feature.UniformRowLength(1)]),
    }
    batch = tf.io.parse_example(texts, features)
    one = tf.io.parse_single_example(texts[0], features)
    wide = {"w": feature(tf.float32, "v", [feature.RowSplits("o"), feature.RowLengths("n")], tf.int64)}
    deep = tf.io.parse_example(texts, wide), tf.io.parse_single_example(texts[0], wide)
    data = tf.data.Dataset.from_tensor_slices(texts).batch(3).map(lambda text: tf.io.parse_example(text, features))
    return [shown(tf, batch), shown(tf, one), shown(tf, deep), outcome(tf, data)]


def parsed_examples(tf: Any) -> Any:
    texts = [_example(tf, w=[b"a", b"b"], y=[1]), _example(tf, y=[0])]
    features = {"w": tf.io.VarLenFeature(tf.string), "y": tf.io.FixedLenFeature([], tf.int64)}
    data = tf.data.Dataset.from_tensor_slices(texts)
    return [
        shown(tf, tf.io.parse_example(texts, features)),
        outcome(tf, data.batch(2).map(lambda text: tf.io.parse_example(text, features))),
        outcome(tf, data.map(lambda text: tf.io.parse_single_example(text, features)).batch(2)),
        outcome(tf, data.batch(2).apply(tf.data.experimental.parse_example_dataset(features))),
    ]


def batched_features(tf: Any) -> Any:
    folder = tempfile.mkdtemp()
    path = str(Path(folder) / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for words, label in (([b"a", b"b"], 1), ([], 0), ([b"c"], 1)):
            writer.write(_example(tf, w=words or [b""], y=[label]))
    features = {
        "w": tf.io.VarLenFeature(tf.string),
        "y": tf.io.FixedLenFeature([], tf.int64),
    }
    found = outcome(
        tf,
        tf.data.experimental.make_batched_features_dataset(
            path, 2, features, label_key="y", shuffle=False, num_epochs=1
        ),
    )
    shutil.rmtree(folder)
    return found


def columns_of_lines(tf: Any) -> Any:
    folder = tempfile.mkdtemp()
    path = Path(folder) / "a.csv"
    path.write_text("x,t,y\n1,a,0\n2,,1\n,c,1\n", encoding="utf-8")
    made = tf.data.experimental.make_csv_dataset(
        str(path), 2, column_defaults=[0, "", 0.0], label_name="y", num_epochs=1, shuffle=False
    )
    found = [[{k: shown(tf, v) for k, v in one.items()}, shown(tf, two)] for one, two in made]
    shutil.rmtree(folder)
    return found


CASES = (
    unknown_sizes_as_ragged_batches,
    sparse_batches,
    padded_buckets,
    numbers,
    static_dense_shapes,
    ragged_generator,
    methods_of_ragged_tensors,
    methods_of_sparse_tensors,
    words_of_lines,
    gradients_through_ragged_values,
    captured_in_a_map,
    ragged_features,
    parsed_examples,
    batched_features,
    columns_of_lines,
)


def all_cases(tf: Any) -> dict[str, Callable[[], Any]]:
    """Returns all cases by name: each method with elements of each kind, and the single cases."""
    found: dict[str, Callable[[], Any]] = {}
    for kind, make in KINDS.items():
        for name, method in METHODS.items():
            found[f"{name}, {kind}"] = lambda make=make, method=method: method(tf, make(tf))
    for case in CASES:
        found[case.__name__] = lambda case=case: case(tf)
    return found


if __name__ == "__main__":
    import tensorflow

    answers = {}
    for name, case in all_cases(tensorflow).items():
        try:
            answers[name] = json.loads(json.dumps(case()))
        except Exception as error:  # noqa: BLE001 - some combinations fail in TensorFlow
            sys.stderr.write(f"CASE {name}: {type(error).__name__} {str(error)[:300]!r}\n")
    json.dump(answers, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
