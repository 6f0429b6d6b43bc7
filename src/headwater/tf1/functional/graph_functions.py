"""`function` in programs that build graphs: each call adds the function's operations to the current graph.

TensorFlow 1.15 traces such a function into a graph of its own, and calls that graph by an operation. Programs see only
the conversion of arguments and results and the order of side effects, which are the same here: operations that read or
change state run in the order of the Python statements, before the results are available
(``automatic_control_dependencies`` in TensorFlow).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation
from headwater.tf1.functional import conditions, nest, program_order
from headwater.tf1.functional.default_graph import control_dependencies

if TYPE_CHECKING:
    from headwater.data.spec import TensorSpec
    from headwater.graph.types import Structure


class GraphFunction:
    """A function whose side effects happen in the order of its statements.

    Args:
      python_function: builds the operations.
      input_signature: element type and shape of each argument, which is converted to a tensor; None: Python values
        reach the function unchanged, arrays as tensors.
      autograph: whether conditions and loops of Python may depend on tensors.

    Attributes:
      python_function, input_signature: the argument.
    """

    def __init__(
        self,
        python_function: Callable[..., Structure],
        input_signature: Sequence[TensorSpec] | None = None,
        autograph: bool = True,
    ) -> None:
        self.__name__: str = getattr(python_function, "__name__", type(python_function).__name__)
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self._autograph = autograph
        self._has_made_variables = False

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Structure]:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: object, **kwargs: object) -> Structure:
        """Adds the operations; returns the function's result, with its numbers and arrays as tensors.

        Raises:
          TypeError: the number of arguments differs from ``input_signature``, or the result holds an operation.
          ValueError: an argument does not fit ``input_signature``, or a call other than the first makes a variable.
        """
        from headwater.tf1.functional.autograph.conversion import as_converted  # noqa: PLC0415  loaded at the first call

        arguments: list[Any] = [list(args), kwargs]
        if self.input_signature is not None:
            arguments = [_with_signature(self.__name__, args, kwargs, self.input_signature), {}]
        arguments = nest.map_structure(_as_argument, arguments)
        graph = get_default_graph()
        function = as_converted(self.python_function) if self._autograph else self.python_function
        with program_order.within_function() as outermost:
            first = graph.version
            result = function(*arguments[0], **arguments[1])
            added = program_order.created_since(graph, first)
            if any(op.type == "VariableV2" for op in added):
                self._forbid_new_variables()
            # The effects of a function within another one are ordered with the other's.
            with control_dependencies(program_order.effects(added) if outermost else []):
                return nest.map_structure(_as_result, result)

    def _forbid_new_variables(self) -> None:
        if self._has_made_variables:
            raise ValueError("tf.function-decorated function tried to create variables on non-first call.")
        self._has_made_variables = True


def _as_argument(value: object) -> Any:
    return convert_to_tensor(value) if isinstance(value, np.ndarray | np.generic) else value  # pyright: ignore[reportUnknownArgumentType]


def _as_result(value: Any) -> Any:
    if isinstance(value, Operation):
        raise TypeError(f"functions must return zero or more Tensors, and not the operation {value.name!r}")
    return None if value is None else conditions.as_value(value)


def _with_signature(
    name: str, args: Sequence[Any], kwargs: Mapping[str, object], signature: Sequence[TensorSpec]
) -> list[object]:
    if kwargs or len(args) != len(signature):
        raise TypeError(
            f"{name}() takes {len(signature)} positional arguments but {len(args) + len(kwargs)} were given: "
            "input_signature has one element for each"
        )
    tensors = [convert_to_tensor(value, spec.dtype) for value, spec in zip(args, signature, strict=True)]
    for tensor, spec in zip(tensors, signature, strict=True):
        if not spec.is_compatible_with(tensor):
            raise ValueError(f"Python inputs incompatible with input_signature: {name}() got {tensor!r} for {spec!r}")
    return list(tensors)


def function(
    func: Callable[..., Structure] | None = None,
    input_signature: Sequence[TensorSpec] | None = None,
    autograph: bool = True,
    experimental_autograph_options: object = None,
    experimental_relax_shapes: bool = False,
    experimental_compile: bool | None = None,
) -> Any:
    """Returns a `GraphFunction`; usable as a decorator with or without arguments.

    Args:
      func: the Python function.
      input_signature, autograph: see `GraphFunction`.
      experimental_autograph_options, experimental_relax_shapes, experimental_compile: hints that do not change results;
        ignored.
    """
    del experimental_autograph_options, experimental_relax_shapes, experimental_compile

    def decorated(inner: Callable[..., Structure]) -> GraphFunction:
        return GraphFunction(inner, input_signature, autograph)

    return decorated if func is None else decorated(func)
