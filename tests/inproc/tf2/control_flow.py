"""Functions with conditions and loops that depend on tensors, for TensorFlow 2 and for Headwater.

With an interpreter that has TensorFlow 2, ``python control_flow.py > ../../../data/tf2/control_flow.json`` records its
answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np


def functions(tf: Any) -> dict[str, Any]:
    """Functions of an integer. AutoGraph reads their source."""

    def branch(x: Any) -> Any:
        if x > 2:
            y = x * 10
        else:
            y = -x
        return y

    def early(x: Any) -> Any:
        if x > 2:
            return x * 10
        x = x + 1
        if x > 2:
            return x * 100
        return -x

    def looping(x: Any) -> Any:
        total = x * 0
        while x > 0:
            total += x
            x -= 1
        return total

    def breaking(x: Any) -> Any:
        total = tf.constant(0)
        while x > 0:
            if total > 5:
                break
            total += x
            x -= 1
        return total, x

    def continuing(x: Any) -> Any:
        total = 0
        n = 0
        while n < x:
            n += 1
            if n % 2 == 0:
                continue
            total += n
        return total

    def ranging(x: Any) -> Any:
        total = 0
        for i in tf.range(x):
            total += i * i
        return total

    def over_rows(x: Any) -> Any:
        rows = tf.stack([x, x * 2, x * 3])
        total = 0
        for row in rows:
            if row > 4:
                break
            total += row
        return total

    def over_all_rows(x: Any) -> Any:
        rows = tf.stack([x, x * 2, x * 3])
        total = 0
        for row in rows:
            if row > 4:
                total += 1
        return total

    def built_in_range(x: Any) -> Any:
        total = 0
        for i in range(x):
            total += i
        return total

    def operators(x: Any) -> Any:
        return (x > 1 and x < 4) or not x > 0

    def chained(x: Any) -> Any:
        if 1 < x < 4:
            return x
        return x - x

    def conditional(x: Any) -> Any:
        return x * 2 if x > 2 else x

    def helper(x: Any) -> Any:
        if x > 2:
            return x - 2
        return x

    def calling(x: Any) -> Any:
        return helper(x) + helper(x + 1)

    def none_twice(x: Any) -> Any:
        y = None
        if x > 2:
            z = x
        else:
            z = x + 1
        return z, y

    def undefined_before(x: Any) -> Any:
        while x > 0:
            y = x
            x = x - 1
        return y

    def only_one_branch(x: Any) -> Any:
        if x > 2:
            y = x
        return y

    def only_one_returns(x: Any) -> Any:
        if x > 2:
            return x

    def other_types(x: Any) -> Any:
        if x > 2:
            y = x
        else:
            y = 1.5
        return y

    def none_in_one(x: Any) -> Any:
        y = None
        if x > 2:
            y = x
        return y

    def changing_type(x: Any) -> Any:
        y = 0
        while x > 0:
            y = tf.cast(x, tf.float32)
            x = x - 1
        return y

    def changing_shape(x: Any) -> Any:
        y = tf.zeros([1])
        while x > 0:
            y = tf.concat([y, y], 0)
            x = x - 1
        return y

    v = tf.Variable(1.0)

    def changing_variable(x: Any) -> Any:
        if x > 2:
            v.assign_add(1.0)
        return v * 1.0

    w = tf.Variable(1.0)

    def variable_in_loop(x: Any) -> Any:
        while x > 0:
            w.assign(w * 2.0)
            x -= 1
        return w.read_value()

    def gradient_of_branch(x: Any) -> Any:
        y = tf.cast(x, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(y)
            if y > 2.0:
                z = y * y
            else:
                z = y * 5.0
        return tape.gradient(z, y)

    def gradient_of_loop(x: Any) -> Any:
        y = tf.cast(x, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(y)
            z = y
            n = x
            while n > 0:
                z = z * y
                n -= 1
        return tape.gradient(z, y)

    u = tf.Variable(3.0)

    def gradient_of_variable(x: Any) -> Any:
        with tf.GradientTape() as tape:
            z = tf.constant(0.0)
            for row in tf.stack([x, x + 1]):
                if row > 2:
                    z += u * u
        return tape.gradient(z, u)

    @tf.function
    def inner(x: Any) -> Any:
        if x > 2:
            return x * 2
        return x

    def nested_functions(x: Any) -> Any:
        return inner(x) + inner(x + 1)

    @tf.autograph.experimental.do_not_convert
    def left(x: Any) -> Any:
        return x + 1

    def calls_left(x: Any) -> Any:
        if x > 2:
            return left(x)
        return x

    def dictionary(x: Any) -> Any:
        found = {"a": x, "b": x}
        if x > 2:
            found["a"] = x * 2
        return found["a"] + found["b"]

    def collatz(x: Any) -> Any:
        n = 0
        while x > 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            n += 1
        return n

    class Limited(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.limit = tf.Variable(3)

        def apply(self, x: Any) -> Any:
            while x < self.limit:
                x = x * 2 + 1
            return x

    found = dict(locals())
    return {name: found[name] for name in NAMES} | {"method": Limited().apply}


NAMES = [
    "branch", "early", "looping", "breaking", "continuing", "ranging", "over_rows", "over_all_rows",
    "built_in_range", "operators", "chained", "conditional", "calling", "none_twice", "undefined_before",
    "only_one_branch", "only_one_returns", "other_types", "none_in_one", "changing_type", "changing_shape",
    "changing_variable", "variable_in_loop", "gradient_of_branch", "gradient_of_loop", "gradient_of_variable",
    "nested_functions", "calls_left", "dictionary", "collatz",
]  # fmt: skip


def answer(tf: Any, function: Callable[..., Any]) -> Any:
    """Returns the results of a function for 0 to 5, or the class of the error with which calls end."""

    def plain(tensor: Any) -> Any:
        return None if tensor is None else np.asarray(tensor).tolist()

    try:
        return [tf.nest.map_structure(plain, function(tf.constant(x))) for x in range(6)]
    except Exception as error:  # noqa: BLE001 - the class of any error is an answer
        return f"raises {type(error).__name__}"


def main() -> None:
    import tensorflow as tf

    print(json.dumps({name: answer(tf, tf.function(f)) for name, f in functions(tf).items()}, indent=1))


if __name__ == "__main__":
    main()
