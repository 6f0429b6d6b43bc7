"""Effects of functions of datasets that no result needs. The expected results are those of TensorFlow 1.15."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater import errors, tf


def elements(dataset: Any, *initializers: Any) -> list[Any]:
    iterator = tf.data.make_initializable_iterator(dataset)
    found: list[Any] = []
    with tf.Session() as session:
        session.run(initializers)
        session.run(iterator.initializer)
        following = iterator.get_next()
        while True:
            try:
                found.append(session.run(following).tolist())
            except errors.OutOfRangeError:
                return found


def printing(text: str, n: Any, result: Any) -> Any:
    tf.print(text, n, output_stream=sys.stdout)
    return result


def number(value: int) -> Any:
    return tf.constant(value, tf.int64)


@pytest.mark.parametrize(
    ("transform", "printed", "expected"),
    [
        (lambda d: d.map(lambda n: printing("n", n, n)), ["n 0", "n 1", "n 2"], [0, 1, 2]),
        (lambda d: d.map(lambda n: printing("n", "-", n)), ["n -"] * 3, [0, 1, 2]),
        (lambda d: d.filter(lambda n: printing("n", n, n > 1)), ["n 0", "n 1", "n 2"], [2]),
        (
            lambda d: d.flat_map(
                lambda n: printing("n", n, tf.data.Dataset.range(n).map(lambda m: printing("m", m, m)))
            ),
            ["n 0", "n 1", "m 0", "n 2", "m 0", "m 1"],
            [0, 0, 1],
        ),
        (
            lambda d: d.map(lambda n: tf.cond(n > 1, lambda: printing("large", n, n), lambda: n)),
            ["large 2"],
            [0, 1, 2],
        ),
        (
            lambda d: d.map(lambda n: tf.while_loop(lambda i: i < n, lambda i: printing("i", i, i + 1), [number(0)])),
            ["i 0", "i 0", "i 1"],
            [0, 1, 2],
        ),
        (
            lambda d: d.map(lambda n: tf.map_fn(lambda i: printing("i", i, i + 1), tf.stack([n, n]))),
            ["i 0", "i 0", "i 1", "i 1", "i 2", "i 2"],
            [[1, 1], [2, 2], [3, 3]],
        ),
        (
            lambda d: d.apply(tf.data.experimental.scan(number(0), lambda s, n: printing("s", s, (s + n, s)))),
            ["s 0", "s 0", "s 1"],
            [0, 0, 1],
        ),
    ],
    ids=["map", "map_of_constants", "filter", "flat_map", "cond", "while_loop", "map_fn", "scan"],
)
def test_functions_print(
    transform: Callable[[Any], Any], printed: list[str], expected: list[Any], capfd: pytest.CaptureFixture[str]
) -> None:
    with tf.Graph().as_default():
        assert elements(transform(tf.data.Dataset.range(3))) == expected
    assert capfd.readouterr().out.splitlines() == printed


def test_a_function_of_python_is_called_for_each_element() -> None:
    seen: list[int] = []

    def function(n: Any) -> Any:
        tf.py_func(lambda value: seen.append(int(value)), [n], [])
        tf.py_func(lambda value: seen.append(10 + int(value)) or value, [n], tf.int64)
        return n

    with tf.Graph().as_default():
        assert elements(tf.data.Dataset.range(2).map(function)) == [0, 1]
    assert seen == [0, 10, 1, 11]


def test_an_assertion_fails() -> None:
    def function(n: Any) -> Any:
        tf.debugging.assert_less(n, number(2))
        return n

    for transform in ("map", "flat_map"):
        with tf.Graph().as_default(), pytest.raises(errors.InvalidArgumentError):
            dataset = tf.data.Dataset.range(3)
            elements(dataset.map(function) if transform == "map" else dataset.flat_map(lambda n: one(function(n))))


def one(tensor: Any) -> Any:
    return tf.data.Dataset.from_tensors(tensor)


def test_files_are_written(tmp_path: Path) -> None:
    def function(n: Any) -> Any:
        tf.write_file(tf.strings.join([f"{tmp_path}/", tf.as_string(n)]), "text")
        return n

    with tf.Graph().as_default():
        elements(tf.data.Dataset.range(3).map(function))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize("nested", [False, True], ids=["function", "branch"])
def test_effects_occur_when_their_element_is_used(nested: bool, tmp_path: Path) -> None:
    def write(n: Any) -> Any:
        with tf.control_dependencies([tf.write_file(tf.strings.join([f"{tmp_path}/", tf.as_string(n)]), "text")]):
            return tf.identity(n)

    def function(n: Any) -> Any:
        return tf.cond(n >= 0, lambda: write(n), lambda: n) if nested else write(n)

    with tf.Graph().as_default(), tf.Session() as session:
        element = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9).map(function)).get_next()
        for number in range(2):
            session.run(element)
            assert len(list(tmp_path.iterdir())) == number + 1


def test_a_change_of_a_variable_is_refused() -> None:
    with tf.Graph().as_default():
        counter = tf.get_variable("counter", [], tf.int64, tf.zeros_initializer())

        def function(n: Any) -> Any:
            tf.assign_add(counter, n)
            return n

        with pytest.raises((ValueError, errors.UnimplementedError), match="variable"):
            elements(tf.data.Dataset.range(3).map(function), counter.initializer)
