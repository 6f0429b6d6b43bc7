"""Every optimizer has TensorFlow's values, with dense and sparse gradients, and TensorFlow's names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf
from tests.inproc.tf1.training import optimizer_cases

RECORDS = Path(__file__).parents[3] / "data" / "tf1" / "optimizers.json"
# Sums of products in another order, over 100 steps; the recorded values are of the order of 1.
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-6}, "float64": {"rtol": 1e-7, "atol": 1e-9}}
CASES = [(name, dtype) for name in optimizer_cases.CASES for dtype in optimizer_cases.types(name)]


@pytest.fixture(scope="module")
def records() -> Any:
    return json.loads(RECORDS.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_same_values_as_tensorflow(name: str, dtype: str, records: Any) -> None:
    optimizer, arguments = optimizer_cases.CASES[name]
    ours = optimizer_cases.run(tf, optimizer, arguments, dtype)
    theirs = records[name][dtype]
    for step in theirs:
        assert sorted(ours[step]) == sorted(theirs[step])
        for variable, value in theirs[step].items():
            np.testing.assert_allclose(
                ours[step][variable], value, **TOLERANCE[dtype], err_msg=f"{name}, step {step}, {variable}"
            )


@pytest.mark.parametrize("initial", [1.0, [1.0, 2.0]])
def test_settings_may_be_elements_of_an_iterator(initial: object) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        setting = tf.data.Dataset.from_tensors(0.5).repeat().make_one_shot_iterator().get_next()
        variable = tf.Variable(initial)
        update = tf.train.AdamOptimizer(setting, setting, setting, setting).minimize(variable * variable)
        session.run(tf.global_variables_initializer())
        session.run(update)
        gradient = 2 * np.asarray(initial)
        step = 0.5 * np.sqrt(0.5) / 0.5 * 0.5 * gradient / (np.sqrt(0.5 * gradient**2) + 0.5)
        np.testing.assert_allclose(session.run(variable), initial - step, rtol=1e-6)
