"""``keras.Model.export``, ``keras.export.ExportArchive`` and ``keras.layers.TFSMLayer``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import keras

from headwater.data.io.files import as_path
from headwater.keras.internals import export_utils
from headwater.tf1.functional import nest
from headwater.tf1.training.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from headwater.tf2.function import Function
from headwater.tf2.loaded_model import LoadedFunction, LoadedSignature, load, signature_of
from headwater.tf2.saved_model import save
from headwater.tf2.saved_objects import LISTS
from headwater.tf2.structures import as_specs

if TYPE_CHECKING:
    from headwater.data.io.files import Path
    from headwater.keras.types import Tree
    from headwater.tf2.options import SaveOptions

_layer: Tree = keras.layers.Layer
_ENDPOINT = "serve"


class _Archived:
    """The object that an archive saves."""

    variables: list[Tree]
    trainable_variables: list[Tree]
    non_trainable_variables: list[Tree]


class ExportArchive:
    """Writes layers and models as a saved model with chosen endpoints.

    Args:
      format: ``saved_model``.
    """

    def __init__(self, format: str = "saved_model") -> None:
        if format != "saved_model":
            raise ValueError(f"Unsupported format: {format}; only 'saved_model' is supported")
        self._root = _Archived()
        self._tracked: list[Tree] = []
        self._endpoints: dict[str, Function] = {}

    @property
    def variables(self) -> list[Tree]:
        """The variables of all tracked objects."""
        return self._listed("variables")

    @property
    def trainable_variables(self) -> list[Tree]:
        """The trainable variables of all tracked objects."""
        return self._listed("trainable_variables")

    @property
    def non_trainable_variables(self) -> list[Tree]:
        """The other variables of all tracked objects."""
        return self._listed("non_trainable_variables")

    def _listed(self, name: str) -> list[Tree]:
        found = (variable for resource in self._tracked for variable in getattr(resource, name, ()))
        return list({id(variable): variable for variable in found}.values())

    def track(self, resource: Tree) -> None:
        """Adds the variables of a layer, model, module or table.

        Raises:
          ValueError: a layer has no variables yet.
        """
        if isinstance(resource, _layer) and not resource.built:
            raise ValueError(
                "The layer provided has not yet been built. It must be built before export. "
                f"Received: resource={resource}"
            )
        self._tracked.append(resource)

    def add_endpoint(
        self, name: str, fn: Callable[..., Tree], input_signature: Tree = None, **kwargs: object
    ) -> Function:
        """Adds a function that the loaded model has as an attribute and as a signature.

        Args:
          name: the attribute's name.
          fn: the function of tensors.
          input_signature: specs of its arguments: nested `keras.InputSpec`, `tf.TensorSpec`, `keras.KerasTensor` or
            arrays. None: ``fn`` is a `tf.function` that was called or has a signature.
          kwargs: ``is_static`` and ``jax2tf_kwargs``, which have no effect: functions are not converted by ``jax2tf``.

        Returns:
          The function.

        Raises:
          ValueError: the name is taken, or the arguments of ``fn`` are not known.
        """
        for word in kwargs.keys() - {"is_static", "jax2tf_kwargs"}:
            raise TypeError(f"add_endpoint() got an unexpected keyword argument {word!r}")
        if name in self._endpoints:
            raise ValueError(f"Endpoint name '{name}' is already taken.")
        if input_signature is not None:
            given = input_signature if isinstance(input_signature, list | tuple) else [input_signature]
            function = Function(fn, as_specs(given))
        elif isinstance(fn, Function) and fn.signatures():
            function = fn
        else:
            raise ValueError(
                "If the `fn` argument provided is not a `tf.function` that was called, you must provide an "
                "`input_signature` to specify the shape and dtype of the function arguments."
            )
        self._endpoints[name] = function
        return function

    def track_and_add_endpoint(self, name: str, resource: Tree, input_signature: Tree, **kwargs: object) -> Function:
        """Adds a layer or model, and its call as an endpoint. See `add_endpoint`."""
        self.track(resource)
        return self.add_endpoint(name, resource.__call__, input_signature, **kwargs)

    def add_variable_collection(self, name: str, variables: Iterable[Tree]) -> None:
        """Adds variables as an attribute of the loaded model.

        Raises:
          ValueError: the argument is not a list, tuple or set of variables.
        """
        found = list(variables)
        if not all(isinstance(variable, keras.Variable) for variable in found):
            raise ValueError(f"Expected all elements in `variables` to be `keras.Variable`, not {found}")
        setattr(self._root, name, found)

    def write_out(self, filepath: Path, options: SaveOptions | None = None, verbose: bool = True) -> None:
        """Writes the saved model. The first endpoint is also the signature ``serving_default``.

        Raises:
          ValueError: there is no endpoint.
        """
        if not self._endpoints:
            raise ValueError("No endpoints have been set yet. Call add_endpoint().")
        for name in LISTS:
            if not hasattr(self._root, name):
                setattr(self._root, name, getattr(self, name))
        for at, resource in enumerate(self._tracked):
            if not isinstance(resource, _layer):
                setattr(self._root, f"_tracked_{at}", resource)
        for name, function in self._endpoints.items():
            setattr(self._root, name, function)
        first = next(iter(self._endpoints.values()))
        signatures = {**self._endpoints, DEFAULT_SERVING_SIGNATURE_DEF_KEY: first}
        save(self._root, filepath, signatures, options)
        if verbose:
            print(f"Saved artifact at '{as_path(filepath)}'.\n\nThe following endpoints are available:")
            for name, function in self._endpoints.items():
                print(f"\n* Endpoint '{name}'\n  args: {function.signatures()[0][0]}")


def export(
    model: Tree,
    filepath: Path,
    format: str = "tf_saved_model",
    verbose: bool | None = None,
    input_signature: Tree = None,
    **kwargs: object,
) -> None:
    """Writes a model for inference: ``model.export(path)``. The loaded model has the function ``serve``.

    Args:
      filepath: the folder.
      format: ``tf_saved_model``.
      verbose: whether to print the endpoints; True if None.
      input_signature: specs of the model's inputs; None: as it was built or called.

    Raises:
      ValueError: another format, or the model was not built or called.
    """
    if format != "tf_saved_model":
        raise ValueError(f"format={format!r} is not supported; only 'tf_saved_model' is")
    archive = ExportArchive()
    signature = export_utils.get_input_signature(model) if input_signature is None else input_signature
    archive.track_and_add_endpoint(_ENDPOINT, model, signature, **kwargs)
    archive.write_out(filepath, verbose=verbose is None or verbose)


class TFSMLayer(_layer):
    """A saved model as a layer for inference. Arguments as in `keras.layers.TFSMLayer`."""

    def __init__(
        self,
        filepath: Path,
        call_endpoint: str = _ENDPOINT,
        call_training_endpoint: str | None = None,
        trainable: bool = True,
        name: str | None = None,
        dtype: Tree = None,
    ) -> None:
        super().__init__(trainable=trainable, name=name, dtype=dtype)
        self.filepath, self.call_endpoint = as_path(filepath), call_endpoint
        self.call_training_endpoint = call_training_endpoint
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        loaded = load(filepath)
        words = [call_endpoint, *([call_training_endpoint] if call_training_endpoint else [])]
        self._functions: Sequence[Tree] = tuple(signature_of(loaded, word) for word in words)
        found = [variable for function in self._functions for variable in function.variables]
        for variable in {id(each): each for each in found}.values():
            self._track_variable(variable)
        self.built = True

    def call(self, inputs: Tree, training: bool = False, **kwargs: Tree) -> Tree:
        function = self._functions[-1 if training else 0]
        if isinstance(function, LoadedSignature) and isinstance(inputs, dict):
            return function(**inputs, **kwargs)  # pyright: ignore[reportUnknownArgumentType]
        return function(inputs, **kwargs)

    def compute_output_spec(self, inputs: Tree, training: bool = False, **kwargs: Tree) -> Tree:
        function: LoadedFunction | LoadedSignature = self._functions[-1 if training else 0]
        return nest.map_structure(
            lambda spec: keras.KerasTensor(spec.shape.as_list(), spec.dtype.name), function.structured_outputs
        )

    def get_config(self) -> dict[str, object]:
        return {
            **super().get_config(),
            "filepath": self.filepath,
            "call_endpoint": self.call_endpoint,
            "call_training_endpoint": self.call_training_endpoint,
        }
