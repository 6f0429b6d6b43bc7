"""Reads and writes files with Headwater; prints one JSON line. Arguments: folder, size factor."""

import json
import sys
import time

import numpy as np

from headwater import dtypes
from headwater.data.io.bundle_writer import BundleWriter
from headwater.data.io.example import Example, ExampleBatch
from headwater.data.io.tensor_bundle import BundleReader
from headwater.data.io.tfrecord import TFRecordWriter, tf_record_iterator

folder, factor = sys.argv[1], float(sys.argv[2])
results = {}


def measure(name, amount, function):
    start = time.perf_counter()
    function()
    results[name] = amount / (time.perf_counter() - start)


def write_records(path, record, count):
    with TFRecordWriter(path) as writer:
        for _ in range(count):
            writer.write(record)


def save(prefix, tensors):
    with BundleWriter(prefix) as writer:
        for name, value in tensors.items():
            writer.add(name, value)


def restore(prefix):
    with BundleReader(prefix) as reader:
        for name in reader.keys():  # noqa: SIM118
            reader.read(name)


def parse(batch):
    examples = ExampleBatch(batch)
    examples.fixed("image", dtypes.float32, [784])
    examples.fixed("label", dtypes.int64, [])


small, large = folder + "/small", folder + "/large"
count, megabytes, variables = int(200000 * factor), int(256 * factor), int(2000 * factor)
measure("write records of 100 bytes", count, lambda: write_records(small, b"x" * 100, count))
measure("read records of 100 bytes", count, lambda: sum(1 for _ in tf_record_iterator(small)))
measure("write records of 1 MB (MB)", megabytes, lambda: write_records(large, b"x" * 1000000, megabytes))
measure("read records of 1 MB (MB)", megabytes, lambda: sum(1 for _ in tf_record_iterator(large)))

big = {"big": np.zeros(megabytes * 250000, np.float32) + 1}
small_ones = {f"v{n}": np.zeros(10, np.float32) for n in range(variables)}
measure("save one tensor (MB)", megabytes, lambda: save(folder + "/one", big))
measure("restore one tensor (MB)", megabytes, lambda: restore(folder + "/one"))
measure("save small tensors", variables, lambda: save(folder + "/many", small_ones))
measure("restore small tensors", variables, lambda: restore(folder + "/many"))
example = Example()
example.features.feature["image"].float_list.value.extend([0.5] * 784)
example.features.feature["label"].int64_list.value.append(3)
batch = [example.SerializeToString()] * 128
parse(batch)
rounds = int(100 * factor) or 1
measure("parse examples of 785 numbers", rounds * 128, lambda: [parse(batch) for _ in range(rounds)])
print(json.dumps(results))
