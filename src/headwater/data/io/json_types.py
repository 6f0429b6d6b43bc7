"""Types of JSON values."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value of JSON. The result of `json.loads` has no more precise type: its user checks the contents."""

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON: values by name."""
