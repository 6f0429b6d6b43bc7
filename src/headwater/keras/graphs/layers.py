"""Layers and models of Keras that are called on tensors of graphs.

Three kinds of layers add one operation for each function that their ``call`` uses: models, layers that a program
defines, and layers of Keras that compute only with functions of `headwater.keras.graphs.natives`. Every other layer of
Keras is one operation as a whole. Its variables represent variables of the graph, and have a value only while that
operation runs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

import keras
import numpy as np

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.keras.graphs.attributes import extend_layers
from headwater.keras.graphs.calls import (
    call_jax_function,
    call_with_graph_values,
    has_graph_value,
    map_leaves,
    plain,
    separate,
)
from headwater.keras.graphs.functions import FunctionGraph
from headwater.keras.graphs.phase import learning_phase
from headwater.keras.graphs.states import (
    SYMBOLIC_CALLS,
    State,
    as_eager_function,
    begin_state,
    building,
    computes_eagerly,
    create_variable,
    is_container,
    is_own,
    state_of,
    states_of,
    weights_of,
)
from headwater.keras.graphs.symbols import record_call
from headwater.keras.graphs.weights import allocate, graph_value, record_update, updates_of
from headwater.keras.host_layers import HostLayer
from headwater.keras.internals import CallSpec, Layer, backend, tree
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.functional import arrays, conditions, math, nn, random
from headwater.tf1.variables.embedding import embedding_lookup

_keras: Tree = keras
_layer: Tree = Layer
_tree: Tree = tree
_BY_OPERATIONS = frozenset(
    {
        "Activation",
        "ActivityRegularization",
        "Add",
        "Average",
        "AveragePooling2D",
        "BatchNormalization",
        "Concatenate",
        "Conv1D",
        "Conv2D",
        "Conv3D",
        "Dense",
        "Dropout",
        "ELU",
        "Embedding",
        "Flatten",
        "GlobalAveragePooling1D",
        "GlobalAveragePooling2D",
        "GlobalMaxPooling1D",
        "GlobalMaxPooling2D",
        "InputLayer",
        "Lambda",
        "LayerNormalization",
        "LeakyReLU",
        "Masking",
        "MaxPooling2D",
        "Maximum",
        "Minimum",
        "Multiply",
        "Permute",
        "ReLU",
        "RepeatVector",
        "Reshape",
        "Softmax",
        "SpatialDropout1D",
        "Subtract",
        "ThresholdedReLU",
    }
)
"""Layers of Keras that add an operation for each function that they use."""


_PHASED = frozenset({"BatchNormalization", "Dropout", "SpatialDropout1D"})
"""The layers among these that depend on the phase; `Dense` and others have the argument for quantization."""
_training: ContextVar[Tree] = ContextVar("training of the outer layer", default=None)


@contextmanager
def inference() -> Generator[None]:
    """A context in which layers are called for inference, unless a call chooses otherwise."""
    token = _training.set(False)
    try:
        yield
    finally:
        _training.reset(token)


def accept_graphs_in_layers() -> None:
    """Makes layers accept tensors of graphs. Idempotent."""
    if hasattr(_layer, "updates"):
        return
    original = _layer.__call__

    @functools.wraps(original)
    def __call__(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if not has_graph_value(args) and not (kwargs and has_graph_value(kwargs)):
            if not is_own(self):
                _accept_functions_of_graphs(self)
            if is_container(self) and not isinstance(self, HostLayer) and _has_text((args, kwargs)):
                return _call_with_text(self, args, kwargs)
            return original(self, *args, **kwargs)
        if type(get_default_graph()) not in (Graph, FunctionGraph):
            # The graph of one eager call: its values are arrays of the layer's caller.
            variables = self.variables if self.built else ()
            return call_with_graph_values(functools.partial(original, self), self.name, args, kwargs, variables)
        return _call_in_graph(self, original, args, kwargs)

    _layer.__call__ = __call__
    extend_layers()


def _has_text(value: Tree) -> bool:
    """Returns whether nested arguments have NumPy arrays of strings."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "OSU"  # pyright: ignore[reportUnknownMemberType]
    if isinstance(value, list | tuple):
        return any(map(_has_text, value))  # pyright: ignore[reportUnknownArgumentType]
    return isinstance(value, dict) and any(map(_has_text, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _call_with_text(layer: Tree, args: Tree, kwargs: dict[str, Tree]) -> Tree:
    """Calls a model or a layer of the program on strings, which Keras would convert to tensors of its backend."""
    if isinstance(layer, _keras.Sequential) and layer._functional is None:
        outputs = args[0] if args else kwargs["inputs"]
        for each in layer.layers:
            outputs = each(outputs)
        layer.built = True
        return outputs
    if not layer._call_has_training_arg:
        kwargs.pop("training", None)
    return layer.call(*args, **kwargs)


# Calls ------------------------------------------------------------------------------------------------------------


def _call_in_graph(layer: Tree, original: Callable[..., Tree], args: Tree, kwargs: dict[str, Tree]) -> Tree:
    layer._check_super_called()
    graph = get_default_graph()
    args, kwargs = map_leaves(plain, args), map_leaves(plain, kwargs)
    training = kwargs.pop("training", None)
    training = _training.get() if training is None else training
    token = _training.set(training)
    try:
        with graph.name_scope(layer.name) as scope:
            _adopt_type(layer, args)
            args, kwargs = map_leaves(functools.partial(_cast, layer), (args, kwargs))
            _build(layer, args, kwargs, scope)
            state = begin_state(layer, scope)
            with updates_of(state.updates):
                outputs = _masked_call(layer, original, args, dict(kwargs), training, state)
            record_call(layer, args, kwargs, outputs)
            return outputs
    finally:
        _training.reset(token)


def _accept_functions_of_graphs(layer: Tree) -> None:
    """Makes the ``call`` of a program's layer, in TensorFlow 1's dialect, accept functions of `tf` on arrays."""
    if not is_eager() and "call" not in vars(layer) and not computes_eagerly(type(layer).__module__):
        importlib.import_module(SYMBOLIC_CALLS).attach()
        object.__setattr__(layer, "call", as_eager_function(layer.call))


def _adopt_type(layer: Tree, args: Tree) -> None:
    """Gives a layer of Keras without variables the floating-point type of its first input, as in TensorFlow 1.15."""
    first = next((leaf for leaf in _tree.flatten(args) if isinstance(leaf, Tensor)), None)
    if is_container(layer) or layer.built or first is None or not first.dtype.is_floating:
        return
    if layer.dtype_policy.name == _keras.config.floatx() != first.dtype.base_dtype.name:
        layer.dtype_policy = first.dtype.base_dtype.name


def _cast(layer: Tree, leaf: Tree) -> Tree:
    if is_container(layer) or not isinstance(leaf, Tensor) or not leaf.dtype.is_floating:
        return leaf
    wanted = layer.compute_dtype
    return leaf if leaf.dtype.base_dtype.name == wanted or not layer.autocast else backend.cast(leaf, wanted)


def _build(layer: Tree, args: Tree, kwargs: dict[str, Tree], scope: str) -> None:
    """Creates the variables of ``layer`` in the default graph."""
    built_before = layer.built and state_of(layer) is None
    own_build = type(layer).build not in (_layer.build, _keras.Model.build, _keras.Sequential.build)
    # Without a `build` of its own, a model or layer creates its variables by calling other layers.
    if not layer.built and (own_build or not is_container(layer)):
        if isinstance(get_default_graph(), FunctionGraph):
            raise ValueError(f"the layer {layer.name!r} has no variables yet: call it once before it is exported")
        spec = CallSpec(layer._call_signature, layer._call_context_args, args, dict(kwargs))
        token = building.set((layer, scope))
        try:
            stateful = [each for each in layer._flatten_layers() if getattr(each, "stateful", False)]
            for each in stateful:
                each.stateful = False
            with _keras.StatelessScope(initialize_variables=False):
                layer._maybe_build(spec)
            for each in stateful:
                each.stateful = True
                _create_states(each, args)
        finally:
            building.reset(token)
        layer.built = True
    if isinstance(get_default_graph(), FunctionGraph):
        return
    owned = [*layer._trainable_variables, *layer._non_trainable_variables] if is_container(layer) else weights_of(layer)
    # A layer that is a part of a functional model is built with it, outside of its call.
    place = f"{layer.name}/" if built_before and not is_container(layer) else scope
    for variable in owned:
        create_variable(layer, variable, place)
    for state in states_of(layer):
        allocate(state, place, "Variable", collections=[GraphKeys.LOCAL_VARIABLES])


def _create_states(layer: Tree, args: Tree) -> None:
    """Creates the state of a stateful layer.

    Raises:
      ValueError: the number of examples is unknown.
    """
    size = _tree.flatten(args)[0].dims[0]
    if size is None:
        raise ValueError(f"the layer {layer.name!r} is stateful, so the number of examples must be known, and is None")
    layer._create_state_variables(size)
    layer._expected_batch_size = size


def _masked_call(
    layer: Tree, original: Callable[..., Tree], args: Tree, kwargs: dict[str, Tree], training: Tree, state: State
) -> Tree:
    first = args[0] if args else next(iter(kwargs.values()), None)
    mask = kwargs.get("mask")
    if mask is None:
        mask = _tree.map_structure(backend.get_keras_mask, first)
        if layer._call_has_mask_arg and any(each is not None for each in _tree.flatten(mask)):
            kwargs["mask"] = mask
    outputs = _phased_call(layer, original, args, kwargs, training, state)
    if (layer.supports_masking and any(each is not None for each in _tree.flatten(mask))) or _makes_masks(layer):
        layer._set_mask_metadata(first, outputs, mask)
    if layer.activity_regularizer is not None and _by_operations(layer):
        for output in _tree.flatten(outputs):
            with get_default_graph().name_scope("ActivityRegularizer"):
                loss = layer.activity_regularizer(output)
                state.losses.append(loss / math.cast(arrays.shape(output)[0], loss.dtype))
    return outputs


def _makes_masks(layer: Tree) -> bool:
    return isinstance(layer, _keras.layers.Masking) or bool(getattr(layer, "mask_zero", False))


def _by_operations(layer: Tree) -> bool:
    return is_container(layer) or type(layer).__name__ in _BY_OPERATIONS


def _phased_call(
    layer: Tree, original: Callable[..., Tree], args: Tree, kwargs: dict[str, Tree], training: Tree, state: State
) -> Tree:
    def call(phase: Tree) -> Tree:
        arguments = kwargs if phase is None or not layer._call_has_training_arg else {**kwargs, "training": phase}
        if not _by_operations(layer):
            return _call_as_one(layer, original, args, arguments)
        own = _CALLS.get(type(layer).__name__) if is_own(layer) else None
        return layer.call(*args, **arguments) if own is None else own(layer, *args)

    name = type(layer).__name__
    if not layer._call_has_training_arg or is_container(layer) or (name in _BY_OPERATIONS and name not in _PHASED):
        return call(training)
    phase = learning_phase() if training is None else training
    if isinstance(phase, Tensor):
        known = conditions.smart_constant_value(phase)
        phase = phase if known is None else known
    if not isinstance(phase, Tensor):
        return call(bool(phase))
    if states_of(layer):
        return _both_states(call, phase, state)
    if any(not variable.trainable for variable in weights_of(layer)):
        return _both_phases(call, phase, state)
    return conditions.cond(phase, lambda: call(True), lambda: call(False))


def _both_phases(call: Callable[[bool], Tree], phase: Tensor, state: State) -> Tree:
    """Computes a layer with updates for training and for inference, and chooses results by ``phase``."""
    updates: list[Operation] = []
    with updates_of(updates):
        trained = call(True)
    for update in updates:
        variable, value = update.inputs[0], update.inputs[1]
        chosen = conditions.cond(phase, lambda v=value: arrays.identity(v), lambda r=variable: arrays.identity(r))
        state.updates.append(get_default_graph().create_op("Assign", [variable, chosen], dict(update.attrs)))
    return conditions.cond(phase, lambda: arrays.identity(trained), lambda: arrays.identity(call(False)))


def _both_states(call: Callable[[bool], Tree], phase: Tensor, state: State) -> Tree:
    """Computes a stateful layer for training and for inference, and chooses results and new states by ``phase``."""
    trained_states: list[Operation] = []
    with updates_of(trained_states):
        trained = call(True)
    inferred_states: list[Operation] = []
    with updates_of(inferred_states):
        inferred = call(False)
    for update, other in zip(trained_states, inferred_states, strict=True):
        chosen = conditions.cond(
            phase, lambda v=update.inputs[1]: arrays.identity(v), lambda v=other.inputs[1]: arrays.identity(v)
        )
        inputs = [update.inputs[0], chosen]
        state.updates.append(get_default_graph().create_op("Assign", inputs, dict(update.attrs)))
    return _tree.map_structure(
        lambda one, two: conditions.cond(phase, lambda: arrays.identity(one), lambda: arrays.identity(two)),
        trained,
        inferred,
    )


def _dense(layer: Tree, inputs: Tree) -> Tree:
    outputs = backend.numpy.matmul(inputs, layer.kernel)
    if layer.use_bias:
        outputs = nn.bias_add(outputs, layer.bias)
    return outputs if layer.activation is None else layer.activation(outputs)


def _embedding(layer: Tree, inputs: Tree) -> Tree:
    if inputs.dtype.base_dtype.name not in ("int32", "int64"):
        inputs = math.cast(inputs, "int32")
    return embedding_lookup(graph_value(layer._embeddings), inputs)


_CALLS: dict[str, Callable[..., Tree]] = {"Dense": _dense, "Embedding": _embedding}
"""Layers with another choice of operations than in their ``call``: names, and rows looked up where the variable is."""


def _call_as_one(layer: Tree, original: Callable[..., Tree], args: Tree, kwargs: dict[str, Tree]) -> Tree:
    """Adds one operation that computes ``layer``."""
    weights = [*weights_of(layer), *states_of(layer)]
    seeds = [generator.state for each in layer._flatten_layers() for generator in each._seed_generators]
    changing = [variable for variable in weights if not variable.trainable]
    tensors, fill = separate((args, kwargs))
    structure: list[Tree] = []

    def run(*arrays_: Tree) -> list[Tree]:
        states = dict(zip([*map(id, weights), *map(id, seeds)], arrays_, strict=False))
        filled = fill(arrays_[len(weights) + len(seeds) :])
        pairs = [(variable, states[id(variable)]) for variable in (*weights, *seeds)]
        with _keras.StatelessScope(state_mapping=pairs, collect_losses=True) as scope:
            result = original(layer, *filled[0], **filled[1])
            news = [scope.get_current_value(variable) for variable in changing]
        flat = [backend.convert_to_tensor(leaf) for leaf in _tree.flatten(result)]
        changed = [new is not states[id(variable)] for variable, new in zip(changing, news, strict=True)]
        structure[:] = [_tree.map_structure(lambda _: 0, result), len(flat), changed]
        return [*flat, *news, *scope.losses]

    numbers = [random.random_uniform([2], 0, 2**31 - 1, "int32") for _ in seeds]
    values = [*map(graph_value, weights), *numbers, *tensors]
    outputs = call_jax_function(run, values, layer.name)
    count = structure[1]
    for variable, new, changed in zip(changing, outputs[count:], structure[2], strict=False):
        if isinstance(get_default_graph(), FunctionGraph):
            if changed:
                variable.assign(new)
        else:
            record_update(variable.variable.assign(new).op)
    begin_state(layer).losses.extend(outputs[count + len(changing) :])
    return _tree.pack_sequence_as(structure[0], outputs[:count])
