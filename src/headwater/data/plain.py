"""Python functions and generators as functions of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from headwater.data import structure as nest
from headwater.data.composites import as_component
from headwater.data.node import Context, Element, Function, Node, raise_failures
from headwater.data.spec import TensorSpec
from headwater.errors import InvalidArgumentError, error_of_function

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class PlainFunction(Function):
    """A Python function of arrays. It is called with the first element to find the specs of its results.

    Args:
      inputs: node that yields the elements.
      packed: converts an element to the function's argument.
      kind: name of the calling transformation, for messages.
    """

    def __init__(self, function: Callable[..., Any], inputs: Node, packed: Callable[[Element], Any], kind: str) -> None:
        self.name: str = f"{kind} {getattr(function, '__name__', 'function')!r}"
        self._function = function
        self._inputs = inputs
        self._packed = packed
        self._specs: tuple[TensorSpec, ...] | None = None
        self._returns: object = None

    @property
    def structure(self) -> Any:
        """The structure of a result, or a dataset with that structure."""
        self.specs()
        return self._returns

    def specs(self) -> tuple[TensorSpec, ...]:
        if self._specs is None:
            context = Context()
            first = next(raise_failures(self._inputs.elements(context)), None)
            if first is None:
                raise InvalidArgumentError(f"{self.name}: the dataset has no element to try it with")
            result = self._result(first)
            if hasattr(result, "node"):
                self._returns, self._specs = result, ()
            else:
                parts = [as_component(part) for part in nest.flatten(result)]
                self._returns = nest.pack(nest.emptied(result), [None] * len(parts))
                self._specs = tuple(getattr(part, "spec", None) or TensorSpec.from_tensor(part) for part in parts)
        return self._specs

    def _result(self, element: Element) -> Structure:
        argument = self._packed(element)
        return nest.plain_lists(self._function(*argument) if type(argument) is tuple else self._function(argument))

    def __call__(self, context: Context, element: Element) -> Element:
        result = self._result(element)
        if hasattr(result, "node"):
            return (result.node,)
        return tuple(as_component(part) for part in nest.flatten(result))


class GeneratedElements:
    """Flat elements of a program's generator, checked against its signature.

    Args:
      op_errors: whether exceptions are raised as the `OpError` that TensorFlow raises for them.
    """

    def __init__(
        self,
        generator: Callable[..., Iterable[Element]],
        signature: object,
        specs: tuple[TensorSpec, ...],
        op_errors: bool = False,
    ) -> None:
        self._generator = generator
        self._signature: object = signature
        self._several = isinstance(signature, tuple)
        self._specs = specs
        self._op_errors = op_errors

    def __call__(self, *args: object) -> Iterator[Element]:
        try:
            for index, element in enumerate(self._generator(*args)):
                yield self._flat(element, index)
        except Exception as error:
            if self._op_errors:
                raise error_of_function(error) from error
            raise

    def _flat(self, element: Structure, index: int) -> Element:
        plain = nest.plain_lists(element) if self._several else element
        if not nest.covers(self._signature, plain):
            raise TypeError(
                f"`generator` yielded an element that did not match the expected structure. The expected structure was "
                f"{self._signature}, but the yielded element (number {index}) was {element!r}."
            )
        parts: list[Any] = []
        for value, spec in zip(nest.leaves_like(self._signature, plain), self._specs, strict=True):
            try:
                array = spec.converted(value)
            except (AttributeError, TypeError, ValueError) as error:
                raise TypeError(
                    f"`generator` yielded an element that could not be converted to the expected type "
                    f"{spec.dtype.name}: element {index} was {element!r}."
                ) from error
            if not spec.shape.is_compatible_with(array.shape):
                raise TypeError(
                    f"`generator` yielded an element of shape {array.shape} where an element of shape {spec.shape} was "
                    f"expected (number {index})."
                )
            parts.append(array)
        return tuple(parts)
