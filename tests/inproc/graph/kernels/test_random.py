"""Random numbers of kernels equal the executables' random numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from headwater import dtypes
from headwater.graph.kernels.registry import NoKernel, kernel_of
from headwater.graph.registry import Kind, as_outputs, lookup

_jax: Any = jax
_SHAPE = np.array([5, 7])
_TRUE = np.array([[0, 3], [99, 7], [12, 12]], np.int64)


def _sampled(number: int, unique: bool, classes: int) -> dict[str, Any]:
    return {"num_true": 2, "num_sampled": number, "unique": unique, "range_max": classes}


def _array(*values: int, dtype: Any = np.int32) -> Any:
    return np.array(values, dtype).reshape(len(values) if len(values) > 1 else ())


@pytest.mark.parametrize(
    ("op", "inputs", "attrs"),
    [
        ("RandomUniform", (_SHAPE,), {"dtype": dtypes.float32}),
        ("RandomStandardNormal", (_SHAPE,), {"dtype": dtypes.float32}),
        ("TruncatedNormal", (_SHAPE,), {"dtype": dtypes.float32}),
        ("StatelessRandomUniform", (_SHAPE, _array(3, -4, dtype=np.int64)), {}),
        ("StatelessRandomNormal", (_SHAPE, _array(-3, 4, dtype=np.int64)), {"dtype": dtypes.float32}),
        ("StatelessTruncatedNormal", (_SHAPE, _array(1 << 40, 4, dtype=np.int64)), {}),
        ("RandomUniformInt", (_SHAPE, _array(-9), _array(1000)), {}),
        ("RandomUniformInt", (_SHAPE, _array(-(1 << 31)), _array((1 << 31) - 1)), {}),
        ("RandomUniformInt", (_SHAPE, _array(5), _array(5)), {}),
        ("RandomUniformInt", (np.zeros(0, np.int32), _array(5), _array(50)), {}),
        ("RandomUniformInt", (_SHAPE, _array(0, dtype=np.int64), _array((1 << 62) + 12345, dtype=np.int64)), {}),
        ("RandomShuffle", (np.arange(3000).reshape(1000, 3),), {}),
        ("RandomShuffle", (np.arange(0.0),), {}),
        ("RandomKey", (), {}),
        ("Multinomial", (np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-9]], np.float32)), _array(500)), {}),
        ("Multinomial", (np.zeros((3, 2), np.float32), _array(4)), {"output_dtype": dtypes.int32}),
        ("UniformCandidateSampler", (_TRUE,), _sampled(30, False, 100)),
        ("UniformCandidateSampler", (_TRUE,), _sampled(99, True, 100)),
        ("LogUniformCandidateSampler", (_TRUE,), _sampled(64, False, 10_000)),
        ("LogUniformCandidateSampler", (_TRUE,), _sampled(95, True, 100)),
    ],
)
def test_draws_are_those_of_executables(op: str, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    definition = lookup(op)
    key = _jax.random.fold_in(_jax.random.key(7), 12)
    words = tuple(np.asarray(_jax.random.key_data(key)).tolist())
    ours, wanted = ((words,), (key,)) if definition.kind is Kind.RANDOM else ((), ())
    compute = kernel_of(op)
    assert compute is not None
    with np.errstate(all="ignore"):
        found = compute(*ours, *inputs, **attrs)
    expected = as_outputs(definition.lower(*wanted, *inputs, **attrs))
    for one, other in zip(as_outputs(found), map(np.asarray, expected), strict=True):
        assert one.dtype == other.dtype
        # Floats are compared with an executable, because the lowering alone rounds differently.
        np.testing.assert_allclose(one, other, rtol=0 if other.dtype.kind in "iu" else 1e-6)


def test_other_types_are_left_to_executables() -> None:
    compute = kernel_of("RandomUniform")
    assert compute is not None
    with pytest.raises(NoKernel):
        compute((1, 2), _SHAPE, dtype=dtypes.float64)
