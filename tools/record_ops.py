#!/usr/bin/env python3
"""Records what TensorFlow 1.15 makes of the operations' test cases, for tests to compare with.

Usage: PYTHON tools/record_ops.py tests/data/tf1/ops.json

PYTHON is an interpreter with TensorFlow 1.15. The expressions are those of tests/inproc/ops/cases.py, what is recorded
of them is in evaluate.py beside it. Prints cases that should work and do not, and errors that do not come.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "inproc", "ops"))

import cases
import evaluate
import tensorflow.compat.v1 as tf


def main(path):
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {
        "values": {expression: evaluate.record(tf, expression, cases) for expression in cases.CASES},
        "errors": {expression: evaluate.record(tf, expression, cases) for expression in cases.ERRORS},
    }
    with open(path, "w") as file:
        json.dump(found, file, separators=(",", ":"), sort_keys=True)
        file.write("\n")
    for kind, unexpected in (("values", "error"), ("errors", "outputs")):
        for expression, result in found[kind].items():
            if unexpected in result:
                print(kind, expression, result)


if __name__ == "__main__":
    main(sys.argv[1])
