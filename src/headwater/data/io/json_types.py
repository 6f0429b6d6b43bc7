"""The types of what is read from JSON and written as JSON."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A value of JSON. What `json.loads` gives has no closer type: what reads it says what it must hold."""

JsonObject: TypeAlias = dict[str, Any]
"""An object of JSON: values by name."""
