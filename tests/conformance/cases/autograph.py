"""Python's control flow over tensors, in functions of ``tf.data`` and for ``tf.autograph.to_graph``.

Run with TensorFlow 1.15 as well; see ``run.py``. Functions stand by themselves, because their source is read.
"""

import sys
import types

# What reads a lambda's source asks for its module.
sys.modules.setdefault(__name__, types.ModuleType(__name__))

_given = {}


def branch(x):
    if x > 2:
        y = x * 10
    else:
        y = -x
    return y


def branch_without_else(x):
    y = x
    if x > 2:
        y = x * 10
    return y


def nested(x):
    if x > 1:
        if x > 3:
            y = x * 100
        else:
            y = x * 10
    elif x > 0:
        y = x + 5
    else:
        y = x
    return y


def early(x):
    if x > 2:
        return x * 10
    x = x + 1
    if x > 2:
        return x * 100
    return -x


def looping(x):
    total = x * 0
    while x > 0:
        total += x
        x -= 1
    return total


def breaking(x):
    tf = _given["tf"]
    total = tf.constant(0, tf.int64)
    while x > 0:
        if total > 5:
            break
        total += x
        x -= 1
    return total, x


def continuing(x):
    tf = _given["tf"]
    total = tf.constant(0, tf.int64)
    n = tf.constant(0, tf.int64)
    while n < x:
        n += 1
        if tf.equal(n % 2, 0):
            continue
        total += n
    return total


def ranging(x):
    tf = _given["tf"]
    total = tf.constant(0, tf.int64)
    for i in tf.range(x):
        total += i * i
    return total


def over_rows(x):
    tf = _given["tf"]
    rows = tf.stack([x, x * 2, x * 3])
    total = tf.constant(0, tf.int64)
    for row in rows:
        if row > 4:
            break
        total += row
    return total


def python_loop(x):
    for i in range(3):
        if x > i:
            x = x + i
    return x


def operators(x):
    return (x > 1 and x < 4) or not x > 0


def lazily(x):
    return x > 1 and 6 // x > 1


def conditional(x):
    return x * 2 if x > 2 else x


def helper(x):
    if x > 2:
        return x - 2
    return x


def calling(x):
    return helper(x) + helper(x + 1)


def dictionary(x):
    found = {"a": x, "b": x}
    if x > 2:
        found["a"] = x * 2
    return found["a"] + found["b"]


def built_in_range(x):
    tf = _given["tf"]
    total = tf.constant(0, tf.int64)
    for i in range(x):
        total += i
    return total


def lengths(x):
    tf = _given["tf"]
    return len(tf.fill([x], 1.0))


def converting(x):
    return float(x) / 2.0, int(x)


def last_of_loop(x):
    tf = _given["tf"]
    y = tf.constant(0, tf.int64)
    i = tf.constant(0, tf.int64)
    for i in tf.range(x):
        y = i
    return y + i


class Doubling:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, x):
        if x > self.limit:
            return x * 2
        return x

    def apply(self, x):
        while x < self.limit:
            x = x * 2 + 1
        return x


# Wrong ones


def only_one_branch(x):
    if x > 2:
        y = x
    return y


def only_one_returns(x):
    if x > 2:
        return x


def other_types(x):
    if x > 2:
        y = x
    else:
        y = 1.5
    return y


def none_in_one(x):
    y = None
    if x > 2:
        y = x
    return y


def undefined_before(x):
    while x > 0:
        y = x
        x = x - 1
    return y


def changing_type(x):
    tf = _given["tf"]
    y = 0
    while x > 0:
        y = tf.cast(x, tf.float32)
        x = x - 1
    return y


def changing_shape(x):
    tf = _given["tf"]
    y = tf.zeros([1])
    while x > 0:
        y = tf.concat([y, y], 0)
        x = x - 1
    return y


def becoming_a_tensor(x):
    n = 0
    while n < 3:
        n = x + n
    return n


def endless(x):
    while True:
        if x > 3:
            break
        x = x + 1
    return x


def break_of_python(x):
    total = x
    for i in range(3):
        if x > i:
            break
        total = total + 1
    return total


def invariant(x):
    tf = _given["tf"]
    y = tf.zeros([1])
    while x > 0:
        tf.autograph.experimental.set_loop_options(maximum_iterations=2)
        y = y + 1
        x = x - 1
    return y


FUNCTIONS = [
    branch, branch_without_else, nested, early, looping, breaking, continuing, ranging, over_rows, python_loop,
    operators, lazily, conditional, calling, dictionary, built_in_range, lengths, converting, last_of_loop,
    only_one_branch, only_one_returns, other_types, none_in_one, undefined_before, changing_type, changing_shape,
    becoming_a_tensor, endless, break_of_python, invariant,
]  # fmt: skip


IN_GRAPHS = [early, breaking, over_rows, dictionary, endless, undefined_before]


def mapped(function):
    def run(tf):
        _given["tf"] = tf
        dataset = tf.data.Dataset.range(6).map(function)
        following = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        with tf.compat.v1.Session() as session:
            return [session.run(following) for _ in range(6)]

    return run


def graphed(function):
    def run(tf):
        _given["tf"] = tf
        x = tf.compat.v1.placeholder(tf.int64, [])
        result = tf.autograph.to_graph(function)(x)
        with tf.compat.v1.Session() as session:
            return [session.run(result, {x: value}) for value in range(6)]

    return run


def filtered(tf):
    dataset = tf.data.Dataset.range(10).filter(lambda x: x > 2 and x < 7)
    following = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    with tf.compat.v1.Session() as session:
        return [session.run(following) for _ in range(4)]


def flat_mapped(tf):
    _given["tf"] = tf
    dataset = tf.data.Dataset.range(4).flat_map(some)
    following = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    with tf.compat.v1.Session() as session:
        return [session.run(following) for _ in range(6)]


def some(x):
    y = x
    if x > 2:
        y = x * 100
    return _given["tf"].data.Dataset.from_tensors(y).repeat(x)


def cases(tf):
    found = {"map " + function.__name__: mapped(function) for function in FUNCTIONS}
    found.update({"graph " + function.__name__: graphed(function) for function in IN_GRAPHS})
    found["map object"] = mapped(Doubling(3))
    found["map method"] = mapped(Doubling(3).apply)
    found["map lambda"] = mapped(lambda x: x * 2 if x > 2 else -x)
    found["filter"] = filtered
    found["flat_map"] = flat_mapped
    return found
