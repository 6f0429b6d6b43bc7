"""Networks of ``tf.contrib.slim.nets``: variables, results by scope, values."""

import zlib

import numpy as np
from tensorflow.contrib.layers.python.layers import utils
from tensorflow.contrib.slim import nets


def _values(name, shape):
    numbers = np.random.RandomState(zlib.crc32(name.encode()))
    return numbers.uniform(-0.3, 0.3, shape).astype(np.float32)


def _network(tf, version, size, **kwargs):
    with tf.Graph().as_default():
        network = getattr(nets, version)
        inputs = tf.constant(np.random.RandomState(1).rand(2, size, size, 3).astype(np.float32))
        sizes = (("first", 2, 2, 2), ("second", 3, 2, 2))
        blocks = [getattr(network, version + "_block")(*each) for each in sizes]
        with tf.contrib.slim.arg_scope(nets.resnet_utils.resnet_arg_scope()):
            outputs, end_points = getattr(network, version)(inputs, blocks, **kwargs)
        names = {name: tensor.name for name, tensor in end_points.items()}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for variable in tf.trainable_variables():
                if len(variable.shape) > 1:
                    variable.load(_values(variable.op.name, variable.shape.as_list()), session)
            return [names, sorted(var.op.name for var in tf.global_variables()), outputs.name, session.run(outputs)]


def case_activations_after_convolutions(tf):
    return _network(tf, "resnet_v1", 32, num_classes=3, scope="net")


def case_activations_before_convolutions(tf):
    return _network(tf, "resnet_v2", 32, num_classes=3)


def case_dilated(tf):
    return _network(tf, "resnet_v1", 33, output_stride=8, global_pool=False, is_training=False)


def case_without_root_block(tf):
    return _network(tf, "resnet_v2", 16, include_root_block=False, is_training=False)


def case_unreachable_stride(tf):
    try:
        return _network(tf, "resnet_v1", 32, output_stride=64)
    except ValueError as error:
        return str(error)


def case_published_depths(tf):
    found = []
    for version in ("resnet_v1", "resnet_v2"):
        with tf.Graph().as_default():
            images = tf.placeholder(tf.float32, [None, 64, 64, 3])
            _, end_points = getattr(getattr(nets, version), version + "_50")(images, 5)
            found += [sorted(end_points), [var.op.name for var in tf.global_variables()]]
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, 224, 224, 3])
        _, end_points = nets.vgg.vgg_16(images, 5)
        return [*found, sorted(end_points), [var.op.name for var in tf.global_variables()]]


def case_utils(tf):
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")
    utils.collect_named_outputs("kept", "first/", a)
    utils.collect_named_outputs(None, "second", b)
    tf.add_to_collection("kept", b)
    found = [sorted((name, tensor.name) for name, tensor in utils.convert_collection_to_dict("kept", True).items())]
    found += [tf.get_collection("kept"), a.aliases, utils.gather_tensors_aliases([a, b])]
    shape = tf.TensorShape([2, 3, 4])
    found += [utils.last_dimension(shape), utils.channel_dimension(shape, "channels_first")]
    found += [
        utils.two_element_tuple(3),
        utils.two_element_tuple([1, 2]),
        utils.get_variable_collections({"w": 1}, "w"),
    ]
    for call in (
        lambda: utils.last_dimension(tf.TensorShape([2, None])),
        lambda: utils.last_dimension(tf.TensorShape(None)),
        lambda: utils.last_dimension(shape, min_rank=4),
    ):
        try:
            found.append(call())
        except ValueError as error:
            found.append(str(error)[:30])
    return found


def cases(tf):
    del tf
    return {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
