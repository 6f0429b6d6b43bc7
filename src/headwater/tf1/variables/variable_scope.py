"""`get_variable` and variable scopes, which set names, sharing and defaults of variables."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.variables.scope_settings import AUTO_REUSE, VariableScope, first
from headwater.tf1.variables.variable_store import default_store
from headwater.tf1.variables.variables import Variable, VariableAggregation, VariableSynchronization

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import DeviceLike, Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.partitioned import Partitioner
    from headwater.tf1.variables.regularizers import Regularizer
    from headwater.tf1.variables.types import AnyVariable, Constraint, CustomGetter, InitializerLike, Reuse


_KEY = ("__varscope",)
_INHERITED = ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "use_resource", "constraint")


class _ScopeState(threading.local):
    """The current scope of a graph in this thread, and how often each scope was opened."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        self.counts: dict[str, int] = {}
        self._inside: dict[str, dict[str, None]] | None = {}

    def open(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1
        if self._inside is not None:
            _enter(name, self._inside)

    def close_within(self, name: str) -> None:
        """Forgets the scopes inside ``name``, so that a second visit finds the same names."""
        if self._inside is None:
            self._inside = {}
            for known in self.counts:
                _enter(known, self._inside)
        inside = [*self._inside.pop(name, ())]
        while inside:
            scope = inside.pop()
            self.counts.pop(scope, None)
            inside.extend(self._inside.pop(scope, ()))

    def restore(self, counts: dict[str, int]) -> None:
        """Restores an earlier value of `counts`."""
        self.counts, self._inside = counts, None

    def unique(self, prefix: str) -> str:
        """Returns ``prefix``, with a suffix ``_1``, ``_2`` … if the current scope already has a scope of this name."""
        name = f"{self.current.name}/{prefix}" if self.current.name else prefix
        if not self.counts.get(name):
            return prefix
        index = 1
        while self.counts.get(f"{name}_{index}"):
            index += 1
        return f"{prefix}_{index}"


def _enter(name: str, inside: dict[str, dict[str, None]]) -> None:
    """Records a scope as a child of its parent, and the parent as a child of its own parent, and so on."""
    while name:
        parent = name.rpartition("/")[0]
        siblings = inside.setdefault(parent, {})
        if name in siblings:
            return
        siblings[name] = None
        name = parent


def _state() -> _ScopeState:
    held = get_default_graph().get_collection_ref(_KEY)
    if not held:
        held.append(_ScopeState())
    return held[0]


def get_variable_scope() -> VariableScope:
    """The current variable scope."""
    return _state().current


@overload
def get_variable(
    name: str,
    shape: TensorLike | ShapeLike | None = ...,
    dtype: DTypeLike | None = ...,
    initializer: InitializerLike | None = ...,
    regularizer: Callable[[Any], Any] | None = ...,
    trainable: bool | None = ...,
    collections: str | Sequence[str] | None = ...,
    caching_device: object = ...,
    partitioner: None = ...,
    validate_shape: bool = ...,
    use_resource: bool | None = ...,
    custom_getter: Callable[..., Any] | None = ...,
    constraint: Constraint | None = ...,
    synchronization: VariableSynchronization = ...,
    aggregation: VariableAggregation = ...,
) -> Variable: ...
@overload
def get_variable(
    name: str,
    shape: TensorLike | ShapeLike | None = ...,
    dtype: DTypeLike | None = ...,
    initializer: InitializerLike | None = ...,
    regularizer: Callable[[Any], Any] | None = ...,
    trainable: bool | None = ...,
    collections: str | Sequence[str] | None = ...,
    caching_device: object = ...,
    *,
    partitioner: Partitioner | None,
    validate_shape: bool = ...,
    use_resource: bool | None = ...,
    custom_getter: Callable[..., Any] | None = ...,
    constraint: Constraint | None = ...,
    synchronization: VariableSynchronization = ...,
    aggregation: VariableAggregation = ...,
) -> AnyVariable: ...
def get_variable(
    name: str,
    shape: TensorLike | ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: Callable[[Any], Any] | None = None,
    trainable: bool | None = None,
    collections: str | Sequence[str] | None = None,
    caching_device: object = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> AnyVariable:
    """Returns the variable ``name`` of the current variable scope: a new one, or with ``reuse`` the existing one.

    Args:
      name: its name within the scope.
      shape: its shape; omitted if ``initializer`` is a value.
      dtype: its element type; float32 by default.
      initializer: ``f(shape, dtype)`` that returns the initial value, or this value. By default the scope's, else
        uniform by Glorot for floating types and zeros for others.
      regularizer: ``f(variable)`` returns a loss, which is added to ``REGULARIZATION_LOSSES``.
      trainable, collections, caching_device, validate_shape, use_resource, constraint, synchronization, aggregation:
        as for `Variable`.
      partitioner: ``f(shape, dtype)`` returns the number of parts of each dimension of a `PartitionedVariable`.
      custom_getter: ``f(getter, name, …)`` called in place of the getter.

    Raises:
      ValueError: the variable exists without ``reuse``, is missing with it, or has a different shape or type.
    """
    return get_variable_scope().get_variable(default_store(), **locals())


def get_local_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: InitializerLike | None = None,
    regularizer: Regularizer | None = None,
    trainable: bool | None = False,
    collections: Sequence[str] | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: CustomGetter | None = None,
    constraint: Constraint | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> AnyVariable:
    """`get_variable` for a variable of this task alone: in ``LOCAL_VARIABLES``, and never trainable."""
    # Never trainable, whatever the argument, as in TensorFlow.
    arguments: dict[str, Any] = {**locals(), "trainable": False}
    arguments["collections"] = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable_scope().get_variable(default_store(), **arguments)


class variable_scope:
    """Enters a variable scope, and with it a name scope of the same name.

    Args:
      name_or_scope: a name to append to the current scope's, or a `VariableScope` to reenter.
      default_name: name to make unique if ``name_or_scope`` is None.
      values: tensors whose graph to use.
      initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource, constraint: defaults
        for `get_variable` within; inherited from the outer scope if None.
      reuse: True finds variables only, ``AUTO_REUSE`` finds or makes them; None and False inherit.
      auxiliary_name_scope: with False no name scope is entered.

    Raises:
      TypeError: neither name is given, or ``name_or_scope`` has the wrong type.
      ValueError: ``reuse`` is invalid, or given with a ``default_name``.
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Structure = None,
        initializer: InitializerLike | None = None,
        regularizer: Regularizer | None = None,
        caching_device: DeviceLike | None = None,
        partitioner: Partitioner | None = None,
        custom_getter: CustomGetter | None = None,
        reuse: Any = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: Constraint | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse not in (None, True, False, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if name_or_scope is None and reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        if not isinstance(auxiliary_name_scope, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}")
        if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._graph = _graph_of(values)
        self._changes = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "custom_getter": custom_getter,
            "dtype": dtype,
            "use_resource": use_resource,
            "constraint": constraint,
        }
        self._reuse = reuse or None
        self._auxiliary_name_scope = auxiliary_name_scope
        self._stack: list[ExitStack] = []

    def __enter__(self) -> VariableScope:
        with ExitStack() as stack:
            if self._graph is not None:
                stack.enter_context(self._graph.as_default())
            scope = self._enter(stack)
            self._stack.append(stack.pop_all())
            return scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.pop().__exit__(kind, error, traceback)

    def __call__(self, function: Callable[..., object]) -> Callable[..., object]:
        """Decorates a function: every call runs in the scope."""

        @functools.wraps(function)
        def within(*args: object, **kwargs: object) -> object:
            with self:
                return function(*args, **kwargs)

        return within

    def _enter(self, stack: ExitStack) -> VariableScope:
        graph, given = get_default_graph(), self._name_or_scope
        if given is None:
            wanted: str | None = self._default_name
        else:
            wanted = given if isinstance(given, str) else given.name.rpartition("/")[2]
        if not self._auxiliary_name_scope:
            name_scope = graph.get_name_scope()
            name_scope = f"{name_scope}/" if name_scope else ""
        elif wanted:
            name_scope = stack.enter_context(graph.name_scope(wanted))
        else:
            name_scope = ""
        if isinstance(given, VariableScope):
            return stack.enter_context(_again(given, self._reuse, self._changes))
        if given is None:
            given = _state().unique(self._default_name or "")
        return stack.enter_context(_prolong(given, self._reuse, self._changes, name_scope))


def _graph_of(values: Any) -> Graph | None:
    for value in values or ():
        element = getattr(value, "_as_graph_element", lambda value=value: value)()
        if isinstance(element, Tensor | Operation):
            return element.graph
    return None


def _derived(base: VariableScope, name: str, reuse: object, changes: dict[str, Any], name_scope: str) -> VariableScope:
    settings = {key: first(changes[key], getattr(base, key)) for key in _INHERITED}
    getter = changes["custom_getter"]
    if getter is not None and base.custom_getter is not None:
        getter = _wrapped(getter, base.custom_getter)
    return VariableScope(
        reuse, name=name, name_scope=name_scope, custom_getter=first(getter, base.custom_getter), **settings
    )


def _wrapped(outer: Callable[..., Any], inner: Callable[..., object]) -> Callable[..., Any]:
    """Nests custom getters: the inner scope's getter is called first, and calls the outer one."""

    def getter_of_getters(getter: Callable[..., object], *args: object, **kwargs: object) -> Any:
        return outer(functools.partial(inner, getter), *args, **kwargs)

    return getter_of_getters


@contextmanager
def _prolong(name: str, reuse: Reuse, changes: dict[str, Any], name_scope: str) -> Generator[VariableScope]:
    """Enters a scope whose name continues the current one's."""
    state = _state()
    outer = state.current
    full = f"{outer.name}/{name}" if outer.name else name
    state.open(full)
    state.current = _derived(outer, full, reuse or outer.reuse, changes, name_scope or name)
    try:
        yield state.current
    finally:
        state.close_within(full)
        state.current = outer


@contextmanager
def _again(scope: VariableScope, reuse: Reuse, changes: dict[str, Any]) -> Generator[VariableScope]:
    """Reenters a scope independent of the current one."""
    state = _state()
    outer = state.current
    state.open(scope.name)
    counts = dict(state.counts)
    state.current = _derived(scope, scope.name, reuse or scope.reuse, changes, scope.original_name_scope)
    try:
        yield state.current
    finally:
        state.restore(counts)
        state.current = outer


@contextmanager
def variable_op_scope(
    values: TensorLike,
    name_or_scope: str | VariableScope,
    default_name: str | None = None,
    initializer: InitializerLike | None = None,
    regularizer: Regularizer | None = None,
    caching_device: DeviceLike | None = None,
    partitioner: Partitioner | None = None,
    custom_getter: CustomGetter | None = None,
    reuse: Reuse | None = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Constraint | None = None,
) -> Generator[VariableScope]:
    """Older form of `variable_scope`, with ``values`` first."""
    settings = (initializer, regularizer, caching_device, partitioner, custom_getter, reuse, dtype, use_resource)
    with variable_scope(name_or_scope, default_name, values, *settings, constraint) as scope:
        yield scope
