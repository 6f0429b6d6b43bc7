"""Descriptions of the parts of a Keras program that must agree on all tasks: see `headwater.cluster.task.agreement`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from headwater.keras.embeddings.bags import Bags

_keras: Any = keras
_tree = keras.tree

#: Number of rows of each array in a digest of its contents.
_SAMPLED = 64
_NUMBER = re.compile(r"_\d+(?=/|$)")


def optimizer_topics(optimizer: keras.Optimizer) -> dict[str, Mapping[str, object]]:
    """Returns the class of an optimizer and its configuration. Names are omitted, because Keras numbers optimizers.

    The learning rate is a topic of its own, and is omitted once the optimizer has made updates, because callbacks may
    have changed the rate since.
    """
    config = _described(optimizer)
    rate = config.pop("learning_rate", None)
    topics: dict[str, Mapping[str, object]] = {
        "settings of its optimizer": {"class": type(optimizer).__name__, **config}
    }
    if not updates_made(optimizer):
        topics["learning rate"] = {"learning_rate": rate}
    return topics


def same_settings(one: keras.Optimizer, other: keras.Optimizer) -> bool:
    """Returns whether two optimizers differ at most in their name, and in a learning rate that is a number."""

    def settings(optimizer: keras.Optimizer) -> object:
        config = {**_described(optimizer), "class": type(optimizer).__name__}
        return {name: value for name, value in config.items() if name != "learning_rate" or isinstance(value, dict)}

    return settings(one) == settings(other)


def settings_for_copies(optimizer: Any) -> dict[str, Any]:
    """Returns the configuration of an optimizer, for `from_config`.

    It contains a schedule or function of the learning rate as an object: the class of a program's own schedule need not
    be registered, nor have a configuration.
    """
    rate = getattr(optimizer, "_learning_rate", None)
    if not callable(rate):
        return optimizer.get_config()
    described = object.__new__(type(optimizer))  # Keras copies objects by their configuration
    described.__dict__.update(optimizer.__dict__, _learning_rate=None)
    return {**described.get_config(), "learning_rate": rate}


def _described(optimizer: keras.Optimizer) -> dict[str, Any]:
    config = settings_for_copies(optimizer)
    if callable(config.get("learning_rate")):
        try:
            config["learning_rate"] = _keras.saving.serialize_keras_object(config["learning_rate"])
        except NotImplementedError:
            config["learning_rate"] = {"class_name": type(config["learning_rate"]).__name__}
    return _without_names(config)


def _without_names(config: Any) -> Any:
    """Removes names from the configuration of an optimizer, which may contain other optimizers."""
    if isinstance(config, Mapping):
        return {key: _without_names(value) for key, value in config.items() if key != "name"}  # pyright: ignore[reportUnknownVariableType]
    return config


def updates_made(optimizer: keras.Optimizer) -> int:
    """Returns the number of updates that an optimizer has made."""
    iterations = optimizer.iterations
    return int(_keras.ops.convert_to_numpy(getattr(iterations, "value", iterations)))


def model_variables(model: keras.Model) -> Mapping[str, object]:
    """Shape and type of each of a model's variables, in their order.

    Numbers that Keras appends to names are omitted: they depend on other objects that the program has built before.
    """
    return {
        f"{place}: {_NUMBER.sub('', variable.path)}": f"{variable.dtype}{list(variable.shape)}"
        for place, variable in enumerate(model.variables)
    }


def elements(batch: object) -> str:
    """Types and shapes of one example of a batch."""
    leaves = [np.asarray(leaf) for leaf in _tree.flatten(batch) if leaf is not None]
    return ", ".join(f"{leaf.dtype}{list(leaf.shape[1:])}" for leaf in leaves)


def contents(data: object) -> str:
    """A digest of some rows of arrays."""
    checksum = 0
    for leaf in _tree.flatten(data):
        if leaf is not None:
            rows = leaf[:: max(1, len(leaf) // _SAMPLED)][:_SAMPLED]
            for part in (rows.offsets, rows.values) if isinstance(rows, Bags) else (np.asarray(rows),):
                checksum = zlib.crc32(
                    np.ascontiguousarray(part).tobytes() if part.dtype != object else repr(part.tolist()).encode(),
                    checksum,
                )
    return f"{checksum:08x}"


def list_paths(variables: Sequence[Any]) -> str:
    """Returns the paths of the first three variables, for a message."""
    return ", ".join([*(variable.path for variable in variables[:3]), *(["…"] if len(variables) > 3 else [])])
