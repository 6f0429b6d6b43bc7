"""Decorators that define operation types: each turns a function into a registered operation type.

The positional parameters of the function are the operation's inputs. Its keyword-only parameters are the operation's
attributes, and their defaults are the attributes' defaults. Inputs of compiled operations are annotated ``jax.Array``;
static inputs, and values that the graph determines, are passed as NumPy arrays instead of traced arrays. If no rule for
the static shape is given, the function itself is evaluated abstractly (`jax.eval_shape`), with symbolic sizes for
unknown dimensions.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headwater.dtypes import VALUE_DTYPES, DType, bool_, from_numpy
from headwater.graph.ops.requirements import with_requirements
from headwater.graph.registry import Argument, Attrs, FunctionAttr, Infer, Inference, Kind, OpDef, Spec, register
from headwater.lazy_jax import export, jax
from headwater.shapes import Dims, TensorShape, broadcast_dims

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

F = TypeVar("F", bound=Callable[..., Any])

_MAX_PROBED_RANK = 5
_MISFITS = (TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError)
"""Errors of functions for unsupported shapes."""
_cache: dict[object, tuple[Spec, ...]] = {}


def pure(
    name: str,
    *,
    static: Sequence[int] = (),
    static_of: Callable[[Attrs, int], frozenset[int]] | None = None,
    infer: Infer | None = None,
    gradient: Callable[..., Sequence[object]] | None = None,
    differentiable: bool = True,
    constants: Sequence[int] = (),
    string_lower: Callable[..., object] | None = None,
    strings: bool = False,
    types: Mapping[str, int] | None = None,
    inputs: str | None = None,
) -> Callable[[F], F]:
    """Registers a function of arrays and attributes as operation type ``name``. See `OpDef` for the arguments.

    ``inputs`` declares the inputs, e.g. ``"input:T|numeric, reduction_indices:Tidx=int32"``. Each input has a name;
    after ``:``, the element type, or the name of the attribute with the element type; after ``|``, the class of allowed
    types; after ``=``, the preferred type for Python values; at the end, ``*`` for a list of one type, or ``**`` for a
    list of any types. ``types`` is derived from this declaration.

    ``strings``: whether the function also supports tensors of strings, if it is called with NumPy arrays.
    """

    def define(function: F) -> F:
        attrs, defaults = _attributes(function)
        arguments = parse_arguments(inputs or "")
        register(
            OpDef(
                name=name,
                kind=Kind.PURE,
                lower=function,
                infer=with_requirements(name, infer or by_evaluation(function, tuple(static), static_of)),
                attrs=attrs,
                defaults=defaults,
                static=tuple(static),
                static_of=static_of,
                gradient=gradient,
                differentiable=differentiable,
                constants=tuple(constants),
                string_lower=function if strings else string_lower,
                types=_types(types, inputs, arguments),
                arguments=arguments,
            )
        )
        return function

    return define


def random(
    name: str,
    *,
    infer: Infer,
    static: Sequence[int] = (0,),
    inputs: str = "shape:T|index=int32",
    string_lower: Callable[..., object] | None = None,
) -> Callable[[F], F]:
    """Registers a function of a key, arrays and attributes: ``f(key, *inputs, **attrs)``.

    ``string_lower`` is the corresponding function for tensors of strings; it takes a NumPy generator instead of the
    key.
    """

    def define(function: F) -> F:
        attrs, defaults = _attributes(function)
        arguments = parse_arguments(inputs)
        register(
            OpDef(
                name=name,
                kind=Kind.RANDOM,
                lower=function,
                infer=with_requirements(name, infer),
                attrs=attrs,
                defaults=defaults,
                static=tuple(static),
                differentiable=False,
                types=_types(None, inputs, arguments),
                arguments=arguments,
                string_lower=string_lower,
            )
        )
        return function

    return define


def stateful(
    name: str,
    *,
    refs: Sequence[int],
    updates: Sequence[int],
    reads: Sequence[int] | None = None,
    infer: Infer | None = None,
    static_of: Callable[[Attrs, int], frozenset[int]] | None = None,
    admit: Callable[..., Callable[[], object]] | None = None,
    types: Mapping[str, int] | None = None,
) -> Callable[[F], F]:
    """Registers an update of variables: ``f(*inputs, **attrs)`` returns the tuple of new values of ``updates``.

    Inputs in ``refs`` are passed as the variables' values (None for a variable without a value that is not in
    ``reads``). The operation's only output is a reference to the first of ``updates``.
    """

    def define(function: F) -> F:
        attrs, defaults = _attributes(function)
        register(
            OpDef(
                name=name,
                kind=Kind.STATEFUL,
                lower=function,
                infer=infer or same_as(updates[0]),
                attrs=attrs,
                defaults=defaults,
                refs=tuple(refs),
                reads=tuple(refs if reads is None else reads),
                updates=tuple(updates),
                static_of=static_of,
                admit=admit,
                differentiable=False,
                types={"T": refs[0], **(types or {})},
            )
        )
        return function

    return define


def host(
    name: str,
    *,
    infer: Infer,
    refs: Sequence[int] = (),
    ref_attr: str = "",
    blocking: bool = False,
    announces: bool = False,
    effect: bool = False,
    keeps: bool = False,
    stable: bool = False,
    repeat: Callable[..., None] | None = None,
    gradient: Callable[..., Sequence[object]] | None = None,
    traced: Callable[..., object] | None = None,
    types: Mapping[str, int] | None = None,
    inputs: str | None = None,
) -> Callable[[F], F]:
    """Registers a Python function of NumPy arrays: ``f(context, *inputs, **attrs)`` returns an array, a tuple, or None.

    ``context`` is the runtime's `HostContext`; a function whose first parameter has another name is called without it.
    Inputs in ``refs`` are passed as the variables' cells. An operation without outputs always has an effect.
    """

    def define(function: F) -> F:
        attrs, defaults = _attributes(function)
        arguments = parse_arguments(inputs or "")
        register(
            OpDef(
                name=name,
                kind=Kind.HOST,
                lower=_with_context(function),
                infer=with_requirements(name, infer),
                attrs=attrs,
                defaults=defaults,
                refs=tuple(refs),
                ref_attr=ref_attr,
                blocking=blocking,
                announces=announces,
                effect=effect or infer is no_outputs,
                keeps=keeps,
                stable=stable,
                repeat=repeat,
                gradient=gradient,
                differentiable=gradient is not None,
                traced=traced,
                types=_types(types or {}, inputs, arguments),
                arguments=arguments,
            )
        )
        return function

    return define


def _with_context(function: Callable[..., object]) -> Callable[..., object]:
    if next(iter(inspect.signature(function).parameters), "") == "context":
        return function

    @functools.wraps(function)
    def lower(_: object, *inputs: HostArray, **attrs: object) -> object:
        return function(*inputs, **attrs)

    return lower


_DTYPES = {dtype.name: dtype for dtype in VALUE_DTYPES}
_ARGUMENT = re.compile(r"(?P<name>\w+):(?P<type>\w+)(\|(?P<allowed>\w+))?(=(?P<default>\w+))?(?P<list>\*{0,2})")


def parse_arguments(inputs: str) -> tuple[Argument, ...]:
    """Parses a declaration of inputs (see `pure`)."""
    arguments: list[Argument] = []
    for part in filter(None, inputs.replace(" ", "").split(",")):
        match = _ARGUMENT.fullmatch(part)
        assert match, f"{part!r} in {inputs!r} declares no argument"
        fixed = _DTYPES.get(match["type"])
        arguments.append(
            Argument(
                name=match["name"],
                dtype=fixed,
                type_attr="" if fixed else match["type"],
                default=_DTYPES[match["default"]] if match["default"] else None,
                allowed=match["allowed"] or "",
                many=match["list"] == "*",
                mixed=match["list"] == "**",
            )
        )
    return tuple(arguments)


def _types(types: Mapping[str, int] | None, inputs: str | None, arguments: Sequence[Argument]) -> Mapping[str, int]:
    """Returns `OpDef.types` as given, or derived from the arguments; after a list, positions count from the end."""
    if inputs is None:
        return {"T": 0} if types is None else types
    lists = [index for index, argument in enumerate(arguments) if argument.many or argument.mixed]
    found: dict[str, int] = {}
    for index, argument in enumerate(arguments):
        if argument.type_attr and not argument.mixed:
            behind = any(place < index for place in lists)
            found.setdefault(argument.type_attr, index - len(arguments) if behind else index)
    return found | dict(types or {})


def _attributes(function: Callable[..., object]) -> tuple[frozenset[str], dict[str, object]]:
    parameters = inspect.signature(function).parameters.values()
    keyword = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    return frozenset(p.name for p in keyword), {p.name: p.default for p in keyword if p.default is not p.empty}


# Shape rules ----------------------------------------------------------------------------------------------------


def same_as(index: int = 0) -> Infer:
    """One output like input ``index``."""
    return lambda inference: [inference.inputs[index]]


def no_outputs(inference: Inference) -> Sequence[Spec]:
    """Shape function of operations without outputs."""
    del inference
    return []


def fixed(dtype: DType, dims: Dims) -> Infer:
    """One output of this type and shape."""
    return lambda inference: [Spec(dtype, dims)]


def unary(inference: Inference) -> Sequence[Spec]:
    """One output of the type and shape of the only input."""
    first = inference.inputs[0]
    return [Spec(first.dtype.base_dtype, first.dims)]


def unary_not_scalar(inference: Inference) -> Sequence[Spec]:
    """Like `unary`. Raises ValueError for a scalar."""
    if inference.inputs[0].dims == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return unary(inference)


def unary_predicate(inference: Inference) -> Sequence[Spec]:
    """One output of truth values, of the shape of the only input."""
    return [Spec(bool_, inference.inputs[0].dims)]


def binary(inference: Inference) -> Sequence[Spec]:
    """One output of the inputs' common type, of their broadcast shape.

    Raises:
      TypeError: the inputs' types differ.
      ValueError: their shapes do not broadcast.
    """
    x, y = inference.inputs
    if x.dtype.base_dtype != y.dtype.base_dtype:
        raise TypeError(
            f"Input 'y' of '{inference.op_type}' Op has type {y.dtype.base_dtype.name} that does not match type "
            f"{x.dtype.base_dtype.name} of argument 'x'."
        )
    return [Spec(x.dtype.base_dtype, broadcast_dims(x.dims, y.dims))]


def comparison(inference: Inference) -> Sequence[Spec]:
    """Like `binary`, with boolean results."""
    return [Spec(bool_, binary(inference)[0].dims)]


def by_evaluation(
    function: Callable[..., object],
    static: tuple[int, ...] = (),
    static_of: Callable[[Attrs, int], frozenset[int]] | None = None,
) -> Infer:
    """Returns the shape rule that evaluates ``function`` abstractly.

    Unknown dimensions are symbols. If JAX cannot evaluate a comparison of symbols, the output's shape is unknown.
    """

    def infer(inference: Inference) -> Sequence[Spec]:
        count = len(inference.inputs)
        positions = static_of(inference.attrs, count) if static_of else frozenset(i % count for i in static)
        known: dict[int, HostArray] = {}
        for index in positions:
            value = inference.constant(index)
            if value is None:
                return [Spec(_first_dtype(inference, positions), None)]
            known[index] = value
        return _evaluate(function, inference, known)

    return infer


def _first_dtype(inference: Inference, static: frozenset[int]) -> DType:
    return next(s.dtype.base_dtype for i, s in enumerate(inference.inputs) if i not in static)


def _evaluate(function: Callable[..., object], inference: Inference, known: dict[int, HostArray]) -> tuple[Spec, ...]:
    names, _ = _attributes(function)
    attrs = {key: value for key, value in inference.attrs.items() if key in names}
    key = (
        function,
        hashable(attrs),
        tuple((spec.dtype.base_dtype, spec.dims) for spec in inference.inputs),
        tuple((index, value.tobytes(), value.shape) for index, value in known.items()),
    )
    if key not in _cache:
        _cache[key] = _evaluate_uncached(function, attrs, inference.inputs, known)
    return _cache[key]


def _evaluate_uncached(
    function: Callable[..., object], attrs: dict[str, object], inputs: Sequence[Spec], known: dict[int, HostArray]
) -> tuple[Spec, ...]:
    def run(shapes: Sequence[object]) -> tuple[Any, ...]:
        dynamic = [
            jax.ShapeDtypeStruct(shape, spec.dtype.numpy_dtype)
            for index, (spec, shape) in enumerate(zip(inputs, shapes, strict=True))
            if index not in known
        ]

        def call(*arrays: object) -> object:
            rest = iter(arrays)
            return function(*(known[i] if i in known else next(rest) for i in range(len(inputs))), **attrs)

        result: Any = jax.eval_shape(call, *dynamic)
        return result if isinstance(result, tuple) else (result,)

    shapes = [spec.dims for spec in inputs]
    if all(dims is not None and None not in dims for dims in shapes):
        try:
            return tuple(_spec(out) for out in run(shapes))
        except TypeError as error:
            # JAX raises TypeError for incompatible shapes; TensorFlow raises ValueError.
            raise ValueError(_first_line(error)) from error
    if all(dims is not None for dims in shapes):
        for symbols in ("{index}", ""):
            try:
                return tuple(_spec(out) for out in run(_with_symbols(shapes, symbols)))
            except (*_MISFITS, jax.errors.InconclusiveDimensionOperation):
                continue  # JAX could not evaluate a comparison of symbols
    sizes = dict.fromkeys([2, *(dim for dims in shapes for dim in dims or () if dim), 1])
    for size, rank in itertools.product(sizes, range(_MAX_PROBED_RANK) if None in shapes else [0]):
        guess = [(size,) * rank if dims is None else tuple(size if d is None else d for d in dims) for dims in shapes]
        try:
            return tuple(Spec(from_numpy(out.dtype), None) for out in run(guess))
        except _MISFITS:
            continue
    raise ValueError("the known parts of the inputs' shapes do not fit the operation")


def _with_symbols(shapes: Sequence[Dims], suffix: str) -> list[tuple[object, ...]]:
    """Returns the shapes with a symbol for each unknown dimension: all different, or all equal."""
    scope = export.SymbolicScope()
    counter = 0
    result: list[tuple[object, ...]] = []
    for dims in shapes:
        row: list[object] = []
        for dim in dims or ():
            if dim is None:
                counter += 1
                row.append(export.symbolic_shape("d" + suffix.format(index=counter), scope=scope)[0])
            else:
                row.append(dim)
        result.append(tuple(row))
    return result


def _spec(out: Any) -> Spec:
    return Spec(from_numpy(np.dtype(out.dtype)), tuple(d if isinstance(d, int) else None for d in out.shape))


def hashable(value: object) -> object:
    """Returns a hashable object that is equal for equal values of attributes."""
    if isinstance(value, dict):
        return tuple(sorted((k, hashable(v)) for k, v in value.items()))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return tuple(hashable(v) for v in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return value.tobytes(), value.shape, str(value.dtype)
    if isinstance(value, FunctionAttr):
        return value.name, hashable(value.attrs)
    if isinstance(value, TensorShape):
        return value.as_dims
    return value


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
