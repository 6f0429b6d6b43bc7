"""Models and weights in files of any name, written atomically.

The formats are Keras's. Keras chooses the format by the ending of a path. The functions here accept any path: they
write a whole model as a ``.keras`` archive and weights as HDF5, and recognize the format of a file by its first bytes.
"""

from __future__ import annotations

import functools
import io
import logging
import os
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from headwater.data.io import files
from headwater.errors import DataLossError
from headwater.keras.internals import hdf5, saving_lib
from headwater.keras.old_files import is_old, load_old_model
from headwater.keras.programs import settings_for_copies
from headwater.keras.types import Tree

_lib = saving_lib
_log = logging.getLogger("headwater")

_ZIP = b"PK\x03\x04"
_HDF5 = b"\x89HDF"
#: Endings of HDF5 files, for which Keras itself chooses the format.
_OTHERS = (".h5", ".hdf5")
#: Names of losses and metrics that Keras 3.15 writes into HDF5 files, but does not find when it loads these.
_SHORT_NAMES = ("mse", "mae", "mape", "msle", "bce", "kld")


def save_model(model: object, path: Any) -> None:
    """Writes the whole model, with its optimizer, as a ``.keras`` archive.

    Args:
      model: a Keras model.
      path: path of the file, with or without an ending.

    Raises:
      OpError: the file cannot be written; an existing file is unchanged.
    """
    path = files.as_path(path)
    if path.endswith(_OTHERS):
        _through_file(path, os.path.splitext(path)[1], lambda name: keras.saving.save_model(model, name))
        return
    archive = io.BytesIO()
    _lib.save_model(model, archive)
    # Write a copy: a view of the buffer could not be released while the traceback of an exception refers to it.
    _write(path, archive.getvalue())


def save_weights(model: object, path: Any) -> None:
    """Writes the weights of the model and its optimizer as HDF5.

    Raises:
      OpError: see `save_model`.
    """
    _through_file(files.as_path(path), ".weights.h5", lambda name: keras.saving.save_weights(model, name))


def load_model(path: Any, custom_objects: Any = None, compile: bool = True, safe_mode: bool = True) -> Any:
    """Loads a model from a file of any name.

    Args:
      path: path of the file.
      custom_objects: classes and functions by their names in the file.
      compile: whether to compile the model with its saved configuration.
      safe_mode: whether to refuse code in the file, such as a `Lambda` layer's function.

    Raises:
      ValueError: the file contains no model, or it contains code and ``safe_mode`` is set.
      DataLossError: the archive is damaged.
    """
    name = os.fspath(path)
    if _begins_with(name, _ZIP):
        _check_archive(name)
    short: dict[str, Any] = {key: keras.losses.get(key) for name in _SHORT_NAMES for key in (name, name.upper())}
    known = {**short, **(custom_objects or {})}
    settings: dict[str, Any] = {"custom_objects": known, "compile": compile, "safe_mode": safe_mode}
    if not name.endswith((".keras", *_OTHERS)) and _begins_with(name, _ZIP):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "model.keras")
            copy.write_bytes(_read(name))
            return keras.saving.load_model(str(copy), **settings)
    if _begins_with(name, _HDF5):
        with h5py.File(name, "r") as file:
            old = is_old(file.attrs)
        if old:
            return load_old_model(name, known, compile, safe_mode)
    model: Tree = keras.saving.load_model(path, **settings)
    if name.endswith(_OTHERS) and compile:
        _build_optimizer(model, name)
    return model


def _build_optimizer(model: Tree, path: str) -> None:
    """Builds the optimizer of a model from an HDF5 file: Keras builds it without the variables of layers."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None or not optimizer.built or optimizer._trainable_variables or not model.trainable_variables:
        return
    model.optimizer = type(optimizer).from_config(settings_for_copies(optimizer))
    model.optimizer.build(model.trainable_variables)
    with h5py.File(path, "r") as file:
        values = [np.asarray(value) for value in hdf5.load_optimizer_weights_from_hdf5_group(file)]
    if len(values) == len(model.optimizer.variables):
        model.optimizer.set_weights(values)
    else:
        _log.warning(
            "%s contains %d variables of an optimizer that has %d here: training continues with initial values",
            *(path, len(values), len(model.optimizer.variables)),
        )


def load_weights(model: object, path: Any, **settings: Any) -> None:
    """Loads the weights in a file of any name into ``model``. Also reads HDF5 files of Keras 2 with a Keras 3 ending.

    Raises:
      ValueError: the file contains no weights, or weights of another model.
    """
    name = os.fspath(path)
    if not settings.get("skip_mismatch") and _load_old_weights(model, name):
        return
    known = (".keras", ".weights.h5", ".weights.json", *_OTHERS)
    for first, ending in ((_ZIP, ".keras"), (_HDF5, ".weights.h5")):
        if not name.endswith(known) and _begins_with(name, first):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, f"model{ending}")
                copy.write_bytes(_read(name))
                keras.saving.load_weights(model, str(copy), **settings)
                return
    keras.saving.load_weights(model, path, **settings)


def accept_old_weights() -> None:
    """Patches `load_weights` of models to read weights of Keras 2 from files with a Keras 3 ending."""
    kind: Tree = keras.Model
    original = kind.load_weights

    @functools.wraps(original)
    def load(self: object, filepath: Any, skip_mismatch: bool = False, **kwargs: Any) -> None:
        if skip_mismatch or kwargs or not _load_old_weights(self, os.fspath(filepath)):
            original(self, filepath, skip_mismatch, **kwargs)

    kind.load_weights = load


def _load_old_weights(model: object, path: str) -> bool:
    """Loads weights in the form of Keras 2; returns whether the file has this form."""
    if not _begins_with(path, _HDF5):
        return False
    with h5py.File(path, "r") as file:
        group: Any = file.get("model_weights", file)
        if "layer_names" not in group.attrs:
            return False
        hdf5.load_weights_from_hdf5_group(group, model)
    return True


def _check_archive(path: str) -> None:
    """Verifies all checksums of an archive, because Keras reads parts of it only."""
    try:
        with files.open_file(path, "rb") as file, zipfile.ZipFile(file) as archive:
            wrong = archive.testzip()
            problem = f"the checksum of {wrong} is wrong" if wrong is not None else ""
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        problem = str(error)
    if problem:
        raise DataLossError(f"{path} is damaged: {problem}")


def _through_file(path: str, ending: str, save: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        name = Path(folder, f"model{ending}")
        save(str(name))
        _write(path, name.read_bytes())


def _write(path: str, data: object) -> None:
    folder = os.path.dirname(path)
    if folder and not files.exists(folder):
        files.makedirs(folder)
    with files.atomic_write(path) as file:
        file.write(data)


def _read(path: str) -> bytes:
    with files.open_file(path, "rb") as file:
        return file.read()


def _begins_with(path: str, first: bytes) -> bool:
    if not files.exists(path) or files.isdir(path):
        return False
    with files.open_file(path, "rb") as file:
        return file.read(len(first)) == first
