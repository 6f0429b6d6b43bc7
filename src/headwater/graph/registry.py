"""The table of operation types, filled by `headwater.graph.ops` and read by the graph, the passes and the runtime.

An operation type is registered with its *lowering*: a function of arrays and attributes that computes the outputs.
Everything else has a default: static shapes are determined by abstract evaluation of the lowering, gradients by its
vector-Jacobian product.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast
from weakref import WeakValueDictionary

import numpy as np

from headwater.dtypes import DType
from headwater.shapes import Dims

HostArray: TypeAlias = np.ndarray[Any, Any]
"""An array of an operation that runs on the host."""
#: Values known while a graph is built (constants, shapes) are kept up to this number of elements.
MAX_KNOWN_ELEMENTS = 4096
Attrs = Mapping[str, Any]

SIZES_KNOWN = "_sizes_known"
"""Attribute of slices whose output shape does not depend on their start, so that the start need not be known when
compiling."""

CHECKED = "_checked"
"""Attribute of operations on indices that the program has computed: an index out of range is an error, as in
TensorFlow. In indices that the framework generates, a value out of range marks a row to skip."""
CLASSES = "_classes"
"""Attribute of losses: the number of classes, if the graph determines it."""


class Kind(enum.Enum):
    """The way in which an operation runs."""

    PURE = "pure"
    """A function of its inputs; compiled."""
    RANDOM = "random"
    """A function of a key and its inputs; compiled. The key differs in every step."""
    STATEFUL = "stateful"
    """Reads or changes variables of its task; compiled together with pure ones."""
    HOST = "host"
    """Runs in Python and NumPy: queues, readers, strings, summaries, Python functions."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The static properties of a tensor: element type and shape."""

    dtype: DType
    dims: Dims


@dataclass(frozen=True, slots=True)
class FunctionAttr:
    """An attribute that names an operation type together with its attributes (``NameAttrList`` in a GraphDef)."""

    name: str
    attrs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """One input, or one list of inputs, as an operation type declares it.

    Attributes:
      name: TensorFlow's name of the argument.
      dtype: the fixed element type; None if the element type may vary.
      type_attr: the attribute with the element type; arguments with the same attribute have the same type.
      default: the element type for Python values that could have several types.
      allowed: name of the class of allowed element types (``numeric``, ``floating`` …); empty for any.
      many: whether the argument is a list of inputs of one type; the attribute ``N`` is the length of the list.
      mixed: whether the argument is a list of inputs of any types; ``type_attr`` lists the types.
    """

    name: str
    dtype: DType | None = None
    type_attr: str = ""
    default: DType | None = None
    allowed: str = ""
    many: bool = False
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Inference:
    """The arguments of a shape function.

    Attributes:
      op_type: the operation's type, for errors.
      attrs: the operation's attributes.
      inputs: static properties of each input.
      constant: ``constant(i)`` is the value of input ``i`` if the graph determines it, else None.
      partial: ``partial(i)`` is the value of the integer vector input ``i`` as far as the graph determines it: None
        for an unknown length, with None for each unknown element.
    """

    op_type: str
    attrs: Attrs
    inputs: Sequence[Spec]
    constant: Callable[[int], np.ndarray[Any, Any] | None]
    partial: Callable[[int], Dims]


SAME_NUMBERS: Final = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"})
"""Operations that return the numbers of their input, perhaps with another shape or type."""

Infer = Callable[[Inference], Sequence[Spec]]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpDef:
    """One operation type.

    Attributes:
      name: as in a GraphDef, e.g. ``MatMul``.
      kind: how the operation runs.
      lower: the lowering. PURE: ``lower(*inputs, **attrs)`` returns one array or a tuple of arrays. RANDOM: the same
        with a ``jax.random`` key first. STATEFUL: the inputs named in ``refs`` are variables' values; returns the tuple
        of new values of ``updates``. HOST: ``lower(context, *inputs, **attrs)`` with NumPy arrays.
      infer: returns the `Spec` of every output.
      defaults: attributes that may be omitted, with their default values. An attribute the lowering does not take is
        kept in the graph and not passed on.
      attrs: names of the attributes that the lowering takes.
      static: positions of inputs that must be known when the operation is compiled, which is then compiled for each
        value; negative positions count from the end.
      static_of: replaces ``static`` if it depends on the attributes: ``static_of(attrs, input_count)``.
      gradient: ``gradient(op, *output_gradients)`` returns one tensor, IndexedSlices or None per input. If ``gradient``
        is None or returns NotImplemented, the vector-Jacobian product of the lowering is used.
      differentiable: False if its inputs never have a gradient.
      constants: positions of inputs without a gradient in the vector-Jacobian product.
      refs: positions of inputs that are variables.
      reads: positions in ``refs`` of variables that must have a value.
      updates: positions in ``refs`` of variables that get a new value.
      blocking: whether a HOST operation may wait for another step.
      announces: whether a HOST operation notifies other steps of the updates before it. It may run as soon as these
        updates can no longer fail, since readers of the variables wait for the updates.
      effect: whether a HOST operation changes something outside of its outputs, such as a file, an output stream or an
        object of Python, or has no outputs and can only raise an error.
      keeps: whether a HOST operation uses replicable resources other than variables; see
        `headwater.graph.resources.replicable`.
      stable: for an operation with ``keeps``: the outputs are recorded even if the operation changes nothing, because a
        resumed step must get the same outputs, such as the members of its round.
      repeat: for a blocking HOST operation: ``repeat(context, run, times, *inputs, **attrs)`` calls ``run`` ``times``
        times: each time that ``lower`` would not have to wait, in the thread that has ended the wait. None if
          unsupported.
      admit: for a STATEFUL operation: ``admit(resources, step, **attrs)`` is called under the lock of the variables
        just before the executable changes them. It may refuse all changes of the executable by raising; the function
        that it returns is called after the changes, under the same lock.
      string_lower: NumPy version of a PURE lowering, for tensors of strings, which are processed on the host.
      traced: PURE version of a HOST lowering, for compiled branches and loops.
      ref_attr: name of the attribute that lists ``refs``, if they differ between operations; else empty.
      types: type attributes in its GraphDef: maps the attribute's name to the input with that type.
      arguments: the inputs by name, for code that builds the operation from Python values; empty if unused.
    """

    name: str
    kind: Kind
    lower: Callable[..., Any]
    infer: Infer
    defaults: Attrs = field(default_factory=dict[str, Any])
    attrs: frozenset[str] = frozenset()
    static: tuple[int, ...] = ()
    static_of: Callable[[Attrs, int], frozenset[int]] | None = None
    gradient: Callable[..., Sequence[object]] | None = None
    differentiable: bool = True
    constants: tuple[int, ...] = ()
    refs: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    blocking: bool = False
    announces: bool = False
    effect: bool = False
    keeps: bool = False
    stable: bool = False
    repeat: Callable[..., None] | None = None
    admit: Callable[..., Callable[[], object]] | None = None
    string_lower: Callable[..., Any] | None = None
    traced: Callable[..., object] | None = None
    ref_attr: str = ""
    types: Mapping[str, int] = field(default_factory=lambda: {"T": 0})
    arguments: tuple[Argument, ...] = ()

    def ref_positions(self, attrs: Attrs) -> Sequence[int]:
        """Returns ``refs`` for an operation with these attributes."""
        return attrs.get(self.ref_attr, ()) if self.ref_attr else self.refs

    def has_effect(self, attrs: Attrs) -> bool:
        """Returns whether the operation changes something outside of its outputs, or can only raise an error."""
        return self.effect or bool(self.ref_positions(attrs))

    def static_positions(self, attrs: Attrs, count: int) -> frozenset[int]:
        """Returns ``static`` for an operation with these attributes and ``count`` inputs."""
        if self.static_of is not None:
            return self.static_of(attrs, count)
        return frozenset(i % count for i in self.static) if count else frozenset()


def as_outputs(result: object) -> tuple[Any, ...]:
    """Converts a lowering's result to a tuple of outputs; the result may be a single array, or None for no output."""
    if result is None:
        return ()
    return tuple(cast(Sequence[Any], result)) if isinstance(result, tuple | list) else (result,)


_table: dict[str, OpDef] = {}
_gradients: dict[str, Callable[..., Sequence[object]]] = {}
_loaded = False
_load_operations: Callable[[], object] | None = None


def register(definition: OpDef) -> OpDef:
    """Adds an operation type; ValueError if the name is taken."""
    if definition.name in _table:
        raise ValueError(f"operation type {definition.name!r} is registered twice")
    _table[definition.name] = definition
    return definition


def lookup(name: str) -> OpDef:
    """Returns the operation type ``name``; KeyError if there is none."""
    _load()
    return _table[name]


def names() -> list[str]:
    """Returns the names of all operation types, sorted."""
    _load()
    return sorted(_table)


def register_gradient(name: str, gradient: Callable[..., Sequence[object]]) -> None:
    """Registers a gradient function under ``name``: an operation type, or a name for ``gradient_override_map``.

    Raises:
      KeyError: ``name`` has a gradient function already.
    """
    if name in _gradients:
        raise KeyError(f"gradient {name!r} is registered twice")
    _gradients[name] = gradient


def lookup_gradient(name: str) -> Callable[..., Sequence[object]] | None:
    """Returns the gradient function registered as ``name``, or defined by the operation type ``name``."""
    if name in _gradients:
        return _gradients[name]
    definition = _table.get(name)
    return definition.gradient if definition else None


def load_operations_with(load: Callable[[], object]) -> None:
    """Registers a function that imports all operation types at the first lookup."""
    global _load_operations
    _load_operations = load


def _load() -> None:
    """Imports the operations at the first lookup."""
    global _loaded
    if not _loaded:
        assert _load_operations is not None
        _load_operations()
        _loaded = True


# Python functions that operations call ----------------------------------------------------------------------------

_functions: WeakValueDictionary[str, HostFunction] = WeakValueDictionary()
_function_count = itertools.count()


class HostFunction:
    """A Python function with a token by which an operation's attribute refers to it, within this process.

    The function can be found by its token as long as something refers to this object.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.token: str = f"pyfunc_{next(_function_count)}"
        _functions[self.token] = self


def function_of(token: str) -> Callable[..., Any] | None:
    """Returns the function with this ``token``; None if this process has no such function, or no longer has it."""
    held: HostFunction | None = _functions.get(token)
    return None if held is None else held.function
