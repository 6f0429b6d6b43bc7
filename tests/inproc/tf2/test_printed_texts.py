"""`tf.print`, and effects of functions in each call. The expected results are those of TensorFlow 2.21."""

from __future__ import annotations

import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.tf2.namespace import tf


class Pair(NamedTuple):
    x: Any
    y: Any


VECTOR, NUMBER = tf.constant([1.5, 2.25]), tf.constant(3)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["x", VECTOR, 1.5, True, None], "x [1.5 2.25] 1.5 True None"),
        ([[VECTOR, NUMBER]], "[[1.5 2.25], 3]"),
        ([(VECTOR, NUMBER), {"m": [NUMBER, "s"], "k": VECTOR}], "([1.5 2.25], 3) {'k': [1.5 2.25], 'm': [3, 's']}"),
        ([Pair(VECTOR, NUMBER)], "Pair(x=[1.5 2.25], y=3)"),
        ([[tf.range(20)]], "[[0 1 2 ... 17 18 19]]"),
        ([[tf.constant("q"), tf.constant(["r", "s"])]], '["q", ["r" "s"]]'),
        ([[tf.Variable(2.0), tf.constant(True)]], "[2, 1]"),
        ([tf.SparseTensor([[0, 1]], [5], [1, 2])], "'SparseTensor(indices=[[0 1]], values=[5], shape=[1 2])'"),
        ([tf.ragged.constant([["a", "b"], []])], "[['a', 'b'], []]"),
        ([[tf.ragged.constant([[1], [2, 3]])]], "[[[1], [2, 3]]]"),
        (
            [tf.ragged.constant([list(range(10)), [1], list(range(7)), [], [2], [3], [4], [5]])],
            "[[0, 1, 2, ..., 7, 8, 9], [1], [0, 1, 2, ..., 4, 5, 6], ..., [3], [4], [5]]",
        ),
        ([tf.ragged.constant([[[1, 2], [3]], [[]]])], "[[[1, 2], [3]], [[]]]"),
        ([tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)], "[[[1, 2], [3, 4]], [[5, 6]]]"),
        ([tf.ragged.constant([[1.5, 1 / 3], [float("nan")]])], "[[1.500000, 0.333333], [nan]]"),
        ([{"q": tf.ragged.constant([["a"]]), "s": "t"}], "{'q': [['a']], 's': 't'}"),
    ],
)
def test_texts(values: list[Any], expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    tf.print(*values, output_stream=sys.stdout)
    assert capfd.readouterr().out == f"{expected}\n"


def test_items_of_an_ordered_dict_keep_their_order(capfd: pytest.CaptureFixture[str]) -> None:
    # TensorFlow prints the values in the order of the sorted keys, under the wrong keys.
    tf.print(OrderedDict(z=VECTOR, a=NUMBER), output_stream=sys.stdout)
    assert capfd.readouterr().out.replace("[1.5 2.25]", "V") == f"{OrderedDict(z=Verbatim('V'), a=3)}\n"


class Verbatim(str):
    """A text without quotation marks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def test_a_function_prints_and_writes_files_in_each_call(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"

    @tf.function
    def function(x: Any) -> Any:
        tf.print("constant", VECTOR, output_stream=sys.stdout)
        return x + 1

    @tf.function
    def write(x: Any) -> Any:
        tf.io.write_file(str(path), "text")
        return x

    for number in range(2):
        assert int(function(tf.constant(number))) == number + 1
        write(tf.constant(number))
        path.unlink()
    assert capfd.readouterr().out == "constant [1.5 2.25]\n" * 2


def test_a_function_of_python_without_results() -> None:
    seen: list[int] = []

    @tf.function
    def function(x: Any) -> Any:
        tf.py_function(lambda: seen.append(1), [], [])
        return x

    function(tf.constant(1))
    function(tf.constant(2))
    assert seen == [1, 1]

    @tf.function
    def constant(x: Any) -> Any:
        return x + tf.py_function(lambda y: seen.append(2) or y, [tf.constant(3)], tf.int32)

    assert [int(constant(tf.constant(number))) for number in range(2)] == [3, 4]
    assert seen == [1, 1, 2, 2]
    with pytest.raises(ValueError, match="returned 2 values for 1 types"):
        tf.py_function(lambda: (1, 2), [], [tf.int32])


def test_functions_of_datasets_print_and_assert(capfd: pytest.CaptureFixture[str]) -> None:
    def function(n: Any) -> Any:
        tf.print("n", n, output_stream=sys.stdout)
        tf.debugging.assert_less(n, tf.constant(1, tf.int64))
        return n

    with pytest.raises(tf.errors.InvalidArgumentError):
        list(tf.data.Dataset.range(2).map(function))
    assert capfd.readouterr().out == "n 0\nn 1\n"
