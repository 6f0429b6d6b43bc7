"""Models in files that Keras 2 has written, which is ``tf.keras`` of TensorFlow up to 2.15 and ``tf_keras``.

HDF5 files and JSON have the same configuration of layers. It is converted to the form of Keras 3, and the state of the
optimizer is assigned by its slots, which Keras 2 has in another order.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import h5py
import keras
import numpy as np

from headwater.keras import old_optimizers
from headwater.keras.internals import Functional, hdf5
from headwater.keras.old_activations import hard_sigmoid
from headwater.keras.old_names import OLD
from headwater.keras.types import Tree

_keras: Tree = keras
_log = logging.getLogger("headwater")
_MODELS: Final = {
    "Functional": Functional,
    "Model": Functional,
    "Network": Functional,
    "Sequential": _keras.Sequential,
}
"""Classes of models, by the names in files."""
_INNER: Final = ("layer", "backward_layer", "cell", "cells")
"""Arguments of layers that are layers."""
_CODE: Final = {
    "Lambda": "function is in the file as code of another version of Python",
    "SlicingOpLambda": "slice of a tensor is an operation outside of layers",
    "TensorFlowOpLayer": "operation of TensorFlow is outside of layers",
    "TFOpLambda": "operation of TensorFlow is outside of layers",
}
"""Layers that cannot be loaded, with the reasons."""
_UNUSED: Final = (
    *("batch_input_shape", "fn", "fused", "implementation", "input_length"),
    *("is_legacy_optimizer", "jit_compile"),
)
"""Arguments without an effect on results."""
_UNUSED_BY: Final = {
    "DepthwiseConv2D": ("filters", "kernel_initializer", "kernel_regularizer", "kernel_constraint"),
    "SeparableConv1D": ("kernel_initializer", "kernel_regularizer", "kernel_constraint"),
    "SeparableConv2D": ("kernel_initializer", "kernel_regularizer", "kernel_constraint"),
}
_DEFAULTS: Final = (None, False, 1, "auto")
"""Values that an argument has by default if Keras 3 does not know it."""
_LATER_SLOTS: Final = {"momentum": "m", "norm": "u", "velocity": "v", "velocity_hat": "vhat"}
"""Names of slots since TensorFlow 2.11, by Keras 3's name, where these differ."""
_OWN_SLOTS: Final = {slot for _, slot in old_optimizers.SLOTS}
_NAMES_OF_SLOTS: Final = _OWN_SLOTS.union(old_optimizers.SLOTS.values(), _LATER_SLOTS.values())


def is_old(described: Mapping[str, Tree]) -> bool:
    """Returns whether a description of a model, or the attributes of a file, are Keras 2's."""
    return _text(described.get("keras_version", "3")).startswith(("0.", "1.", "2."))


def _text(value: Tree) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def load_old_model(path: str, custom_objects: Mapping[str, Tree], compile: bool, safe_mode: bool) -> Tree:
    """Loads a model from an HDF5 file of Keras 2.

    Raises:
      ValueError: the file has no model, or parts that Keras 3 does not have.
    """
    with h5py.File(path, "r") as file:
        if "model_config" not in file.attrs:
            raise ValueError(f"{path} contains weights only: make the model, and use its method load_weights")
        model = model_of_old_config(json.loads(_text(file.attrs["model_config"])), custom_objects, safe_mode)
        hdf5.load_weights_from_hdf5_group(file["model_weights"], model)
        if compile and "training_config" in file.attrs:
            with _keras.saving.custom_object_scope(custom_objects):
                training = json.loads(_text(file.attrs["training_config"]))
                model.compile(**_compile_arguments(training, getattr(model, "output_names", ())))
            if "optimizer_weights" in file:
                _restore_optimizer(model.optimizer, model.trainable_variables, file["optimizer_weights"], path)
    return model


def model_of_old_config(config: Tree, custom_objects: Mapping[str, Tree] | None = None, safe_mode: bool = True) -> Tree:
    """Creates a model from the description of a layer or model by Keras 2."""
    known = {name: _located(place) for name, place in OLD["layers"].items()}
    known |= custom_objects or {}
    with _keras.saving.custom_object_scope(known):
        return _keras.saving.deserialize_keras_object(_upgraded(config), safe_mode=safe_mode)


def _located(place: str) -> Tree:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


# Layers -----------------------------------------------------------------------------------------------------------


def _upgraded(layer: Tree) -> dict[str, Tree]:
    """Returns the description of a layer or model in the form of Keras 3."""
    name = layer.get("registered_name") or layer["class_name"]
    settings: Tree = layer["config"]
    settings = {"name": "sequential", "layers": settings} if isinstance(settings, list) else dict(settings)
    if name in _CODE:
        raise ValueError(
            f"layer {settings['name']!r} is a {name}, whose {_CODE[name]}: make the model in the program, and use its "
            "method load_weights"
        )
    kind: Tree = _MODELS.get(name) or getattr(_keras.layers, name, None)
    if name in _MODELS:
        if name == "Sequential":
            settings["layers"] = [*_input_of(settings["layers"]), *map(_upgraded, settings["layers"])]
        else:
            settings = _with_nodes_of_3(settings)
    for key in _INNER:
        if key in settings:
            inner = settings[key]
            settings[key] = [_upgraded(each) for each in inner] if isinstance(inner, list) else _upgraded(inner)
    if name == "InputLayer":
        settings["batch_shape"] = settings.pop("batch_input_shape", settings.get("batch_shape"))
    if kind is None or name in OLD["layers"]:
        names = {"module": None, "class_name": name, "registered_name": name}
    else:
        names = {"module": kind.__module__, "class_name": kind.__name__, "registered_name": None}
        if name not in _MODELS:
            settings = _accepted(kind, {key: _value(key, value) for key, value in settings.items()})
    return {**{key: layer[key] for key in ("name", "inbound_nodes") if key in layer}, **names, "config": settings}


def _value(key: str, value: Tree) -> Tree:
    """Returns the value of a layer's argument."""
    if key == "dtype" and isinstance(value, dict):
        return value["config"]["name"]
    if key.endswith("activation") and value == "hard_sigmoid":
        return hard_sigmoid
    if key == "axis" and isinstance(value, list) and len(value) == 1:
        return value[0]
    if key.endswith("initializer") and isinstance(value, dict):
        return {**value, "config": {name: it for name, it in value["config"].items() if name != "dtype"}}
    return value


def _accepted(kind: Tree, settings: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns the arguments, without arguments that Keras 3 does not know and that have their default values."""
    known = {"activity_regularizer", "autocast", "dtype", "name", "trainable"}
    for base in kind.__mro__:
        known.update(inspect.signature(base.__init__).parameters)
    unused = (*_UNUSED, *_UNUSED_BY.get(kind.__name__, ()))
    return {
        key: value
        for key, value in settings.items()
        if key not in unused and (key in known or not any(value is it or value == it for it in _DEFAULTS))
    }


def _input_of(layers: Sequence[Tree]) -> Iterator[dict[str, Tree]]:
    """Yields the input of a sequence of layers whose first layer has the shape of a batch."""
    shape = _shape_of(layers[0]) if layers else None
    if shape is not None and layers[0]["class_name"] != "InputLayer":
        first = layers[0]["config"]
        kind = "int32" if layers[0]["class_name"] == "Embedding" else "float32"
        config = {"batch_shape": shape, "dtype": kind, "name": f"{first.get('name', 'first')}_input"}
        yield {"module": "keras.layers", "class_name": "InputLayer", "registered_name": None, "config": config}


def _shape_of(layer: Mapping[str, Tree]) -> Tree:
    """Returns the shape of the inputs of a layer or model, if it is in the description."""
    settings = layer["config"]
    if layer["class_name"] in _MODELS and settings["layers"]:
        return _shape_of(settings["layers"][0])
    return settings.get("batch_shape", settings.get("batch_input_shape"))


# Calls of layers --------------------------------------------------------------------------------------------------


def _with_nodes_of_3(settings: Mapping[str, Tree]) -> dict[str, Tree]:
    """Returns the description of a graph of layers, with its layers and the calls of these in the form of Keras 3."""
    layers = settings["layers"]
    # A model whose inputs are known has a call of its own in Keras 2, before the calls in the graph.
    first = {each["name"]: int(each["class_name"] in _MODELS and _shape_of(each) is not None) for each in layers}

    def place(reference: Sequence[Tree]) -> list[Tree]:
        name, node, tensor = reference[:3]
        return [name, node - first[name], tensor]

    def tensor_of(reference: Sequence[Tree]) -> Tree:
        if reference[0] == "_CONSTANT_VALUE":
            return reference[2]
        config = {"shape": [], "dtype": "float32", "keras_history": place(reference)}
        return {"class_name": "__keras_tensor__", "config": config}

    def argument(value: Tree) -> Tree:
        if isinstance(value, list):
            refers = len(value) >= 3 and isinstance(value[0], str) and value[0] in first
            return tensor_of(value) if refers else [argument(each) for each in value]
        return value

    def call(kind: str, node: Tree) -> Tree:
        entries = [node] if node and isinstance(node[0], str) else node
        tensors = [tensor_of(each) for each in entries]
        named = {key: argument(value) for each in entries for key, value in (each[3] if len(each) > 3 else {}).items()}
        if len(tensors) > 1 and kind.endswith(("RNN", "LSTM", "GRU", "LSTM2D", "Bidirectional")):
            named["initial_state"] = tensors[1:]
            tensors = tensors[:1]
        return {"args": [tensors if len(tensors) > 1 else tensors[0]], "kwargs": named}

    converted = [
        {**_upgraded(each), "inbound_nodes": [call(each["class_name"], node) for node in each["inbound_nodes"]]}
        for each in layers
    ]
    ends = {key: [place(each) for each in settings[key]] for key in ("input_layers", "output_layers")}
    return {**settings, "layers": converted, **ends}


# Training ---------------------------------------------------------------------------------------------------------


def _compile_arguments(training: Mapping[str, Tree], outputs: Sequence[str]) -> dict[str, Tree]:
    """Returns the arguments of `compile`, for a model with these names of outputs."""
    prefixes = [f"{name}_" for name in outputs] if len(outputs) > 1 else []
    metric_of = functools.partial(_metric_of, prefixes)
    return {
        "optimizer": _optimizer_of(training["optimizer_config"]),
        "loss": _mapped(_loss_of, training["loss"]),
        "metrics": _mapped(metric_of, training.get("metrics")),
        "weighted_metrics": _mapped(metric_of, training.get("weighted_metrics")),
        "loss_weights": training.get("loss_weights"),
    }


def _mapped(function: Callable[[Tree], Tree], described: Tree) -> Tree:
    """Applies a function to the objects in nested lists and dictionaries, without None."""
    if isinstance(described, list):
        return [_mapped(function, each) for each in described if each is not None]
    if isinstance(described, dict) and "class_name" not in described:
        return {key: _mapped(function, value) for key, value in described.items()}
    return None if described is None else function(described)


def _optimizer_of(described: Mapping[str, Tree]) -> Tree:
    name = described["class_name"]
    settings: dict[str, Tree] = {**described["config"]}
    # TensorFlow has marked its optimizers since version 2.11, which compute as Keras 3's.
    kinds = _keras.optimizers if name.startswith("Custom>") else old_optimizers
    kind = getattr(kinds, name.removeprefix("Custom>"), None)
    if kind is None:
        return _keras.optimizers.deserialize(described)
    rate = settings.get("learning_rate")
    if isinstance(rate, dict):
        settings["learning_rate"] = getattr(_keras.optimizers.schedules, rate["class_name"])(**rate["config"])
    return kind(**_accepted(kind, settings))


def _loss_of(described: Tree) -> Tree:
    if isinstance(described, str):
        return described
    kind = getattr(_keras.losses, described["class_name"], None)
    if kind is None:
        return _keras.losses.deserialize(described)
    settings: Tree = dict(described["config"])
    if settings.get("reduction") == "auto":
        del settings["reduction"]
    return kind(**_accepted(kind, settings))


def _metric_of(prefixes: Sequence[str], described: Tree) -> Tree:
    if isinstance(described, str):
        return described
    settings: Tree = dict(described["config"])
    for prefix in prefixes:
        settings["name"] = settings["name"].removeprefix(prefix)
    if described["class_name"] == "MeanMetricWrapper":
        if settings["name"] in ("accuracy", "acc"):
            return settings["name"]
        return _keras.metrics.MeanMetricWrapper(_keras.losses.get(settings["fn"]), settings["name"])
    kind = getattr(_keras.metrics, described["class_name"], None)
    return _keras.metrics.deserialize(described) if kind is None else kind(**_accepted(kind, settings))


def _restore_optimizer(optimizer: Tree, variables: Sequence[Tree], group: Tree, path: str) -> None:
    """Assigns the state in a file to an optimizer; logs a warning if a part of the state is not in the file."""
    optimizer.build(variables)
    arrays_of_slot: dict[str, list[Tree]] = {}
    for name in hdf5.load_attributes_from_hdf5_group(group, "weight_names"):
        parts = name.removesuffix(":0").split("/")
        # The slot is at the end before TensorFlow 2.11, and after the class since then.
        slot = parts[1] if len(parts) > 1 and parts[1] in _NAMES_OF_SLOTS else parts[-1]
        arrays_of_slot.setdefault(slot, []).append(np.asarray(group[name]))
    for name in ("iter", "iteration"):
        if name in arrays_of_slot:
            optimizer.iterations.assign(int(arrays_of_slot[name][0]))
    waiting: dict[str, list[Tree]] = {}
    for variable in optimizer.variables:
        slot = max((name for name in _OWN_SLOTS if variable.name.endswith(f"_{name}")), key=len, default="")
        if slot:
            waiting.setdefault(slot, []).append(variable)
    for slot, held in waiting.items():
        old = old_optimizers.SLOTS.get((type(optimizer).__name__, slot), slot)
        names = (old, _LATER_SLOTS.get(slot, slot), slot)
        values = next((arrays_of_slot[name] for name in names if name in arrays_of_slot), [])
        if [value.shape for value in values] == [tuple(variable.shape) for variable in held]:
            for variable, value in zip(held, values, strict=True):
                variable.assign(value)
        else:
            _log.warning("%s does not contain the optimizer's %s of all variables: it begins with zeros", path, slot)
