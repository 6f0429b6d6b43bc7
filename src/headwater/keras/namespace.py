"""The module ``keras`` of programs under Headwater: Keras 3 with some replacements and additions.

Headwater replaces or adds callbacks and readers for files of any name, sample data from ``HEADWATER_DATA_DIR``,
datasets of ``tf.data`` as data of ``fit``, and names of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed
(`headwater.keras.old_names`). Everything else is Keras's own, module by module.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import keras

from headwater.keras.graphs.dispatch import accept_graphs
from headwater.keras.graphs.initial_values import accept_graph_types
from headwater.keras.graphs.layers import accept_graphs_in_layers
from headwater.keras.graphs.names import number_names_by_graph
from headwater.keras.old_names import OLD

#: Replaced or added names of each module of Keras, by its path, and the modules that define them.
_REPLACEMENTS: Mapping[str, Mapping[str, str]] = {
    "backend": {
        "learning_phase": "headwater.keras.graphs.phase:learning_phase_of_program",
        "set_learning_phase": "headwater.keras.learning_phase:set_learning_phase",
    },
    "callbacks": {
        "BackupAndRestore": "headwater.keras.callbacks:BackupAndRestore",
        "ModelCheckpoint": "headwater.keras.callbacks:ModelCheckpoint",
        "TensorBoard": "headwater.keras.tensorboard:TensorBoard",
    },
    "callbacks.experimental": {"BackupAndRestore": "headwater.keras.callbacks:BackupAndRestore"},
    "datasets.fashion_mnist": {"load_data": "headwater.keras.sample_data:load_fashion_mnist"},
    "datasets.mnist": {"load_data": "headwater.keras.sample_data:load_mnist"},
    "estimator": {"model_to_estimator": "headwater.keras.estimator:model_to_estimator"},
    "": {"Input": "headwater.keras.graphs.inputs:Input"},
    "export": {"ExportArchive": "headwater.tf2.export_archive:ExportArchive"},
    "layers": {
        "TFSMLayer": "headwater.tf2.export_archive:TFSMLayer",
        "Input": "headwater.keras.graphs.inputs:Input",
        "HashedCrossing": "headwater.keras.lookups:HashedCrossing",
        "Hashing": "headwater.keras.lookups:Hashing",
        "IntegerLookup": "headwater.keras.lookups:IntegerLookup",
        "StringLookup": "headwater.keras.lookups:StringLookup",
        "TextVectorization": "headwater.keras.text_vectorization:TextVectorization",
    },
    "utils.experimental": {"DatasetCreator": "headwater.keras.strategy:DatasetCreator"},
    "models": {"load_model": "headwater.keras.saving:load_model"},
    "saving": {"load_model": "headwater.keras.saving:load_model"},
}
_NAMES: Mapping[str, Mapping[str, str]] = {
    path: {**OLD.get(path, {}), **_REPLACEMENTS.get(path, {})}
    for path in (*_REPLACEMENTS, *(path for path in OLD if path not in _REPLACEMENTS))
}

accept_graphs()
accept_graph_types()
accept_graphs_in_layers()
number_names_by_graph()


class _Overlay(ModuleType):
    """A module of Keras with some of Headwater's names.

    Args:
      path: the module's path within Keras; empty for Keras itself.
      below: Keras's module of this path; None if Keras has none.
    """

    def __init__(self, path: str, below: ModuleType | None) -> None:
        super().__init__(f"{__name__}.{path}", getattr(below, "__doc__", None))
        self.__dict__["_below"] = below
        self.__dict__["_path"] = path
        self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        value = _find(self.__dict__["_path"], self.__dict__["_below"], name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        below = self.__dict__["_below"]
        return sorted({*(dir(below) if below is not None else ()), *_NAMES.get(self.__dict__["_path"], ())})


def _find(path: str, below: ModuleType | None, name: str) -> object:
    place = _NAMES.get(path, {}).get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return getattr(importlib.import_module(module), attribute)
    inner = f"{path}.{name}".lstrip(".")
    value: Any = getattr(below, name, None)
    if any(other == inner or other.startswith(f"{inner}.") for other in _NAMES):
        return _Overlay(inner, value)
    if value is None and not hasattr(below, name):
        raise AttributeError(f"module {f'keras.{path}'.rstrip('.')!r} has no attribute {name!r}", name=name)
    return value


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _find("", keras, name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*dir(keras), *(path for path in _NAMES if "." not in path)})
