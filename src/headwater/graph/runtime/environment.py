"""Temporary environment variables."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Generator[None]:
    """Sets environment variables within the block only, so that child processes started later do not inherit them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
