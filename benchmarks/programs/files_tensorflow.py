"""Reads and writes files with TensorFlow 1.15; prints one JSON line. Arguments: folder, size factor."""

import json
import sys
import time

import tensorflow.compat.v1 as tf

folder, factor = sys.argv[1], float(sys.argv[2])
results = {}


def measure(name, amount, function):
    start = time.perf_counter()
    function()
    results[name] = amount / (time.perf_counter() - start)


def write_records(path, record, count):
    with tf.python_io.TFRecordWriter(path) as writer:
        for _ in range(count):
            writer.write(record)


small, large = folder + "/small", folder + "/large"
count, megabytes, variables = int(200000 * factor), int(256 * factor), int(2000 * factor)
measure("write records of 100 bytes", count, lambda: write_records(small, b"x" * 100, count))
measure("read records of 100 bytes", count, lambda: sum(1 for _ in tf.python_io.tf_record_iterator(small)))
measure("write records of 1 MB (MB)", megabytes, lambda: write_records(large, b"x" * 1000000, megabytes))
measure("read records of 1 MB (MB)", megabytes, lambda: sum(1 for _ in tf.python_io.tf_record_iterator(large)))

session = tf.Session(graph=tf.Graph())
with session.graph.as_default():
    big = tf.get_variable("big", initializer=tf.zeros([megabytes * 250000]))
    small_ones = [tf.get_variable(f"v{n}", initializer=tf.zeros([10])) for n in range(variables)]
    one, many = tf.train.Saver([big]), tf.train.Saver(small_ones)
    example = tf.train.Example()
    example.features.feature["image"].float_list.value.extend([0.5] * 784)
    example.features.feature["label"].int64_list.value.append(3)
    serialized = tf.placeholder(tf.string, [None])
    parsed = tf.parse_example(
        serialized, {"image": tf.FixedLenFeature([784], tf.float32), "label": tf.FixedLenFeature([], tf.int64)}
    )
    session.run(tf.global_variables_initializer())
    options = {"write_meta_graph": False, "write_state": False}
    one.save(session, folder + "/warm", **options)
    measure("save one tensor (MB)", megabytes, lambda: one.save(session, folder + "/one", **options))
    measure("restore one tensor (MB)", megabytes, lambda: one.restore(session, folder + "/one"))
    many.save(session, folder + "/warm", **options)
    measure("save small tensors", variables, lambda: many.save(session, folder + "/many", **options))
    measure("restore small tensors", variables, lambda: many.restore(session, folder + "/many"))
    parse = session.make_callable(parsed, [serialized])
    batch = [example.SerializeToString()] * 128
    parse(batch)
    rounds = int(100 * factor) or 1
    measure("parse examples of 785 numbers", rounds * 128, lambda: [parse(batch) for _ in range(rounds)])
print(json.dumps(results))
