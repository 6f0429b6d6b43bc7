"""Shapes of tensors as JAX's functions see them."""

from __future__ import annotations

from typing import Any, cast

import jax
import numpy as np
import pytest
from jax.experimental.sparse import BCOO

from headwater.graph.runtime.jax_internals import ArrayImpl
from headwater.tf2.shapes import Sizes, shape_of


def test_jax_makes_sparse_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    array: Any = jax.device_put(np.eye(4, dtype=np.float32))
    monkeypatch.setattr(cast(Any, ArrayImpl), "shape", property(shape_of))
    assert isinstance(array.shape, Sizes)
    np.testing.assert_array_equal(BCOO.fromdense(array).todense(), np.eye(4))
