"""Runs a `Compute` as a generated Python function that calls NumPy kernels and changes variables in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.generator import fold_in, seed_key, seeds_of
from headwater.graph.kernels.random import DRAWS, scaled_draw
from headwater.graph.kernels.registry import NoKernel, element_rule_of, update_kernel_of
from headwater.graph.ops.faults import can_fail
from headwater.graph.passes.plan import Compute, Node
from headwater.graph.registry import Kind
from headwater.graph.resources.containers import Cell
from headwater.graph.runtime.host_values import changed, check_assigned, current, replace, writable
from headwater.graph.runtime.joined_updates import JoinedUpdate, joinable, shared_inputs
from headwater.graph.runtime.kernel_code import Code, Function, as_tuple, join_names, outputs_used
from headwater.graph.runtime.kernel_lookup import WithoutKernel, own_attrs
from headwater.graph.runtime.kernel_loops import turns_of
from headwater.graph.runtime.mode_choice import Work, work_of
from headwater.graph.tensor_names import operation_of

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

Begin = Callable[[], object]
End = Callable[[tuple[Any, ...]], object]

#: Operations whose results are copies: they do not share memory with the array of the variable.
_COPYING: Final = frozenset({"Gather", "GatherV2", "GatherNd", "Rank", "Shape", "Size"})


class KernelPart:
    """Operations of a `Compute` as one function.

    Operations that change no variable run first, without the lock of the variables. Lookups of rows are an exception:
    each lookup acquires the lock for its duration. Without the lock, the lookup would need a reference to the table,
    which would prevent later updates in place. All changes of variables follow, under the lock.

    Args:
      compute: the operations.
      cells: the variables of ``compute``, by operation name.
      lock: the lock of the variables.
      seed: seed of operations without seeds.
      prechecked: names of operations with indices that are checked before each run.
      fetched: names of outputs that are returned to the program. The program may change these outputs, so they must not
        share memory with variables, constants or inputs.

    Raises:
      WithoutKernel: an operation has no kernel.

    Attributes:
      may_fail: whether a change may fail after other changes were made.
    """

    def __init__(
        self,
        compute: Compute,
        cells: Mapping[str, Cell],
        lock: object,
        seed: int,
        prechecked: Collection[str] = (),
        fetched: Collection[str] = (),
    ) -> None:
        self._compute = compute
        self._seed = seed
        self._prechecked = prechecked
        self._fetched = fetched
        self._code = Code()
        self._code.space.update(lock=lock, current=current, writable=writable, changed=changed, replace=replace)
        self._code.space.update(
            on_host=_on_host, for_program=_for_program, check_assigned=check_assigned, fold_in=fold_in
        )
        self._used = outputs_used(compute.nodes, compute.outputs)
        self._cells = {name: self._code.bind(cell, "cell") for name, cell in cells.items()}
        self._snapshot: dict[str, str] = {}
        self.may_fail: bool = False
        late = _after_changes(compute.nodes)
        uses = Counter([name for node in compute.nodes for name in node.inputs] + list(compute.outputs))
        self._used_once = {name for name, count in uses.items() if count == 1}
        self._products = _products_of_draws(compute.nodes, self._used_once)
        self._scaled = {
            node.name for node in compute.nodes if node.type in ("Add", "AddV2") and node.inputs[0] in self._products
        }
        self._written = [cells[node.refs[at]] for node in compute.nodes for at in node.definition.updates]
        self._result = self._build(late)
        # The function has one form that adds up its cost, and one that does not. Most parts use only one of them, so
        # generate each form when it is first needed.
        self._forms: dict[bool, Function] = {}

    def __call__(
        self, inputs: Sequence[Any], counter: int, begin: Begin, end: End, weigh: Callable[[Work], None] | None = None
    ) -> tuple[AnyArray, ...]:
        """Runs the operations and returns the outputs.

        Args:
          inputs: arrays for the compute's inputs, in order.
          counter: the step's number, from which random numbers are derived.
          begin: called under the lock just before the first change of a variable.
          end: called under the lock with the outputs after the last change.
          weigh: called with the cost of the run.

        Raises:
          NoKernel: a kernel does not support these inputs; nothing is changed.
          OpError: an operation failed.
        """
        weighed = weigh is not None
        function = self._forms.get(weighed) or self._generate(weighed)
        try:
            # Suppress NumPy's floating-point warnings and errors, because executables have none.
            with np.errstate(all="ignore"):
                given = [*map(_on_host, inputs)]
                if weigh is None:
                    return function.run(given, counter, begin, end)
                cost = _CostSum()
                outputs = function.run(given, counter, begin, end, cost.add)
                weigh(cost.work)
                return outputs
        except Exception as error:
            # An update may have failed after `writable` had made its arrays writable: make them read-only again.
            for cell in self._written:
                if type(cell.value) is np.ndarray:
                    cell.value.setflags(write=False)
            explained = function.explain_error(error)
            if explained is error:
                raise
            raise explained from error

    @property
    def source(self) -> str:
        """The function's source code, for debugging."""
        return self._generate(False).source

    def _generate(self, weighed: bool) -> Function:
        parameters = "inputs, counter, begin, end" + ", weigh" * weighed
        function = self._forms[weighed] = self._code.function(parameters, *self._result, weighed=weighed)
        return function

    def _build(self, late: Collection[str]) -> tuple[str, Sequence[str]]:
        """Adds all operations; returns the expression of the outputs, and the local variables in it."""
        compute, code = self._compute, self._code
        inputs = [code.local() for _ in compute.inputs]
        code.names.update(zip(compute.inputs, inputs, strict=True))
        code.keep_tapes_for(compute.nodes, self._used)
        for node in compute.nodes:
            if node.name not in late:
                self._add(node, False)
        # Only after all operations were added is it known which variables are read. Insert these reads before all
        # operations, because a read without a defined order returns the value from before any update
        # (docs/decisions/order-within-a-step.md).
        early = list(code.statements)
        code.statements.clear()
        if inputs:
            code.add(f"{join_names(inputs)} = inputs", defines=inputs)
        for name, local in self._snapshot.items():
            code.add(f"{local} = current({self._cells[name]})", defines=[local], locked=True)
        code.statements.extend(early)
        if late:
            code.holds_lock = True
            code.add("begin()")
            self._add_late([node for node in compute.nodes if node.name in late])
        results = [code.names[name] for name in compute.outputs]
        given = ", inputs" if inputs else ""
        parts = [
            f"for_program({result}{given})" if name in self._fetched else f"on_host({result})"
            for name, result in zip(compute.outputs, results, strict=True)
        ]
        if late:
            code.add(f"out = ({join_names(parts)})", uses=results)
            code.add("end(out)")
            return "out", ()
        return f"({join_names(parts)})", results

    def _add(self, node: Node, late: bool) -> None:
        """Adds an operation.

        Args:
          late: whether it changes a variable or follows a change, so that it runs under the lock.
        """
        code = self._code
        if node.type == "VariableV2":
            code.names[f"{node.name}:0"] = self._value(node.name, late)
        elif node.definition.updates:
            self._update(node)
        elif node.definition.kind is Kind.RANDOM:
            self._random(node)
        elif node.definition.kind is not Kind.PURE:
            raise WithoutKernel(node.type)
        elif node.name in self._scaled:
            self._add_scaled_draw(node)
        elif f"{node.name}:0" not in self._products:
            copying = bool(node.refs) and node.type in _COPYING
            args = [
                code.names[name]
                if index not in node.refs
                else self._current(node.refs[index])
                if copying
                else self._value(node.refs[index], late)
                for index, name in enumerate(node.inputs)
            ]
            checked = node.name not in self._prechecked
            code.pure(node, args, self._used.get(node.name, []), locked=late or copying, checked=checked)

    def _add_late(self, nodes: Sequence[Node]) -> None:
        """Adds the operations that run under the lock; similar updates in succession become one call."""
        at = 0
        while at < len(nodes):
            count = joinable(nodes[at:])
            if count > 1:
                self._update_jointly(nodes[at : at + count])
            else:
                self._add(nodes[at], True)
            at += count

    def _random(self, node: Node) -> None:
        first, second = seeds_of(node.attrs, node.name, self._seed)
        key = self._code.bind(fold_in(seed_key(first), second), "a")
        args = [self._code.names[name] for name in node.inputs]
        self._code.random(node, f"fold_in({key}, counter)", args, self._used.get(node.name, []))

    def _add_scaled_draw(self, node: Node) -> None:
        """Adds a sum such as ``draws * scale + offset``, which is computed in one pass over the draws."""
        code, product = self._code, self._products[node.inputs[0]]
        args = [code.names[name] for name in (*product.inputs, node.inputs[1])]
        result = code.names[f"{node.name}:0"] = code.local()
        code.call(node, result, scaled_draw, args, {"spare": product.inputs[0] in self._used_once})

    def _current(self, variable: str) -> str:
        return f"current({self._cells[variable]})"

    def _value(self, variable: str, late: bool) -> str:
        """Returns a local variable with a variable's value: the current value if ``late``, otherwise the value before
        the step's updates."""
        if not late:
            if variable not in self._snapshot:
                self._snapshot[variable] = self._code.local()
            return self._snapshot[variable]
        local = self._code.local()
        self._code.add(f"{local} = {self._current(variable)}", defines=[local], locked=True)
        return local

    def _update(self, node: Node) -> None:
        code, definition = self._code, node.definition
        attrs = own_attrs(node)
        keywords = [f"{key}={code.literal(value)}" for key, value in attrs.items()]
        args: list[str] = []
        targets: list[tuple[str, str]] = []
        for index, name in enumerate(node.inputs):
            if index not in node.refs:
                args.append(code.names[name])
            elif index in definition.reads or index not in definition.refs:
                args.append(self._current(node.refs[index]))  # fails if the variable has no value
            else:
                args.append(f"{self._cells[node.refs[index]]}.value")
        uses = [name for name in args if code.is_local(name)]
        if can_fail(node.type, node.attrs) and node.name not in self._prechecked:
            self.may_fail = True
            code.check(node, args, uses)
        if node.type == "Assign":
            lower = code.bind(definition.lower, "k")
            # The call only compares shapes; its result is not used.
            code.add(f"{lower}({', '.join([*args, *keywords])})", node, uses=uses)
            cell, keeps_shape = self._cells[node.refs[0]], bool(node.attrs.get("validate_shape", True))
            code.add(f"check_assigned({cell}, {args[1]}, {keeps_shape})", node, uses=uses)
            code.add(f"replace({cell}, {args[1]})", node, uses=uses)
        else:
            run = update_kernel_of(node.type)
            if run is None:
                raise WithoutKernel(node.type)
            for position in definition.updates:
                local, cell = code.local(), self._cells[node.refs[position]]
                code.add(f"{local} = writable({cell})", node, defines=[local])
                args[position] = local
                targets.append((cell, local))
            function = code.bind(_update_in_place(run, node), "k")
            code.add(
                f"{function}({', '.join([*args, *keywords])})",
                node,
                uses=[*uses, *(local for _, local in targets)],
                weighing=f"weigh({node.type!r}, ({join_names(args)}), (), {code.bind(attrs, 'a')})",
            )
            for cell, local in targets:
                code.add(f"changed({cell}, {local})", node, uses=[local])
        self._use_updated(node)

    def _update_jointly(self, nodes: Sequence[Node]) -> None:
        code, first = self._code, nodes[0]
        run, rule = update_kernel_of(first.type), element_rule_of(first.type)
        assert run is not None
        assert rule is not None
        cells = [[code.space[self._cells[node.refs[at]]] for node in nodes] for at in range(rule.variables)]
        function = code.bind(JoinedUpdate(_update_in_place(run, first), rule, cells), "k")
        grads = [code.names[node.inputs[rule.gradient]] for node in nodes]
        others = [code.names[name] for name in shared_inputs(first, rule)]
        attrs = own_attrs(first)
        keywords = [f"{key}={code.literal(value)}" for key, value in attrs.items()]
        values = [f"{self._cells[node.refs[at]]}.value" for at in range(rule.variables) for node in nodes]
        given = [*values, *grads, *others]
        code.add(
            f"{function}({', '.join([f'({join_names(grads)})', *others, *keywords])})",
            first,
            uses=[name for name in (*grads, *others) if code.is_local(name)],
            weighing=f"weigh({first.type!r}, ({join_names(given)}), (), {code.bind(attrs, 'a')})",
        )
        for node in nodes:
            self._use_updated(node)

    def _use_updated(self, node: Node) -> None:
        """Gives the update's output, if it is in use, the variable's new value."""
        if self._used.get(node.name):
            self._code.names[f"{node.name}:0"] = self._value(node.refs[node.definition.updates[0]], True)


class _CostSum:
    """The sum of the costs of operations."""

    def __init__(self) -> None:
        self.work = Work()

    def add(self, op_type: str, arrays: Sequence[Any], results: object, attrs: Mapping[str, Any]) -> None:
        """Adds the cost of one operation, given its (or its forward operation's) type, inputs, outputs, and
        attributes."""
        outputs = [value for value in as_tuple(results) if isinstance(value, np.ndarray | np.generic)]
        self.work = self.work.plus(work_of(op_type, arrays, outputs)).plus(turns_of(op_type, arrays, outputs, attrs))


def _update_in_place(run: Callable[..., object], node: Node) -> Callable[..., None]:
    """Returns ``run`` with a fallback for inputs that the kernel does not support: the operation's lowering runs
    instead. The part as a whole cannot fall back to an executable at this point, because other updates may have been
    made already."""
    definition = node.definition

    def update(*args: Any, **attrs: Any) -> None:
        try:
            run(*args, **attrs)
        except NoKernel:
            found = definition.lower(*args, **attrs)
            for position, value in zip(definition.updates, found, strict=True):
                # Write into the cell's existing array, because the following statements refer to that array.
                np.copyto(args[position], np.asarray(value))

    return update


def _after_changes(nodes: Sequence[Node]) -> set[str]:
    """Returns the names of operations that change variables, or that follow a change."""
    late: set[str] = set()
    changing: set[str] = set()
    for node in nodes:
        updates = node.definition.updates
        follows = any(operation_of(name) in late for index, name in enumerate(node.inputs) if index not in node.refs)
        if updates or follows or node.name in changing or not changing.isdisjoint(node.refs.values()):
            late.add(node.name)
        changing.update(node.refs[position] for position in updates)
    return late


def _products_of_draws(nodes: Sequence[Node], used_once: Collection[str]) -> dict[str, Node]:
    """Returns the products of random numbers and a factor, if only a sum uses the product, by the product's tensor."""
    drawn = {f"{node.name}:0" for node in nodes if node.type in DRAWS}
    products = {
        f"{node.name}:0": node
        for node in nodes
        if node.type == "Mul" and not node.refs and node.inputs[0] in drawn and f"{node.name}:0" in used_once
    }
    sums = {node.inputs[0] for node in nodes if node.type in ("Add", "AddV2") and not node.refs}
    return {name: node for name, node in products.items() if name in sums}


def _on_host(value: object) -> Any:
    """Converts an input, or an output for another part of the step, to a NumPy array."""
    return value if type(value) is np.ndarray else np.asarray(value)


def _for_program(value: object, given: Sequence[Any] = ()) -> Any:
    """Converts an output for the program, which may change it: copies it if it shares memory.

    Args:
      given: the inputs, such as fed arrays, which a kernel may return unchanged.
    """
    # Copy a view, because its memory belongs to another array, for example of a constant or a variable.
    if type(value) is not np.ndarray or value.base is not None:
        return np.array(value)
    for each in given:
        if value is each:
            return np.array(value)
    return value
