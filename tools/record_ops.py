#!/usr/bin/env python3
"""Records what TensorFlow 1.15 makes of the operations' test cases, for tests to compare with.

Usage: PYTHON tools/record_ops.py tests/data/tf1 [FILE ...]

PYTHON is an interpreter with TensorFlow 1.15. Writes three files there: ops.json and families.json, with what
evaluate.py records of the expressions of cases.py and families.py; and network.json, with the graph and the values of
network.py (all four in tests/inproc/graph/ops). With names of these files after the folder it writes only those.
Prints cases that should work and do not, and errors that do not come.
"""

import base64
import json
import os
import sys
from functools import partial

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "inproc", "ops"))

import cases
import evaluate
import families
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


def record_expressions(table):
    found = {
        "values": {expression: evaluate.record(tf, expression, table) for expression in table.CASES},
        "errors": {expression: evaluate.record(tf, expression, table) for expression in table.ERRORS},
    }
    for kind, unexpected in (("values", "error"), ("errors", "outputs")):
        for expression, result in found[kind].items():
            if unexpected in result:
                print(kind, expression, result)
    return found


RECORDS = {
    "network.json": record_network,
    "ops.json": partial(record_expressions, cases),
    "families.json": partial(record_expressions, families),
}


def main(folder, *names):
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    for name in names or RECORDS:
        write(folder, name, RECORDS[name]())


if __name__ == "__main__":
    main(*sys.argv[1:])
