"""Arguments of `compile` in TensorFlow 1.15's ``tf.keras``: ``target_tensors``, and ``sample_weight_mode``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping

import keras
import numpy as np

from headwater.graph.operation import Tensor
from headwater.keras.internals import JAXTrainer, Trainer
from headwater.keras.types import Tree

_keras: Tree = keras
_trainer: Tree = Trainer
_MODES = "_sample_weight_modes"
_marked = "_accepts_old_arguments_of_compile"


def accept_old_compile_arguments() -> None:
    """Makes `compile` accept the arguments, and training check the shapes of weights. Idempotent."""
    if hasattr(_trainer, _marked):
        return
    setattr(_trainer, _marked, True)
    _trainer.compile = _compiling(_trainer.compile)
    for name in ("fit", "evaluate", "train_on_batch", "test_on_batch"):
        setattr(JAXTrainer, name, _checking_weights(getattr(JAXTrainer, name)))


def _compiling(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def compile(
        self: Tree,
        *args: Tree,
        target_tensors: Tree = None,
        sample_weight_mode: Tree = None,
        distribute: Tree = None,
        **kwargs: Tree,
    ) -> None:
        for target in _keras.tree.flatten(target_tensors):
            if target is not None and not (isinstance(target, Tensor) and target.op.type == "Placeholder"):
                raise NotImplementedError(
                    f"compile(target_tensors=...) with {target!r}: pass targets to fit, for example a dataset of "
                    "inputs and targets"
                )
        if distribute is not None:
            raise NotImplementedError("compile(distribute=...): create the model in a strategy's scope")
        modes = _keras.tree.flatten(sample_weight_mode)
        if any(mode not in (None, "temporal") for mode in modes):
            raise ValueError(f"Unknown sample_weight_mode {sample_weight_mode!r}: use None or 'temporal'")
        original(self, *args, **kwargs)
        object.__setattr__(self, _MODES, sample_weight_mode)  # Keras would track it

    return compile


def _checking_weights(original: Callable[..., Tree]) -> Callable[..., Tree]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def checked(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        bound = signature.bind(self, *args, **kwargs)
        weights = bound.arguments.get("sample_weight")
        if weights is None:
            return original(self, *args, **kwargs)
        _check_weights(self, weights)
        bound.arguments["sample_weight"] = _as_targets(self, weights, bound.arguments.get("y"))
        return original(*bound.args, **bound.kwargs)

    return checked


def _as_targets(model: Tree, weights: Tree, targets: Tree) -> Tree:
    """Returns weights of outputs in the structure of the targets, as Keras 3 needs them."""
    names = getattr(model, "output_names", None)
    if isinstance(weights, Mapping) and isinstance(targets, list | tuple) and names:
        pairs = zip(names, targets, strict=True)
        return type(targets)(
            np.ones(len(y), np.float32) if weights.get(name) is None else weights[name] for name, y in pairs
        )
    if isinstance(targets, Mapping) and isinstance(weights, list | tuple) and names:
        return dict(zip(names, weights, strict=True))
    return weights


def _check_weights(model: Tree, weights: Tree) -> None:
    """Checks the dimensions of arrays of weights.

    Raises:
      ValueError: weights of an output with ``temporal`` have one dimension, or others have more.
    """
    modes = vars(model).get(_MODES)
    names = list(getattr(model, "output_names", None) or ())
    if isinstance(modes, Mapping):
        for name in names:
            if name not in modes:
                raise ValueError(f"Output {name} missing from `_sample_weight_modes` dictionary")
    entries = weights if isinstance(weights, Mapping | list | tuple) else [weights]
    pairs = entries.items() if isinstance(entries, Mapping) else zip([*names, *entries], entries, strict=False)
    for at, (name, array) in enumerate(pairs):
        mode = modes.get(name) if isinstance(modes, Mapping) else modes[at] if isinstance(modes, list) else modes
        shape = np.shape(array) if array is not None else ()
        if mode == "temporal" and len(shape) == 1:
            raise ValueError(
                f"Found a sample_weight array with shape {shape}. In order to use timestep-wise sample weighting, you "
                "should pass a 2D sample_weight array."
            )
        if mode is None and len(shape) > 1 and shape[1:] != (1,):
            raise ValueError(
                f"Found a sample_weight array with shape {shape}. In order to use timestep-wise sample weights, you "
                'should specify sample_weight_mode="temporal" in compile(). If you just mean to use sample-wise '
                "weights, make sure your sample_weight array is 1D."
            )
