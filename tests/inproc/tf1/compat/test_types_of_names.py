"""Types, signatures and documentation that an editor shows for names that most programs use.

Type checkers check `assert_type`; the tests run the same lines, and compare the result with the type.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import assert_type

import pytest

from headwater import tf
from headwater.tf1.input.iterators import Iterator

STUBS = Path(str(tf.__file__)).parent


def test_constructors_have_their_class() -> None:
    with tf.Graph().as_default():
        assert isinstance(assert_type(tf.Variable(0.0), tf.Variable), tf.Variable)
        assert isinstance(assert_type(tf.get_variable("w", [2]), tf.Variable), tf.Variable)
        assert isinstance(assert_type(tf.FIFOQueue(3, tf.float32), tf.FIFOQueue), tf.FIFOQueue)
        assert assert_type(tf.global_variables(), list[tf.Variable]) == tf.trainable_variables()


def test_datasets_stay_datasets() -> None:
    with tf.Graph().as_default():
        source = assert_type(tf.data.Dataset.from_tensor_slices([1, 2, 3]), tf.data.Dataset)
        batches = assert_type(source.map(lambda x: x + 1).shuffle(3).batch(2).repeat(2), tf.data.Dataset)
        assert isinstance(batches, tf.data.Dataset)
        assert isinstance(assert_type(batches.make_one_shot_iterator(), Iterator), Iterator)


def test_functions_return_tensors() -> None:
    with tf.Graph().as_default():
        x = assert_type(tf.placeholder(tf.float32, [None, 3]), tf.Tensor)
        hidden = assert_type(tf.layers.dense(inputs=x, units=4, activation=tf.nn.relu), tf.Tensor)
        assert isinstance(assert_type(tf.nn.relu(features=hidden, name="relu"), tf.Tensor), tf.Tensor)
        assert isinstance(assert_type(tf.reduce_mean(hidden, axis=0, keepdims=True), tf.Tensor), tf.Tensor)


@pytest.mark.parametrize(
    ("area", "name", "parameters"),
    [
        ("nn", "relu", ["features", "name"]),
        ("layers", "dense", None),
        ("layers", "conv2d", None),
        ("math", "add", ["x", "y", "name"]),
        ("", "reduce_sum", ["input_tensor", "axis", "keepdims", "name", "reduction_indices", "keep_dims"]),
    ],
)
def test_made_functions_are_declared(area: str, name: str, parameters: list[str] | None) -> None:
    """The stub declares the arguments that the function has at run time, and its documentation."""
    function = getattr(getattr(tf, area) if area else tf, name)
    path = STUBS / f"{area}.pyi" if (STUBS / f"{area}.pyi").exists() else STUBS / area / "__init__.pyi"
    declared = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert ast.get_docstring(declared[name]) == inspect.getdoc(function)
    shown = [argument.arg for argument in declared[name].args.args]
    assert shown == list(inspect.signature(function).parameters)
    assert parameters is None or shown == parameters
