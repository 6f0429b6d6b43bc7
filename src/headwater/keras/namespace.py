"""The module ``keras`` of programs under Headwater: Keras 3 with some replacements and additions.

Headwater replaces or adds callbacks and readers for files of any name, sample data from ``HEADWATER_DATA_DIR``,
datasets of ``tf.data`` as data of ``fit``, and names of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed
(`headwater.keras.old_names`). Everything else is Keras's own, module by module.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import keras

from headwater.graph.context import in_graph_block
from headwater.keras.graphs.dispatch import accept_graphs
from headwater.keras.graphs.initial_values import accept_graph_types
from headwater.keras.graphs.layers import accept_graphs_in_layers
from headwater.keras.graphs.metrics import accept_graphs_in_metrics
from headwater.keras.graphs.names import number_names_by_graph
from headwater.keras.graphs.optimizers import accept_graphs_in_optimizers
from headwater.keras.graphs.phase import compute_arrays_in_training, computing_arrays
from headwater.keras.graphs.program_functions import accept_program_functions
from headwater.keras.graphs.symbols import accept_symbols_in_graphs
from headwater.keras.learning_phase import keep_given_phases
from headwater.keras.old_arguments import MODULES, accept_old_configurations, adapted
from headwater.keras.old_compile import accept_old_compile_arguments
from headwater.keras.old_layer_arguments import accept_old_layer_arguments
from headwater.keras.old_metric_names import accept_old_metric_names
from headwater.keras.old_names import OLD
from headwater.keras.old_optimizers import accept_old_optimizers
from headwater.keras.old_training import add_old_methods
from headwater.keras.saving import accept_old_weights
from headwater.keras.symbolic_losses import accept_symbolic_losses
from headwater.keras.train_optimizers import accept_graph_optimizers
from headwater.tf1.compat.dialect import is_eager

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
    "utils": {"clear_session": "headwater.keras.backend.sessions:clear_session"},
    "models": {
        "load_model": "headwater.keras.saving:load_model",
        "model_from_json": "headwater.keras.old_models:model_from_json",
    },
    "saving": {"load_model": "headwater.keras.saving:load_model"},
}
_NAMES: Mapping[str, Mapping[str, str]] = {
    path: {**OLD.get(path, {}), **_REPLACEMENTS.get(path, {})}
    for path in (*_REPLACEMENTS, *(path for path in OLD if path not in _REPLACEMENTS))
}

accept_graphs()
accept_graph_types()
accept_graphs_in_layers()
accept_program_functions()
accept_graphs_in_metrics()
accept_symbols_in_graphs()
compute_arrays_in_training()
accept_old_weights()
number_names_by_graph()
if not is_eager():
    add_old_methods()
    accept_graphs_in_optimizers()
    accept_old_compile_arguments()
    accept_old_configurations()
    accept_old_layer_arguments()
    accept_old_metric_names()
    accept_old_optimizers()
    accept_graph_optimizers()
    accept_symbolic_losses()
    keep_given_phases()


class _Overlay(ModuleType):
    """A module of Keras with some of Headwater's names.

    Args:
      path: the module's path within Keras; empty for Keras itself.
      below: Keras's module of this path; None if Keras has none.
      is_of_2: belongs to the namespace of TensorFlow 2, whose functions compute arrays.
    """

    def __init__(self, path: str, below: ModuleType | None, is_of_2: bool) -> None:
        super().__init__(f"{__name__}.{path}", getattr(below, "__doc__", None))
        self.__dict__["_is_of_2"] = is_of_2
        self.__dict__["_below"] = below
        self.__dict__["_path"] = path
        self.__dict__["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        value = _find(self.__dict__["_path"], self.__dict__["_below"], name, self.__dict__["_is_of_2"])
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        below = self.__dict__["_below"]
        return sorted({*(dir(below) if below is not None else ()), *_NAMES.get(self.__dict__["_path"], ())})


def _find(path: str, below: ModuleType | None, name: str, is_of_2: bool) -> object:
    place = _NAMES.get(path, {}).get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return _with_arguments(f"{path}.{name}", getattr(importlib.import_module(module), attribute), is_of_2)
    inner = f"{path}.{name}".lstrip(".")
    value: Any = getattr(below, name, None)
    if inner in MODULES or any(other == inner or other.startswith(f"{inner}.") for other in _NAMES):
        return _Overlay(inner, value, is_of_2)
    if value is None and not hasattr(below, name):
        raise AttributeError(f"module {f'keras.{path}'.rstrip('.')!r} has no attribute {name!r}", name=name)
    return _with_arguments(inner, value, is_of_2)


def _with_arguments(path: str, value: object, is_of_2: bool) -> object:
    if not is_of_2:
        return value if is_eager() else adapted(path, value)
    return _eager(value) if path.startswith("backend.") and isinstance(value, FunctionType) else value


def _eager(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that adds operations in the ``with`` blocks of graphs only."""
    computed = computing_arrays(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (function if in_graph_block() else computed)(*args, **kwargs)

    return call


@functools.cache
def keras_of_2() -> ModuleType:
    """Returns ``keras`` of the namespace of TensorFlow 2, which a program of another dialect may import, too."""
    return sys.modules[__name__] if is_eager() else _Overlay("", keras, True)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _find("", keras, name, False)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*dir(keras), *(path for path in _NAMES if "." not in path)})
