"""Generates straight-line Python code for functions of host operations, so that an element costs only the calls of the
operations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headwater.errors import InvalidArgumentError, OpError
from headwater.graph.registry import as_outputs

if TYPE_CHECKING:
    from headwater.graph.ops.bodies import BodyNode
    from headwater.graph.ops.common import AnyArray

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class HostCall:
    """One host operation.

    Attributes:
      node: the operation.
      outputs: names of its output tensors.
      function: maps its inputs, as NumPy arrays, to its outputs.
      with_context: whether the function takes the runtime's context before its inputs.
    """

    node: BodyNode
    outputs: tuple[str, ...]
    function: Callable[..., object]
    with_context: bool


class HasHostCall(Protocol):
    """A piece of a function, which may be a single host operation."""

    @property
    def host(self) -> HostCall | None: ...


class Named:
    """Adds the operation's name to errors of NumPy and JAX."""

    def __init__(self, node: BodyNode) -> None:
        self._node = node

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TypeError | ValueError | IndexError | KeyError) and not isinstance(error, OpError):
            node = self._node
            raise InvalidArgumentError(f"{error} [in {node.definition.name} operation {node.name!r}]") from error


def as_array(value: AnyArray) -> Array:
    """``value`` as a NumPy array; a string as an array of no dimensions."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, str | bytes):
        text = np.empty((), object)
        text[()] = value.encode() if isinstance(value, str) else value
        return text
    return np.asarray(value)


def straight_line(
    pieces: Sequence[HasHostCall], params: Sequence[str], known: Mapping[str, Any], outputs: Sequence[str]
) -> Callable[[Sequence[Any], Any], tuple[Array, ...]] | None:
    """Returns a function that runs host operations one after the other.

    Args:
      pieces: the operations, in order.
      params: names of the function's parameters.
      known: values of tensors that are the same for all calls.
      outputs: names of the tensors that it returns.

    Returns:
      ``function(given, context)``; None if some of the pieces are not host operations.
    """
    calls = [piece.host for piece in pieces if piece.host is not None]
    if len(calls) != len(pieces):
        return None
    scope: dict[str, Any] = {"as_array": as_array, "as_outputs": as_outputs, "named": [Named(c.node) for c in calls]}
    variables: dict[str, str] = {}
    for index, (name, value) in enumerate(known.items()):
        variables[name] = f"known_{index}"
        scope[f"known_{index}"] = np.asarray(value)
    lines = ["def line(given, contexts):", "    at = None", "    try:"]
    for index, name in enumerate(params):
        variables[name] = f"given_{index}"
        lines.append(f"        given_{index} = as_array(given[{index}])")
    used = {name for call in calls for name in call.node.inputs} | {*outputs}
    for index, call in enumerate(calls):
        scope[f"function_{index}"] = call.function
        context = [f"contexts[{index}]"] if call.with_context else []
        arguments = ", ".join(context + [variables[name] for name in call.node.inputs])
        lines += [f"        at = {index}", f"        found = as_outputs(function_{index}({arguments}))"]
        for place, name in enumerate(call.outputs):
            if name in used:
                variables[name] = f"value_{index}_{place}"
                lines.append(f"        value_{index}_{place} = as_array(found[{place}])")
    given_back = "".join(f"as_array({variables[name]}), " for name in outputs)
    lines += [
        "    except (TypeError, ValueError, IndexError, KeyError) as error:",
        "        if at is not None:",
        "            named[at].__exit__(type(error), error, None)",
        "        raise",
        f"    return ({given_back})",
    ]
    exec("\n".join(lines), scope)
    line: Callable[..., tuple[Array, ...]] = scope["line"]
    last: tuple[Any, list[Any]] = None, []  # one tuple, so that concurrent calls see matching parts

    def run(given: Sequence[Any], context: Any) -> tuple[Array, ...]:
        nonlocal last
        of, contexts = last
        if of is not context:
            contexts = [
                dataclasses.replace(context, op_name=call.node.name, arguments=call.node.inputs)
                if call.with_context
                else None
                for call in calls
            ]
            last = context, contexts
        return line(given, contexts)

    return run
