"""Symbolic tensors of Keras as tensors of graphs: ``sess.run(model.output, {model.input: x})``.

Each input of a functional model becomes a placeholder of the default graph, and each symbolic tensor the result of
calling its layers on tensors of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from weakref import WeakKeyDictionary

import keras
from keras import KerasTensor

from headwater.dtypes import as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, register_tensor_conversion_function
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor
from headwater.keras.backend.sessions import initialize_new_variables
from headwater.keras.graphs.calls import has_graph_value, map_leaves
from headwater.keras.internals import Functional, KerasOperation, tree
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.functional import arrays

_by_graph: WeakKeyDictionary[Graph, dict[int, tuple[KerasTensor, Tensor]]] = WeakKeyDictionary()
"""The tensor of each symbolic tensor, by the symbolic tensor's id."""
_calls: WeakKeyDictionary[Graph, dict[Tensor, tuple[Tree, Tree, Tree, Tree]]] = WeakKeyDictionary()
"""The layer, arguments and results of the call that has computed a tensor."""
_functional: Tree = Functional
_keras: Tree = keras
_operation: Tree = KerasOperation
_symbol: Tree = KerasTensor
_tree: Tree = tree
_DELEGATED = frozenset({"consumers", "device", "eval", "get_shape", "graph", "op", "value_index"})
"""Attributes of a tensor that a symbolic tensor takes from its tensor in the default graph."""


def accept_symbols_in_graphs() -> None:
    """Makes functions, fetches and feeds of graphs accept symbolic tensors."""
    register_tensor_conversion_function(KerasTensor, _converted)
    _symbol._as_graph_element = tensor_of
    _symbol.__getattr__ = _delegated
    _functional.__init__ = _of_symbols(_functional.__init__)
    _operation.symbolic_call = _with_tensors(_operation.symbolic_call)


def _held() -> dict[int, tuple[KerasTensor, Tensor]]:
    return _by_graph.setdefault(get_default_graph(), {})


def record_call(layer: Tree, args: Tree, kwargs: Tree, outputs: Tree) -> None:
    """Notes that ``layer`` has computed ``outputs`` in the default graph, for models of graph tensors."""
    calls = _calls.setdefault(get_default_graph(), {})
    calls.update((output, (layer, args, kwargs, outputs)) for output in _tree.flatten(outputs))


def _of_symbols(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def __init__(self: Tree, inputs: Tree, outputs: Tree, *args: Tree, **kwargs: Tree) -> None:
        if has_graph_value((_tree.flatten(inputs), _tree.flatten(outputs))):
            inputs, outputs = _symbols_of(inputs, outputs)
        original(self, inputs, outputs, *args, **kwargs)

    return __init__


def _symbols_of(inputs: Tree, outputs: Tree) -> tuple[Tree, Tree]:
    """Returns symbolic tensors for the inputs and outputs of a model of graph tensors.

    Raises:
      ValueError: an output depends on a tensor that no layer has computed.
    """
    held, calls = _held(), _calls.get(get_default_graph(), {})
    symbols: dict[Tensor, KerasTensor] = {}

    def note(tensor: Tensor, symbol: Tree) -> Tree:
        held[id(symbol)] = symbol, tensor
        symbols[tensor] = symbol
        return symbol

    def symbol_of(tensor: Tree) -> Tree:
        if not isinstance(tensor, Tensor) or tensor in symbols:
            return symbols.get(tensor, tensor) if isinstance(tensor, Tensor) else tensor
        if tensor not in calls:
            raise ValueError(
                f"the output {tensor.name!r} of a model is not the result of a layer that depends on its inputs: put "
                "functions of tf into tf.keras.layers.Lambda"
            )
        layer, args, kwargs, results = calls[tensor]
        positional, named = _tree.map_structure(symbol_of, (args, kwargs))
        for result, symbol in zip(_tree.flatten(results), _tree.flatten(layer(*positional, **named)), strict=True):
            note(result, symbol)
        return symbols[tensor]

    def input_of(tensor: Tree) -> Tree:
        if not isinstance(tensor, Tensor):
            return tensor
        return note(tensor, _keras.Input(batch_shape=tensor.dims, dtype=tensor.dtype.base_dtype.name))

    return _tree.map_structure(input_of, inputs), _tree.map_structure(symbol_of, outputs)


def tensor_of(symbol: Tree) -> Tensor:
    """Returns the tensor of ``symbol`` in the default graph.

    Raises:
      TypeError: the program executes eagerly.
    """
    if is_eager():
        raise TypeError(f"{symbol!r} is symbolic: it has values in calls of a model only")
    held = _held()
    known = len(get_default_graph().get_collection_ref(GraphKeys.GLOBAL_VARIABLES))
    waiting = [symbol]
    while waiting:
        each = waiting[-1]
        history = each._keras_history
        node = history.operation._inbound_nodes[history.node_index]
        missing = [one for one in node.input_tensors if id(one) not in held]
        if id(each) in held:
            waiting.pop()
        elif node.is_input:
            held[id(each)] = each, arrays.placeholder(as_dtype(each.dtype), each.shape, each.name)
        elif missing:
            waiting.extend(missing)
        else:
            args, kwargs = node.arguments.fill_in({key: tensor for key, (_, tensor) in held.items()})
            results = _tree.flatten(history.operation(*args, **kwargs))
            for output, result in zip(node.outputs, results, strict=True):
                held[id(output)] = output, convert_to_tensor(result)
    initialize_new_variables(known)
    return held[id(symbol)][1]


def _converted(value: Tree, dtype: Tree, name: str | None, as_ref: bool) -> Tree:
    return convert_to_tensor(tensor_of(value), dtype, name, as_ref=as_ref)


def _delegated(self: Tree, name: str) -> Tree:
    if name in _DELEGATED and not is_eager():
        return getattr(tensor_of(self), name)
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


def _with_tensors(original: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(original)
    def symbolic_call(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        if has_graph_value((args, kwargs)) and not is_eager():
            args, kwargs = map_leaves(lambda x: tensor_of(x) if isinstance(x, KerasTensor) else x, (args, kwargs))
            return self(*args, **kwargs)
        return original(self, *args, **kwargs)

    return symbolic_call
