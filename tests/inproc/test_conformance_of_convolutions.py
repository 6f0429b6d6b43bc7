"""Convolutions and pools have TensorFlow 1.15's values and gradients, on kernels and in executables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize("jit", ["off", "on"])
@pytest.mark.parametrize("case", stored_cases("convolutions"), ids=str)
def test_as_tensorflow(case: Case, jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_JIT", jit)
    tolerance = 1e-2 if "float16" in case.name else 1e-4
    found: Any = outcome(case.run, tf)
    np.testing.assert_allclose(found, case.expected, rtol=tolerance, atol=tolerance)
