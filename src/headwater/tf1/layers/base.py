"""`Layer`: creates its variables at its first call, and reuses them at every further call.

Variables and operations have the same names as in TensorFlow 1.15: a layer enters a variable scope of its name, made
unique, and each call enters the name scope opened with it.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakKeyDictionary

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.graph.ancestry import ancestors
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays, math, nest
from headwater.tf1.layers.configuration import described, restored
from headwater.tf1.layers.naming import keras_style
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.scope_settings import VariableScope
from headwater.tf1.variables.variable_scope import get_variable, variable_scope
from headwater.tf1.variables.variables import VariableSynchronization

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.variables import Variable


L = TypeVar("L", bound="Layer")

_names_used: WeakKeyDictionary[Graph, dict[str, int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class InputSpec:
    """Requirements of a layer on an input.

    Attributes:
      dtype: its element type.
      shape: its shape, with None for arbitrary sizes.
      ndim: its number of dimensions.
      max_ndim: the largest number of dimensions.
      min_ndim: the smallest number of dimensions.
      axes: the sizes of some dimensions.
    """

    dtype: DTypeLike | None = None
    shape: ShapeLike = None
    ndim: int | None = None
    max_ndim: int | None = None
    min_ndim: int | None = None
    axes: dict[int, int | None] | None = None

    def check(self, tensor: Tensor, layer: str) -> None:
        """Raises ValueError, naming ``layer``, unless ``tensor`` meets the requirements."""
        rank = self.ndim if self.shape is None else len(as_shape(self.shape))
        dims = tensor.dims
        if dims is None:
            if rank is not None or self.min_ndim is not None or self.max_ndim is not None:
                raise ValueError(
                    f"Input of layer {layer} is incompatible with it: its rank is undefined, but the layer requires a "
                    "defined rank."
                )
            return
        if self.dtype is not None and as_dtype(self.dtype) != tensor.dtype.base_dtype:
            raise ValueError(
                f"Input of layer {layer} is incompatible with it: expected dtype={as_dtype(self.dtype).name}, found "
                f"dtype={tensor.dtype.name}"
            )
        wrong = (
            (rank is not None and len(dims) != rank, f"expected ndim={rank}"),
            (self.max_ndim is not None and len(dims) > (self.max_ndim or 0), f"expected max_ndim={self.max_ndim}"),
            (self.min_ndim is not None and len(dims) < (self.min_ndim or 0), f"expected min_ndim={self.min_ndim}"),
        )
        for is_wrong, wanted in wrong:
            if is_wrong:
                raise ValueError(
                    f"Input of layer {layer} is incompatible with it: {wanted}, found ndim={len(dims)}. "
                    f"Full shape received: {list(dims)}"
                )
        for axis, size in (self.axes or {}).items():
            if size is not None and dims[axis] not in (None, size):
                raise ValueError(
                    f"Input of layer {layer} is incompatible with it: expected axis {axis} of input shape to have "
                    f"value {size} but received input with shape {list(dims)}"
                )
        if self.shape is not None and not tensor.shape.is_compatible_with(self.shape):
            raise ValueError(f"Input of layer {layer} is incompatible with it: expected shape {self.shape}")


def snake_case(name: str) -> str:
    """Converts ``BasicLSTMCell`` to ``basic_lstm_cell``; a leading underscore becomes ``private_``."""
    parted = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    result = re.sub(r"([a-z])([A-Z])", r"\1_\2", parted).lower()
    return f"private{result}" if result.startswith("_") else result


def _unique_name(base: str) -> str:
    """Returns ``base_1``, ``base_2`` …: unique among the unnamed layers of a graph."""
    used = _names_used.setdefault(get_default_graph(), defaultdict(int))
    used[base] += 1
    return f"{base}_{used[base]}"


class _WithArguments:
    """Keeps the arguments of the constructor for `Layer.get_config`.

    It is a class of its own, so that `inspect.signature` and `help` show the arguments of a layer's ``__init__``.
    """

    _arguments: tuple[tuple[object, ...], dict[str, object]]

    # Hidden from type checkers, so that they read a layer's arguments from its `__init__`, too.
    if not TYPE_CHECKING:

        def __new__(cls, *args: object, **kwargs: object) -> Self:
            self = super().__new__(cls)
            self._arguments = (args, kwargs)
            return self


class Layer(_WithArguments):
    """Base of all layers. A subclass overrides `call`, and `build` if it has variables.

    Args:
      trainable: whether optimizers change its variables.
      name: its name, the prefix of its variables' names; its class's name in snake case, made unique, if None.
      dtype: the element type of its variables; the type of its first input if None.

    Attributes:
      graph: the graph that it was first called in.
      built: whether `build` was called.
      input_spec: an `InputSpec`, or one for each input, that every call checks.
      trainable: as given.
      activity_regularizer: a function that returns a loss of an output; None for no loss.
    """

    def __init__(self, trainable: bool = True, name: Any = None, dtype: DTypeLike | None = None, **kwargs: Any) -> None:
        scope = kwargs.pop("_scope", None)
        self._reuse = kwargs.pop("_reuse", None)
        self.activity_regularizer = kwargs.pop("activity_regularizer", None)
        self._collect_updates = kwargs.pop("_collect_updates", True)
        if kwargs:
            raise TypeError(f"{type(self).__name__} takes no argument {', '.join(sorted(kwargs))}")
        #: Whether it makes its own variables instead of sharing a variable scope; see `naming`.
        self._keras_style = keras_style()
        if self._keras_style:
            _refuse(reuse=self._reuse, scope=scope)
        self.trainable = trainable
        self.built = False
        self.input_spec: object = None
        self._dtype: DType | None = None if dtype is None else as_dtype(dtype).base_dtype
        self._trainable_weights: list[Variable] = []
        self._non_trainable_weights: list[Variable] = []
        self._updates: list[object] = []
        self._losses: list[Tensor] = []
        #: Its losses that belong to inputs.
        self._conditional_losses: list[Tensor] = []
        #: Tensors of all calls; an update that depends on none of them is unconditional.
        self._inputs: list[Tensor] = []
        self.graph: Graph | None = None
        self._final_scope: variable_scope | None = None
        self._current_scope: VariableScope | None = None
        if isinstance(name, VariableScope):
            self._base_name: Any = name.name
            self.name: str = _unique_name(snake_case(type(self).__name__))
        elif name:
            self._base_name = self.name = name
        else:
            self._base_name = snake_case(type(self).__name__)
            self.name = _unique_name(self._base_name)
        self._scope: VariableScope | None = None
        if scope:
            with variable_scope(scope) as captured:
                self._scope = captured

    # Properties ----------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """Name of the element type of its variables; None before the first call of a layer without ``dtype``."""
        return None if self._dtype is None else self._dtype.name

    @property
    def scope_name(self) -> str:
        """Name of its variable scope.

        Raises:
          ValueError: it was not called yet.
        """
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self.name}" has not been used yet.'
            )
        return self._scope.name

    @property
    def trainable_weights(self) -> list[Variable]:
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Variable]:
        return self._non_trainable_weights if self.trainable else self._trainable_weights + self._non_trainable_weights

    @property
    def weights(self) -> list[Any]:
        return self.trainable_weights + self.non_trainable_weights

    @property
    def variables(self) -> list[Variable]:
        return self.weights

    @property
    def trainable_variables(self) -> list[Variable]:
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Variable]:
        return self.non_trainable_weights

    @property
    def updates(self) -> list[Any]:
        """Operations that must run together with training, such as updates of moving averages."""
        return list(self._updates) if self.trainable else []

    @property
    def losses(self) -> list[Any]:
        """Losses of its regularizers and calls."""
        return list(self._losses)

    def get_updates_for(self, inputs: Structure) -> list[Any]:
        """Returns the `updates` that depend on these inputs; with None, the updates that depend on no inputs."""
        conditional = _depending(self._updates, self._inputs)
        if inputs is None:
            return [update for update in self._updates if update not in conditional]
        return _depending(conditional, nest.flatten(inputs))

    def get_losses_for(self, inputs: Structure) -> list[Any]:
        """Returns the `losses` that depend on these inputs; with None, the losses that depend on no inputs."""
        if inputs is None:
            return [loss for loss in self._losses if all(loss is not other for other in self._conditional_losses)]
        return _depending(self._conditional_losses, nest.flatten(inputs))

    def count_params(self) -> int:
        """The number of elements of its variables.

        Raises:
          ValueError: it has no variables yet.
        """
        if not self.built:
            raise ValueError(f"You tried to call `count_params` on {self.name}, but the layer isn't built.")
        return sum(int(variable.shape.num_elements()) for variable in self.weights)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments of its constructor, from which `from_config` makes the same layer."""
        return described(self, self._arguments)

    @classmethod
    def from_config(cls, config: Mapping[str, object], custom_objects: Mapping[str, object] | None = None) -> Self:
        """Creates the layer that `get_config` of a layer of this class has described.

        Args:
          config: the description.
          custom_objects: by name the classes that it names, if they are not classes of this package.
        """
        return cls(**{name: restored(value, custom_objects or {}) for name, value in config.items()})

    # For subclasses ------------------------------------------------------------------------------------------------

    def build(self, input_shape: ShapeLike) -> None:
        """Creates the variables, for inputs of this shape."""
        del input_shape
        self.built = True

    def call(self, inputs: Structure, *args: Any, **kwargs: Any) -> Structure:
        """Computes the layer's outputs; overridden by subclasses."""
        del args, kwargs
        return inputs

    def compute_output_shape(self, input_shape: ShapeLike) -> TensorShape:
        """The shape of its output for inputs of this shape."""
        raise NotImplementedError(f"{type(self).__name__} does not define the shape of its output")

    def add_weight(
        self,
        name: str,
        shape: ShapeLike | None = None,
        dtype: DType | None = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        partitioner: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Creates the variable ``name`` of this layer, or finds it. See `get_variable`."""
        more = {"synchronization": synchronization, "aggregation": aggregation}
        more = {key: value for key, value in more.items() if value is not None}
        kind = self._dtype or dtypes.float32 if dtype is None else as_dtype(dtype)
        wanted = synchronization != VariableSynchronization.ON_READ if trainable is None else trainable
        existing = set(get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)) if regularizer else set[Any]()
        self._set_scope()
        scope = variable_scope(self._scope, reuse=self.built or self._reuse, auxiliary_name_scope=False)
        with scope as current, name_scope(current.original_name_scope):
            self._current_scope = current
            variable: Any = get_variable(
                name,
                shape=() if shape is None else shape,
                dtype=kind,
                initializer=initializer,
                trainable=wanted and self.trainable,
                constraint=constraint,
                partitioner=partitioner,
                use_resource=use_resource,
                **more,
                **kwargs,
            )
            if regularizer is not None:
                parts = list(variable) if isinstance(variable, PartitionedVariable) else [variable]
                for part in parts:
                    if part not in existing:
                        with name_scope(f"{name}/Regularizer"):
                            loss = regularizer(part)
                        if loss is not None:
                            self.add_loss(loss)
        listed: list[Any] = self._trainable_weights if wanted else self._non_trainable_weights
        if all(variable is not other for other in listed):
            listed.append(variable)
        return variable

    def add_variable(self, *args: Any, **kwargs: object) -> Any:
        """Same as `add_weight`."""
        return self.add_weight(*args, **kwargs)

    def add_loss(self, losses: Structure, inputs: Structure = None) -> None:
        """Adds to `losses` and to the collection ``REGULARIZATION_LOSSES``."""
        for loss in nest.flatten(losses):
            value: Any = loss() if callable(loss) else loss
            tensor = convert_to_tensor(value)
            self._losses.append(tensor)
            if inputs is not None:
                self._conditional_losses.append(tensor)
            _collect(GraphKeys.REGULARIZATION_LOSSES, tensor)

    def add_update(self, updates: Structure, inputs: Structure = None) -> None:
        """Adds operations to `updates` and to the collection ``UPDATE_OPS``.

        Args:
          inputs: tensors that they depend on, besides the layer's inputs.
        """
        self._inputs += [leaf for leaf in nest.flatten(inputs) if isinstance(leaf, Tensor)]
        for update in nest.flatten(updates):
            made = update() if callable(update) else update
            op = made if isinstance(made, Operation) else getattr(made, "op", made)
            self._updates.append(op)
            if self._collect_updates and not self._keras_style:
                _collect(GraphKeys.UPDATE_OPS, op)

    # Calls ---------------------------------------------------------------------------------------------------------

    def apply(self, inputs: Structure, *args: object, **kwargs: object) -> Any:
        """Same as calling the layer."""
        return self(inputs, *args, **kwargs)

    def __call__(self, inputs: Structure, *args: object, **kwargs: object) -> Structure:
        """Returns its result for ``inputs``.

        Args:
          inputs: a tensor or a nested structure of tensors.
          scope: variable scope to use at the first call, in place of one of the layer's name.
          args, kwargs: go to `call`.

        Raises:
          ValueError: the inputs do not meet `input_spec`.
        """
        scope = kwargs.pop("scope", None)
        if self._keras_style:
            _refuse(scope=scope)
        again = self._keras_style and self._scope is not None
        self._set_scope(scope)
        self.graph = self.graph or get_default_graph()
        if self.built:
            if self._final_scope is None:
                self._final_scope = variable_scope(self._scope, reuse=True, auxiliary_name_scope=False)
            entered = self._final_scope
        else:
            entered = variable_scope(self._scope, reuse=self._reuse, auxiliary_name_scope=False)
        with entered as current:
            self._current_scope = current
            if "scope" in inspect.signature(self.call).parameters:
                kwargs["scope"] = current
            with name_scope(self.name if again else current.original_name_scope):
                return self._compute(inputs, args, kwargs)

    def _compute(self, inputs: Structure, args: Sequence[Any], kwargs: dict[str, object]) -> Any:
        inputs = nest.map_structure(_as_tensor, inputs)
        leaves = [leaf for leaf in nest.flatten(inputs) if isinstance(leaf, Tensor)]
        self._check(leaves)
        self._inputs += leaves
        if not self.built:
            if self._dtype is None and leaves:
                found = leaves[0].dtype.base_dtype
                self._dtype = found
            self.build(nest.map_structure(_shape_of, inputs) if leaves else None)
            self.built: bool = True
        outputs = self.call(inputs, *args, **kwargs)
        if self.activity_regularizer is not None:
            with name_scope("ActivityRegularizer"):
                for output in nest.flatten(outputs):
                    loss = self.activity_regularizer(output)
                    count = math.cast(arrays.shape(output)[0], loss.dtype)
                    self.add_loss(loss / count, inputs=inputs)
        return outputs

    def _check(self, leaves: Sequence[Tensor]) -> None:
        given = self.input_spec
        specs: list[InputSpec] = [] if given is None else nest.flatten(given)
        for spec, leaf in zip(specs, leaves, strict=False):
            InputSpec.check(spec, leaf, self.name)  # also of Keras's InputSpec, which has the same attributes

    def _set_scope(self, scope: object = None) -> None:
        """Enters the variable scope once, so that its name is made unique once."""
        if self._scope is not None:
            return
        if self._keras_style:
            with name_scope(self.name) as opened:
                self._scope = VariableScope(None, name=opened[:-1], name_scope=opened, use_resource=True)
            return
        if self._reuse:
            entering = variable_scope(self._base_name if scope is None else scope)
        else:
            entering = variable_scope(scope, default_name=self._base_name)
        with entering as captured:
            self._scope = captured


def _refuse(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} argument not allowed when keras style layers are enabled, but saw: {value}")


def _as_tensor(value: TensorLike) -> Any:
    return value if isinstance(value, Tensor) or hasattr(value, "dense_shape") else convert_to_tensor(value)


def _shape_of(value: Tensor) -> TensorShape:
    return value.get_shape()


def _depending(made: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Returns the operations and tensors of ``made`` that depend on one of ``inputs``."""
    return [item for item in made if ancestors([item], inputs)[1]]


def _collect(key: str, value: object) -> None:
    held = get_default_graph().get_collection_ref(key)
    if all(value is not other for other in held):
        held.append(value)


def functional(
    cls: type[L], doc: str, *, call: Sequence[str] = (), before: str = "name", last: Sequence[str] = ()
) -> Callable[..., Tensor]:
    """The function that makes a layer of class ``cls`` and calls it once.

    Args:
      doc: its docstring.
      call: names of arguments of the call; they come before the argument ``before`` of the class.
      last: names of arguments of the class that come after all others.
    """
    own = [p for p in inspect.signature(cls).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    calls = [p for p in inspect.signature(cls.call).parameters.values() if p.name in call]
    place = next(index for index, p in enumerate(own) if p.name == before)
    ordered = [p for p in (*own[:place], *calls, *own[place:]) if p.name not in last]
    first = inspect.Parameter("inputs", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="TensorLike")
    reuse = inspect.Parameter("reuse", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="bool | None")
    ordered = [first, *ordered, reuse, *(p for p in own if p.name in last)]
    signature = inspect.Signature(ordered, return_annotation="Tensor")

    def function(*args: object, **kwargs: object) -> Any:
        given = signature.bind(*args, **kwargs).arguments
        inputs, again = given.pop("inputs"), given.pop("reuse", None)
        for_call = {name: given.pop(name) for name in call if name in given}
        return cls(**given, _reuse=again, _scope=given.get("name"))(inputs, **for_call)

    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    function.__doc__ = doc
    function.__name__ = snake_case(cls.__name__)
    return function
