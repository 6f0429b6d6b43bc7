"""Hyperparameters: named values of fixed types, which flags and files override."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

_ASSIGNMENT: Final = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"((?P<one>[^,\[]*)|\[(?P<several>[^\]]*)\])(\Z|,\s*)"
)


class HParams:
    """Hyperparameters as attributes; each keeps the type of its first value.

    ::

        hparams = tf.contrib.training.HParams(learning_rate=0.1, units=[64, 32])
        hparams.parse("learning_rate=0.3,units=[128,64]")

    Args:
      hparam_def: must be None: definitions as protocol messages are not read.
      model_structure: any object; see `get_model_structure`.
      kwargs: values by name.

    Raises:
      ValueError: a name that is an attribute of this class, an empty list, or ``hparam_def``.
    """

    _model_structure: Any

    def __init__(self, hparam_def: object = None, model_structure: object = None, **kwargs: object) -> None:
        if hparam_def is not None:
            raise ValueError("hparam_def is not supported: pass values by name")
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a value; a list's type is its first element's.

        Raises:
          ValueError: the name is taken, or the list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        several = _is(value, list, tuple)
        if several and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if several else value), several)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets a value, in the type of its name.

        Raises:
          KeyError: there is no such name.
          ValueError: the type does not fit, or a list was expected, or not expected.
        """
        kind, several = self._hparam_types[name]
        if _is(value, list):
            if not several:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
            return
        if several:
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a value, if there is one."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Sets the values of ``name=value,other=[a,b]``; see `parse_values`.

        Raises:
          ValueError: the text is malformed, a name is not known, or a type does not fit.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets values by name.

        Raises:
          KeyError: there is no such name.
          ValueError: a type does not fit.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """An earlier name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def parse_json(self, values_json: str) -> HParams:
        """Sets the values of an object in JSON.

        Raises:
          KeyError: there is no such name.
          ValueError: a type does not fit, or it is not JSON.
        """
        return self.override_from_dict(json.loads(values_json))

    def to_json(
        self, indent: int | None = None, separators: tuple[str, str] | None = None, sort_keys: bool = False
    ) -> str:
        """Returns the values as an object in JSON, without functions; the arguments are `json.dumps`'s."""
        kept = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(kept, indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """Returns all values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a value, or ``default`` if there is none of this name.

        Raises:
          ValueError: ``default`` is of another type than the value.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, several = self._hparam_types[key]
            if isinstance(default, list) != several:
                raise ValueError(f"Hyperparameter '{key}' is {'' if several else 'not '}a list, unlike {default!r}")
            try:
                for each in default if several else [default]:
                    _cast(key, kind, each)
            except ValueError as error:
                raise ValueError(
                    f"Hyperparameter '{key}' of type {kind} has an incompatible default: {error}"
                ) from error
        return getattr(self, key)

    def get_model_structure(self) -> Any:
        """Returns the model's structure, as it was set."""
        return self._model_structure

    def set_model_structure(self, model_structure: object) -> None:
        """Sets the model's structure."""
        self._model_structure = model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def _is(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds)


def _cast(name: str, kind: type, value: object) -> Any:
    """Returns the value in a type, if that loses nothing.

    Raises:
      ValueError: it would.
    """
    make = cast("Callable[[Any], Any]", kind)
    if issubclass(kind, type(None)):
        return value
    texts = issubclass(kind, (str, bytes)) and not isinstance(value, (str, bytes))
    flags = issubclass(kind, bool) != isinstance(value, bool)
    wholes = issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral)
    figures = issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number)
    if texts or flags or wholes or figures:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return make(value)


def parse_values(values: str, type_map: Mapping[str, type], ignore_unknown: bool = False) -> dict[str, Any]:
    """Parses ``name=value``, ``name=[a,b]`` and ``name[index]=value``, with commas between them.

    Args:
      values: the text.
      type_map: types by name.
      ignore_unknown: ignore names without a type; otherwise they are an error.

    Returns:
      Values by name; for an index, a dictionary of values by index.

    Raises:
      ValueError: the text is malformed, a name is not known or assigned twice, or a value does not fit its type.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        match = _ASSIGNMENT.match(values, position)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = match.end()
        name = match["name"].strip()
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        _add(found, name, type_map[name], match, values)
    return found


def _add(found: dict[str, Any], name: str, kind: type, match: re.Match[str], text: str) -> None:
    if match["several"] is not None:
        if match["index"]:
            raise ValueError(f"Assignment of a list to a list index: {match[0]}")
        parts = [part for part in re.split(r"[ ,]", match["several"]) if part]
        value: Any = [_parsed(name, kind, part, text) for part in parts]
    elif match["one"] == "":
        raise ValueError(f"Malformed hyperparameter value: {text}")
    else:
        value = _parsed(name, kind, match["one"], text)
    if match["index"]:
        chosen = found.setdefault(name, {})
        if not isinstance(chosen, dict) or int(match["index"]) in chosen:
            raise ValueError(f"Multiple assignments to variable '{name}' in {text}")
        chosen[int(match["index"])] = value
    elif name in found:
        raise ValueError(f"Multiple assignments to variable '{name}' in {text}")
    else:
        found[name] = value


def _parsed(name: str, kind: type, part: str, text: str) -> Any:
    try:
        if kind is bool:
            return part in ("true", "True") or (part not in ("false", "False") and bool(int(part)))
        return kind(part)
    except ValueError as error:
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind.__name__}' in {text}") from error
