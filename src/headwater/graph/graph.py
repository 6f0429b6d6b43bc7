"""A graph under construction: its operations, names, and the scopes that apply to new operations."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.cluster.devices import canonical_device_name
from headwater.graph import constants, context
from headwater.graph.collections import GraphKeys
from headwater.graph.graph_def import graph_def
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import Inference, lookup
from headwater.graph.scopes import DeviceFunction, NameScope, Scopes, ScopesOfThreads, valid_name, valid_scope
from headwater.shapes import brackets

if TYPE_CHECKING:
    from headwater.tensorboard_protos import GraphDef


class Graph:
    """Operations and their dependencies.

    Operations are never removed. Adding operations is thread-safe. But as in TensorFlow, the scopes (`name_scope`,
    `device`, `control_dependencies`, `colocate_with`) belong to the graph rather than to a thread. So threads must not
    use scopes at the same time, unless they call `switch_to_thread_local`.

    Attributes:
      version: grows with every change; a session extends itself when the version has changed.
      seed: the graph-level random seed, or None.
      current_container: the container of the state of new operations; empty for the default container.
      captures: whether operations may have inputs of other graphs, whose values this graph captures.
    """

    captures = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._operations: dict[str, Operation] = {}
        self._consumers: dict[Operation, list[Operation]] = {}
        self._names = NameScope()
        self._scopes: Scopes | ScopesOfThreads = Scopes()
        self._gradient_overrides: dict[str, str] = {}
        self._collections: dict[Any, list[Any]] = {}
        self.version: int = 0
        self.finalized: bool = False
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._in_loops: set[Operation] = set()
        self.seed: int | None = None
        self.current_container = ""

    # Operations -------------------------------------------------------------------------------------------------

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, object] | None = None,
        name: str | None = None,
        device: str | None = None,
        control_inputs: Sequence[Operation] = (),
    ) -> Operation:
        """Adds an operation.

        Args:
          op_type: a registered operation type.
          inputs: its inputs; must be tensors of this graph.
          attrs: attributes; attributes with defaults may be omitted.
          name: name within the current name scope (made unique); with a trailing ``/``, the full name.
          device: fixes the device regardless of the current device scopes.
          control_inputs: operations that run before it, in addition to the current scopes' control inputs.

        Raises:
          KeyError: there is no such operation type.
          ValueError: shapes that do not fit, an input of another graph, or a bad name.
          TypeError: element types that do not fit.
          RuntimeError: the graph is finalized.
        """
        try:
            definition = lookup(op_type)
        except KeyError:
            raise KeyError(f"no operation type {op_type!r} is registered") from None
        attrs = dict(attrs or {})
        with self._lock:
            self._check_open()
            for tensor in inputs:
                if tensor.graph is not self:
                    raise ValueError(
                        f"{tensor!r} must be from the same graph as the operation that uses it ({op_type})."
                    )
            full_name = self._name_for(op_type if name is None else name)
            if full_name in self._operations:
                raise ValueError(f"Duplicate node name in graph: '{full_name}'")
            self.check_outside_loops(inputs, full_name)
            inference = Inference(
                op_type,
                attrs,
                [tensor.spec for tensor in inputs],
                lambda index: constants.constant_value(inputs[index]),
                lambda index: constants.partial_value(inputs[index]),
            )
            try:
                outputs = definition.infer(inference)
            except (ValueError, TypeError) as error:
                shapes = ", ".join(brackets(tensor.dims) for tensor in inputs)
                message = f"{error} for '{full_name}' (op: '{op_type}') with input shapes: {shapes}."
                raise type(error)(message) from error
            before = self._scopes.control.inputs_for(inputs, control_inputs)
            op = Operation(self, self.version, full_name, definition, inputs, attrs, before, outputs)
            self._apply_gradient_override(op)
            self._scopes.places.place(op, device)
            self._operations[full_name] = op
            self._names.claim(full_name)
            for tensor in inputs:
                self._consumers.setdefault(tensor.op, []).append(op)
            self._scopes.control.register_operation(op)
            self.version += 1
            return op

    def may_change_before(self, variable: Operation, initializer: Operation | None) -> bool:
        """Returns whether the current control dependencies make new operations wait for a change of ``variable`` other
        than by its ``initializer``."""
        return self._scopes.control.may_change(variable, initializer)

    def _name_for(self, name: str) -> str:
        if not name:
            raise ValueError("'' is not a valid node name")
        return name[:-1] if name.endswith("/") else self.unique_name(name)

    def close_loop(self, params: Iterable[Tensor]) -> None:
        """Marks a loop as complete. Its ``params`` are placeholders of the values of an iteration, which are not
        available outside of the loop.

        Tensors computed from them can no longer be inputs of new operations, nor be fetched.
        """
        with self._lock:
            stack = [tensor.op for tensor in params]
            found: set[Operation] = set()
            while stack:
                op = stack.pop()
                if op not in found:
                    found.add(op)
                    stack.extend(self._consumers.get(op, ()))
            self._in_loops |= found
            self._unfetchable |= found

    def check_outside_loops(self, tensors: Sequence[Tensor], user: str) -> None:
        """Raises ValueError if one of the ``tensors``, which ``user`` uses, belongs to an iteration of a complete
        loop."""
        inside = next((tensor.op.name for tensor in tensors if tensor.op in self._in_loops), None)
        if inside is not None:
            raise ValueError(f"Cannot use '{inside}' as input to '{user}' because '{inside}' is in a while loop.")

    def record_change(self) -> None:
        """Notes that an existing operation was changed."""
        with self._lock:
            self._check_open()
            self.version += 1

    def consumers(self, tensor: Tensor) -> list[Operation]:
        """Returns the operations that take ``tensor`` as an input."""
        return [op for op in dict.fromkeys(self._consumers.get(tensor.op, ())) if tensor in op.inputs]

    def get_operations(self) -> list[Operation]:
        """Returns all operations, in the order of creation."""
        with self._lock:
            return list(self._operations.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """Returns the operation ``name``; KeyError if there is none, ValueError for a tensor's name."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_tensor=False)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Returns the tensor ``name`` (``operation:output``); KeyError if there is none."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        return self.as_graph_element(name, allow_operation=False)

    def as_graph_element(self, obj: object, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """Returns the tensor or operation of this graph to which ``obj`` refers: itself, by its name, or indirectly, as
        a variable does.

        Raises:
          ValueError: ``obj`` is of another graph, or its name is malformed.
          KeyError: the graph has no element of that name.
          TypeError: ``obj`` has the wrong type.
        """
        wanted = " or ".join(w for w, allow in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allow)
        converter = getattr(obj, "_as_graph_element", None)
        if converter is not None:
            obj = converter()
        if isinstance(obj, Tensor | Operation):
            if not (allow_tensor if isinstance(obj, Tensor) else allow_operation):
                raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")
            if obj.graph is not self:
                raise ValueError(f"{type(obj).__name__} {obj!r} is not an element of this graph.")
            return obj
        if isinstance(obj, bytes):
            obj = obj.decode()
        if not isinstance(obj, str):
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")
        return self._element_by_name(obj, allow_tensor, allow_operation, wanted)

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool, wanted: str) -> Tensor | Operation:
        op_name, colon, index = name.rpartition(":")
        if colon and allow_tensor:
            if not index.isdigit() or ":" in op_name:
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one: '<op>:<output>'."
                )
            op = self._operations.get(op_name)
            if op is None:
                raise KeyError(f"The name {name!r} refers to a Tensor which does not exist: no operation {op_name!r}.")
            if int(index) >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist: {op_name!r} has "
                    f"{len(op.outputs)} outputs."
                )
            return op.outputs[int(index)]
        if colon:
            raise ValueError(f"The name {name!r} appears to refer to a Tensor, not a {wanted}.")
        op = self._operations.get(name)
        if op is not None and allow_operation:
            return op
        if op is not None:
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a {wanted}; tensors are called '<op>:<output>'."
            )
        if allow_operation:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        raise ValueError(f"The name {name!r} looks like an (invalid) Operation name, not a {wanted}.")

    # Names and scopes -------------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Returns ``name`` within the current scope, with a suffix ``_1``, ``_2`` … if it is taken."""
        with self._lock:
            if name and not valid_name(name, at_top=not self._names.current):
                raise ValueError(f"'{name}' is not a valid scope name")
            return self._names.unique(name, mark_as_used)

    @contextmanager
    def name_scope(self, name: str | None) -> Generator[str]:
        """Prefixes the names of operations created within the block.

        Args:
          name: the scope's name, made unique; None or "" leaves all scopes; ``scope/`` re-enters that scope.

        Yields:
          The scope with a trailing ``/``, or "" at the top.
        """
        if name and not valid_scope(name, at_top=not self._names.current):
            raise ValueError(f"'{name}' is not a valid scope name")
        with self._lock:
            old = self._names.current
            if not name:
                new = ""
            elif name.endswith("/"):
                new = name[:-1]
            else:
                new = self._names.unique(name, True)
            self._names.current = new
        try:
            yield new + "/" if new else ""
        finally:
            self._names.current = old

    def get_name_scope(self) -> str:
        """The current name scope, without a trailing ``/``."""
        return self._names.current

    @contextmanager
    def device(self, device_name_or_function: Any) -> Generator[None]:
        """Requests a device for the operations created within the block.

        Args:
          device_name_or_function: a full or partial name (inner scopes complete and override outer ones), a
            `DeviceSpec`, a function from an operation to a name, or None to ignore all outer device scopes.

        Raises:
          ValueError: the name is malformed.
        """
        device = device_name_or_function
        entry: str | DeviceFunction | None = device
        if device is not None and not callable(device):
            entry = canonical_device_name(device.to_string() if hasattr(device, "to_string") else str(device))
        with self._scopes.places.device(entry):
            yield

    def device_functions(self) -> list[DeviceFunction]:
        """Returns the functions of the current `device` blocks, the innermost last."""
        return self._scopes.places.functions()

    @contextmanager
    def colocate_with(self, op: object, ignore_existing: bool = False) -> Generator[None]:
        """Places the operations created within the block on the device of ``op``, regardless of `device` blocks.

        Args:
          op: an operation, or a tensor or variable of an operation.
          ignore_existing: ignore the colocations of outer blocks; ``op`` may then be None, for no colocation.

        Raises:
          ValueError: ``op`` is None without ``ignore_existing``.
        """
        if op is None and not ignore_existing:
            raise ValueError("colocate_with(None) leaves outer colocations: it needs ignore_existing=True")
        target = None if op is None else self.as_graph_element(getattr(op, "op", op), allow_tensor=False)
        with self._scopes.places.colocated(target, ignore_existing):
            yield

    @contextmanager
    def colocate_with_name(self, name: str) -> Generator[None]:
        """Colocates the operations created within the block with a future operation ``name``."""
        with self._scopes.places.colocated(name, True):
            yield

    def switch_to_thread_local(self) -> None:
        """Makes the blocks of `device`, `colocate_with` and `control_dependencies` thread-local.

        Each thread starts with the blocks that are open now; name scopes remain shared.
        """
        with self._lock:
            if isinstance(self._scopes, Scopes):
                self._scopes = ScopesOfThreads.of(self._scopes)

    @contextmanager
    def container(self, container_name: str) -> Generator[str]:
        """Makes operations created within the block keep their state (variables, queues) in the container
        ``container_name`` of their task."""
        saved = self.current_container
        self.current_container = container_name
        try:
            yield container_name
        finally:
            self.current_container: str = saved

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[object] | None) -> Generator[None]:
        """Makes operations of the block run after ``control_inputs``; None ignores all outer dependencies."""
        ops: list[Operation] | None = None
        if control_inputs is not None:
            elements = [self.as_graph_element(item) for item in control_inputs]
            ops = [item.op if isinstance(item, Tensor) else item for item in elements]
        with self._scopes.control.scope(ops):
            yield

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Generator[None]:
        """Uses another registered gradient function for operations of the given types created within the block.

        Raises:
          TypeError: a name is not a string.
        """
        if not all(isinstance(name, str) for pair in op_type_map.items() for name in pair):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        saved = self._gradient_overrides
        self._gradient_overrides = saved | op_type_map
        try:
            yield
        finally:
            self._gradient_overrides = saved

    def _apply_gradient_override(self, op: Operation) -> None:
        override = self._gradient_overrides.get(op.type)
        if override is not None:
            op.attrs.setdefault("_gradient_op_type", override)

    # Collections ------------------------------------------------------------------------------------------------

    def add_to_collection(self, name: object, value: object) -> None:
        with self._lock:
            self._check_open()
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: object) -> None:
        """Adds ``value`` to each collection once; ``names`` is one name or several."""
        for name in {names} if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: object, scope: str | None = None) -> list[Any]:
        """Returns a copy of the collection; with ``scope``, only items with names that start with this regular
        expression."""
        items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        return [item for item in items if hasattr(item, "name") and re.match(scope, item.name)]

    def get_collection_ref(self, name: object) -> list[Any]:
        """Returns the collection itself; creates it if missing."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def clear_collection(self, name: object) -> None:
        with self._lock:
            self._check_open()
            self._collections.pop(name, None)

    def get_all_collection_keys(self) -> list[str]:
        return [name for name in self._collections if isinstance(name, str)]

    @property
    def collections(self) -> list[Any]:
        return list(self._collections)

    # State ------------------------------------------------------------------------------------------------------

    def finalize(self) -> None:
        """Forbids further changes, so that a training loop cannot add operations unnoticed."""
        self.finalized = True

    def _unsafe_unfinalize(self) -> None:
        self.finalized = False

    def _check_open(self) -> None:
        if self.finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def as_default(self) -> Any:
        """Returns a context in which this graph is the thread's default."""
        return context.default_graph(self)

    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)

    def prevent_fetching(self, op: Operation) -> None:
        self._unfetchable.add(op)

    def is_feedable(self, tensor: Tensor) -> bool:
        return tensor not in self._unfeedable

    def is_fetchable(self, tensor_or_op: object) -> bool:
        return (tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op) not in self._unfetchable

    @property
    def graph_def_versions(self) -> GraphDef:
        return self.as_graph_def().versions

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """Converts this graph to a ``GraphDef``.

        Args:
          from_version: omit operations that existed at that `version`.
          add_shapes: write the static shapes as ``_output_shapes``.
        """
        return graph_def(self, from_version=from_version, add_shapes=add_shapes)


def seeds(graph: Graph, op_seed: int | None) -> tuple[int | None, int | None]:
    """Returns the pair of seeds for a new random operation (both None: a different sequence in every session).

    TensorFlow's rule: if there is only a graph seed, it is combined with the number of operations so far; if there is
    only an operation's seed, it is combined with 87654321.
    """
    if graph.seed is not None:
        return graph.seed, graph.version if op_seed is None else op_seed
    return (None, None) if op_seed is None else (87654321, op_seed)


__all__ = ["Graph", "GraphKeys", "seeds"]
