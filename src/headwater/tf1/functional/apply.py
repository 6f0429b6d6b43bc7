"""Creation of one operation from Python values, the last step of every function of this package.

The operation type defines the names and element types of its inputs (`headwater.graph.registry.Argument`); values are
converted to tensors accordingly, and constants among them are named after the input (``Add/y``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from headwater import dtypes
from headwater.dtypes import DType
from headwater.graph.convert import convert_to_tensor, graph_of
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import Argument, lookup
from headwater.graph.types import TensorLike

OperationInput: TypeAlias = "TensorLike | Sequence[TensorLike]"
"""One input of an operation, or the values of an input that is a list."""

_FLOATING = (dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64)
_COMPLEX = (dtypes.complex64, dtypes.complex128)
_INTEGER = (
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.uint32,
    dtypes.uint64,
)
_QUANTIZED = (dtypes.qint8, dtypes.quint8, dtypes.qint32)
_ALL_QUANTIZED = (*_QUANTIZED, dtypes.qint16, dtypes.quint16)
_CLASSES: dict[str, tuple[DType, ...]] = {
    "floating": _FLOATING,
    "complex": _COMPLEX,
    "inexact": (*_FLOATING, *_COMPLEX),
    "integer": _INTEGER,
    "quantized": _ALL_QUANTIZED,
    "int32_or_64": (dtypes.int32, dtypes.int64),
    "index": (dtypes.int32, dtypes.int64, dtypes.uint8),
    "real": (*_FLOATING, *_INTEGER),
    "numeric": (*_FLOATING, *_INTEGER, *_COMPLEX, *_QUANTIZED),
    "numeric_or_bool": (*_FLOATING, *_INTEGER, *_COMPLEX, dtypes.bool_),
    "additive": (*_FLOATING, *_INTEGER, *_COMPLEX, dtypes.string),
}


def apply(op_type: str, *values: OperationInput, name: str | None = None, **attrs: object) -> Operation:
    """Adds an operation of type ``op_type``.

    Args:
      values: one for each argument of the operation type; a sequence for an argument that is a list.
      name: name of the operation; its type if None.
      attrs: attributes; omitted attributes have their defaults.

    Raises:
      TypeError: an element type that the operation does not take, or types that should agree and do not.
      ValueError: static shapes do not match.
    """
    definition = lookup(op_type)
    arguments = definition.arguments
    assert len(arguments) == len(values), f"{op_type} takes {len(arguments)} arguments, not {len(values)}"
    graph = graph_of(values)
    with graph.as_default(), graph.name_scope(name or op_type) as scope:
        converter = _Converter(op_type)
        inputs: list[Tensor] = []
        for argument, value in zip(arguments, values, strict=True):
            if argument.many or argument.mixed:
                found = converter.sequence(argument, value)
                attrs = converter.list_attrs(argument, found, attrs)
                inputs.extend(found)
            else:
                inputs.append(converter.single(argument, value))
        defaults = {key: value for key, value in definition.defaults.items() if value is not None}
        return graph.create_op(op_type, inputs, defaults | attrs, name=scope)


def one(op_type: str, *values: OperationInput, name: str | None = None, **attrs: object) -> Tensor:
    """The only, or first, output of `apply`."""
    return apply(op_type, *values, name=name, **attrs).outputs[0]


def of_input(op_type: str, doc: str) -> Callable[..., Tensor]:
    """Returns the function, documented by ``doc``, that adds an operation of type ``op_type`` with one input."""

    def function(input: TensorLike, name: str | None = None) -> Tensor:
        return one(op_type, input, name=name)

    function.__doc__ = doc
    return function


class _Converter:
    """The inputs of one operation converted so far, and the element types that they determine."""

    def __init__(self, op_type: str) -> None:
        self._op_type = op_type
        self._types: dict[str, tuple[DType, str]] = {}

    def single(self, argument: Argument, value: TensorLike) -> Tensor:
        """Converts ``value`` to the input ``argument``."""
        wanted = argument.dtype or self._types.get(argument.type_attr, (None,))[0]
        tensor = self._convert(argument, value, wanted, argument.name)
        found = tensor.dtype.base_dtype
        if wanted is not None and found != wanted:
            self._refuse(argument, found)
        self._infer_type(argument, found)
        return tensor

    def _convert(self, argument: Argument, value: TensorLike, wanted: DType | None, name: str) -> Tensor:
        if isinstance(value, Tensor):
            return value
        try:
            return convert_to_tensor(value, wanted, name=name, preferred_dtype=argument.default)
        except TypeError as error:
            if wanted is None:
                raise
            raise TypeError(
                f"Expected {wanted.name} passed to parameter '{argument.name}' of op '{self._op_type}', got {value!r} "
                f"of type '{type(value).__name__}' instead. Error: {error}"
            ) from None
        except ValueError:
            if wanted is None:
                raise
            # Report the conflicting types instead of the failed conversion.
            found = convert_to_tensor(value, name=name).dtype.base_dtype
            if found == wanted:
                raise
            self._refuse(argument, found)
            raise

    def _refuse(self, argument: Argument, found: DType) -> None:
        begin = f"Input '{argument.name}' of '{self._op_type}' Op has type {found.name} that does not match "
        if argument.dtype is not None:
            raise TypeError(f"{begin}expected type of {argument.dtype.name}.")
        wanted, first = self._types[argument.type_attr]
        raise TypeError(f"{begin}type {wanted.name} of argument '{first}'.")

    def _infer_type(self, argument: Argument, found: DType) -> None:
        if argument.dtype is not None:
            return
        allowed = _CLASSES.get(argument.allowed)
        if allowed is not None and found not in allowed:
            listed = ", ".join(dtype.name for dtype in allowed)
            raise TypeError(
                f"Value passed to parameter '{argument.name}' has DataType {found.name} not in list of allowed values: "
                f"{listed}"
            )
        self._types.setdefault(argument.type_attr, (found, argument.name))

    def sequence(self, argument: Argument, values: OperationInput) -> list[Tensor]:
        """Converts ``values`` to the inputs for ``argument``."""
        if not isinstance(values, list | tuple):
            raise TypeError(f"Expected list for '{argument.name}' argument to '{self._op_type}' Op, not {values!r}.")
        items: list[Any] = list(values)  # pyright: ignore[reportUnknownArgumentType]
        if argument.mixed:
            return [convert_to_tensor(item, name=f"{argument.name}_{i}") for i, item in enumerate(items)]
        wanted = argument.dtype or self._types.get(argument.type_attr, (None,))[0]
        if wanted is None:
            wanted = next((t.dtype.base_dtype for t in items if isinstance(getattr(t, "dtype", None), DType)), None)
        found: list[Tensor] = []
        for index, item in enumerate(items):
            tensor = self._in_list(argument, item, wanted, index)
            found.append(tensor)
            wanted = wanted or tensor.dtype.base_dtype
        types = [tensor.dtype.base_dtype for tensor in found]
        if any(dtype != types[0] for dtype in types) or (argument.dtype and types and types[0] != argument.dtype):
            listed = ", ".join(dtype.name for dtype in types)
            fixed = argument.dtype
            detail = f"that do not match expected type {fixed.name}" if fixed else "that don't all match"
            raise TypeError(
                f"Tensors in list passed to '{argument.name}' of '{self._op_type}' Op have types [{listed}] {detail}."
            )
        if types:
            self._infer_type(argument, types[0])
        return found

    def _in_list(self, argument: Argument, item: TensorLike, wanted: DType | None, index: int) -> Tensor:
        name = f"{argument.name}_{index}"
        if isinstance(item, Tensor):
            return item
        try:
            return convert_to_tensor(item, wanted, name=name, preferred_dtype=argument.default)
        except ValueError:
            # Another type: the caller reports an error for the whole list.
            return convert_to_tensor(item, name=name)

    def list_attrs(self, argument: Argument, found: Sequence[Tensor], attrs: dict[str, object]) -> dict[str, object]:
        """Returns ``attrs`` with the attributes that describe a list of inputs in a GraphDef."""
        if argument.mixed:
            return attrs | {argument.type_attr: tuple(tensor.dtype.base_dtype for tensor in found)}
        if not found:
            raise ValueError(
                f"List argument '{argument.name}' to '{self._op_type}' Op with length 0 shorter than minimum length 1."
            )
        return attrs | {"N": len(found)}
