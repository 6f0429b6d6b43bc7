"""Selects Keras's backend, which Keras reads when it is first imported."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "jax")
