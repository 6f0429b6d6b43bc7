"""Host operations for tests, implemented in Python: one for each kind that the passes treat differently."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import float32, int32, string
from headwater.errors import UnavailableError
from headwater.graph.ops.define import fixed, host, no_outputs, same_as
from headwater.graph.registry import Inference, Spec


@host("TestHostNegate", infer=same_as(), inputs="x:T")
def host_negate(context: Any, x: Any) -> Any:
    del context
    return -x


def _text(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, inference.inputs[0].dims)]


@host("TestToText", infer=_text, inputs="x:T")
def to_text(context: Any, x: Any) -> Any:
    del context
    return np.array([str(float(item)).encode() for item in x.ravel()], object).reshape(x.shape)


def _number(inference: Inference) -> Sequence[Spec]:
    return [Spec(float32, inference.inputs[0].dims)]


@host("TestFromText", infer=_number, inputs="x:string")
def from_text(context: Any, x: Any) -> Any:
    del context
    return np.array([float(item) for item in x.ravel()], np.float32).reshape(x.shape)


@host("TestTwoOutputs", infer=lambda inference: [Spec(int32, ()), Spec(string, ())], inputs="")
def two_outputs(context: Any) -> Any:
    del context
    return np.int32(7), b"seven"


@host("TestOneOutputTooFew", infer=lambda inference: [Spec(int32, ()), Spec(int32, ())], inputs="")
def one_output_too_few(context: Any) -> Any:
    del context
    return np.int32(7)


@host("TestFails", infer=no_outputs, inputs="")
def fails(context: Any, *, how: str = "unavailable") -> Any:
    del context
    if how == "unavailable":
        raise UnavailableError(None, None, "this operation always fails")
    raise ValueError("this operation always fails")


class Gate:
    """A gate that the operation `TestWait` waits for, so that a test can hold a step."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.is_open = False
        self.reached = threading.Event()

    def open(self) -> None:
        """Opens the gate: the operation continues."""
        with self.condition:
            self.is_open = True
            self.condition.notify_all()


gates: dict[str, Gate] = {}


@host("TestWait", infer=fixed(int32, ()), inputs="", blocking=True)
def wait(context: Any, *, gate: str, commits: bool = False) -> Any:
    waiting = gates[gate]
    if commits:
        context.step.commit()
    with waiting.condition:
        waiting.reached.set()
        context.step.wait_until(waiting.condition, lambda: waiting.is_open, f"gate {gate}")
    return np.int32(1)
