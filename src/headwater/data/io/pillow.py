"""Pillow, which reads and writes image formats: an extra, loaded with the first image."""

from __future__ import annotations

import importlib
from types import ModuleType

from headwater.errors import UnimplementedError


def pillow(module: str = "Image") -> ModuleType:
    """Returns the module ``PIL.<module>``.

    Raises:
      UnimplementedError: Pillow is not installed.
    """
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError as error:
        raise UnimplementedError("reading and writing images needs Pillow: pip install 'headwater[images]'") from error
