"""`tf.contrib.cudnn_rnn`: compatible cells, conversions of parameters, and names in checkpoints.

TensorFlow computes the layers on GPUs only; a CPU can build their graphs and convert canonical parameters.
"""

import numpy as np

CONVERTERS = {
    "LSTM": "tf.contrib.cudnn_rnn.CudnnParamsFormatConverterLSTM",
    "GRU": "tf.contrib.cudnn_rnn.CudnnParamsFormatConverterGRU",
    "Tanh": "tf.contrib.cudnn_rnn.CudnnParamsFormatConverterTanh",
    "Relu": "tf.contrib.cudnn_rnn.CudnnParamsFormatConverterRelu",
}
LAYERS = {
    "CudnnLSTM": "tf.contrib.cudnn_rnn.CudnnLSTMSaveable",
    "CudnnGRU": "tf.contrib.cudnn_rnn.CudnnGRUSaveable",
    "CudnnRNNTanh": "tf.contrib.cudnn_rnn.CudnnRNNTanhSaveable",
    "CudnnRNNRelu": "tf.contrib.cudnn_rnn.CudnnRNNReluSaveable",
}
WAYS = ("unidirectional", "bidirectional")
X = np.sin(np.arange(3 * 4 * 6, dtype=np.float32)).reshape(3, 4, 6)

REFUSED = (
    "C.CudnnLSTM(1, 2, direction='backward')",
    "C.CudnnLSTM(1, 2, input_mode='none')",
    "C.CudnnGRU(1, 2, dtype=tf.int32)",
    "C.CudnnGRU(1, 2)(tf.zeros([2, 2]))",
    "C.CudnnGRU(1, 2)(tf.placeholder(tf.float32, [2, 2, None]))",
    "C.CudnnGRU(1, 2)(tf.zeros([2, 2, 2]), initial_state=tf.zeros([1, 2, 2]))",
    "C.CudnnGRU(1, 2).input_size",
)


def cases(tf):
    found = {"cells": case_cells}
    for kind in CONVERTERS:
        for way in WAYS:
            found[f"conversion {kind} {way}"] = lambda tf, kind=kind, way=way: conversion(tf, kind, way)
    found["conversion of projections"] = lambda tf: conversion(tf, "LSTM", "bidirectional", 2)
    for layer in LAYERS:
        for way in WAYS:
            found[f"names {layer} {way}"] = lambda tf, layer=layer, way=way: names(tf, layer, way)
    for text in REFUSED:
        found["refused " + text] = lambda tf, text=text: [str(eval(text, {"tf": tf, "C": tf.contrib.cudnn_rnn}))]
    return found


def conversion(tf, kind, way, projection=None):
    """cuDNN's canonical parameters of two layers as variables of cells, and the reverse."""
    converter = eval(CONVERTERS[kind], {"tf": tf})
    convert = converter(2, 3, 5, num_proj=projection, direction=way)
    dirs, gates = WAYS.index(way) + 1, {"LSTM": 4, "GRU": 3}.get(kind, 1)
    numbers = np.random.RandomState(3)
    width = projection or 3
    weights, biases = [], []
    for depth in (5, width * dirs):
        for _ in range(dirs):
            shapes = [(3, depth)] * gates + [(3, width)] * gates + ([(width, 3)] if projection else [])
            weights += [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
            biases += [numbers.standard_normal(3).astype(np.float32) for _ in range(2 * gates)]
    there = convert._cu_canonical_to_tf_canonical(
        [tf.constant(weight) for weight in weights], [tf.constant(bias) for bias in biases]
    )
    projections = there[2] if projection else None
    back = convert._tf_canonical_to_cu_canonical(list(there[0]) + list(there[1]), projections)
    with tf.Session() as session:
        there, back = session.run([[list(part) for part in there], [list(part) for part in back]])
    assert len(back[0]) == len(weights)
    for index, weight in enumerate(weights):
        np.testing.assert_array_equal(back[0][index], weight)
    return [there, back[1]]


def names(tf, layer, way):
    """Names, shapes and scopes of a layer, built by a call and before."""
    found = []
    for before in (False, True):
        with tf.Graph().as_default(), tf.variable_scope("model"):
            made = getattr(tf.contrib.cudnn_rnn, layer)(2, 3, direction=way)
            x = tf.zeros([4, 5, 6])
            if before:
                made.build([4, 5, 6])
            outputs, states = made(x)
            found.append(
                [
                    [variable.name for variable in tf.global_variables()],
                    [spec.name for spec in made.saveable.specs],
                    [made.saveable.name, isinstance(made.saveable, eval(LAYERS[layer], {"tf": tf}))],
                    [part.shape.as_list() for part in [outputs, *states]],
                    len(made.trainable_weights),
                    [list(shape) for shape in made.canonical_weight_shapes + made.canonical_bias_shapes],
                    len(tf.get_collection("saveable_objects")),
                    [made.rnn_mode, made.num_dirs, made.input_size, made.direction, made.input_mode],
                ]
            )
    return found


def case_cells(tf):
    """Variables, outputs, states and gradients of the compatible cells."""
    found = []
    for name in ("CudnnCompatibleLSTMCell", "CudnnCompatibleGRUCell"):
        with tf.Graph().as_default():
            x = tf.constant(X)

            def initial(shape, dtype=None, partition_info=None):
                return np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape) * 0.7

            with tf.variable_scope("top", initializer=initial):
                cell = getattr(tf.contrib.cudnn_rnn, name)(3)
                outputs, state = tf.nn.dynamic_rnn(cell, x, [4, 2, 0], dtype=tf.float32)
            variables = tf.trainable_variables()
            gradients = tf.gradients(tf.reduce_sum(tf.sin(outputs)), [x, *variables])
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                values = session.run([outputs, state, gradients])
            found.append([[[v.name, v.shape.as_list()] for v in variables], values])
    return found
