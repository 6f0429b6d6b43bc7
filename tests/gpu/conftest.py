"""Tests on a real GPU; they skip where JAX has none. Memory is taken as it is needed: several can run at once."""

from __future__ import annotations

import os

import pytest

from headwater import tf

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@pytest.fixture(autouse=True)
def gpu() -> None:
    if not tf.config.list_physical_devices("GPU"):
        pytest.skip("JAX has no GPU here")
