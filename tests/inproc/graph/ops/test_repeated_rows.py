"""Sparse updates apply rows with equal indices one after the other, with values recorded from TensorFlow 1.15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.graph.kernels.registry import update_kernel_of
from headwater.graph.registry import lookup
from headwater.lazy_jax import jax

RECORDED: Any = json.loads((Path(__file__).parents[3] / "data/tf1/repeated_rows.json").read_text())
any_jax: Any = jax  # Pyright can infer the types of JAX's functions only in part.
UPDATES = [
    pytest.param(update, id=f"{update['op']}{'-nesterov' * bool(update['attrs'])}") for update in RECORDED["updates"]
]


def inputs_of(update: Any, *, copies: int = 1) -> list[Any]:
    """Returns the arrays of an update, in the operation's order; with ``copies``, rows out of range follow."""

    def value(index: int, name: str) -> Any:
        if name == "global_step":
            return np.array(update["scalars"][name], np.int64)
        if name == "indices":
            return np.concatenate([RECORDED["indices"], np.full(copies, -1), np.full(copies, 2**63 - 1)])
        if name == "grad":
            return np.pad(np.array(RECORDED["grad"], np.float32), ((0, 2 * copies), (0, 0)), constant_values=1)
        if name in update["scalars"]:
            return np.array(update["scalars"][name], np.float32)
        return np.array(RECORDED["slot" if index else "var"], np.float32)

    return [value(index, name) for index, name in enumerate(update["inputs"])]


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("use_locking", [False, True])
def test_kernels_apply_repeated_rows_one_after_the_other(update: Any, use_locking: bool) -> None:
    kernel = update_kernel_of(update["op"])
    assert kernel is not None
    inputs = inputs_of(update)
    kernel(*inputs, use_locking=use_locking, **update["attrs"])
    for found, value in zip(inputs, update["values"], strict=False):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("copies", [1, 40])
def test_executables_apply_repeated_rows_one_after_the_other(copies: int) -> None:
    updates: list[Any] = RECORDED["updates"]
    lowered = [lookup(update["op"]).lower for update in updates]

    def run(inputs: list[list[Any]]) -> list[Any]:
        return [lower(*given, **update["attrs"]) for lower, given, update in zip(lowered, inputs, updates, strict=True)]

    results = any_jax.jit(run)([inputs_of(update, copies=copies) for update in updates])
    for update, arrays in zip(updates, results, strict=True):
        for found, value in zip(arrays, update["values"], strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6, err_msg=update["op"])
