"""Adapts Keras in this process, so that it accepts Headwater's datasets and does not need TensorFlow."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.dtypes import string
from headwater.keras.datasets import DatasetAdapter, is_dataset
from headwater.keras.devices import make_stand_ins
from headwater.keras.internals import (
    backend_utils,
    callback_list,
    data_adapters,
    functional,
    module_utils,
    object_registration,
    tensorboard,
    tree,
)
from headwater.keras.metrics_in_calls import update_metrics_in_calls
from headwater.keras.read_variables import read_variables_in_steps
from headwater.keras.synchronized import synchronize_normalization

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.keras.types import Tree

_adapters = data_adapters
_modules: Any = module_utils
_lists = callback_list
_boards = tensorboard
_registration = object_registration
_adapted = False
#: The module that exports models. It is in a package that imports this one, so it is imported when it is needed.
_EXPORT = "headwater.tf2.export_archive"
#: The module of each replaced layer.
_LAYERS = {
    "HashedCrossing": "lookups",
    "Hashing": "lookups",
    "IntegerLookup": "lookups",
    "StringLookup": "lookups",
    "TextVectorization": "text_vectorization",
}
#: The module of each class that is registered for saved models in the package ``headwater``.
_SAVED = {
    "DynamicEmbedding": "headwater.keras.layers",
    "CosineSimilarity": "headwater.keras.old_losses",
    "hard_sigmoid": "headwater.keras.old_activations",
    "FunctionCall": "headwater.tf2.symbolic_calls",
    **{name: f"headwater.keras.{module}" for name, module in _LAYERS.items()},
}


def adapt_keras() -> None:
    """Adapts Keras to Headwater: datasets, TensorBoard files and lookup layers work without TensorFlow.

    If the module named ``tensorflow`` is Headwater's, Keras would use internals of TensorFlow, which Headwater's module
    does not have. So Keras is also made to ignore this module. Idempotent.
    """
    global _adapted
    if _adapted:
        return
    _adapted = True
    make_stand_ins()
    named = importlib.util.find_spec("tensorflow")
    if named is None or named.origin == "Headwater":
        _modules.tensorflow._available = False
        # Keras would ask Headwater's module, which does not execute eagerly in TensorFlow 1's dialect.
        backend_utils.in_tf_graph = lambda: False
        _adapt_boards()
        _replace_lookup_layers()
        _accept_strings()
    _find_saved_classes()
    _export_models()
    _back_up_callbacks()
    read_variables_in_steps()
    synchronize_normalization()
    update_metrics_in_calls()
    get = _adapters.get_data_adapter

    @functools.wraps(get)
    def get_data_adapter(x: Tree, *args: Any, **kwargs: Any) -> object:
        front = _front()
        if front is None:
            _refuse_texts(x.element_spec if is_dataset(x) else x)
        if is_dataset(x):
            return DatasetAdapter(x, kwargs.get("class_weight"), front)
        if front is not None and isinstance(x, np.ndarray | list | dict | tuple):
            x = front.apply(x)
        return get(x, *args, **kwargs)

    _adapters.get_data_adapter = get_data_adapter


def _front() -> Tree:
    """Returns the `headwater.keras.text_fronts.Front` of the model that runs; None without one."""
    # The module is imported only by models with lookup layers.
    module = sys.modules.get("headwater.keras.text_fronts")
    return None if module is None else module.current_front()


def _replace_lookup_layers() -> None:
    """Replaces the layers of `keras.layers` that need TensorFlow by layers of Headwater."""
    layers = keras.layers
    for name in _LAYERS:
        delattr(layers, name)

    def find(name: str) -> object:
        if name not in _LAYERS:
            raise AttributeError(f"module 'keras.layers' has no attribute {name!r}")
        # Imported lazily: the modules load all operations, and few programs need them.
        return getattr(importlib.import_module(f"headwater.keras.{_LAYERS[name]}"), name)

    layers.__getattr__ = find


def _export_models() -> None:
    """Makes models export themselves without TensorFlow."""

    def export(self: Tree, *args: Any, **kwargs: Any) -> None:
        importlib.import_module(_EXPORT).export(self, *args, **kwargs)

    model: Any = keras.Model
    model.export = export


def _find_saved_classes() -> None:
    """Makes Keras load models with Headwater's classes before their modules are imported."""
    get = _registration.get_registered_object

    @functools.wraps(get)
    def get_registered_object(name: str | None, custom_objects: object = None, module_objects: object = None) -> object:
        package, _, class_name = (name or "").partition(">")
        if package == "headwater" and class_name in _SAVED:
            importlib.import_module(_SAVED[class_name])
        return get(name, custom_objects, module_objects)

    _registration.get_registered_object = get_registered_object


def _accept_strings() -> None:
    """Makes models with string inputs, such as models of lookup layers, accept NumPy arrays of strings.

    JAX has no string type, so Keras's conversion to tensors is skipped for these inputs; ranks are adjusted.
    """
    model: Any = functional.Functional
    convert, adjust = model._convert_inputs_to_tensors, model._adjust_input_rank

    def is_text(symbol: Tree) -> bool:
        return symbol.dtype == "string"

    def with_rank(leaf: Tree, shape: Sequence[int | None]) -> Tree:
        if leaf.ndim == len(shape) - 1 and shape[-1] == 1:
            return leaf[..., None]
        return leaf[..., 0] if leaf.ndim == len(shape) + 1 and leaf.shape[-1] == 1 else leaf

    @functools.wraps(convert)
    def convert_inputs(self: Any, flat_inputs: Tree) -> Tree:
        if not any(map(is_text, self._inputs)):
            return convert(self, flat_inputs)
        return [
            leaf if is_text(symbol) else keras.ops.convert_to_tensor(leaf, dtype=symbol.dtype)
            for leaf, symbol in zip(flat_inputs, self._inputs, strict=True)
        ]

    @functools.wraps(adjust)
    def adjust_rank(self: Any, flat_inputs: Tree) -> Tree:
        pairs = zip(flat_inputs, self._inputs, strict=True)
        texts = [isinstance(leaf, np.ndarray) and is_text(symbol) for leaf, symbol in pairs]
        if not any(texts):
            return adjust(self, flat_inputs)
        # Keras's function requires tensors: give it numbers of the expected shape, and adjust the ranks of texts here.
        triples = list(zip(flat_inputs, self._inputs, texts, strict=True))
        stand_ins = [np.empty([size or 1 for size in symbol.shape]) if text else leaf for leaf, symbol, text in triples]
        return [
            with_rank(leaf, symbol.shape) if text else adjusted
            for (leaf, symbol, text), adjusted in zip(triples, adjust(self, stand_ins), strict=True)
        ]

    model._convert_inputs_to_tensors, model._adjust_input_rank = convert_inputs, adjust_rank


def _refuse_texts(x: Tree) -> None:
    """Raises a clear error for strings in a model's input data; Keras's own error is "Invalid dtype: str32"."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(x, lambda part: not isinstance(part, dict | list | tuple)):
        dtype = getattr(leaf, "dtype", None)
        is_array = isinstance(leaf, np.ndarray)
        if dtype == string or (is_array and any(isinstance(value, str | bytes) for value in leaf.flat[:1])):
            place = jax.tree_util.keystr(path)
            raise ValueError(
                f"the inputs have strings{place and ' at '}{place}, which compiled functions cannot process: look them "
                "up on arrays before the model, or in a dataset's map, and pass the resulting numbers to the model"
            )


def _adapt_boards() -> None:
    """Adapts Keras's `TensorBoard` callbacks, which need TensorFlow, whenever a list of callbacks is created."""
    make = _lists.CallbackList.__init__

    @functools.wraps(make)
    def make_list(self: Any, callbacks: object = None, *args: Any, **kwargs: Any) -> None:
        boards = [it for it in tree.flatten(callbacks) if isinstance(it, _boards.TensorBoard)] if callbacks else []
        if boards:
            from headwater.keras import tensorboard  # noqa: PLC0415  it takes long to import; few programs need it

            for board in boards:
                tensorboard.adapt_board(board)
        make(self, callbacks, *args, **kwargs)

    _lists.CallbackList.__init__ = make_list


def _back_up_callbacks() -> None:
    """Makes `BackupAndRestore` save the state of other callbacks, and restore it after their ``on_train_begin``."""
    callback_list: Any = _lists.CallbackList
    make, begin = callback_list.__init__, callback_list.on_train_begin

    @functools.wraps(make)
    def make_list(self: object, callbacks: object = None, *args: object, **kwargs: object) -> None:
        listed: list[object] = tree.flatten(callbacks) if callbacks else []
        backups = any(isinstance(callback, keras.callbacks.BackupAndRestore) for callback in listed)
        if backups:
            from headwater.keras import callbacks as ours  # noqa: PLC0415  few programs need them

            for callback in listed:
                ours.adapt_backup(callback)
            make(self, callbacks, *args, **kwargs)
            ours.arrange(self)
        else:
            make(self, callbacks, *args, **kwargs)

    @functools.wraps(begin)
    def on_train_begin(self: object, logs: object = None) -> None:
        begin(self, logs)
        states = getattr(self, "headwater_states", None)
        if states is not None:
            states.restore_states()

    callback_list.__init__, callback_list.on_train_begin = make_list, on_train_begin
