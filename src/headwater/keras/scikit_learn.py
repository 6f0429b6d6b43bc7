"""``tf.keras.wrappers.scikit_learn``: models of Keras as estimators of scikit-learn."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.graph.registry import HostArray

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_keras: Any = keras


def _names(function: Callable[..., object]) -> set[str]:
    return {
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def _taken(function: Callable[..., object], arguments: Mapping[str, object]) -> dict[str, Tree]:
    names = _names(function)
    return {name: value for name, value in arguments.items() if name in names}


class _Wrapper:
    """A model that ``build_fn`` makes for each `fit`.

    Args:
      build_fn: returns a compiled model; None for the method ``__call__`` of a subclass.
      sk_params: arguments of ``build_fn``, and of ``fit``, ``predict`` and ``evaluate`` of the model.

    Raises:
      ValueError: none of these functions has an argument of this name.
    """

    def __init__(self, build_fn: Callable[..., Tree] | None = None, **sk_params: object) -> None:
        self.build_fn = build_fn
        self.sk_params: dict[str, Tree] = sk_params
        self.model: Tree = None
        self.check_params(sk_params)

    def _builder(self) -> Callable[..., Tree]:
        return self.__call__ if self.build_fn is None else self.build_fn  # type: ignore[attr-defined] # pyright: ignore

    def check_params(self, params: Mapping[str, object]) -> None:
        """Raises ValueError if no function has an argument for one of ``params``."""
        model = _keras.Sequential
        known = set[str]().union(*map(_names, (model.fit, model.predict, model.evaluate, self._builder())))
        for name in params:
            if name not in known:
                raise ValueError(f"{name} is not a legal parameter")

    def get_params(self, **params: object) -> dict[str, Tree]:
        """Returns the arguments, with ``build_fn``. ``deep`` has no effect: no argument is itself an estimator."""
        del params
        return {**copy.deepcopy(self.sk_params), "build_fn": self.build_fn}

    def set_params(self, **params: object) -> _Wrapper:
        """Changes arguments.

        Raises:
          ValueError: no function has an argument of this name.
        """
        self.check_params(params)
        self.sk_params.update(params)
        return self

    def filter_sk_params(
        self, fn: Callable[..., object], override: Mapping[str, object] | None = None
    ) -> dict[str, Tree]:
        """Returns the arguments that ``fn`` accepts, updated with ``override``."""
        return {**_taken(fn, self.sk_params), **(override or {})}

    def fit(self, x: HostArray, y: HostArray, **kwargs: object) -> Tree:
        """Creates a model and trains it; labels become one-hot if the model's loss is a categorical cross entropy."""
        builder = self._builder()
        self.model = builder(**self.filter_sk_params(builder))
        loss = self.model.loss
        name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
        if name in ("categorical_crossentropy", "CategoricalCrossentropy") and np.ndim(y) != 2:
            y = _keras.utils.to_categorical(y)
        return self.model.fit(x, y, **self.filter_sk_params(_keras.Sequential.fit, kwargs))

    def _outputs(self, x: HostArray, kwargs: Mapping[str, object]) -> Tree:
        return self.model.predict(x, **self.filter_sk_params(_keras.Sequential.predict, kwargs))

    def _evaluated(self, x: HostArray, y: HostArray, kwargs: Mapping[str, object]) -> dict[str, float]:
        settings = self.filter_sk_params(_keras.Sequential.evaluate, kwargs)
        return self.model.evaluate(x, y, **{**settings, "return_dict": True})


class KerasClassifier(_Wrapper):
    """A classifier; ``classes_`` are the labels, in their order."""

    classes_: HostArray
    n_classes_: int

    def fit(self, x: HostArray, y: HostArray, **kwargs: object) -> Tree:
        """Creates a model and trains it.

        Args:
          x: examples.
          y: labels of shape (examples,) or (examples, 1), or one-hot, of shape (examples, classes).
          kwargs: keyword arguments of the model's ``fit``.

        Raises:
          ValueError: the labels have the wrong shape.
        """
        y = np.array(y)
        if y.ndim == 2 and y.shape[1] > 1:
            self.classes_ = np.arange(y.shape[1])
        elif y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
            self.classes_ = np.unique(y)
            y = np.searchsorted(self.classes_, y)
        else:
            raise ValueError(f"Invalid shape for y: {y.shape}")
        self.n_classes_ = len(self.classes_)
        return super().fit(x, y, **kwargs)

    def predict(self, x: HostArray, **kwargs: object) -> Tree:
        """The label of each example."""
        outputs = self._outputs(x, kwargs)
        return self.classes_[np.argmax(outputs, -1) if outputs.shape[-1] > 1 else (outputs > 0.5).astype("int32")]

    def predict_proba(self, x: HostArray, **kwargs: object) -> Tree:
        """The probability of each label, of shape (examples, labels)."""
        outputs = self._outputs(x, kwargs)
        return np.hstack([1 - outputs, outputs]) if outputs.shape[1] == 1 else outputs

    def score(self, x: HostArray, y: HostArray, **kwargs: object) -> float:
        """Returns the share of examples that are classified correctly.

        Raises:
          ValueError: the model was compiled without ``metrics=["accuracy"]``.
        """
        y = np.searchsorted(self.classes_, y)
        if self.model.loss == "categorical_crossentropy" and np.ndim(y) != 2:
            y = _keras.utils.to_categorical(y)
        results = self._evaluated(x, y, kwargs)
        for name, value in results.items():
            if name in ("acc", "accuracy"):
                return value
        raise ValueError(
            'The model is not configured to compute accuracy. You should pass `metrics=["accuracy"]` to the '
            "`model.compile()` method."
        )


class KerasRegressor(_Wrapper):
    """A regressor."""

    def predict(self, x: HostArray, **kwargs: object) -> Tree:
        """Returns the prediction for each example, without the last dimension, whose size is 1."""
        return np.squeeze(self._outputs(x, kwargs), axis=-1)

    def score(self, x: HostArray, y: HostArray, **kwargs: object) -> float:
        """Returns the negative loss, so that greater is better."""
        return -self._evaluated(x, y, kwargs)["loss"]
