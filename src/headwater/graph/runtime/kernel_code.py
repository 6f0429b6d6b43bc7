"""Generates straight-line Python for operations on kernels: a statement per operation, values in local variables.

The generated code has neither a loop over operations nor a dictionary of values, so a step costs only one call for each
operation. It deletes each value after its last use, so that an update finds no other reference to its array and changes
the array in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from headwater.errors import InvalidArgumentError, OpError, UnimplementedError
from headwater.graph.kernels.registry import NoKernel, takes_outputs
from headwater.graph.ops.faults import can_fail, error_of, fault_of
from headwater.graph.passes.plan import Node
from headwater.graph.registry import MAX_KNOWN_ELEMENTS, FunctionAttr
from headwater.graph.runtime.kernel_lookup import (
    GRADIENT_MAKERS,
    KERNEL_MAKERS,
    REPEATS,
    Wanted,
    WithoutKernel,
    draw_of,
    forward_attrs,
    function_of,
    gradient_function_of,
    own_attrs,
)
from headwater.graph.tensor_names import split_name

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

FILE: Final = "<operations on kernels>"
ALIASES: Final = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "PlaceholderWithDefault"})
_GROWING: Final = frozenset({"BroadcastTo", "Fill", "LinSpace", "OneHot", "Range", "Tile"})
"""Operations that make large arrays from small ones; they are not evaluated in advance, to save memory."""
_CHECKING: Final = frozenset(
    {"SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad", "StridedSlice"}
)
"""Operations with kernels that raise an error themselves for an index out of range."""
_ERRORS: Final = (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError)


@dataclass(slots=True)
class _Statement:
    """One line of code.

    Attributes:
      text: the code.
      node: the operation that it runs; None for other code.
      defines: local variables that it assigns.
      uses: local variables that it reads.
      locked: whether it runs under the lock of the variables.
      weighing: code to insert after the line if costs are measured; it reports the operation's cost.
    """

    text: str
    node: Node | None
    defines: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    locked: bool = False
    weighing: str = ""


@dataclass(frozen=True, slots=True)
class _Forward:
    """An operation with outputs that a gradient may use.

    Attributes:
      attrs: its attributes.
      result: the local variable with its outputs.
      wanted: for a loop or branch with a tape, the inputs whose gradients the tape can give.
    """

    attrs: Mapping[str, Any]
    result: str
    wanted: Wanted | None = None

    def gives(self, wanted: Sequence[bool]) -> bool:
        """Returns whether the outputs suffice for the gradients of these inputs."""
        return all(given or not want for given, want in zip(self.wanted or (), wanted, strict=False))


@dataclass(slots=True)
class Code:
    """A function under construction.

    Attributes:
      names: for each tensor, the local variable or the global name of the constant with its value.
      constants: values of tensors that do not depend on the function's inputs.
      statements: the lines.
      space: the function's global names.
      numbers: counter for unique names.
      holds_lock: whether all statements added from now on run under the lock of the variables.
    """

    names: dict[str, str] = field(default_factory=dict[str, str])
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])
    statements: list[_Statement] = field(default_factory=list[_Statement])
    space: dict[str, Any] = field(default_factory=dict[str, Any])
    numbers: Any = field(default_factory=count)
    holds_lock: bool = False
    _forwards: dict[tuple[str, tuple[str, ...]], list[_Forward]] = field(default_factory=dict[Any, Any])
    _wanted: dict[tuple[str, ...], Wanted] = field(default_factory=dict[Any, Any])
    _keeps_tapes: bool = False

    def bind(self, value: object, prefix: str) -> str:
        """Binds an object to a new global name; the prefix must differ from the prefix of local variables."""
        name = f"{prefix}{next(self.numbers)}"
        self.space[name] = value
        return name

    def local(self) -> str:
        """Returns a new name for a local variable."""
        return f"v{next(self.numbers)}"

    @staticmethod
    def is_local(name: str) -> bool:
        """Returns whether an expression is a local variable."""
        return name[0] == "v" and name[1:].isdecimal()

    def _locals(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.is_local(name)]

    def add(
        self,
        text: str,
        node: Node | None = None,
        *,
        defines: Iterable[str] = (),
        uses: Iterable[str] = (),
        locked: bool = False,
        weighing: str = "",
    ) -> None:
        """Appends a statement."""
        locked = locked or self.holds_lock
        self.statements.append(_Statement(text, node, tuple(defines), tuple(uses), locked, weighing))

    def keep_tapes_for(self, nodes: Iterable[Node], used: Mapping[str, Sequence[int]]) -> None:
        """Makes the loops and branches whose gradients are among ``nodes`` keep a tape of the values that the gradients
        need.

        Args:
          nodes: the operations.
          used: for each operation, the indices of its outputs in use.
        """
        for node in nodes:
            if node.type == "Vjp" and (name := node.attrs["f"].name) in KERNEL_MAKERS:
                wanted = _in_use(node, used.get(node.name, ()))
                self._want(node.inputs[: len(wanted)], wanted)
                if name in REPEATS:
                    self._want(node.inputs[: len(wanted) - 1], wanted[:-1])

    def _want(self, inputs: tuple[str, ...], wanted: Wanted) -> None:
        before = self._wanted.get(inputs, wanted)
        self._wanted[inputs] = tuple([one or other for one, other in zip(before, wanted, strict=True)])

    def keep_tapes(self) -> None:
        """Makes all loops and branches keep a tape for the gradients of all inputs."""
        self._keeps_tapes = True

    def constant(self, tensor: str, value: np.ndarray[Any, Any]) -> None:
        """Registers ``tensor`` as a constant."""
        # Bind a read-only view: a kernel may return its input as the result, and the receiver of a result may change
        # the result in place.
        value = value.view()
        value.flags.writeable = False
        self.constants[tensor] = value
        self.names[tensor] = self.bind(value, "c")

    def pure(
        self,
        node: Node,
        args: Sequence[str],
        used: Sequence[int],
        *,
        locked: bool = False,
        checked: bool = True,
        more: str = "",
    ) -> None:
        """Appends a pure operation.

        Args:
          node: the operation.
          args: for each input, a local variable, a global name, or an expression.
          used: indices of the outputs in use.
          locked: whether it reads a variable.
          checked: whether to add a check for failures.
          more: code of a further keyword argument of the kernel, besides the attributes.

        Raises:
          WithoutKernel: the operation has no kernel.
        """
        if node.type == "Const":
            self.constant(f"{node.name}:0", np.asarray(node.attrs["value"]))
            return
        if node.type in ALIASES:
            self.names.update((f"{node.name}:{index}", args[index]) for index in used)
            return
        if not used:
            return
        if node.type == "Vjp":
            self._gradient(node, args, used)
            return
        attrs = own_attrs(node)
        wanted = None
        if node.type in KERNEL_MAKERS:
            wanted = (True,) * len(args) if self._keeps_tapes else self._wanted.get(node.inputs)
        run = function_of(node.type, attrs, wanted)
        if not locked and self._fold(node, run, attrs, used):
            return
        uses = self._locals(args)
        if checked and node.type not in _CHECKING and can_fail(node.type, node.attrs):
            self.check(node, args, uses, locked=locked)
        result = self.local()
        self.call(node, result, run, args, attrs, locked=locked, more=more)
        # Remember the result: a later gradient of an operation with the same inputs uses it instead of computing it
        # again.
        self._forwards.setdefault((node.type, tuple(args)), []).append(_Forward(attrs, result, wanted))
        self.unpack_outputs(node, result, used)

    def random(self, node: Node, key: str, args: Sequence[str], used: Sequence[int], keyed: Sequence[str] = ()) -> None:
        """Appends an operation that draws random numbers.

        Args:
          node: the operation.
          key: expression of its key.
          args: for each input, a local variable, a global name, or an expression.
          used: indices of the outputs in use.
          keyed: local variables in ``key``.

        Raises:
          WithoutKernel: the operation has no kernel.
        """
        if not used:
            return
        if can_fail(node.type, node.attrs):
            self.check(node, args, self._locals(args))
        local, result, attrs = self.local(), self.local(), own_attrs(node)
        self.add(f"{local} = {key}", node, defines=[local], uses=keyed)
        self.call(node, result, draw_of(node.type, attrs), args, attrs, key=local)
        self.unpack_outputs(node, result, used)

    def _fold(self, node: Node, run: Any, attrs: Mapping[str, Any], used: Sequence[int]) -> bool:
        """Evaluates an operation on small constants now, so that its outputs become constants. Returns whether the
        operation was evaluated."""
        inputs = [self.constants.get(name) for name in node.inputs]
        if (
            node.type in _GROWING
            or not inputs
            or any(value is None or value.size > MAX_KNOWN_ELEMENTS for value in inputs)
        ):
            return False
        with np.errstate(all="ignore"):
            # Leave an operation that fails to the run, which raises the error: the program may never run the operation.
            if fault_of(node.type, inputs, node.attrs):
                return False
            try:
                found = as_tuple(run(*inputs, **attrs))
            except (NoKernel, OpError, *_ERRORS):
                return False  # raised in the run instead
        # Do not keep large results, because constants stay in memory as long as the plan.
        if any(np.size(found[index]) > MAX_KNOWN_ELEMENTS for index in used):
            return False
        for index in used:
            self.constant(f"{node.name}:{index}", np.array(found[index]))
        return True

    def check(self, node: Node, args: Sequence[str], uses: Sequence[str], *, locked: bool = False) -> None:
        """Appends a check that raises if the operation fails."""
        self.space.update(fault_of=fault_of, error_of=error_of)
        attrs = self.bind(node.attrs, "a")
        found = f"fault_of({node.type!r}, ({join_names(args)}), {attrs})"
        self.add(f"if {found}: raise error_of({node.type!r}, {node.name!r}, {attrs})", node, uses=uses, locked=locked)

    def call(
        self,
        node: Node,
        result: str,
        run: object,
        args: Sequence[str],
        attrs: Mapping[str, Any],
        *,
        key: str | None = None,
        locked: bool = False,
        more: str = "",
    ) -> None:
        """Appends ``result = run([key, ]*args, **attrs[, more])``, with its cost."""
        function = self.bind(run, "k")
        given = [*args, *(f"{name}={self.literal(value)}" for name, value in attrs.items()), *([more] if more else [])]
        self.add(
            f"{result} = {function}({', '.join(given if key is None else [key, *given])})",
            node,
            defines=[result],
            uses=self._locals([*args, *([] if key is None else [key])]),
            locked=locked,
            weighing=f"weigh({node.type!r}, ({join_names(args)}), {result}, {self.bind(attrs, 'a')})",
        )

    def unpack_outputs(self, node: Node, result: str, used: Sequence[int]) -> None:
        """Assigns the outputs in the local variable ``result`` to local variables of their own."""
        if [*used] == [0]:
            single = self.local()
            self.add(
                f"{single} = {result}[0] if isinstance({result}, tuple) else {result}", defines=[single], uses=[result]
            )
            self.names[f"{node.name}:0"] = single
            return
        for index in used:
            name = self.names[f"{node.name}:{index}"] = self.local()
            self.add(f"{name} = {result}[{index}]", defines=[name], uses=[result])

    def literal(self, value: object) -> str:
        """Returns an expression for an attribute."""
        return repr(value) if isinstance(value, bool | int | str) or value is None else self.bind(value, "a")

    def _gradient(self, node: Node, args: Sequence[str], used: Sequence[int]) -> None:
        forward: FunctionAttr = node.attrs["f"]
        wanted, given = _in_use(node, used), node.attrs["given"]
        inputs, rest = list(args[: len(wanted)]), iter(args[len(wanted) :])
        grads = [next(rest) if has else "None" for has in given]
        attrs = forward_attrs(forward)
        run = gradient_function_of(forward.name, attrs)
        all_args = [f"({join_names(inputs)})", f"({join_names(grads)})", self.bind(wanted, "a"), self.bind(attrs, "a")]
        uses = self._locals([*args])
        if forward.name in ALIASES:
            raise WithoutKernel("Vjp")
        checked = can_fail(forward.name, attrs) and self.result_of(forward.name, inputs, attrs) is not None
        if can_fail("Vjp", node.attrs) and not checked:
            self.check(node, args, uses)
        if takes_outputs(forward.name) or forward.name in GRADIENT_MAKERS:
            outputs = self._outputs(node, forward.name, inputs, attrs, wanted)
            all_args.append(f"{outputs} if isinstance({outputs}, tuple) else ({outputs},)")
            uses.append(outputs)
        result = self.local()
        function = self.bind(run, "g")
        self.add(
            f"{result} = {function}({', '.join(all_args)})",
            node,
            defines=[result],
            uses=uses,
            weighing=f"weigh({forward.name!r}, ({join_names(args)}), {result}, {all_args[3]})",
        )
        positions = [index for index, want in enumerate(node.attrs["wanted"]) if want]
        for index in used:
            name = self.names[f"{node.name}:{index}"] = self.local()
            self.add(f"{name} = {result}[{positions[index]}]", defines=[name], uses=[result])

    def _outputs(
        self, node: Node, op_type: str, inputs: Sequence[str], attrs: Mapping[str, Any], wanted: Wanted
    ) -> str:
        """Returns a local variable with the outputs of a forward operation, which are computed if they are not
        available."""
        found = self.result_of(op_type, inputs, attrs, wanted)
        found = found or self._repeated_result(node, op_type, inputs, attrs, wanted)
        if found is None:
            found = self.local()
            self.call(node, found, function_of(op_type, attrs, wanted), inputs, attrs)
        return found

    def _repeated_result(
        self, node: Node, op_type: str, inputs: Sequence[str], attrs: Mapping[str, Any], wanted: Wanted
    ) -> str | None:
        """Returns a local variable with an operation's outputs, converted from the outputs of the operation that it
        repeats (see `Repeat`); None if it repeats no operation."""
        repeat = REPEATS.get(op_type)
        if repeat is None:
            return None
        for found in self._forwards.get((repeat.op_type, tuple(inputs[:-1])), ()):
            if found.gives(wanted[:-1]) and all(_equal(found.attrs[key], attrs[key]) for key in repeat.attrs):
                result, convert = self.local(), self.bind(repeat.convert, "k")
                self.add(f"{result} = {convert}({found.result})", node, defines=[result], uses=[found.result])
                return result
        return None

    def result_of(
        self, op_type: str, args: Sequence[str], attrs: Mapping[str, Any], wanted: Sequence[bool] = ()
    ) -> str | None:
        """Returns the local variable with an operation's result that suffices for the ``wanted`` gradients, or None."""
        for found in self._forwards.get((op_type, tuple(args)), ()):
            if found.gives(wanted) and same_attrs(found.attrs, attrs):
                return found.result
        return None

    def function(self, parameters: str, results: str, used: Iterable[str], *, weighed: bool = False) -> Function:
        """Compiles all statements to a function.

        Args:
          parameters: the parameter list.
          results: the expression that it returns.
          used: local variables in that expression.
          weighed: whether it calls its parameter ``weigh`` for each operation.
        """
        last: dict[str, int] = {}
        for index, statement in enumerate(self.statements):
            last.update(dict.fromkeys((*statement.defines, *statement.uses), index))
        kept = set(used)
        dead: dict[int, list[str]] = {}
        for name, index in last.items():
            if self.is_local(name) and name not in kept:
                dead.setdefault(index, []).append(name)
        lines: list[str] = [f"def run({parameters}):"]
        nodes: list[Node | None] = [None]

        def put(text: str, node: Node | None) -> None:
            lines.append(text)
            nodes.append(node)

        locked = False
        for index, statement in enumerate(self.statements):
            if statement.locked and not locked:
                # All consecutive locked statements share one block: between two blocks, another step could change the
                # variables.
                put("    with lock:", None)
            locked = statement.locked
            indent = "        " if locked else "    "
            put(indent + statement.text, statement.node)
            if weighed and statement.weighing:
                put(indent + statement.weighing, None)
            if index in dead:
                # Delete values after their last use: a remaining reference would make an update copy the array instead
                # of changing it in place.
                put(f"{indent}del {', '.join(dead[index])}", None)
        put(f"    return {results}", None)
        made: dict[str, Callable[..., Any]] = {}
        exec(compile("\n".join(lines), FILE, "exec"), self.space, made)
        return Function(made["run"], nodes, "\n".join(lines))


@dataclass(frozen=True, slots=True)
class Function:
    """A generated function, and the operation of each of its lines."""

    run: Callable[..., Any]
    nodes: Sequence[Node | None]
    source: str

    def failed(self, error: BaseException) -> Node | None:
        """Returns the operation in which ``error`` was raised; None if it was raised elsewhere."""
        at: TracebackType | None = error.__traceback__
        while at is not None:
            if at.tb_frame.f_code is self.run.__code__:
                return self.nodes[at.tb_lineno - 1]
            at = at.tb_next
        return None

    def explain_error(self, error: Exception) -> Exception:
        """Converts ``error`` to the error that an executable would raise, with the name of its operation."""
        node = self.failed(error)
        if node is None or isinstance(error, OpError):
            return error
        said = f"{str(error).partition(chr(10))[0]} [in {node.type} operation {node.name!r}]"
        if isinstance(error, NotImplementedError):
            return UnimplementedError(said)
        return InvalidArgumentError(said) if isinstance(error, _ERRORS) else error


def outputs_used(nodes: Iterable[Node], outputs: Iterable[str]) -> dict[str, list[int]]:
    """Returns, for each operation, the sorted indices of its outputs in use."""
    found: dict[str, set[int]] = {}
    for name in (*outputs, *(name for node in nodes for name in node.inputs)):
        op, index = split_name(name)
        found.setdefault(op, set()).add(index)
    return {op: sorted(indices) for op, indices in found.items()}


def _in_use(node: Node, used: Collection[int]) -> Wanted:
    """Returns, for each input of a ``Vjp``'s forward operation, whether its gradient is in use. Gradients of fed inputs
    often are not."""
    number = count()
    return tuple([want and next(number) in used for want in node.attrs["wanted"]])


def as_tuple(result: Any) -> tuple[AnyArray, ...]:
    """Converts a kernel's result to a tuple of its outputs."""
    return cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)


def same_attrs(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Returns whether two sets of attributes are equal."""
    return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)


def _equal(a: object, b: object) -> bool:
    return type(a) is type(b) and bool(np.all(a == b))


def join_names(names: Sequence[str]) -> str:
    """Joins ``names`` as the elements of a tuple."""
    return "".join(f"{name}, " for name in names)
