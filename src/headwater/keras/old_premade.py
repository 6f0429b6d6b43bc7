"""Models and helpers of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed: linear models and enqueuers."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.keras.types import Value

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_keras: Any = keras


class LinearModel(_keras.Model):
    """The sum of a linear function of each input, and a bias.

    Args:
      units: number of outputs for an example.
      activation: the activation of the sum.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer: as for a layer `Dense`.
    """

    def __init__(
        self,
        units: int = 1,
        activation: object = None,
        use_bias: bool = True,
        kernel_initializer: object = "glorot_uniform",
        bias_initializer: object = "zeros",
        kernel_regularizer: object = None,
        bias_regularizer: object = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.use_bias = use_bias
        self.activation = _keras.activations.get(activation)
        self.kernel_initializer = _keras.initializers.get(kernel_initializer)
        self.bias_initializer = _keras.initializers.get(bias_initializer)
        self.kernel_regularizer = _keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = _keras.regularizers.get(bias_regularizer)
        self.dense_layers: list[Tree] = []
        self.bias: Tree = None

    def build(self, input_shape: Tree) -> None:
        """Creates a layer for each input."""
        several = bool(input_shape) and isinstance(input_shape[0], list | tuple)
        shapes: Sequence[Tree] = input_shape if several else [input_shape]
        for shape in shapes:
            layer = _keras.layers.Dense(
                self.units,
                use_bias=False,
                kernel_initializer=self.kernel_initializer.clone(),
                kernel_regularizer=self.kernel_regularizer,
            )
            layer.build(tuple(shape))
            self.dense_layers.append(layer)
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.units,), initializer=self.bias_initializer, regularizer=self.bias_regularizer
            )
        self.built = True

    def call(self, inputs: Tree) -> Value:
        """The sum for each example.

        Raises:
          ValueError: the number of inputs differs from that in `build`.
        """
        values: Sequence[Tree] = inputs if isinstance(inputs, list | tuple) else [inputs]
        if len(values) != len(self.dense_layers):
            raise ValueError(f"Expected {len(self.dense_layers)} inputs, but got {len(values)} inputs")
        total = sum(layer(value) for layer, value in zip(self.dense_layers, values, strict=True))
        if self.bias is not None:
            total = total + self.bias
        return self.activation(total)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this model."""
        return {
            "name": self.name,
            "units": self.units,
            "activation": _keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": _keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": _keras.initializers.serialize(self.bias_initializer),
            "kernel_regularizer": _keras.regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": _keras.regularizers.serialize(self.bias_regularizer),
        }


class WideDeepModel(_keras.Model):
    """The mean of the outputs of two models, which one optimizer trains together.

    Args:
      linear_model: gets the first of two inputs, or the only one.
      dnn_model: gets the second of two inputs, or the only one.
      activation: the activation of the mean.
    """

    def __init__(self, linear_model: Tree, dnn_model: Tree, activation: object = None, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.linear_model = linear_model
        self.dnn_model = dnn_model
        self.activation = _keras.activations.get(activation)

    def compile(self, optimizer: Tree = "rmsprop", *args: object, **kwargs: object) -> None:
        """Compiles the model as `keras.Model.compile` does.

        Raises:
          ValueError: ``optimizer`` is a list: Keras 3 trains a model with one.
        """
        if isinstance(optimizer, list | tuple):
            raise ValueError("WideDeepModel takes one optimizer for both models: Keras 3 trains a model with one")
        super().compile(optimizer, *args, **kwargs)

    def call(self, inputs: Tree, training: bool | None = None) -> Value:
        """The mean for each example."""
        two = isinstance(inputs, list | tuple) and len(inputs) == 2
        wide, deep = inputs if two else (inputs, inputs)
        return self.activation(0.5 * (self.linear_model(wide) + self.dnn_model(deep, training=training)))

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this model."""
        return {
            "name": self.name,
            "linear_model": _keras.saving.serialize_keras_object(self.linear_model),
            "dnn_model": _keras.saving.serialize_keras_object(self.dnn_model),
            "activation": _keras.activations.serialize(self.activation),
        }

    @classmethod
    def from_config(cls, config: Tree, custom_objects: Tree = None) -> WideDeepModel:
        """Creates a model from its configuration."""
        parts = {
            name: _keras.saving.deserialize_keras_object(config[name], custom_objects=custom_objects)
            for name in ("linear_model", "dnn_model")
        }
        return cls(**{**config, **parts})


def convert_all_kernels_in_model(model: Tree) -> None:
    """Flips the kernels of a model's convolutions along the spatial dimensions, as Theano's kernels were."""
    for layer in model.layers:
        if type(layer).__name__ in ("Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose"):
            kernel: Tree = _keras.ops.convert_to_numpy(layer.kernel.value)
            layer.kernel.assign(np.flip(kernel, tuple(range(kernel.ndim - 2))))


_END = object()


class GeneratorEnqueuer:
    """Prefetches a generator's elements with threads into a queue, in the generator's order.

    Args:
      sequence: the generator.
      use_multiprocessing: must be False: a generator cannot be shared between processes.
      random_seed: ignored: TensorFlow seeds its processes with it, and threads use the program's random state.

    Raises:
      ValueError: ``use_multiprocessing`` is true.
    """

    def __init__(
        self, sequence: Iterable[object], use_multiprocessing: bool = False, random_seed: int | None = None
    ) -> None:
        if use_multiprocessing:
            raise ValueError("use_multiprocessing must be False: the generator belongs to this process")
        self.sequence = iter(sequence)
        self.use_multiprocessing = use_multiprocessing
        self.random_seed = random_seed
        self.queue: queue.Queue[object] | None = None
        self.stop_signal = threading.Event()
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []

    def is_running(self) -> bool:
        """Returns whether the threads were started, and not stopped since."""
        return self.queue is not None and not self.stop_signal.is_set()

    def start(self, workers: int = 1, max_queue_size: int = 10) -> None:
        """Starts ``workers`` threads, which keep up to ``max_queue_size`` elements."""
        self.queue = queue.Queue(max_queue_size)
        self.stop_signal.clear()
        self._threads = [
            threading.Thread(target=self._work, args=(self.queue,), name=f"generator-{at}", daemon=True)
            for at in range(max(1, workers))
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, elements: queue.Queue[object]) -> None:
        while not self.stop_signal.is_set():
            with self._turn:  # one thread at a time takes an element and puts it, so that the order is kept
                try:
                    element = next(self.sequence, _END)
                except Exception as error:  # noqa: BLE001 - raised again where the elements are taken
                    element = _Failed(error)
                if not self._put(elements, element) or element is _END or isinstance(element, _Failed):
                    return

    def _put(self, elements: queue.Queue[object], element: object) -> bool:
        while not self.stop_signal.is_set():
            try:
                elements.put(element, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def get(self) -> Generator[Tree]:
        """Yields the elements, until the generator ends.

        Raises:
          Exception: what the generator raises.
        """
        while self.queue is not None and not self.stop_signal.is_set():
            element = self.queue.get()
            if element is _END:
                return
            if isinstance(element, _Failed):
                self.stop()
                raise element.error
            yield element

    def stop(self, timeout: float | None = None) -> None:
        """Ends the threads, and waits for them, ``timeout`` seconds at most."""
        self.stop_signal.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout)
        self._threads = []


class _Failed:
    """An error in place of an element."""

    def __init__(self, error: Exception) -> None:
        self.error = error
