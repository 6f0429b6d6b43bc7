"""What an operation type is: the table that the graph, the passes and the runtime read, and that `headwater.graph.ops`
fills.

An operation type is registered with its *lowering*: a function of arrays and attributes. Everything else has a
default: static shapes come from abstract evaluation of the lowering, gradients from its vector-Jacobian product.
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
"""Attribute of slices whose output shape does not depend on where they begin, which then need not be known early."""

CHECKED = "_checked"
"""Attribute of operations whose numbers a program gave: one that is out of range is an error, as it is in TensorFlow.
Of numbers that the framework made, those outside stand for rows to leave out."""
CLASSES = "_classes"
"""Attribute of losses: how many classes there are, where the graph says it."""


class Kind(enum.Enum):
    """How an operation runs."""

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
    """What is known of a tensor before a step runs: element type and static shape."""

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
      name: TensorFlow's name for it.
      dtype: the element type it must have; None where it may vary.
      type_attr: the attribute that says its element type; arguments with the same one have the same type.
      default: the element type for Python values that could be of several.
      allowed: name of the class of element types it may have (``numeric``, ``floating`` …); empty for any.
      many: whether it is a list of inputs of one type, as many as the attribute ``N`` says.
      mixed: whether it is a list of inputs of any types; ``type_attr`` lists these.
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
    """What a shape function may look at.

    Attributes:
      op_type: the operation's type, for errors.
      attrs: the operation's attributes.
      inputs: what is known of each input.
      constant: ``constant(i)`` is the value of input ``i`` if the graph already determines it, else None.
      partial: ``partial(i)`` is the value of the integer vector input ``i`` as far as the graph determines it: None
        for an unknown length, with None for each unknown element.
    """

    op_type: str
    attrs: Attrs
    inputs: Sequence[Spec]
    constant: Callable[[int], np.ndarray[Any, Any] | None]
    partial: Callable[[int], Dims]


SAME_NUMBERS: Final = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"})
"""Operations that give the numbers that they get, perhaps in another shape or of another type."""

Infer = Callable[[Inference], Sequence[Spec]]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpDef:
    """One operation type.

    Attributes:
      name: as in a GraphDef, e.g. ``MatMul``.
      kind: how it runs.
      lower: the lowering. PURE: ``lower(*inputs, **attrs)`` gives one array or a tuple of them. RANDOM: the same with
        a ``jax.random`` key first. STATEFUL: the inputs named in ``refs`` are variables' values; gives the tuple of
        new values of ``updates``. HOST: ``lower(context, *inputs, **attrs)`` with NumPy arrays.
      infer: gives the `Spec` of every output.
      defaults: attributes that may be left out, with their values. An attribute the lowering does not take is kept
        in the graph and not passed on.
      attrs: names of the attributes that the lowering takes.
      static: positions of inputs whose values must be known when the operation is compiled (a new value compiles
        anew); negative ones count from the end.
      static_of: in place of ``static`` where it depends on the attributes: ``static_of(attrs, input_count)``.
      gradient: ``gradient(op, *output_gradients)`` gives one tensor, IndexedSlices or None per input. None in place of
        the function, or NotImplemented from it, means the vector-Jacobian product of the lowering.
      differentiable: False when no gradient ever flows through it.
      constants: positions of inputs that the vector-Jacobian product gives no gradient.
      refs: positions of inputs that are variables.
      reads: those of ``refs`` that must have a value before.
      updates: those of ``refs`` that get a new value.
      blocking: a HOST operation that may wait for another step.
      announces: a HOST operation that tells other steps of the updates before it. It may run as soon as nothing can
        stop these: a reader of the variables waits for them.
      keeps: a HOST operation that uses what its task keeps between steps besides variables, and of which another task
        may have a copy: see `headwater.graph.resources.kept`.
      stable: of one that keeps: what it gives to a step counts for the rest of it, though it changes nothing.
      repeat: of a blocking HOST operation: ``repeat(context, run, times, *inputs, **attrs)`` has ``run`` called so
        many times, each time when ``lower`` would not have to wait, by the thread that makes it so; None where that
        cannot be had.
      admit: of a STATEFUL operation: ``admit(resources, step, **attrs)`` is called under the lock of the variables just
        before they change, together with all that the executable changes. It may refuse that, by raising; what it gives
        is called once they have changed, under the same lock.
      string_lower: NumPy twin of a PURE lowering, for tensors of strings, which run on the host.
      traced: twin of a HOST lowering, as a PURE one's, for branches and loops that are compiled.
      ref_attr: name of the attribute that lists ``refs`` where these differ from operation to operation; else empty.
      types: type attributes that a GraphDef of it carries: attribute name to the input whose type it is.
      arguments: its inputs by name, for code that builds it from Python values; empty where none does.
    """

    name: str
    kind: Kind
    lower: Callable[..., Any]
    infer: Infer
    defaults: Attrs = field(default_factory=dict[str, Any])
    attrs: frozenset[str] = frozenset()
    static: tuple[int, ...] = ()
    static_of: Callable[[Attrs, int], frozenset[int]] | None = None
    gradient: Callable[..., Sequence[Any]] | None = None
    differentiable: bool = True
    constants: tuple[int, ...] = ()
    refs: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    blocking: bool = False
    announces: bool = False
    keeps: bool = False
    stable: bool = False
    repeat: Callable[..., None] | None = None
    admit: Callable[..., Callable[[], object]] | None = None
    string_lower: Callable[..., Any] | None = None
    traced: Callable[..., Any] | None = None
    ref_attr: str = ""
    types: Mapping[str, int] = field(default_factory=lambda: {"T": 0})
    arguments: tuple[Argument, ...] = ()

    def ref_positions(self, attrs: Attrs) -> Sequence[int]:
        """``refs`` for an operation with these attributes."""
        return attrs.get(self.ref_attr, ()) if self.ref_attr else self.refs

    def static_positions(self, attrs: Attrs, count: int) -> frozenset[int]:
        """``static`` for an operation with these attributes and ``count`` inputs."""
        if self.static_of is not None:
            return self.static_of(attrs, count)
        return frozenset(i % count for i in self.static) if count else frozenset()


def as_outputs(result: Any) -> tuple[Any, ...]:
    """What a lowering gave, as the tuple of its outputs: it may give one array by itself, and None for no output."""
    if result is None:
        return ()
    return tuple(cast(Sequence[Any], result)) if isinstance(result, tuple | list) else (result,)


_table: dict[str, OpDef] = {}
_gradients: dict[str, Callable[..., Sequence[Any]]] = {}
_loaded = False
_load_operations: Callable[[], object] | None = None


def register(definition: OpDef) -> OpDef:
    """Adds an operation type; ValueError when the name is taken."""
    if definition.name in _table:
        raise ValueError(f"operation type {definition.name!r} is registered twice")
    _table[definition.name] = definition
    return definition


def lookup(name: str) -> OpDef:
    """The operation type ``name``; KeyError when there is none."""
    _load()
    return _table[name]


def names() -> list[str]:
    """All operation types, sorted."""
    _load()
    return sorted(_table)


def register_gradient(name: str, gradient: Callable[..., Sequence[Any]]) -> None:
    """Sets the gradient function called ``name``: an operation type, or a name used by ``gradient_override_map``.

    Raises:
      KeyError: ``name`` has one already.
    """
    if name in _gradients:
        raise KeyError(f"gradient {name!r} is registered twice")
    _gradients[name] = gradient


def lookup_gradient(name: str) -> Callable[..., Sequence[Any]] | None:
    """The gradient function registered as ``name``, or the one of the operation type ``name``."""
    if name in _gradients:
        return _gradients[name]
    definition = _table.get(name)
    return definition.gradient if definition else None


def load_operations_with(load: Callable[[], object]) -> None:
    """Registers a function that imports all operation types, for the first time that one is looked up."""
    global _load_operations
    _load_operations = load


def _load() -> None:
    """Imports the operations when a graph first needs one."""
    global _loaded
    if not _loaded:
        assert _load_operations is not None
        _load_operations()
        _loaded = True


# Python functions that operations call ----------------------------------------------------------------------------

_functions: WeakValueDictionary[str, HostFunction] = WeakValueDictionary()
_function_count = itertools.count()


class HostFunction:
    """A Python function under the name by which an operation's attribute knows it, in this process.

    A reference to this object keeps the function alive.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.token: str = f"pyfunc_{next(_function_count)}"
        _functions[self.token] = self


def function_of(token: str) -> Callable[..., Any] | None:
    """The function that is known as ``token``; None when there is none such in this process, or no more."""
    held: HostFunction | None = _functions.get(token)
    return None if held is None else held.function
