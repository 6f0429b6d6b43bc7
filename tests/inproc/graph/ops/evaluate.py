"""Evaluates an expression of `cases`: with TensorFlow to record it, with Headwater to compare. Runs on Python 3.7."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


def inputs_of(expression, inputs):
    """Returns the names of inputs that an expression uses."""
    return [name for name in inputs if re.search(r"(?<![\w.'])" + name + r"(?![\w'=(])", expression)]


def weights(shape):
    """Returns the gradients of outputs: a different number for every element."""
    return np.cos(np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.float64)).reshape(shape) + 0.25


def encode(value):
    """Encodes an array as JSON: element type, shape, elements."""
    array = np.asarray(value, object) if isinstance(value, bytes) else np.asarray(value)
    if array.dtype == object:
        flat = [item.decode("latin1") for item in array.ravel()]
        return ["string", list(array.shape), flat]
    if array.dtype.kind == "c":
        return [str(array.dtype), list(array.shape), [[float(v.real), float(v.imag)] for v in array.ravel()]]
    if array.dtype.kind == "f":
        digits = 17 if array.dtype == np.float64 else 9
        return [str(array.dtype), list(array.shape), [float("{:.{}g}".format(v, digits)) for v in array.ravel()]]
    return [str(array.dtype), list(array.shape), array.ravel().tolist()]


def dims_of(tensor):
    """Returns the static shape as a list; None if the rank is unknown."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def flatten(value):
    if hasattr(value, "dense_shape"):
        value = [value.indices, value.values, value.dense_shape]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


def record(tf, expression, cases):
    """Returns TensorFlow's result of one expression."""
    names = inputs_of(expression, cases.INPUTS)
    with tf.Graph().as_default() as graph:
        scope: dict[str, Any] = {"tf": tf, "np": np}
        feeds = {}
        for name in names:
            array, open_dims = cases.INPUTS[name]
            dims = [None if index in open_dims else size for index, size in enumerate(array.shape)]
            dtype = tf.string if array.dtype == object else tf.as_dtype(array.dtype)
            scope[name] = tf.placeholder(dtype, dims, name="in_" + name)
            feeds[scope[name]] = array
        before = len(graph.as_graph_def().node)
        try:
            outputs = flatten(eval(expression, scope))  # our own table
        except Exception as error:  # noqa: BLE001 - the class is what is recorded
            return {"error": type(error).__name__, "message": str(error)}
        nodes = [[node.name, node.op, list(node.input)] for node in graph.as_graph_def().node[before:]]
        described = [[t.name, t.dtype.base_dtype.name, dims_of(t)] for t in outputs]
        found: dict[str, Any] = {"nodes": nodes, "outputs": described}
        with tf.Session(graph=graph) as session:
            try:
                values = session.run(outputs, feeds)
            except tf.errors.OpError as error:
                return dict(found, run_error=type(error).__name__)
            found["values"] = [encode(value) for value in values]
            pairs = zip(outputs, values)  # noqa: B905 - not in Python 3.7
            floating = [(t, v) for t, v in pairs if t.dtype.is_floating]
            sources = [name for name in names if scope[name].dtype.is_floating]
            if floating and sources:
                given = [tf.constant(weights(v.shape), t.dtype) for t, v in floating]
                try:
                    grads = tf.gradients([t for t, _ in floating], [scope[name] for name in sources], given)
                    found_for = dict(zip(sources, grads))  # noqa: B905 - not in Python 3.7
                    dense = {name: tf.convert_to_tensor(g) for name, g in found_for.items() if g is not None}
                    found["gradients"] = {name: encode(value) for name, value in session.run(dense, feeds).items()}
                except (LookupError, TypeError, ValueError, tf.errors.OpError) as error:
                    return dict(found, gradient_error=type(error).__name__)
        return found
