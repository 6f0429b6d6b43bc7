"""Updates of many variables by one rule: the same as single updates, whatever else refers to the variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.registry import element_rule_of, update_kernel_of
from headwater.graph.resources.containers import Cell
from headwater.graph.runtime.joined_updates import JoinedUpdate
from headwater.graph.runtime.mode_choice import VARIABLE
from headwater.tf1.compat import tf

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.9, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}
SHAPES = (3,), (2, 4), (), (70, 70), (4, 2)


class Model:
    """Variables of several shapes, one of which is too large to be joined, and a loss of all of them."""

    def __init__(self, optimizer: str) -> None:
        random = np.random.RandomState(0)
        self.variables = [
            tf.get_variable(f"v{index}", initializer=np.asarray(random.rand(*shape), "f"), use_resource=False)
            for index, shape in enumerate(SHAPES)
        ]
        self.x = tf.placeholder(tf.float32, [])
        loss = tf.add_n([tf.reduce_sum(tf.square(each * self.x - 1.0)) for each in self.variables])
        self.train = OPTIMIZERS[optimizer]().minimize(loss)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_joined_updates_compute_the_same_as_executables(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[Any]] = []
    for way in ("off", "on"):
        monkeypatch.setenv(VARIABLE, way)
        with tf.Graph().as_default(), tf.Session() as session:
            model = Model(optimizer)
            session.run(tf.global_variables_initializer())
            for step in range(3):
                session.run(model.train, {model.x: 0.5 + step})
            found.append(session.run(tf.global_variables()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def _cells(*values: Any) -> list[Cell]:
    cells = [Cell(f"v{index}") for index, _ in enumerate(values)]
    for cell, value in zip(cells, values, strict=True):
        cell.install(np.array(value, np.float32), 1)
    return cells


def _descent(cells: list[Cell]) -> JoinedUpdate:
    update, rule = update_kernel_of("ApplyGradientDescent"), element_rule_of("ApplyGradientDescent")
    assert update is not None
    assert rule is not None
    return JoinedUpdate(update, rule, [cells])


def test_a_value_in_use_does_not_change_and_others_are_updated_in_place() -> None:
    cells = _cells([1, 2], [[3]], 4)
    update, alpha = _descent(cells), np.array(0.5, np.float32)
    grads = [np.ones_like(cell.value) for cell in cells]
    update(grads, alpha)
    first = [id(cell.value) for cell in cells]
    update(grads, alpha)
    assert [id(cell.value) for cell in cells] == first
    held, part = cells[1].value, cells[0].value[1:]
    update(grads, alpha)
    assert held.tolist() == [[2]]
    assert part.tolist() == [1]
    assert [cell.value.tolist() for cell in cells] == [[-0.5, 0.5], [[1.5]], 2.5]
    assert [cell.updates for cell in cells] == [4] * 3
    assert not any(cell.value.flags.writeable for cell in cells)


def test_a_gradient_of_another_shape_raises() -> None:
    cells = _cells([1, 2], [3])
    with pytest.raises(InvalidArgumentError, match="same shape"):
        _descent(cells)([np.ones(2, np.float32), np.ones((1, 1), np.float32)], np.array(1, np.float32))


def test_an_assigned_variable_is_updated_from_its_new_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model("sgd")
        session.run(tf.global_variables_initializer())
        session.run(model.train, {model.x: 1.0})
        session.run(model.variables[1].assign(np.ones((2, 4))))
        session.run(model.train, {model.x: 1.0})
        np.testing.assert_array_equal(session.run(model.variables[1]), np.ones((2, 4)))
