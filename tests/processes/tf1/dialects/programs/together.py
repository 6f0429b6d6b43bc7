"""Runs programs one after the other, each with a folder of its own and a graph of its own."""

import os
import runpy
import sys
import tempfile

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
for name in sys.argv[1:]:
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        sys.argv = [name, "--folder=" + folder] if name == "queues_0_8" else [name, folder]
        try:
            runpy.run_path(os.path.join(HERE, name + ".py"), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
