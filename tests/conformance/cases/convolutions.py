"""Convolutions, pools and local response normalisation: values and gradients, weighted to one number each."""

import itertools

#: Sizes of images, window and stride; TensorFlow 1.15 has no gradients of dilated convolutions on CPUs.
FLAT = [((5, 6), (3, 3), 1), ((7, 6), (3, 2), 2), ((7, 8), (1, 1), 1), ((7, 8), (1, 1), 2), ((2, 2), (3, 3), 1)]
FLAT += [((2, 1), (5, 4), 1), ((3, 2), (5, 5), 2), ((7, 9), (2, 2), 3)]
DEEP = [((4, 5, 6), (3, 3, 3), 1), ((5, 4, 6), (2, 3, 2), 2), ((4, 5, 6), (1, 1, 1), 2), ((1, 2, 2), (3, 3, 3), 1)]
PADDINGS = ["SAME", "VALID"]


def numbers(tf, shape, dtype, factor=0.37):
    size = 1
    for each in shape:
        size *= each
    wave = tf.sin(tf.range(size, dtype=tf.float32) * factor)
    return tf.cast(tf.reshape(wave, shape), dtype)


def pairs(sizes, window):
    return [(size, window[i]) for i, size in enumerate(sizes)]


def result(tf, value, inputs):
    """The value, and its gradients for the inputs, each multiplied by numbers of its shape and summed."""
    weighted = [value, *tf.gradients(value * numbers(tf, value.shape.as_list(), value.dtype, 0.71), inputs)]
    totals = [
        tf.reduce_sum(tf.cast(each, tf.float64) * numbers(tf, each.shape.as_list(), tf.float64, 0.53))
        for each in weighted
    ]
    with tf.Session() as session:
        return [round(float(each), 3) for each in session.run(totals)]


def convolved(tf, function, case, padding, filters, dtype="float32", **more):
    sizes, window, stride = case
    image, filter = numbers(tf, (2, *sizes, 3), dtype), numbers(tf, (*window, *filters), dtype, 0.29)
    strides = (1, *[stride] * len(sizes), 1)
    return result(tf, function(image, filter, strides, padding, **more), [image, filter])


def transposed(tf, case, padding):
    sizes, window, stride = case
    image, filter = numbers(tf, (2, *sizes, 3), "float32"), numbers(tf, (*window, 4, 3), "float32", 0.29)
    out = [size * stride if padding == "SAME" else (size - 1) * stride + reach for size, reach in pairs(sizes, window)]
    value = tf.nn.conv2d_transpose(image, filter, (2, *out, 4), (1, stride, stride, 1), padding)
    return result(tf, value, [image, filter])


def pooled(tf, function, sizes, window, stride, padding, dtype="float32"):
    image = numbers(tf, (2, *sizes, 3), dtype)
    value = function(image, (1, *window, 1), (1, *[stride] * len(sizes), 1), padding)
    return result(tf, value, [image])


def normalised(tf, **settings):
    image = numbers(tf, (2, 3, 2, 9), "float32") * 3
    return result(tf, tf.nn.local_response_normalization(image, **settings), [image])


def cases(tf):
    found = {}

    def add(name, function, *args, **more):
        found[name] = lambda tf: function(tf, *args, **more)

    for case, padding in itertools.product(FLAT, PADDINGS):
        name = f"{case} {padding}"
        if padding == "SAME" or all(size >= reach for size, reach in pairs(*case[:2])):
            add("conv2d " + name, convolved, tf.nn.conv2d, case, padding, (3, 4))
            for many in (1, 2):
                add(f"depthwise {many} {name}", convolved, tf.nn.depthwise_conv2d, case, padding, (3, many))
        add("transposed " + name, transposed, case, padding)
    for case, padding in itertools.product(DEEP, PADDINGS):
        if padding == "SAME" or case[0][0] > 1:
            add(f"conv3d {case} {padding}", convolved, tf.nn.conv3d, case, padding, (3, 4))
    for dtype in ("float64", "float16"):
        add("conv2d " + dtype, convolved, tf.nn.conv2d, FLAT[1], "SAME", (3, 4), dtype)
        add(f"conv2d 1 {dtype}", convolved, tf.nn.conv2d, FLAT[2], "SAME", (3, 4), dtype)
    pools = [((6, 7), (3, 3), 1), ((7, 6), (2, 2), 2), ((7, 8), (3, 3), 2), ((8, 7), (2, 3), 3), ((5, 9), (5, 7), 1)]
    pools.append(((4, 5, 6), (2, 3, 2), 2))
    for (sizes, window, stride), padding in itertools.product(pools, PADDINGS):
        name = f"{sizes} {window} {stride} {padding}"
        deep = len(sizes) == 3
        add("maxima " + name, pooled, tf.nn.max_pool3d if deep else tf.nn.max_pool, sizes, window, stride, padding)
        add("means " + name, pooled, tf.nn.avg_pool3d if deep else tf.nn.avg_pool, sizes, window, stride, padding)
    add("maxima float64", pooled, tf.nn.max_pool, (6, 7), (3, 3), 1, "SAME", "float64")
    add("means float64", pooled, tf.nn.avg_pool, (6, 7), (3, 3), 1, "SAME", "float64")
    for beta in (0.5, 0.75, 1.0, 0.6):
        add(f"lrn {beta}", normalised, depth_radius=2, bias=1.5, alpha=0.3, beta=beta)
    add("lrn of all channels", normalised, depth_radius=20)
    return found
