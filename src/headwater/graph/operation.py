"""Operations and tensors: the nodes and edges of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never

from headwater.cluster.devices import canonical_device_name
from headwater.dtypes import DType
from headwater.errors import OperatorNotAllowedInGraphError
from headwater.graph import context
from headwater.graph.graph_def import node_def
from headwater.graph.registry import OpDef, Spec
from headwater.shapes import Dims, ShapeLike, TensorShape, as_shape, merge_dims

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.types import FeedDict, SessionLike, TensorLike

_OPERATORS: dict[str, Callable[..., object]] = {}
_load_operators: Callable[[], object] | None = None
_OPERATOR_WORDS = """
    add radd sub rsub mul rmul div rdiv truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul
    and rand or ror xor rxor lt le gt ge neg abs invert getitem
"""
OPERATOR_NAMES = tuple(f"__{word}__" for word in _OPERATOR_WORDS.split())


class Operation:
    """A node of a graph: its type, inputs, attributes, device, and control inputs.

    Created by `Graph.create_op`; only its device and control inputs can change later.
    """

    __slots__ = (
        "__weakref__",
        "_attrs",
        "_control_inputs",
        "_definition",
        "_device",
        "_graph",
        "_id",
        "_inputs",
        "_name",
        "_outputs",
        "_source",
        "_type",
    )

    def __init__(
        self,
        graph: Graph,
        number: int,
        name: str,
        definition: OpDef,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        control_inputs: Sequence[Operation],
        outputs: Sequence[Spec],
    ) -> None:
        self._graph = graph
        self._id = number
        self._name = name
        self._definition = definition
        self._type = definition.name
        self._inputs = tuple(inputs)
        self._attrs = attrs
        self._control_inputs = list(control_inputs)
        self._device = ""
        self._outputs = [Tensor(self, index, spec) for index, spec in enumerate(outputs)]
        self._source = _source_line()

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def name(self) -> str:
        return self._name

    @property
    def type(self) -> str:
        return self._type

    @property
    def definition(self) -> OpDef:
        """The registered operation type."""
        return self._definition

    @property
    def number(self) -> int:
        """The graph's version when the operation was created; it increases from one operation to the next."""
        return self._id

    _id_value = number

    def count_as(self, number: int) -> None:
        """Changes the operation's `number`. A number below the start of a body under construction excludes the
        operation from that body."""
        self._id = number

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self._inputs

    @property
    def read_reference(self) -> Tensor | None:
        """The reference to the variable whose value this operation returns; None for other operations."""
        reads = self._type == "Identity" and self._inputs[0].op.type == "VariableV2"
        return self._inputs[0] if reads else None

    @property
    def outputs(self) -> list[Tensor]:
        return self._outputs

    @property
    def control_inputs(self) -> list[Operation]:
        return list(self._control_inputs)

    @property
    def device(self) -> str:
        """The requested device, full or partial; empty if none was requested."""
        return self._device

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes as Python values: numbers, str, bytes, `DType`, `TensorShape`, arrays, and lists of these."""
        return self._attrs

    @property
    def source(self) -> str:
        """``file:line`` of the program that created the operation; empty if unknown."""
        return self._source

    @property
    def traceback(self) -> list[str]:
        return [self._source] if self._source else []

    @property
    def op_def(self) -> OpDef:
        return self._definition

    @property
    def node_def(self) -> Any:
        """This operation as a ``NodeDef``."""
        return node_def(self)

    def values(self) -> tuple[Tensor, ...]:
        return tuple(self._outputs)

    def get_attr(self, name: str) -> Any:
        """Returns the attribute ``name``; ValueError if the operation has no such attribute."""
        if name in self._attrs:
            return self._attrs[name]
        if name in self._definition.defaults:
            return self._definition.defaults[name]
        source = self._definition.types.get(name)
        if source is not None and self._inputs:
            return self._inputs[source].dtype.base_dtype
        raise ValueError(f"No attr named '{name}' in {self!r}")

    def colocation_groups(self) -> list[bytes]:
        """Returns ``loc:@name`` of the operations colocated with this one; its own name if there are none."""
        return list(self._attrs.get("_class", ())) or [f"loc:@{self._name}".encode()]

    def run(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> None:
        """Runs this operation in ``session``, or in the default one."""
        context.require_session(session, self._graph, "execute operation using `run()`").run(self, feed_dict)

    def _set_device(self, device: str) -> None:
        self._device = canonical_device_name(device)

    def _add_control_input(self, op: Operation) -> None:
        self.add_control_inputs([op])

    def add_control_inputs(self, ops: Sequence[Operation]) -> None:
        """Makes this operation run after ``ops``; ValueError if one is of another graph."""
        for op in ops:
            if op.graph is not self._graph:
                raise ValueError(f"{op!r} and {self!r} are not of the same graph")
            if op not in self._control_inputs:
                self._control_inputs.append(op)
        self._graph.record_change()

    _add_control_inputs = add_control_inputs  # TensorFlow's name

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self._type}>"


class TensorOperators:
    """Python's operators, for tensors and objects that represent a tensor, such as variables."""

    __slots__ = ()

    def _operand(self) -> Tensor:
        """Returns the tensor to which the operators are applied."""
        raise NotImplementedError

    if TYPE_CHECKING:  # set below, by name

        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __floordiv__(self, other: TensorLike) -> Tensor: ...
        def __rfloordiv__(self, other: TensorLike) -> Tensor: ...
        def __mod__(self, other: TensorLike) -> Tensor: ...
        def __rmod__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __rmatmul__(self, other: TensorLike) -> Tensor: ...
        def __and__(self, other: TensorLike) -> Tensor: ...
        def __rand__(self, other: TensorLike) -> Tensor: ...
        def __or__(self, other: TensorLike) -> Tensor: ...
        def __ror__(self, other: TensorLike) -> Tensor: ...
        def __xor__(self, other: TensorLike) -> Tensor: ...
        def __rxor__(self, other: TensorLike) -> Tensor: ...
        def __lt__(self, other: TensorLike) -> Tensor: ...
        def __le__(self, other: TensorLike) -> Tensor: ...
        def __gt__(self, other: TensorLike) -> Tensor: ...
        def __ge__(self, other: TensorLike) -> Tensor: ...
        def __getitem__(self, key: object) -> Tensor: ...


def _operator(name: str) -> Callable[..., object]:
    def call(self: TensorOperators, *args: object) -> object:
        return _function(name)(self._operand(), *args)  # pyright: ignore[reportPrivateUsage]

    call.__name__ = name
    return call


for _name in OPERATOR_NAMES:
    setattr(TensorOperators, _name, _operator(_name))


class Tensor(TensorOperators):
    """One output of an operation: a value that a step computes.

    Attributes:
      op: the operation.
      value_index: the position among the operation's outputs.
      dtype: element type; a reference type for a variable's own output.
      aliases: for results that slim's layers add to collections only: the layers' scopes.
      assign: for slices of variables only: ``v[1:3].assign(value, name=None)`` changes these elements of the variable
        ``v``.
    """

    __slots__ = ("__weakref__", "_dims", "_dtype", "_name", "_op", "_shape", "_value_index", "aliases", "assign")
    aliases: list[str]
    assign: Callable[..., Tensor]

    __array_priority__ = 100  # NumPy arrays on the left delegate operators to this class

    def __init__(self, op: Operation, value_index: int, spec: Spec) -> None:
        self._op = op
        self._value_index = value_index
        self._dtype = spec.dtype
        self._dims: Dims = spec.dims
        self._name = f"{op.name}:{value_index}"
        self._shape: TensorShape | None = None

    @property
    def op(self) -> Operation:
        return self._op

    @property
    def graph(self) -> Graph:
        return self._op.graph

    @property
    def value_index(self) -> int:
        return self._value_index

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def device(self) -> str:
        return self._op.device

    @property
    def dims(self) -> Dims:
        """The static shape in its plain form."""
        return self._dims

    @property
    def spec(self) -> Spec:
        return Spec(self._dtype, self._dims)

    @property
    def shape(self) -> TensorShape:
        if self._shape is None:
            self._shape = TensorShape(self._dims)
        return self._shape

    def get_shape(self) -> TensorShape:
        return self.shape

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self._dims is None else list(self._dims)

    def set_shape(self, shape: ShapeLike) -> None:
        """Refines the static shape; ValueError if ``shape`` contradicts the known shape."""
        self._dims = merge_dims(self._dims, as_shape(shape).as_dims)
        self._shape = None

    def consumers(self) -> list[Operation]:
        return self.graph.consumers(self)

    def eval(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> Any:
        """The value of this tensor in ``session``, or in the default one."""
        return context.require_session(session, self.graph, "evaluate tensor using `eval()`").run(self, feed_dict)

    def __iter__(self) -> Never:
        raise OperatorNotAllowedInGraphError(
            f"iterating over a `tf.Tensor` ({self._name}) is not allowed: it has no values yet. Use tf.unstack."
        )

    def __len__(self) -> int:
        raise TypeError(f"len is not well defined for a symbolic tensor ({self._name}). Use tf.shape.")

    def __bool__(self) -> bool:
        raise OperatorNotAllowedInGraphError(
            f"Using a `tf.Tensor` ({self._name}) as a Python `bool` is not allowed. "
            "Use `if t is not None:` to test whether there is a tensor, and tf.cond to decide by its value."
        )

    __nonzero__ = __bool__

    def __array__(self, *_: object, **__: object) -> Never:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame.f_back is not None and not frame.f_globals.get("__name__", "").startswith("keras."):
            frame = frame.f_back
        if frame.f_back is not None:
            raise NotImplementedError(
                f"A function of Keras that needs values got the tensor {self._name} of a graph, which has none yet: "
                "run it in a session first, or use a function of tf"
            )
        raise NotImplementedError(f"Cannot convert a symbolic tensor ({self._name}) to a NumPy array; run it first.")

    # Declared for type checkers only. The method of `object` is used, because it is in C: each step looks up its feeds.
    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self._name}' shape={self.shape} dtype={self._dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self._dims is None else f", shape={self.shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self._name}"{shape}, dtype={self._dtype.name}{device})'

    def _operand(self) -> Tensor:
        return self


def set_operator(name: str, function: Callable[..., object]) -> None:
    """Sets the function of the Python operator ``name`` (e.g. ``__add__``) on tensors."""
    assert name in OPERATOR_NAMES, name
    _OPERATORS[name] = function


def load_operators_with(load: Callable[[], object]) -> None:
    """Registers a function that calls `set_operator` for every operator. The function is called when an operator is
    first used."""
    global _load_operators
    _load_operators = load


def set_equality(equal: Callable[..., object], unequal: Callable[..., object]) -> None:
    """Sets the behaviour of ``==`` and ``!=`` of tensors, which by default compare identity.

    The hash remains the object's: sets and dictionaries distinguish tensors by identity.
    """
    for name, function in (("__eq__", equal), ("__ne__", unequal)):
        setattr(Tensor, name, function)


def operator(name: str) -> Callable[..., Any]:
    """Returns the function of an operator on tensors, for other types that partly behave as tensors."""
    return lambda *args: _function(name)(*args)


def _function(name: str) -> Callable[..., object]:
    if name not in _OPERATORS:
        assert _load_operators is not None, "no package has registered the operators of tensors"
        _load_operators()
    return _OPERATORS[name]


def _source_line() -> str:
    """Returns the source line of the program: the innermost frame outside of this package."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("headwater."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
