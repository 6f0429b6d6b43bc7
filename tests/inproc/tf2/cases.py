"""Eager programs of TensorFlow 2, run by TensorFlow and by Headwater.

With an interpreter that has TensorFlow 2, ``python cases.py > ../../../data/tf2/at_once.json`` records its answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def operators(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [x + 1, 2 * x, x @ x, x / 2, x**2, -x, x[0], x[:, 1], x > 2, tf.cast(x, tf.int32) // 2]


def variables(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0])
    v.assign_add([1.0, 1.0])
    before = v.numpy()
    v.assign_sub([0.5, 0.0])
    n = tf.Variable(3, dtype=tf.int64)
    n.assign_add(1)
    return [before, v.numpy(), v * 2, n.numpy(), tf.Variable(tf.zeros([2])).numpy()]


def shapes(tf: Any) -> Any:
    s = tf.constant([[1.0, 2.0, 3.0]]).shape
    told = [s.as_list(), s[0], list(s[1:]), s.rank, s.ndims, s.num_elements(), repr(s), str(s), f"{s[:1]}", len(s)]
    equal = [s == [1, 3], s == (1, 3), s != [1, 3], s == [3], s == tf.TensorShape([None, 3]), s in ([1, 3],)]
    sums = [repr(s + [2]), list([2] + s), repr(s + (2,)), repr(s.concatenate([4])), repr(s[::-1]), repr(s.with_rank(2))]  # noqa: RUF005
    known = [s.is_fully_defined(), s.is_compatible_with([None, 3]), s.is_compatible_with([3]), hash(s) == hash(s)]
    for refused in (lambda: s.with_rank(3), lambda: s.assert_has_rank(3), lambda: s.assert_is_compatible_with([1, 4])):
        try:
            refused()
        except ValueError as error:
            known.append(str(error).replace("[1, 4]", "(1, 4)"))
    within = tf.function(lambda y: tf.zeros([*y.shape.as_list(), 2]))(tf.ones([3]))
    others = [tf.zeros(s), tf.reshape(tf.ones(s), s[::-1]), within, tf.constant(["a"]), tf.Variable([1.0, 2.0])]
    return [told, equal, sums, known, [other.shape.as_list() for other in others]]


def control_flow(tf: Any) -> Any:
    """Python's control flow over tensors."""

    @tf.function
    def compute(x: Any) -> Any:
        y = x * 2 if tf.reduce_sum(x) > 0 else -x
        while tf.reduce_sum(y) < 20:
            y = y * 2
        total = tf.constant(0.0)
        for i in tf.range(3):
            total += tf.cast(i, tf.float32)
        for row in y:
            if row > 5:
                total += row
        return y, total

    return [*compute(tf.constant([1.0, 2.0])), *compute(tf.constant([-1.0, -2.0]))]


def positions(tf: Any) -> Any:
    """Arguments in TensorFlow 2's order, which differs from TensorFlow 1's."""
    x = np.arange(24, dtype=np.float32).reshape(1, 4, 6, 1)
    told = None
    try:
        tf.debugging.assert_equal(1, 2, "they differ", 1, "name")
    except tf.errors.InvalidArgumentError as error:
        told = "they differ" in str(error)
    return [
        tf.pad([[1, 2]], [[0, 1], [1, 0]], "CONSTANT", 7),
        tf.shape(tf.zeros([2, 3]), tf.int64),
        tf.size([1, 2], tf.int64),
        tf.transpose([[1, 2]], [1, 0], False),
        tf.zeros_like(input=[1, 2]),
        tf.math.in_top_k([1], [[1.0, 2.0, 3.0]], 2),
        tf.math.confusion_matrix([0, 1], [1, 1], 2, [1.0, 3.0], tf.float32),
        tf.nn.max_pool(x, 2, 2, "VALID", "NHWC"),
        tf.nn.avg_pool(x, 2, 2, "SAME", "NHWC"),
        tf.nn.conv2d(x, np.ones((2, 2, 1, 1), np.float32), 2, "SAME", "NHWC", None),
        tf.nn.depth_to_space(np.ones((1, 1, 1, 4), np.float32), 2, "NHWC"),
        told,
    ]


def resized(tf: Any) -> Any:
    x = np.sqrt(np.arange(40, dtype=np.float32)).reshape(2, 5, 4, 1)
    return [
        [tf.image.resize(x, size, method) for size in ([3, 7], [5, 4], [9, 2])]
        for method in ("bilinear", "nearest", "bicubic")
    ]


def functions(tf: Any) -> Any:
    x = tf.constant([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    return [
        tf.reduce_mean(x),
        tf.reduce_sum(x, axis=1, keepdims=True),
        tf.argmax(x, 1),
        tf.nn.softmax(x),
        tf.nn.relu(x),
        tf.where(x > 0, x, 0.0),
        tf.gather(x, [1, 0], axis=0),
        tf.concat([x, x], 0),
        tf.one_hot([0, 2], 3),
        tf.matmul(x, x, transpose_b=True),
        tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1], x),
        tf.nn.moments(x, [0]),
        tf.boolean_mask(x, [True, False]),
        tf.clip_by_value(x, -1.0, 1.0),
        tf.strings.length(tf.constant(["a", "bcd"])),
        tf.range(5),
        tf.nn.compute_average_loss(tf.constant([1.0, 2.0, 3.0]), global_batch_size=6),
        tf.norm(x),
        tf.squeeze(tf.expand_dims(x, 0)),
    ]


def gradients(tf: Any) -> Any:
    x, w = tf.constant([[1.0, 2.0]]), tf.Variable([[0.5], [-1.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sigmoid(tf.matmul(x, w)) ** 2)
    first = tape.gradient(y, w)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * x
        z = y * y
    return [first, tape.gradient(z, x), tape.gradient(y, x), tape.gradient(z, y), tape.gradient([y, z], [x])]


def structures(tf: Any) -> Any:
    a, b, c = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(5.0)
    with tf.GradientTape() as tape:
        y = a * a * b
    found = tape.gradient(y, {"a": a, "more": [b, c]})
    return [found["a"], found["more"][0], found["more"][1] is None]


def unconnected(tf: Any) -> Any:
    x, v = tf.constant(3.0), tf.Variable(2.0, trainable=False)
    with tf.GradientTape(persistent=True) as tape:
        y = x * v
    zero = tape.gradient(y, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return [tape.gradient(y, x) is None, tape.gradient(y, v) is None, zero]


def second_order(tf: Any) -> Any:
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x**3
        first = inner.gradient(y, x)
    return [first, outer.gradient(first, x)]


def output_gradients(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.gradient(y, x, output_gradients=tf.constant([10.0, 1.0]))


def jacobians(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x * tf.constant([1.0, 2.0])
    return [tape.jacobian(y, x), tape.batch_jacobian(y, x)]


def not_recorded(tf: Any) -> Any:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        with tape.stop_recording():
            z = y * y
        w = y * 3.0
    del z
    return tape.gradient(w, x)


def assigned_meanwhile(tf: Any) -> Any:
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(2.0)
        z = y + v
    return tape.gradient(z, v)


def compiled(tf: Any) -> Any:
    v = tf.Variable(1.0)

    @tf.function
    def step(x: Any, times: int) -> Any:
        v.assign_add(tf.reduce_sum(x) * times)
        return v * 2

    return [step(tf.constant([1.0, 2.0]), 1), step(tf.constant([1.0, 2.0]), 2), v.numpy()]


def compiled_gradient(tf: Any) -> Any:
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w * x - 1.0) ** 2)
        gradient = tape.gradient(loss, w)
        w.assign_sub(0.1 * gradient)
        return loss

    return [step(tf.constant([1.0, 3.0])), step(tf.constant([1.0, 3.0])), w.numpy()]


def through_compiled(tf: Any) -> Any:
    @tf.function
    def square(x: Any) -> Any:
        return x * x

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = square(x) + x
    return tape.gradient(y, x)


def branches(tf: Any) -> Any:
    @tf.function
    def steps(n: Any) -> Any:
        count = tf.constant(0)
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    return [steps(tf.constant(6)), steps(tf.constant(7))]


def conditions(tf: Any) -> Any:
    @tf.function
    def chosen(x: Any) -> Any:
        return tf.cond(x > 0, lambda: x * 2, lambda: x - 1)

    loop = tf.while_loop(lambda i, _: i < 5, lambda i, s: (i + 1, s * 2.0), [tf.constant(0), tf.constant(1.0)])
    return [chosen(tf.constant(2.0)), chosen(tf.constant(-2.0)), loop]


def over_a_dataset(tf: Any) -> Any:
    dataset = tf.data.Dataset.range(6).map(lambda n: tf.cast(n, tf.float32) / 2).batch(4)

    @tf.function
    def total(data: Any) -> Any:
        found = 0.0
        for batch in data:
            found += tf.reduce_sum(batch)
        return found

    return [total(dataset), [batch.numpy() for batch in dataset]]


def elements_of_an_iterator(tf: Any) -> Any:
    iterator = iter(tf.data.Dataset.range(5).batch(2))

    @tf.function
    def take(source: Any) -> Any:
        return next(source) * 10

    found = [take(iterator), take(iterator), take(iterator)]
    try:
        take(iterator)
    except tf.errors.OutOfRangeError:
        return [*found, "ended"]
    return found


def replicas(tf: Any) -> Any:
    strategy = tf.distribute.get_strategy()
    results = strategy.run(lambda x: x * 2, args=(tf.constant([1.0, 2.0]),))
    return [
        strategy.reduce(tf.distribute.ReduceOp.SUM, results, axis=None),
        strategy.reduce(tf.distribute.ReduceOp.MEAN, results, axis=0),
        strategy.num_replicas_in_sync,
    ]


CASES = (
    operators,
    variables,
    functions,
    positions,
    shapes,
    control_flow,
    resized,
    gradients,
    structures,
    unconnected,
    second_order,
    output_gradients,
    jacobians,
    not_recorded,
    assigned_meanwhile,
    compiled,
    compiled_gradient,
    through_compiled,
    branches,
    conditions,
    over_a_dataset,
    elements_of_an_iterator,
    replicas,
)


def answer(value: Any) -> Any:
    """Returns a result as JSON: for each array, its type and its elements."""
    if isinstance(value, (list, tuple)):
        return [answer(item) for item in value]
    if isinstance(value, (str, bool)):
        return value
    array = np.asarray(value)
    return {"type": str(array.dtype), "values": array.tolist()}


if __name__ == "__main__":
    import tensorflow

    json.dump({case.__name__: answer(case(tensorflow)) for case in CASES}, sys.stdout, indent=1)
    sys.stdout.write("\n")
