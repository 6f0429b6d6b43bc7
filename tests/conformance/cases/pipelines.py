"""Datasets of files of values and of databases, values that may be missing, and elements by classes."""

import os
import shutil
import sqlite3
import tempfile


def cases(tf):
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp()
        return self

    def __exit__(self, *args):
        shutil.rmtree(self.path)

    def file(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(text)
        return path


def elements(tf, dataset, most=20):
    """All elements of a dataset, or the class of the error at its end; and what is known of them."""
    tensors = tf.data.make_initializable_iterator(dataset)
    found = []
    with tf.Session() as session:
        element = tensors.get_next()
        try:
            session.run(tensors.initializer)
            for _ in range(most):
                value = session.run(element)
                found.append(dict(value) if isinstance(value, dict) else value)
        except tf.errors.OutOfRangeError:
            pass
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    types, shapes = (f(dataset) for f in (tf.data.get_output_types, tf.data.get_output_shapes))
    names = [t.name for t in tf.nest.flatten(types)] if hasattr(tf, "nest") else []
    return [found, names, [str(s) for s in tf.nest.flatten(shapes)] if not isinstance(shapes, dict) else sorted(shapes)]


def tried(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


def case_separated_values(tf):
    csv = tf.data.experimental.CsvDataset
    with Folder() as folder:
        a = folder.file("a", 'x,y,z\n1,2.5,abc\n2,,"a, ""b"""\n3,4,"two\nlines"\n')
        b = folder.file("b", "x,y,z\r\n7,8,NA\r\n")
        bad = folder.file("bad", "1,2\n1,2,3\n")
        kinds = [tf.int32, tf.constant([9.5]), tf.string]
        filled = [[0], [9.5], ["none"]]
        calls = [
            lambda: csv(a, filled, header=True),
            lambda: csv([a, b], filled, header=True, na_value="NA"),
            lambda: csv(tf.data.Dataset.from_tensor_slices([b, a]), filled, header=True),
            lambda: csv(a, kinds, header=True),
            lambda: csv(b, [tf.int64, tf.float64], header=True, select_cols=[0, 1]),
            lambda: csv(bad, [tf.int32, tf.int32]),
            lambda: csv(folder.file("c", '1\t2\n\n3\t"4\n'), [[0], [""]], field_delim="\t", use_quote_delim=False),
            lambda: csv(os.path.join(folder.path, "none"), filled),
            lambda: csv(folder.file("d", "a,1\n"), [[0], [0]]),
        ]
        return [tried(lambda call=call: elements(tf, call())) for call in calls]


def case_batches_of_separated_values(tf):
    make = tf.data.experimental.make_csv_dataset
    with Folder() as folder:
        folder.file("a.csv", "x,y,big,name\n1,2.5,10000000000,abc\n2,,3,def\n3,4,5,\n")
        folder.file("b.csv", "x,y,big,name\n4,1,2,g\n")
        pattern = os.path.join(folder.path, "*.csv")
        once = {"num_epochs": 1, "shuffle": False}
        calls = [
            lambda: make(pattern, 2, **once),
            lambda: make(pattern, 2, label_name="x", **once),
            lambda: make(pattern, 3, select_columns=["x", "name"], **once),
            lambda: make(pattern, 3, select_columns=[0, 1], column_defaults=[tf.float32, [7.5]], **once),
            lambda: make(pattern, 4, column_names=["p", "q", "r", "s"], header=True, **once),
            lambda: make(pattern, 2, num_epochs=2, shuffle=False, select_columns=["x"]),
            lambda: make(
                folder.file("bad.txt", "x,y\n1,2\n3\n5,6\n"), 3, ignore_errors=True, column_defaults=[0, 0], **once
            ),
            lambda: make(pattern, 2, header=False, **once),
            lambda: make(pattern, 2, label_name="nope", **once),
            lambda: make(pattern, 2, select_columns=["nope"], **once),
            lambda: make(pattern, 2, select_columns=[0, 0], **once),
            lambda: make(os.path.join(folder.path, "*.none"), 2, **once),
            lambda: make(pattern, 2, column_names=["p", "p", "r", "s"], **once),
        ]
        return [tried(lambda call=call: elements(tf, call())) for call in calls]


def case_rows_of_a_database(tf):
    with Folder() as folder:
        path = os.path.join(folder.path, "data")
        connection = sqlite3.connect(path)
        connection.execute("create table people (name text, age integer, size real)")
        rows = [("ann", 31, 1.5), ("bo", None, 2.5), (None, 7, 3)]
        connection.executemany("insert into people values (?, ?, ?)", rows)
        connection.commit()
        connection.close()
        sql = tf.data.experimental.SqlDataset
        query = "select name, age, size from people order by age desc"
        return [
            elements(tf, sql("sqlite", path, query, (tf.string, tf.int32, tf.float64))),
            elements(tf, sql("sqlite", path, query, (tf.string, tf.int64))),
            elements(tf, sql("sqlite", path, "select nothing from nowhere", (tf.string,))),
            elements(tf, sql("mysql", path, query, (tf.string, tf.int32, tf.float64))),
            elements(tf, sql("sqlite", path, "select age from people where age > 10", (tf.string,))),
        ]


def case_records_of_a_dataset(tf):
    with Folder() as folder:
        path = os.path.join(folder.path, "records")
        writer = tf.data.experimental.TFRecordWriter(path)
        write = writer.write(tf.data.Dataset.from_tensor_slices(["a", "bc", ""]))
        with tf.Session() as session:
            session.run(write)
        zipped = tf.data.experimental.TFRecordWriter(path + "z", "GZIP").write(tf.data.Dataset.from_tensors("x"))
        with tf.Session() as session:
            session.run(zipped)
        return [
            elements(tf, tf.data.TFRecordDataset(path)),
            elements(tf, tf.data.TFRecordDataset(path + "z", "GZIP")),
            tried(lambda: writer.write(tf.data.Dataset.range(3))),
            tried(lambda: writer.write("a")),
        ]


def case_batches_of_examples(tf):
    def example(x, name):
        features = {
            "x": tf.train.Feature(int64_list=tf.train.Int64List(value=x)),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[name])),
        }
        return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

    features = {"x": tf.FixedLenFeature([2], tf.int64), "name": tf.FixedLenFeature([], tf.string)}
    with Folder() as folder:
        path = os.path.join(folder.path, "records")
        with tf.python_io.TFRecordWriter(path) as writer:
            for index in range(3):
                writer.write(example([index, index * 2], b"n%d" % index))
        make = tf.data.experimental.make_batched_features_dataset
        once = {"num_epochs": 1, "shuffle": False}
        return [
            elements(tf, make(path, 2, features, **once)),
            elements(tf, make(path, 2, features, label_key="x", **once)),
            elements(tf, make(path, 2, features, drop_final_batch=True, **once)),
            tried(lambda: make(path, 2, features, label_key="nope", **once)),
            elements(
                tf,
                tf.data.TFRecordDataset(path).batch(3).apply(tf.data.experimental.parse_example_dataset(features)),
            ),
            tried(lambda: tf.data.experimental.parse_example_dataset(None)),
        ]


def case_once_each(tf):
    unique = tf.data.experimental.unique
    make = tf.data.Dataset.from_tensor_slices
    return [
        elements(tf, make([1, 2, 1, 3, 2]).apply(unique())),
        elements(tf, make(["a", "b", "a"]).apply(unique())),
        elements(tf, make([[1], [1]]).map(lambda x: x[0]).apply(unique())),
        tried(lambda: make([1.0]).apply(unique())),
        tried(lambda: make(([1], [2])).apply(unique())),
    ]


def case_one_of_each_key(tf):
    data = tf.data.experimental
    mean = data.Reducer(
        lambda key: (0.0, 0.0), lambda s, x: (s[0] + tf.cast(x, tf.float32), s[1] + 1.0), lambda a, b: a / b
    )
    total = data.Reducer(lambda key: key * 100, lambda s, x: s + x, lambda s: s)
    numbers = tf.data.Dataset.range(9)
    return [
        elements(tf, numbers.apply(data.group_by_reducer(lambda x: x % 3, mean))),
        elements(tf, numbers.apply(data.group_by_reducer(lambda x: 5 - x % 2, total))),
    ]


def case_values_that_may_be_missing(tf):
    data = tf.data.experimental
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(2).map(lambda x: (x, {"a": x * 2})))
    some = data.get_next_as_optional(iterator)
    value = some.get_value()
    here = data.Optional.from_value((tf.constant(1), tf.constant("a")))
    none = data.Optional.none_from_structure(data.get_structure(iterator))
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        found += [session.run([some.has_value(), value]) for _ in range(2)]
        found.append(bool(session.run(some.has_value())))
        found.append(tried(lambda: session.run(value)))
        found.append([session.run(here.has_value()), session.run(here.get_value())])
        found.append(bool(session.run(none.has_value())))
        found.append(tried(lambda: session.run(none.get_value())))
    spec = data.OptionalStructure(tf.TensorSpec([], tf.int32))
    found.append(
        [repr(spec), spec == tf.OptionalSpec(tf.TensorSpec([], tf.int32)), issubclass(spec.value_type, data.Optional)]
    )
    found.append(repr(tf.OptionalSpec.from_value(here)))
    return found


def case_datasets_as_tensors(tf):
    data = tf.data.experimental
    numbers = tf.data.Dataset.range(3).map(lambda x: (x, x * 2))
    variant = data.to_variant(numbers)
    again = data.from_variant(variant, data.get_structure(numbers))
    return [variant.dtype.name, str(variant.shape), elements(tf, again)]


def case_random_numbers(tf):
    with tf.Graph().as_default():
        [found, types, shapes] = elements(tf, tf.data.experimental.RandomDataset(seed=3).take(30), most=40)
        [again, _, _] = elements(tf, tf.data.experimental.RandomDataset(seed=3).take(30), most=40)
    inside = all(0 <= value < 2**32 for value in found)
    return [len(found), len(set(found)), found == again, inside, types, shapes]


def case_classes_by_chance(tf):
    numbers = tf.data.Dataset.range(4000)
    classify = lambda x: tf.cast(tf.equal(x % 4, 0), tf.int32)  # noqa: E731 - short
    result = []
    for initial in ([0.75, 0.25], None):
        resample = tf.data.experimental.rejection_resample(classify, [0.5, 0.5], initial, 7)
        [found, types, _] = elements(tf, numbers.apply(resample), most=4001)
        share = sum(int(kind) for kind, _ in found) / float(len(found))
        right = all(int(kind) == int(x % 4 == 0) for kind, x in found)
        result.append([initial is not None or 0.44 < share < 0.56, right, len(found) > 1500, types])
    return result


def case_settings(tf):
    options = tf.data.experimental.MapVectorizationOptions()
    found = [options.enabled, options.use_choose_fastest]
    options.enabled = True
    return [*found, options.enabled, tried(lambda: setattr(options, "nope", 1))]
