#!/usr/bin/env python3
"""Writes the graphs of the conformance cases as TensorFlow 1.15 does, for tests to read.

Usage: PYTHON tools/record_graphs.py tests/data/tf1/graphs

PYTHON is an interpreter with TensorFlow 1.15.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "conformance", "cases"))

import graph_defs
import tensorflow as tf


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name in graph_defs.cases(tf):
        with tf.Graph().as_default() as graph, open(os.path.join(folder, name + ".pb"), "wb") as file:
            graph_defs.build(tf, name)
            file.write(graph.as_graph_def(add_shapes=True).SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
