"""``tf.raw_ops``: a function for each operation type, generated from its registration.

A function takes the operation's inputs and attributes by their names, and ``name``. It returns the output, a tuple of
named outputs if there are several, or the operation if there is none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import OpDef, lookup, names
from headwater.tf1.functional.apply import apply

Raw = Callable[..., Tensor | tuple[Tensor, ...] | Operation]


def _of(definition: OpDef) -> Raw:
    inputs = [argument.name for argument in definition.arguments]

    def raw(**given: Any) -> Tensor | tuple[Tensor, ...] | Operation:
        name = given.pop("name", None)
        missing = [each for each in inputs if each not in given]
        if missing:
            raise TypeError(f"{definition.name}() missing required argument {missing[0]!r}")
        values = [given.pop(each) for each in inputs]
        unknown = given.keys() - definition.attrs - definition.defaults.keys() - definition.types.keys()
        if unknown:
            raise TypeError(f"{definition.name}() got an unexpected keyword argument {min(unknown)!r}")
        # Types of elements follow from the inputs.
        attrs = {key: value for key, value in given.items() if key in definition.attrs or key in definition.defaults}
        op = apply(definition.name, *values, name=name, **attrs)
        if not op.outputs:
            return op
        return op.outputs[0] if len(op.outputs) == 1 else tuple(op.outputs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    attrs = sorted(definition.attrs)
    raw.__name__ = raw.__qualname__ = definition.name
    raw.__doc__ = f"Adds an operation of the type {definition.name}. All arguments are given by name."
    raw.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [
            *(inspect.Parameter(each, keyword) for each in inputs),
            *(
                inspect.Parameter(each, keyword, default=definition.defaults.get(each, inspect.Parameter.empty))
                for each in attrs
                if each not in inputs
            ),
            inspect.Parameter("name", keyword, default=None),
        ]
    )
    return raw


def _is_raw(definition: OpDef) -> bool:
    """Returns whether a function for the type can be generated: its inputs have names and are not references.

    An input called ``name`` would clash with the operation's name.
    """
    inputs = {argument.name for argument in definition.arguments}
    return bool(inputs) and "name" not in inputs and not definition.refs and not definition.ref_attr


def __getattr__(name: str) -> Raw:
    if not name.startswith("_") and name in names():
        definition = lookup(name)
        if _is_raw(definition):
            globals()[name] = found = _of(definition)
            return found
    raise AttributeError(f"module 'tf.raw_ops' has no attribute {name!r} in Headwater", name=name)


def __dir__() -> list[str]:
    return [name for name in names() if _is_raw(lookup(name))]
