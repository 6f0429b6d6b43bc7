#!/usr/bin/env python3
"""Records what TensorFlow 1.15's optimizers do to a small model, for tests to compare with.

Usage: PYTHON tools/record_optimizers.py tests/data/tf1/optimizers.json

PYTHON is an interpreter with TensorFlow 1.15. The model, the data and the optimizers are those of
tests/inproc/tf1/training/optimizer_cases.py, which both sides run.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "inproc", "training"))

import optimizer_cases
import tensorflow.compat.v1 as tf


def main(path):
    with open(path, "w") as file:
        json.dump(optimizer_cases.run_all(tf), file, indent=0, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
