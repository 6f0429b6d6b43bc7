"""Runs under TensorFlow 1.15: writes the checkpoints of ``tests/data/tf1``. Argument: the folder.

``single-7``: variables of every element type, partitioned ones, strings, in one data file.
``sharded``: from a cluster of two ``ps`` tasks, each of which writes its own shard, with parts of a variable on both.
``old-?????-of-00002``: from the same cluster, with more element types, in format V1.
"""

import os
import socket
import sys

import numpy as np
import tensorflow as tf

folder = sys.argv[1]


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def partitioned(scope, partitions, axis, value):
    with tf.variable_scope(scope, partitioner=tf.fixed_size_partitioner(partitions, axis=axis)):
        tf.get_variable("part", initializer=tf.constant(value))


with tf.Graph().as_default():
    tf.Variable(np.arange(12, dtype=np.float32).reshape(3, 4) / 8, name="weights")
    tf.Variable(np.float64(3.5), name="scope/scalar")
    tf.Variable(np.arange(5, dtype=np.int64), name="int64")
    tf.Variable(np.int64(7), name="global_step")
    tf.Variable([["a", "bb"], ["", "d\u00e9" * 100]], name="strings")
    tf.Variable(tf.cast([1.5, -2.0, 3.25], tf.bfloat16), name="bfloat16")
    tf.Variable([True, False], name="bool")
    tf.Variable(np.array([1 + 2j], np.complex64), name="complex64")
    tf.Variable(np.zeros((0, 3), np.float32), name="empty")
    for dtype in (np.float16, np.uint8, np.int8, np.int16, np.uint16, np.int32):
        tf.Variable(np.array([1, 2, 100], dtype), name=np.dtype(dtype).name)
    partitioned("rows", 3, 0, np.arange(20, dtype=np.float32).reshape(10, 2))
    partitioned("columns", 2, 1, np.arange(600, dtype=np.float32).reshape(3, 200))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saver.save(session, os.path.join(folder, "single"), global_step=7, write_meta_graph=False, write_state=False)

cluster = tf.train.ClusterSpec({"ps": [free_address(), free_address()]})
servers = [tf.train.Server(cluster, "ps", index) for index in range(2)]
with tf.Graph().as_default():
    with tf.device(tf.train.replica_device_setter(worker_device="/job:ps/task:0", cluster=cluster)):
        tf.Variable(np.arange(3, dtype=np.float32), name="a")
        tf.Variable(["x", "yy"], name="b")
        partitioned("rows", 3, 0, np.arange(20, dtype=np.float32).reshape(10, 2))
        savers = {"sharded": tf.train.Saver(sharded=True)}
        for dtype in (np.bool_, np.uint8, np.int64, np.float16, np.float64):
            tf.Variable(np.array([1, 2, 100], dtype), name=np.dtype(dtype).name)
        tf.Variable(np.zeros((0, 3), np.float32), name="empty")
        savers["old"] = tf.train.Saver(sharded=True, write_version=tf.train.SaverDef.V1)
    with tf.Session(servers[0].target) as session:
        session.run(tf.global_variables_initializer())
        for name, saver in savers.items():
            saver.save(session, os.path.join(folder, name), write_meta_graph=False, write_state=False)
