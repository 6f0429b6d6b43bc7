#!/usr/bin/env python3
"""Records what TensorFlow 1.15 makes of the operations' test cases, for tests to compare with.

Usage: PYTHON tools/record_ops.py tests/data/tf1

PYTHON is an interpreter with TensorFlow 1.15. Writes two files there: ops.json, with what evaluate.py records of the
expressions of cases.py; and network.json, with the graph and the values of network.py (all three in tests/inproc/ops).
Prints cases that should work and do not, and errors that do not come.
"""

import base64
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "inproc", "ops"))

import cases
import evaluate
import network
import tensorflow.compat.v1 as tf


def write(folder, name, content):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file, separators=(",", ":"), sort_keys=True)
        file.write("\n")


def record_network():
    fetches = network.build(tf)
    with tf.Session() as session:
        values = session.run(fetches, {name + ":0": value for name, value in network.INPUTS.items()})
    return {
        "graph": base64.b64encode(tf.get_default_graph().as_graph_def().SerializeToString()).decode(),
        "fetches": {name: tensor.name for name, tensor in fetches.items()},
        "values": {name: evaluate.encode(value) for name, value in values.items()},
    }


def main(folder):
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    write(folder, "network.json", record_network())
    found = {
        "values": {expression: evaluate.record(tf, expression, cases) for expression in cases.CASES},
        "errors": {expression: evaluate.record(tf, expression, cases) for expression in cases.ERRORS},
    }
    write(folder, "ops.json", found)
    for kind, unexpected in (("values", "error"), ("errors", "outputs")):
        for expression, result in found[kind].items():
            if unexpected in result:
                print(kind, expression, result)


if __name__ == "__main__":
    main(sys.argv[1])
