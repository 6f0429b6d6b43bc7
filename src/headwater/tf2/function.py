"""`function`: a Python function that is traced once for each kind of arguments, and then runs compiled.

Variables that it reads and changes become arguments and results of the compiled function; elements of datasets that it
takes from iterators become arguments. If a tensor controls a condition or a loop, the function is converted by
AutoGraph and traced again. A function that cannot be compiled, because it iterates over a dataset, prints a tensor, or
has branches of different shapes, runs as Python: functions that it calls, and functions that it passes to
``strategy.run``, are still compiled.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.core
import keras
import numpy as np
from keras import StatelessScope

from headwater.data.spec import TensorSpec
from headwater.dtypes import from_numpy, string
from headwater.errors import OutOfRangeError
from headwater.graph.operation import Tensor as GraphTensor
from headwater.tf2.at_once import adds_operations
from headwater.tf2.exchange import compiled
from headwater.tf2.scope import RecordingScope
from headwater.tf2.tape import value_of, variable_changes
from headwater.tf2.tensors import host_tensor
from headwater.tf2.tracing import (
    CreatesVariables,
    Pulls,
    RunsInPython,
    Tracing,
    UnknownElement,
    converts,
    in_python,
    trace_of,
    tracing,
)

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = jax.tree_util
_Variable = keras.Variable
_stateless = StatelessScope

_log = logging.getLogger("headwater")
_BOUND = "_headwater_bound_functions"
"""The attribute of an object with the functions that are its methods."""

_PACKAGE = str(Path(__file__).parents[2])

#: Errors of code that needs the value of a tensor: tensors have no values while a function is traced.
NEEDS_VALUES: tuple[type[Exception], ...] = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


def as_traced(function: Callable[..., object]) -> Callable[..., object]:
    """Returns ``function`` converted by AutoGraph if the current trace is converted; else ``function`` itself."""
    if not converts():
        return function
    conversion = _conversion()
    if conversion.is_left_alone(function):
        return function
    try:
        return conversion.converted(function)
    except conversion.ConversionError as error:
        _log.warning("%s", error)
        return function


def _conversion_of_graphs() -> Tree:
    """Returns the converter for control flow in graphs, imported lazily."""
    from headwater.tf1.functional.autograph import conversion  # noqa: PLC0415

    return conversion


def _conversion() -> Tree:
    """Returns the converter for traced control flow, imported lazily: most functions need no conversion."""
    from headwater.tf2 import control_flow  # noqa: PLC0415

    return control_flow.conversion


class _Switch:
    eagerly = False


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Sets whether functions run as Python rather than compiled."""
    _Switch.eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Returns whether functions run as Python rather than compiled."""
    return _Switch.eagerly


class _Compiled:
    """The result of a trace.

    Attributes:
      variables: variables that the function reads or changes.
    """

    def __init__(self, run: Tree, variables: list[Tree], trace: Tracing, more: _Results) -> None:
        self._run = run
        self.variables = variables
        self._strategies = list(trace.strategies.values())
        self._pushes = [(strategy, optimizer, variables) for strategy, optimizer, variables, _ in trace.pushes]
        self._served = list(trace.served.values())
        self._more = more
        self._aligned = False

    @property
    def written(self) -> Sequence[Tree]:
        """The variables that it changes."""
        return self._more.written

    def __call__(self, values: Sequence[Tree], pulled: Sequence[Tree]) -> Tree:
        for strategy in self._served:
            strategy.read(self.variables)
        if not self._aligned:
            for strategy in self._strategies:
                strategy.align(self.variables)
            self._aligned = True
        state = [value_of(variable) for variable in self.variables]
        found = list(self._run(*state, *values, *pulled))
        for variable, value in zip(self._more.written, found, strict=False):
            variable_changes(variable)
            variable._direct_assign(value)
        rest = found[len(self._more.written) :]
        for strategy, optimizer, variables in self._pushes:
            gradients, rest = rest[: len(variables)], rest[len(variables) :]
            strategy.write(optimizer, variables, gradients, self._more.written)
        return self._more.structure(rest)


class _Results:
    """Converts the results of a compiled function to the return value of the Python function."""

    def __init__(self, written: list[Tree], leaves: list[Tree], tree: object) -> None:
        self.written = written
        self._leaves = [None if isinstance(leaf, jax.Array) else (leaf,) for leaf in leaves]
        self._tree = tree

    def structure(self, arrays: Sequence[jax.Array]) -> Tree:
        rest = iter(arrays)
        leaves = [next(rest) if leaf is None else leaf[0] for leaf in self._leaves]
        return _tree.tree_unflatten(self._tree, leaves)


class _BoundFunctions:
    """The functions that are methods of one object. Copies of the object do not have them."""

    def __init__(self) -> None:
        self.by_function: dict[Function, Function] = {}

    def __reduce__(self) -> tuple[type[_BoundFunctions], tuple[()]]:
        return _BoundFunctions, ()


class Function:
    """A compiled function.

    Args:
      python_function: the function to compile.
      input_signature: specs of its arguments, or None.
      autograph: whether control flow that depends on tensors may be converted.

    Attributes:
      python_function: the argument.
    """

    def __init__(
        self, python_function: Callable[..., object], input_signature: Tree = None, *, autograph: bool = True
    ) -> None:
        if isinstance(python_function, Function):
            python_function = python_function.python_function
        self.__name__: str = getattr(python_function, "__name__", type(python_function).__name__)
        functools.update_wrapper(self, python_function)
        self.python_function = python_function
        self.input_signature = input_signature
        self._lock = threading.RLock()
        self._traces: dict[object, _Compiled] = {}
        self._iterators: dict[object, list[int | Pulls]] = {}
        self._kept: list[object] = []
        self._variables: dict[int, object] = {}
        self._in_python = False
        self._autograph = autograph
        self._converting = False
        self._creates_variables = False
        self._called: dict[object, tuple[Tree, Tree]] = {}
        self._concrete: list[ConcreteFunction] = []

    def signatures(self) -> list[tuple[Tree, Tree]]:
        """Returns the positional and named arguments with which it was called, with specs in place of tensors and with
        defaults of omitted arguments.

        With an ``input_signature``, these are its specs.
        """
        if self.input_signature is not None:
            return [(tuple(self.input_signature), {})]
        concrete = [function.structured_input_signature for function in self._concrete]
        found: list[tuple[Tree, Tree]] = []
        for args, kwargs in [*concrete, *self._called.values()]:
            bound = inspect.signature(self.python_function).bind(*args, **kwargs)
            bound.apply_defaults()
            if (pair := (bound.args, bound.kwargs)) not in found:
                found.append(pair)
        return found

    def variables_used(self) -> tuple[set[int], set[int]] | None:
        """Returns the ids of variables that it has used, and of variables that it has changed; None if it runs as
        Python."""
        if self._in_python or _Switch.eagerly:
            return None
        return set(self._variables), {id(variable) for found in self._traces.values() for variable in found.written}

    def __get__(self, instance: object, owner: type | None = None) -> Tree:
        return self if instance is None else self._bound_to(instance)

    def _bound_to(self, instance: Tree) -> Tree:
        """Returns the function for the methods of one object, which has its own traces."""
        try:
            held = vars(instance).setdefault(_BOUND, _BoundFunctions()).by_function
        except TypeError:  # an object without attributes of its own
            return functools.partial(self, instance)
        found = held.get(self)
        if found is None or found.python_function.__self__ is not instance:  # the object may be a copy
            method = types.MethodType(self.python_function, instance)
            found = held[self] = Function(method, self.input_signature, autograph=self._autograph)
        return found

    def get_concrete_function(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """Returns the function for arguments of these specs and Python values.

        Raises:
          TypeError: there are no arguments, and the function has no ``input_signature``.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = tuple(self.input_signature)
        made = ConcreteFunction(self.python_function, args, kwargs, autograph=self._autograph)
        self._concrete.append(made)
        return made

    def __call__(self, *args: object, **kwargs: object) -> Tree:
        if adds_operations():
            return _conversion_of_graphs().as_converted(self.python_function)(*args, **kwargs)
        if tracing() is not None or any(
            isinstance(leaf, jax.core.Tracer) for leaf in _tree.tree_leaves((args, kwargs))
        ):
            if self._in_python:
                raise RunsInPython(f"{self.__name__} cannot be compiled")
            return (as_traced(self.python_function) if self._autograph else self.python_function)(*args, **kwargs)
        if self._in_python or _Switch.eagerly:
            return self._as_python(args, kwargs)
        with self._lock:
            return self._call(args, kwargs)

    def _as_python(self, args: Tree, kwargs: Tree) -> Tree:
        with in_python():
            return self.python_function(*args, **kwargs)

    def _call(self, args: Tree, kwargs: Tree) -> Tree:
        if self.input_signature is not None:
            args, kwargs = self._as_signed(args, kwargs), {}
        leaves, tree = _tree.tree_flatten((args, kwargs))
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray, np.generic))]
        values = [leaves[at] for at in places]
        fixed = [(None if at in set(places) else leaf) for at, leaf in enumerate(leaves)]
        key = (tree, tuple(map(_key_of, fixed)), tuple((value.shape, str(value.dtype)) for value in values))
        if key not in self._called and not any(type(part) is int for part in key[1]):
            self._called[key] = _tree.tree_unflatten(tree, [_spec_of(leaf) for leaf in leaves])
        if any(value.dtype.kind in "OSU" for value in values):
            return self._run_in_python("text cannot be compiled", args, kwargs, quiet=True)
        pulled: list[tuple[Pulls, object]] = []
        try:
            for place in self._iterators.get(key, ()):
                iterator = leaves[place] if isinstance(place, int) else place
                pulled.append((iterator, _pull(iterator)))
            found, elements = self._find(key, pulled)
            if found is None:
                found = self._trace(key, tree, leaves, places, pulled)
                _, elements = self._find(key, pulled)
        except CreatesVariables:
            _put_back(pulled)
            if self._creates_variables:
                raise ValueError(
                    f"{self.__name__}: tf.function-decorated function tried to create variables on non-first call: "
                    "create them in its first call only, or before it runs"
                ) from None
            self._creates_variables = True
            return self._as_python(args, kwargs)
        except (RunsInPython, *NEEDS_VALUES) as error:
            _put_back(pulled)
            if self._autograph and not self._converting and not isinstance(error, RunsInPython):
                self._converting = True
                return self._call(args, kwargs)
            quiet = isinstance(error, RunsInPython) and error.quiet
            return self._run_in_python(_said(error), args, kwargs, quiet=quiet)
        except BaseException:
            _put_back(pulled)
            raise
        return found(values, elements)

    def _find(self, key: object, pulled: Sequence[tuple[Pulls, object]]) -> tuple[_Compiled | None, list[object]]:
        elements: list[Tree] = _tree.tree_leaves([element for _, element in pulled])
        if any(element.dtype.kind in "OSU" for element in elements):
            raise RunsInPython("text cannot be compiled")
        specs = tuple((element.shape, str(element.dtype)) for element in elements)
        return self._traces.get((key, specs)), elements

    def _run_in_python(self, why: str, args: object, kwargs: object, *, quiet: bool) -> Tree:
        if not quiet:
            _log.warning(
                "%s needs the value of a tensor to continue (%s), so it runs as Python, operation by operation: use "
                "tf.cond, tf.while_loop or tf.where to have it compiled",
                self.__name__,
                why,
            )
        self._in_python = True
        return self._as_python(args, kwargs)

    def _trace(
        self, key: object, tree: object, leaves: list[Tree], places: Sequence[int], pulled: list[tuple[Pulls, Tree]]
    ) -> _Compiled:
        values = [leaves[at] for at in places]
        while True:
            known = list(self._variables.values())
            try:
                # Variables that the function makes must be initialized after the trace, with real values.
                with _stateless():
                    closed, used, trace, results = self._traced(known, tree, leaves, places, values, pulled)
            except UnknownElement as asked:
                pulled.append((asked.iterator, _pull(asked.iterator)))
                continue
            new = {at: variable for at, variable in used.items() if at not in self._variables}
            if not new:
                break
            self._variables.update(new)
        found = _Compiled(compiled(closed), known, trace, results)
        elements: list[Tree] = _tree.tree_leaves([element for _, element in pulled])
        specs = tuple((element.shape, str(element.dtype)) for element in elements)
        self._traces[key, specs] = found
        at = {id(leaf): place for place, leaf in enumerate(leaves)}
        self._iterators[key] = [at.get(id(iterator), iterator) for iterator, _ in pulled]
        # Traces are looked up by ids of arguments. Keep these objects alive, so that no other object reuses an id.
        self._kept.append([leaf for leaf in leaves if type(_key_of(leaf)) is int])
        return found

    def _traced(
        self,
        known: list[Tree],
        tree: object,
        leaves: list[Tree],
        places: Sequence[int],
        values: Sequence[Tree],
        pulled: list[tuple[Pulls, Tree]],
    ) -> tuple[Tree, dict[int, Tree], Tracing, _Results]:
        elements = [element for _, element in pulled]
        recorded: list[Tree] = []

        def run(state: Sequence[Tree], values: Sequence[jax.Array], elements: Sequence[Tree]) -> Tree:
            given = list(leaves)
            for at, value in zip(places, values, strict=True):
                given[at] = value
            args, kwargs = _tree.tree_unflatten(tree, given)
            with RecordingScope(known, state) as scope, trace_of(pulled, converting=self._converting) as trace:
                trace.stand_ins = list(elements)
                result = as_traced(self.python_function)(*args, **kwargs)
                result = _tree.tree_map(lambda leaf: value_of(leaf) if isinstance(leaf, _Variable) else leaf, result)
            flat, shape = _tree.tree_flatten(result)
            written = list(scope.written.values())
            recorded[:] = [dict(scope.used), trace, _Results(written, flat, shape)]
            gradients = [gradient for *_, found in trace.pushes for gradient in found]
            return (
                [scope.current(variable) for variable in written],
                gradients,
                [leaf for leaf in flat if isinstance(leaf, jax.Array)],
            )

        closed = jax.make_jaxpr(run)([value_of(variable) for variable in known], values, elements)
        used, trace, results = recorded
        return closed, used, trace, results

    def _as_signed(self, args: tuple[Tree, ...], kwargs: Mapping[str, Tree]) -> tuple[Tree, ...]:
        """Converts the arguments to tensors of the signature's specs.

        Raises:
          TypeError: the arguments have the wrong structure, or a tensor has the wrong element type.
          ValueError: a tensor has the wrong shape.
          NotImplementedError: the signature contains other specs than `tf.TensorSpec`.
        """
        name, signature = self.__name__, tuple(self.input_signature or ())
        if kwargs:
            names = self.argument_names()
            given = dict(zip(names, args, strict=False)) | dict(kwargs)
            args = tuple(given.pop(word) for word in names[: len(signature)] if word in given)
            if given:
                raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(given))!r}")
        if len(args) != len(signature):
            raise TypeError(f"{name}() takes {len(signature)} tensors, as its input_signature requires")
        specs, structure = _tree.tree_flatten(signature)
        try:
            values = structure.flatten_up_to(args)
        except ValueError as error:
            raise TypeError(f"{name}(): the arguments do not have the structure of input_signature: {error}") from None
        return _tree.tree_unflatten(structure, [_signed(name, *pair) for pair in zip(values, specs, strict=True)])

    def argument_names(self) -> list[str]:
        """Returns the names of the arguments that may be given by position."""
        return _positional(self.python_function)

    def full_arguments(self) -> tuple[list[str], tuple[Tree, ...], list[str], str | None, str | None]:
        """Returns the arguments: their names, the defaults of the last ones, names of keyword-only arguments, and names
        of the arguments for further positional and named values."""
        parameters = inspect.signature(self.python_function).parameters.values()
        names = _positional(self.python_function)
        defaults = [one.default for one in parameters if one.name in names and one.default is not one.empty]
        only, varargs, varkw = (
            [one.name for one in parameters if one.kind is kind]
            for kind in (
                inspect.Parameter.KEYWORD_ONLY,
                inspect.Parameter.VAR_POSITIONAL,
                inspect.Parameter.VAR_KEYWORD,
            )
        )
        return names, tuple(defaults), only, next(iter(varargs), None), next(iter(varkw), None)


class ConcreteFunction(Function):
    """A function for arguments of given specs. It is called with the tensors alone, by position or by name.

    Args:
      args: its positional arguments, with specs or arrays in the places of tensors.
      kwargs: its other arguments.
      autograph: see `Function`.

    Attributes:
      structured_input_signature: the arguments, with specs.
      whole: the function of all arguments.
    """

    def __init__(
        self, python_function: Callable[..., object], args: Tree, kwargs: Tree, *, autograph: bool = True
    ) -> None:
        args, kwargs = _tree.tree_map(_spec_of, (args, kwargs))
        leaves, tree = _tree.tree_flatten((args, kwargs))
        at = [place for place, leaf in enumerate(leaves) if isinstance(leaf, TensorSpec)]

        def call(*tensors: object) -> object:
            filled = list(leaves)
            for place, tensor in zip(at, tensors, strict=True):
                filled[place] = tensor
            given, named = _tree.tree_unflatten(tree, filled)
            return self.whole(*given, **named)

        self.whole = python_function
        self._names = names_of_tensors(python_function, args, kwargs)
        super().__init__(call, [leaves[place] for place in at], autograph=False)
        self.structured_input_signature: tuple[Tree, Tree] = (args, kwargs)
        self.__name__ = getattr(python_function, "__name__", type(python_function).__name__)
        if autograph:
            self.whole = Function(python_function)

    def argument_names(self) -> list[str]:
        return self._names


def _positional(function: Callable[..., object]) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(function).parameters.values() if one.kind in kinds]


def names_of_tensors(function: Callable[..., object], args: Tree, kwargs: Mapping[str, Tree]) -> list[str]:
    """Returns names for the tensors among arguments: from their specs, or the names of the arguments."""
    names = [*_positional(function), *(f"args_{at}" for at in range(len(args)))]
    pairs = [*zip(names, args, strict=False), *sorted(kwargs.items())]
    return [
        spec.name or (name if len(leaves) == 1 else f"{name}_{at}")
        for name, value in pairs
        for leaves in [[leaf for leaf in _tree.tree_leaves(value) if isinstance(leaf, TensorSpec)]]
        for at, spec in enumerate(leaves)
    ]


def _spec_of(leaf: Tree) -> Tree:
    """Returns the spec of a tensor; another value unchanged."""
    if isinstance(leaf, _Variable):
        leaf = value_of(leaf)
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return leaf
    array: Tree = leaf
    return TensorSpec(array.shape, string if array.dtype.kind in "OSU" else from_numpy(np.dtype(array.dtype)))


def _said(error: BaseException) -> str:
    """Formats an error's message with the line of the program that caused it."""
    said = str(error).partition("\n")[0]
    lines = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and not frame.filename.startswith(_PACKAGE)
    ]
    return f"{said} {lines[-1].filename}:{lines[-1].lineno}: {lines[-1].line}" if lines else said


def _key_of(leaf: Tree) -> object:
    """Returns the cache key of an argument that is not an array."""
    if leaf is None or isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return type(leaf), leaf
    if hasattr(leaf, "put_back"):  # an iterator: calls may pass different iterators over elements of the same spec
        return "iterator", str(leaf.element_spec)
    return id(leaf)


def _signed(name: str, value: Tree, spec: Tree) -> Tree:
    """Converts one argument to a tensor of its spec; see `Function._as_signed`."""
    if not isinstance(spec, TensorSpec):
        raise NotImplementedError(f"{name}(): input_signature has {spec!r}, where only a tf.TensorSpec is supported")
    array = value_of(value) if isinstance(value, _Variable) else value
    if isinstance(array, GraphTensor):
        return array
    if spec.dtype == string:
        array = host_tensor(array)
    elif isinstance(array, jax.Array | np.ndarray) and array.dtype != spec.dtype.numpy_dtype:
        raise TypeError(f"{name}(): a tensor of {array.dtype} does not fit {spec} of its input_signature")
    else:
        array = jax.numpy.asarray(array, spec.dtype.numpy_dtype)
    if not spec.shape.is_compatible_with(array.shape):
        raise ValueError(f"{name}(): a tensor of shape {array.shape} does not fit {spec} of its input_signature")
    return array


def _pull(iterator: Pulls) -> object:
    try:
        return iterator.pull()
    except StopIteration:
        raise OutOfRangeError("End of sequence") from None


def _put_back(pulled: Sequence[tuple[Pulls, object]]) -> None:
    for iterator, element in reversed(pulled):
        iterator.put_back(element)


def function(
    func: Callable[..., object] | None = None,
    input_signature: object = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: object = None,
    experimental_autograph_options: object = None,
    experimental_attributes: object = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Tree:
    """Returns a function that is traced and compiled at its calls; usable as a decorator with or without arguments.

    Args:
      func: the Python function.
      input_signature: specs of its arguments; arguments are converted to them.
      autograph: whether conditions and loops over tensors are compiled; else such a function runs as Python.
      jit_compile, reduce_retracing, experimental_relax_shapes, experimental_compile: hints that do not change results;
        ignored. XLA always compiles the function, once for each kind of arguments.
      experimental_implements, experimental_autograph_options, experimental_attributes, experimental_follow_type_hints:
        not supported.

    Raises:
      NotImplementedError: an unsupported argument is given.
    """
    del jit_compile, reduce_retracing, experimental_relax_shapes, experimental_compile
    refused = {
        "experimental_implements": experimental_implements,
        "experimental_autograph_options": experimental_autograph_options,
        "experimental_attributes": experimental_attributes,
        "experimental_follow_type_hints": experimental_follow_type_hints,
    }
    for name, value in refused.items():
        if value is not None:
            raise NotImplementedError(f"tf.function: {name} is not supported")

    def decorated(inner: Callable[..., object]) -> Function:
        return Function(inner, input_signature, autograph=autograph)

    return decorated if func is None else decorated(func)
