"""Input pipelines of queues: producers, readers, parsing, batches, their ends and errors."""

import os
import tempfile

import numpy as np


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, make in _pipelines().items():
        found[name] = _running(make)
    return found


def _running(make):
    def case(tf):
        with tempfile.TemporaryDirectory() as folder:
            _write_files(tf, folder)
            return _plain(_run(tf, make(tf, folder)), folder)

    return case


def _run(tf, tensors, steps=12):
    """What up to ``steps`` steps give, then the class of the error that ends them, and of the one of joining."""
    outcomes = []
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            outcomes += [session.run(tensors) for _ in range(steps)]
        except tf.errors.OpError as error:
            outcomes.append(type(error).__name__)
        try:
            coordinator.request_stop()
            coordinator.join(threads)
        except tf.errors.OpError as error:
            outcomes.append("joined: " + type(error).__name__)
    return outcomes


def _plain(value, folder):
    """``value`` as lists, with the folder's name left out."""
    if isinstance(value, (list, tuple)):
        return [_plain(item, folder) for item in value]
    if isinstance(value, dict):
        return {key: _plain(value[key], folder) for key in sorted(value)}
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), folder)
    if isinstance(value, bytes):
        return value.replace(folder.encode(), b"").decode("latin-1")
    return value


def _example(tf, **features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _floats(tf, *values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _integers(tf, *values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def _strings(tf, *values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def _write_files(tf, folder):
    for name in ("a.csv", "b.csv"):
        with open(os.path.join(folder, name), "w") as file:
            file.write('h\n1,2.5,x\n3,,"y,z"\r\n')
    with open(os.path.join(folder, "f.bin"), "wb") as file:
        file.write(bytes(bytearray(range(20))))
    for name, count in (("r.tfrecords", 5), ("s.tfrecords", 3), ("damaged.tfrecords", 4), ("odd.tfrecords", 4)):
        with tf.python_io.TFRecordWriter(os.path.join(folder, name)) as writer:
            for index in range(count):
                raw = bytes(bytearray([index] * (4 if name != "odd.tfrecords" or index != 2 else 5)))
                writer.write(_example(tf, raw=_strings(tf, raw), label=_integers(tf, index)))
    with open(os.path.join(folder, "damaged.tfrecords"), "r+b") as file:
        file.seek(-10, 2)
        file.write(b"xxxx")


def _names(tf, folder, *names, **options):
    options = dict({"shuffle": False, "num_epochs": 1}, **options)
    return tf.train.string_input_producer([os.path.join(folder, name) for name in names], **options)


def _numbers(tf, count, **options):
    return tf.train.range_input_producer(count, **dict({"shuffle": False, "num_epochs": 1}, **options)).dequeue()


def _records(tf, folder, *names, **options):
    key, record = tf.TFRecordReader().read(_names(tf, folder, *names, **options))
    wanted = {"raw": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
    features = tf.parse_single_example(record, wanted)
    pixels = tf.cast(tf.reshape(tf.decode_raw(features["raw"], tf.uint8), [4]), tf.float32) * 0.5
    return [key, pixels, tf.cast(features["label"], tf.int32)]


def _dynamic(tf, folder):
    return tf.train.batch([tf.range(_numbers(tf, 5))], 3, dynamic_pad=True, allow_smaller_final_batch=True)


def _kept(tf, folder):
    number = _numbers(tf, 9)
    return tf.train.maybe_batch([number], tf.equal(number % 2, 0), 2)


def _kept_rows(tf, folder):
    row = tf.train.input_producer([[1, 2], [3, 4], [5, 6]], num_epochs=1, shuffle=False).dequeue()
    return tf.train.maybe_batch([row], row > 2, 3, enqueue_many=True)


def _sparse_batch(tf, folder):
    number = tf.cast(_numbers(tf, 4), tf.int64)
    places = tf.reshape(tf.range(number), [-1, 1])
    return tf.train.batch([number, tf.SparseTensor(places, tf.range(number), tf.expand_dims(number, 0))], 2)


def _pipelines():
    join = os.path.join
    return {
        "matching once": lambda tf, d: tf.train.match_filenames_once(join(d, "*.csv")),
        "lines": lambda tf, d: tf.TextLineReader(skip_header_lines=1).read(_names(tf, d, "a.csv", "b.csv")),
        "lines, two epochs": lambda tf, d: tf.TextLineReader().read(_names(tf, d, "a.csv", num_epochs=2)),
        "lines, up to two": lambda tf, d: tf.TextLineReader().read_up_to(_names(tf, d, "a.csv", "b.csv"), 2),
        "columns": lambda tf, d: tf.decode_csv(
            tf.TextLineReader(skip_header_lines=1).read(_names(tf, d, "a.csv"))[1], [[0], [7.5], ["d"]]
        ),
        "columns in batches": lambda tf, d: tf.train.batch(
            tf.decode_csv(
                tf.TextLineReader(skip_header_lines=1).read(_names(tf, d, "a.csv", "b.csv"))[1], [[0], [7.5], ["d"]]
            ),
            3,
        ),
        "fixed length": lambda tf, d: tf.FixedLengthRecordReader(3, header_bytes=2, footer_bytes=1).read(
            _names(tf, d, "f.bin")
        ),
        "fixed length, hops": lambda tf, d: tf.FixedLengthRecordReader(3, hop_bytes=5).read(_names(tf, d, "f.bin")),
        "whole files": lambda tf, d: tf.WholeFileReader().read(_names(tf, d, "a.csv", "b.csv")),
        "identity": lambda tf, d: tf.IdentityReader().read(_names(tf, d, "a.csv", "b.csv")),
        "records": lambda tf, d: _records(tf, d, "r.tfrecords", "s.tfrecords"),
        "records in batches": lambda tf, d: tf.train.batch(
            _records(tf, d, "r.tfrecords", "s.tfrecords", num_epochs=2), 3
        ),
        "records, last batch smaller": lambda tf, d: tf.train.batch(
            _records(tf, d, "r.tfrecords"), 3, allow_smaller_final_batch=True
        ),
        "damaged record": lambda tf, d: tf.train.batch(_records(tf, d, "damaged.tfrecords"), 1, capacity=100),
        "record of another length": lambda tf, d: tf.train.batch(_records(tf, d, "odd.tfrecords"), 1, capacity=100),
        "no such file": lambda tf, d: tf.train.batch(_records(tf, d, "absent"), 1),
        "a constant beside": lambda tf, d: tf.train.batch([_numbers(tf, 4), tf.constant([1, 2])], 2),
        "slices": lambda tf, d: tf.train.slice_input_producer(
            [[1, 2, 3], ["a", "b", "c"]], shuffle=False, num_epochs=1
        ),
        "slices in batches": lambda tf, d: tf.train.batch(
            tf.train.slice_input_producer([[1, 2, 3], ["a", "b", "c"]], shuffle=False, num_epochs=2), 2
        ),
        "numbers, last batch smaller": lambda tf, d: tf.train.batch(
            [_numbers(tf, 7)], 3, allow_smaller_final_batch=True
        ),
        "numbers, last batch missing": lambda tf, d: tf.train.batch([_numbers(tf, 7)], 3),
        "batch beyond the capacity": lambda tf, d: tf.train.batch({"a": _numbers(tf, 70)}, 30, capacity=8),
        "batches of rows": lambda tf, d: tf.train.batch(
            [tf.train.input_producer([[1, 2], [3, 4]], num_epochs=1, shuffle=False).dequeue()],
            3,
            enqueue_many=True,
            allow_smaller_final_batch=True,
        ),
        "padded": _dynamic,
        "kept": _kept,
        "kept rows": _kept_rows,
        "sparse in batches": _sparse_batch,
        "joined": lambda tf, d: tf.reduce_sum(tf.train.batch_join([[_numbers(tf, 4)], [_numbers(tf, 4)]], 8)),
        "shuffled": lambda tf, d: tf.reduce_sum(tf.train.shuffle_batch([_numbers(tf, 40)], 40, 100, 10)),
        "shuffled and joined": lambda tf, d: tf.reduce_sum(
            tf.train.shuffle_batch_join([[_numbers(tf, 4)], [_numbers(tf, 4)]], 8, 100, 10)
        ),
    }


def case_parsing(tf):
    first = _example(tf, a=_floats(tf, 1, 2), i=_integers(tf, 3, 1), v=_floats(tf, 7, 8), s=_strings(tf, b"q"))
    second = _example(tf, a=_floats(tf, 3, 4), i=_integers(tf), v=_floats(tf), s=_strings(tf, b"r", b"t"))
    plain = {
        "a": tf.FixedLenFeature([2], tf.float32),
        "z": tf.FixedLenFeature([], tf.int64, 5),
        "s": tf.VarLenFeature(tf.string),
        "q": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
    }
    more = dict(
        plain,
        s=tf.FixedLenSequenceFeature([], tf.string, allow_missing=True),
        q=tf.SparseFeature("i", "v", tf.float32, 10),
    )
    wrong = [
        {"absent": tf.FixedLenFeature([], tf.int64)},
        {"a": tf.FixedLenFeature([3], tf.float32)},
        {"a": tf.FixedLenFeature([2], tf.int64)},
    ]
    outcomes = []
    with tf.Session() as session:
        for features in [plain, more, *wrong]:
            for parsed in (
                tf.parse_single_example(first, features),
                tf.parse_single_example(second, features),
                tf.parse_example([first, second], features),
                tf.parse_example([first, b"junk"], features),
            ):
                outcomes.append({key: str(value.get_shape()) for key, value in parsed.items()})
                try:
                    outcomes.append(_plain(session.run(parsed), "/nowhere"))
                except tf.errors.OpError as error:
                    outcomes.append(type(error).__name__)
    return outcomes


def case_columns(tf):
    outcomes = []
    none = tf.constant([], tf.int32)
    with tf.Session() as session:
        for records, defaults in (
            (["1,2,3"], [[0], [0]]),
            (["1"], [none]),
            (["a"], [[0]]),
            (['"a""b",c'], [["x"], ["y"]]),
            ([" 5 "], [[0]]),
            (['a"b'], [["x"]]),
            ([""], [none]),
            (["1,", ",2"], [[7], [8.5]]),
            (["1.5"], [[0]]),
        ):
            try:
                outcomes.append(_plain(session.run(tf.decode_csv(records, defaults)), "/nowhere"))
            except tf.errors.OpError as error:
                outcomes.append(type(error).__name__)
    return outcomes


def case_images(tf):
    image = tf.constant(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
    png = tf.image.encode_png(image)
    jpeg = tf.image.encode_jpeg(image)
    with tf.Session() as session:
        return _plain(
            session.run(
                [
                    tf.image.decode_png(png),
                    tf.image.decode_png(png, channels=1),
                    tf.image.decode_png(png, dtype=tf.uint16),
                    tf.image.decode_image(png),
                    tf.shape(tf.image.decode_jpeg(jpeg)),
                    tf.shape(tf.image.decode_jpeg(jpeg, channels=1)),
                    tf.image.extract_jpeg_shape(jpeg),
                    tf.image.is_jpeg(jpeg),
                    tf.image.is_jpeg(png),
                ]
            ),
            "/nowhere",
        )


def case_tensors(tf):
    with tf.Session() as session:
        return session.run(tf.parse_tensor(tf.serialize_tensor([1.5, 2]), tf.float32))


def case_names(tf):
    """Names of the operations that people refer to, and what is in the collections."""
    queue = tf.train.string_input_producer(["a"], num_epochs=2)
    _, record = tf.TFRecordReader().read(queue)
    features = tf.parse_single_example(record, {"x": tf.FixedLenFeature([2], tf.float32)})
    tf.train.shuffle_batch([features["x"]], 4, 100, 50)
    tf.train.batch(features, 4)
    graph = tf.get_default_graph()
    kinds = ("Queue", "Reader", "Parse", "Variable", "Count", "Scalar")
    operations = [[op.type, op.name] for op in graph.get_operations() if op.type.startswith(kinds)]
    collections = {key: [item.name for item in graph.get_collection(key)] for key in graph.get_all_collection_keys()}
    return [operations, collections]
