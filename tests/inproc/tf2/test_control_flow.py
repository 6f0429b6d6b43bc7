"""Functions with conditions and loops that depend on tensors have TensorFlow 2's results, and are compiled."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from headwater.tf2.namespace import tf
from tests.inproc.tf2.control_flow import answer, functions

_RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "tf2" / "control_flow.json").read_text(encoding="utf-8")
)
#: Differences from TensorFlow, with reasons.
_DIFFER = {
    # TensorFlow notices in a step that there was no iteration; Python notices it at once.
    "undefined_before": "raises UnboundLocalError",
}
#: Functions that run as Python.
_NOT_COMPILED = ("undefined_before",)


@pytest.mark.parametrize("name", _RECORDED)
def test_as_tensorflow_2(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headwater"):
        found = json.loads(json.dumps(answer(tf, tf.function(functions(tf)[name]))))
        assert found == _DIFFER.get(name, _RECORDED[name])
    said = [record.getMessage() for record in caplog.records if "needs the value of a tensor" in record.getMessage()]
    assert bool(said) == (name in _NOT_COMPILED)


def test_branches_of_different_shapes_run_as_python(caplog: pytest.LogCaptureFixture) -> None:
    @tf.function
    def doubled(x: Any) -> Any:
        return tf.concat([x, x], 0) if tf.reduce_sum(x) > 0 else x

    with caplog.at_level(logging.WARNING, "headwater"):
        assert [doubled(tf.constant([value])).shape[0] for value in (1.0, -1.0)] == [2, 1]
    assert "have shapes (2,) and (1,)" in caplog.text


def test_a_function_without_such_conditions_is_called_as_it_is() -> None:
    called: list[bool] = []

    @tf.function
    def plain(x: Any, flag: bool) -> Any:
        called.append(flag)
        return x + 1 if flag else x

    assert [int(plain(tf.constant(1), flag)) for flag in (True, False, True)] == [2, 1, 2]
    assert called == [True, False]


def test_error_contains_the_line_of_the_program() -> None:
    @tf.function
    def fails(x: Any) -> Any:
        if x > 2:
            raise KeyError("too large")  # raised while it is traced, as in TensorFlow
        return x

    with pytest.raises(KeyError, match="too large") as caught:
        fails(tf.constant(1))
    assert any("test_control_flow.py" in note and "too large" in note for note in caught.value.__notes__)


def test_a_loop_ends_after_the_turns_that_the_program_allows() -> None:
    @tf.function
    def counted(x: Any) -> Any:
        y = 0
        while x > 0:
            tf.autograph.experimental.set_loop_options(maximum_iterations=2)
            y += 1
            x -= 1
        return y

    assert [int(counted(tf.constant(x))) for x in range(4)] == [0, 1, 2, 2]
