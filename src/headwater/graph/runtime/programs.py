"""XLA programs for `Compute` instructions, traced and compiled once for all sessions with equal content.

A program refers to no session and to no variable's cell. Plans of different sessions with equal operations, such as the
plans of several workers, share one program, which is found by a hash of its content. So a ``ps`` compiles nothing when
a worker joins (docs/decisions/one-lock.md).
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary, ref

import numpy as np

from headwater.data.io.tensor_proto import make_tensor_proto
from headwater.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from headwater.graph.kernels.generator import seeds_of
from headwater.graph.ops.bodies import call
from headwater.graph.ops.faults import can_fail, error_of, fault_of
from headwater.graph.ops.inner_faults import noting
from headwater.graph.passes.plan import Compute, Node, encode_compute
from headwater.graph.registry import FunctionAttr, Kind, as_outputs
from headwater.graph.runtime.devices import memory_stats, placed
from headwater.graph.runtime.kernel_code import same_attrs
from headwater.graph.runtime.kernel_lookup import forward_attrs, own_attrs
from headwater.graph.runtime.small_updates import SmallUpdates
from headwater.lazy_jax import jax
from headwater.ps.memory import check_memory

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax

#: Estimated memory of an executable in bytes: fixed, and for each operation.
_EXECUTABLE_BYTES: Final = 500_000
_OPERATION_BYTES: Final = 50_000
#: Memory that the executables of a process may take by this estimate.
_MAX_BYTES: Final = 1 << 29


class ExecutableCache:
    """Limits the memory of a process's executables by dropping the least recently used ones. Thread-safe.

    A dropped executable is compiled again if it is needed.

    Args:
      max_bytes: the limit. The executable that was used last is kept even if it alone exceeds the limit.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        # Reentrant, because the garbage collector may call `forget` at any time.
        self._lock = threading.RLock()
        # Weak references: a program is freed with the last session that uses it.
        self._sizes: OrderedDict[ref[Program], int] = OrderedDict()
        self._nbytes = 0

    def use(self, program: Program) -> None:
        """Records a use, and drops other executables if the memory exceeds the limit."""
        with self._lock:
            if program.reference in self._sizes:
                self._sizes.move_to_end(program.reference)
                return
            self._sizes[program.reference] = program.nbytes
            self._nbytes += program.nbytes
            dropped: list[Program | None] = []
            while self._nbytes > self._max_bytes and len(self._sizes) > 1:
                oldest, nbytes = self._sizes.popitem(last=False)
                self._nbytes -= nbytes
                dropped.append(oldest())
        for each in dropped:
            if each is not None:
                each.drop()

    def is_kept(self, program: Program) -> bool:
        """Returns whether the program's executable is recorded here, and was not dropped."""
        return program.reference in self._sizes

    def forget(self, reference: ref[Program]) -> None:
        """Removes a program that no longer exists."""
        with self._lock:
            try:  # noqa: SIM105 - at the end of the interpreter, the module's names are gone
                self._nbytes -= self._sizes.pop(reference, 0)
            except TypeError:
                pass  # a reference that was never a key has no hash after the program's end


executables: Final = ExecutableCache()


class Program:
    """A function of variables' values and inputs of one shape, compiled by XLA.

    Args:
      compute: the operations.
      static: values of its static inputs, by name.
      donated: variables that it reads and changes; their buffers are donated to the executable.
      kept: variables that it only reads.
      written: all variables that it changes, with or without reading them.
      seed: seed of operations without seeds.
      prechecked: names of operations with indices that are checked before each run.

    Attributes:
      run: function of the values of ``donated`` and ``kept``, the inputs, and the step's number (for random numbers).
        It returns the new values of ``written``, the outputs, and for each operation with a check, whether it failed.
      failing: names of operations that may fail; complete after tracing.
      has_run: whether it has run successfully. Tracing and compiling can then no longer fail, and the memory has
        sufficed.
      nbytes: estimated memory of its executable.
      reference: a weak reference to this program.
    """

    def __init__(
        self,
        compute: Compute,
        static: Mapping[str, AnyArray],
        donated: Sequence[str],
        kept: Sequence[str],
        written: Sequence[str],
        seed: int,
        prechecked: Collection[str] = (),
    ) -> None:
        dynamic = [name for name in compute.inputs if name not in compute.static]
        # Check on CPUs only, as TensorFlow does; on GPUs, results of failing operations are arbitrary.
        checks = compute.device.startswith("CPU")
        unchecked = {*prechecked, *_gradients_without_check(compute.nodes)}
        self._device = compute.device
        # A local variable, because `run` must not refer to `self`: with such a reference, the program would stay in
        # memory after its sessions have ended.
        failing: set[str] = set()
        self.failing: set[str] = failing

        def run(used: Sequence[AnyArray], read: Sequence[AnyArray], inputs: Sequence[Any], counter: Any) -> object:
            state: dict[str, Any] = dict(zip((*donated, *kept), (*used, *read), strict=True))
            values: dict[str, Any] = {**static, **dict(zip(dynamic, inputs, strict=True))}
            faults: dict[str, AnyArray] = {}

            def trace_one(node: Node, values: dict[str, AnyArray], state: dict[str, AnyArray]) -> None:
                with jax.named_scope(node.name), noting(faults if checks else None):  # the names are for profiles
                    trace(node, values, state, seed, counter)

            small = SmallUpdates(trace_one)
            for node in compute.nodes:
                if small.needed_by(node):
                    small.run(values, state)
                fault = _fault(node, values, state) if checks and node.name not in unchecked else None
                if isinstance(fault, np.bool_) and fault:
                    # The operation fails in every run, and tracing it may be impossible.
                    raise error_of(node.type, node.name, node.attrs)
                if fault is not None:
                    faults[node.name] = fault
                if not (checks and small.collect(node, state)):
                    trace_one(node, values, state)
            small.run(values, state)
            failing.update(faults)
            return [state[name] for name in written], [values[name] for name in compute.outputs], faults

        # The name shows up in profiles.
        run.__name__ = compute.nodes[-1].name.replace("/", "_") if compute.nodes else "empty"
        self.run: Any = _jax.jit(run, donate_argnums=(0,) if donated else (), **placed(compute.device))
        self._compiling = threading.Lock()
        self._compiled: set[Any] = set()
        self.has_run: bool = False
        self.nbytes: int = _EXECUTABLE_BYTES + _OPERATION_BYTES * len(compute.nodes)
        self.reference: ref[Program] = ref(self, executables.forget)

    def compile(self, donated: Sequence[Any], kept: Sequence[Any], inputs: Sequence[Any], counter: object) -> None:
        """Traces and compiles the program for arrays of these shapes and types, unless that was done before. `run`
        reuses the result.

        Raises:
          OpError: an operation cannot be computed with such arrays.
          MemoryError: the program needs more memory than the device has.
        """
        key = _key_of(donated, kept, inputs)
        if key in self._compiled:
            return
        # Several workers may send the same plan at once; the other threads wait instead of compiling it again.
        with self._compiling:
            if key not in self._compiled:
                check_memory(self.run.lower(donated, kept, inputs, counter).compile(), memory_stats(self._device))
                self._compiled.add(key)

    def drop(self) -> None:
        """Frees the memory of the executable. A later run compiles it again."""
        with self._compiling:
            self.run.clear_cache()
            self._compiled.clear()
            self.has_run = False


def _key_of(*arrays: Sequence[Any]) -> object:
    return tuple([(value.shape, value.dtype) for values in arrays for value in values])


def _gradients_without_check(nodes: Sequence[Node]) -> list[str]:
    """Returns the names of gradient operations that need no check: they fail only if their forward operation fails,
    which is among ``nodes`` and is checked itself."""
    forwards: dict[tuple[str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    found: list[str] = []
    for node in nodes:
        if node.type != "Vjp":
            forwards.setdefault((node.type, node.inputs), []).append(own_attrs(node))
            continue
        forward: FunctionAttr = node.attrs["f"]
        attrs = forward_attrs(forward)
        same = forwards.get((forward.name, node.inputs[: len(node.attrs["wanted"])]), ())
        if can_fail(forward.name, attrs) and any(same_attrs(attrs, each) for each in same):
            found.append(node.name)
    return found


def shapes_of(pairs: Iterable[Any]) -> list[object]:
    """Converts pairs of shape and type to JAX's abstract arrays, the arguments of `Program.compile`."""
    return [_jax.ShapeDtypeStruct(*pair) for pair in pairs]


# Weak references: a program is freed with the last session that uses it.
_programs: WeakValueDictionary[bytes, Program] = WeakValueDictionary()
_lock = threading.Lock()


def shared_program(
    compute: Compute,
    static: Mapping[str, np.ndarray[Any, Any]],
    donated: Sequence[str],
    kept: Sequence[str],
    written: Sequence[str],
    prechecked: Collection[str] = (),
    shapes: object = (),
) -> Program:
    """Returns the program of a compute without random numbers; sessions with equal computes share it.

    Args:
      compute, static, donated, kept, written, prechecked: see `Program`.
      shapes: the shapes of the inputs; each value gets a program of its own.
    """
    content = hashlib.blake2b(compute.digest or encode_compute(compute))
    content.update(repr(shapes).encode())
    for name, value in static.items():
        content.update(name.encode() + make_tensor_proto(value).SerializeToString())
    key = content.digest()
    with _lock:
        found = _programs.get(key)
        if found is None:
            # The seed is irrelevant: shared programs have no random operations.
            found = _programs[key] = Program(compute, static, donated, kept, written, 0, prechecked)
    return found


def trace(node: Node, values: dict[str, AnyArray], state: dict[str, AnyArray], seed: int, counter: AnyArray) -> None:
    """Evaluates one operation in an environment.

    Args:
      node: the operation.
      values: maps tensors to their values; gets the operation's outputs.
      state: maps variables to their present values; an update replaces the value here.
      seed: seed of random operations without seeds of their own.
      counter: the step's number, from which random numbers are derived.
    """
    definition = node.definition
    if node.type == "VariableV2":
        values[f"{node.name}:0"] = state[node.name]
        return
    inputs = [
        state.get(node.refs[index]) if index in node.refs else values[name] for index, name in enumerate(node.inputs)
    ]
    attrs = {key: value for key, value in node.attrs.items() if key in definition.attrs}
    try:
        if definition.kind is Kind.STATEFUL:
            changed = definition.lower(*inputs, **attrs)
            for position, value in zip(definition.updates, changed, strict=True):
                variable = node.refs[position]
                if variable in state and node.attrs.get("validate_shape", True):
                    _check_update(variable, state[variable], value)
                state[variable] = value
            values[f"{node.name}:0"] = changed[0]
            return
        if definition.kind is Kind.RANDOM:
            result = definition.lower(_key(attrs, seed, node.name, counter), *inputs, **attrs)
        else:
            result = call(definition, inputs, attrs)
    except OpError:
        raise
    except NotImplementedError as error:
        raise UnimplementedError(f"{_first_line(error)} [in {node.type} operation {node.name!r}]") from error
    except (TypeError, ValueError, IndexError, KeyError, ZeroDivisionError) as error:
        raise InvalidArgumentError(f"{_first_line(error)} [in {node.type} operation {node.name!r}]") from error
    for index, value in enumerate(as_outputs(result)):
        values[f"{node.name}:{index}"] = value


def _check_update(variable: str, old: AnyArray, new: AnyArray) -> None:
    """Raises an error if an update changes the variable's type or shape. That can happen if the graph of another
    session has declared the variable differently."""
    if new.shape != old.shape:
        raise ValueError(f"variable {variable!r} has shape {old.shape}, and its update {new.shape}")
    if new.dtype != old.dtype:
        raise InternalError(f"variable {variable!r} is of type {old.dtype}, and its update of {new.dtype}")


def _fault(node: Node, values: Mapping[str, AnyArray], state: Mapping[str, AnyArray]) -> AnyArray | None:
    """Returns whether an operation fails, as an array; None if it cannot fail."""
    inputs = [
        state.get(node.refs[index]) if index in node.refs else values[name] for index, name in enumerate(node.inputs)
    ]
    return fault_of(node.type, inputs, node.attrs)


def _key(attrs: dict[str, Any], seed: int, name: str, counter: AnyArray) -> AnyArray:
    """Returns the random key of one operation in one step, from its seeds and the step's number."""
    first, second = seeds_of(attrs, name, seed)
    key = jax.random.fold_in(jax.random.key(first), second & 0xFFFFFFFF)
    # The key depends on the step's number rather than on a stored state, so that a step that is repeated, or run on a
    # backup, draws the same numbers.
    return jax.random.fold_in(key, counter)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
