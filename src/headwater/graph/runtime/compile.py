"""Runs a `Compute` instruction, on kernels or as an XLA executable.

Values of variables that the executable changes are donated to it, so that updates happen in place. It is traced and
compiled (`headwater.graph.runtime.programs`) before the lock of the variables is taken, so that other steps need not
wait.
"""

from __future__ import annotations

import functools
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.errors import OpError
from headwater.graph.kernels.blas import use_one_thread
from headwater.graph.kernels.registry import NoKernel
from headwater.graph.ops.bodies import inner_nodes
from headwater.graph.ops.faults import error_of
from headwater.graph.passes.ahead import shown_variables
from headwater.graph.passes.plan import Compute, Node, VariableInfo
from headwater.graph.registry import Kind
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.recording import NOWHERE, InstructionPlace, Outcome
from headwater.graph.runtime.background import Compilation
from headwater.graph.runtime.compilations import count_compilations
from headwater.graph.runtime.devices import is_default, local_device, moved
from headwater.graph.runtime.host_values import cell_value, check_assigned
from headwater.graph.runtime.indices import IndexChecks
from headwater.graph.runtime.initial_values import MOST_RUNS, split
from headwater.graph.runtime.kernel_lookup import WithoutKernel
from headwater.graph.runtime.kernel_part import KernelPart
from headwater.graph.runtime.programs import MOST_EXECUTABLES, Program, shapes_of, shared_program
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.ways import Jit, Way, Ways
from headwater.import_hooks import on_import

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


#: Up to this size, in bytes, a copy by NumPy is faster than a call of an executable.
_SMALL_BYTES = 4096
_NONE = type(None)
_log = logging.getLogger(__name__)
_value_of: Callable[[Cell], Any] = attrgetter("value")
_shape_and_type = attrgetter("shape", "dtype")
on_import("jax", count_compilations)


class Executable:
    """A compiled `Compute`.

    Args:
      compute: the operations.
      variables: the plan's variables.
      resources: hold the variables' cells.
      shared: whether other sessions may run the same program.
      place: its position in the plan.
      jit: whether it runs on kernels or as an executable.
      fetched: outputs that are returned to the program.
    """

    def __init__(
        self,
        compute: Compute,
        variables: dict[str, VariableInfo],
        resources: Resources,
        shared: bool = False,
        place: InstructionPlace = NOWHERE,
        jit: Jit = Jit.AUTO,
        fetched: Collection[str] = (),
    ) -> None:
        self._compute = compute
        self._lock = resources.lock
        reads, writes = _variables_of(compute)
        self._cells = {
            name: resources.cell(variables[name].container, variables[name].cell) for name in {**reads, **writes}
        }
        self._donated = [name for name in reads if name in writes]
        self._kept = [name for name in reads if name not in writes]
        self._written = list(writes)
        self._donated_cells = [self._cells[name] for name in self._donated]
        self._kept_cells = [self._cells[name] for name in self._kept]
        self._written_cells = [self._cells[name] for name in self._written]
        self._random = any(node.definition.kind is Kind.RANDOM for node in compute.nodes)
        self._seed = secrets.randbits(31)
        self._static = [compute.inputs.index(name) for name in compute.static]
        self._dynamic = [i for i in range(len(compute.inputs)) if i not in self._static]
        # Static inputs are constants of a program, so there is one program for each combination of their values.
        self._by_static: dict[object, Program] = {}
        # Shapes and types of earlier runs that succeeded, so that tracing, compiling and memory cannot fail for them
        # any more.
        self._taken: set[Any] = set()
        self._shared = shared
        checks = IndexChecks(compute, self._cells)
        self._check_indices = checks or None
        self._looked_at = checks.looked_at
        self._device = None if is_default(compute.device) else local_device(compute.device)
        # On a shared task, other sessions would wait for the lock while this one compiles. A GPU may lack memory, which
        # has to be known before variables are donated.
        self._prepares = shared or self._device is not None
        self.touches_state: bool = bool(self._cells)
        self._stores = _stores(compute)
        self._assigned = _assigned(compute, self._written, reads)
        attrs_of = [(node.definition.admit, node.attrs, node.definition.attrs) for node in compute.nodes]
        # Operations such as accounting of examples, which may refuse an update of variables under the same lock.
        self._admits = [
            functools.partial(admit, resources, **{key: value for key, value in attrs.items() if key in taken})
            for admit, attrs, taken in attrs_of
            if admit is not None
        ]
        shown = shown_variables(compute)
        self.only_reads: bool = shown is not None
        self._place = place
        self._recorder = resources.recorder if self._written else None
        # A backup repeats the operations with the same inputs; without seeds, its random numbers would differ.
        self._repeatable = not any(_draws(node) for node in compute.nodes)
        self._output_cells = [self._cells[name] for name in shown or ()]
        self._ways: Ways | None = None
        # Replicas must compute the same bits, so the choice must not depend on the number of earlier runs of each.
        alone = self._recorder is None
        self._kernels = self._part(compute, fetched) if alone and jit is not Jit.ON and not self.only_reads else None
        if self._kernels is not None and jit is Jit.AUTO:
            self._ways = Ways()
        self._compilations: dict[object, Compilation | None] = {}
        self._run_before = False
        first, rest = split(compute) if self._device is None and self._kernels is None else (None, None)
        if rest is not None and resources.recorder is not None:
            first = None  # all changes are sent to the backup as one change
        self._initial_part = first
        self._initial = None if first is None else self._part(first)
        self._rest = (
            None if first is None or rest is None else Executable(rest, variables, resources, shared, place, jit)
        )
        self._runs = 0

    def _part(self, compute: Compute, fetched: Collection[str] = ()) -> KernelPart | None:
        """Returns the part that runs ``compute`` on kernels; None if that is not possible."""
        if not compute.device.startswith("CPU"):
            return None
        # With two threads, OpenBLAS took 12 to 50 ms for a product while other tasks computed, and 0.5 ms with one.
        use_one_thread()
        try:
            return KernelPart(compute, self._cells, self._lock, self._seed, self._looked_at, fetched)
        except WithoutKernel as missing:
            _log.debug("%s runs in an executable: there is no kernel of %s", compute.nodes[-1].name, missing)
            return None

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._compute.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        return self._compute.outputs

    def read(self) -> list[AnyArray]:
        """Returns the outputs of an executable that only reads variables, as arrays that later updates do not change.

        A NumPy view keeps the buffer in use, so the next update allocates another one (copy on write).
        """
        with self._lock:
            return list(map(np.asarray, values_of(self._output_cells)))

    def __call__(
        self,
        inputs: Sequence[Any],
        step_number: int,
        certain: Callable[[], None] | None = None,
        step: Step | None = None,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Runs it.

        Args:
          inputs: for the compute's inputs, in order.
          step_number: number of the step.
          certain: called just before the run, unless the run may fail: it cannot fail if the variables have values and
            inputs of these shapes and types were run before. The lock is held from this call until the variables have
            their new values, so that readers wait.
          step: the step, for operations that may refuse a change.

        Returns:
          The outputs, and the variables' new values, so that the caller can wait until they are computed.

        Raises:
          FailedPreconditionError: a variable that it reads has no value; the message names it.
          InvalidArgumentError: shapes that do not fit, an index out of range, or an integer division by zero, in the
            operation that the message names. Failures inside the executable are known only after the run: the variables
            have new values then.
        """
        if self._recorder is not None:
            assert step is not None
            known = self._recorder.known(step, self._place)
            if known is not None:
                if known.faults:
                    self._raise(known.faults)
                return known.outputs, ()
            inputs = [np.asarray(value) for value in inputs]  # may block, so before the lock is taken
        given = inputs
        # Initialisation usually runs once, so compiling a random number generator for each variable would cost more
        # than it saves.
        if self._initial is not None and self._runs < MOST_RUNS:
            self._runs += 1
            return self._initialise(self._initial, inputs, step_number, step)
        if self._check_indices is not None:
            self._check_indices(inputs)
        if self._kernels is not None:
            found = self._on_kernels(self._kernels, inputs, step_number, certain, step)
            if found is not None:
                return found, ()
        program, fixed, inputs = self._program_for(inputs)
        program.bound()
        run = program.run
        if self._device is not None:
            inputs = moved(inputs, self._device)
        # An acknowledged update must not fail. These can: operations with checks, operations that may refuse, and a
        # GPU, which may run out of memory.
        if program.failing or self._admits or self._device is not None:
            certain = None
        counter = np.uint32(step_number & 0xFFFFFFFF) if self._random else None
        if not self.touches_state:
            if self._device is not None:
                program.compile([], [], inputs, counter)
            _, outputs, faults = run([], [], inputs, counter)
            if faults:
                self._raise(faults)
            return outputs, ()
        if self._stores is not None and self._device is None and self._store(inputs, self._stores, certain, step):
            return (), ()
        key, taken = None, True
        if certain is not None or self._prepares:
            key = fixed, tuple(map(_shape_and_type, inputs))
            taken = key in self._taken
        if not taken and self._prepares:
            self._prepare(program, inputs, counter)
        with self._lock:
            # Read under the lock: after the run, the donated buffers are invalid for all other readers.
            donated, kept = self._state()
            made = self._admitted(step) if self._admits else ()
            if taken and certain is not None:
                certain()
            changed, outputs, faults = run(donated, kept, inputs, counter)
            written = zip(self._written_cells, changed, strict=True)
            refused = None
            if self._assigned:
                # The other variables were donated to this run and have no old value any more, so acceptable values are
                # installed even if one is refused.
                written, refused = _accepted(written, self._assigned)
            for cell, value in written:
                cell.value = value
                cell.counts[cell.slot] += 1
            if self._recorder is not None:
                self._record(step, given, outputs, faults)
            for tell in made:
                tell()
        if not taken:
            # Record the shapes only after the run: shapes of a failed run may fail again.
            if len(self._taken) >= MOST_EXECUTABLES:
                self._taken.clear()
            self._taken.add(key)
        # Release the lock first, because reading the results of checks waits for the executable.
        if faults:
            self._raise(faults)
        if refused is not None:
            raise refused
        return outputs, changed

    def _on_kernels(
        self,
        part: KernelPart,
        inputs: Sequence[Any],
        step_number: int,
        certain: Callable[[], None] | None,
        step: Step | None,
    ) -> tuple[AnyArray, ...] | None:
        """Returns the outputs, computed on kernels; None if this run uses an executable."""
        weigh = None
        if self._ways is not None:
            key = tuple([value.shape for value in inputs]), tuple([_static_key(inputs[i]) for i in self._static])
            way = self._ways.next_way(key)
            if way is Way.EXECUTABLE:
                if compilation := self._compilations.pop(key, None):
                    compilation.wait()
                return None
            if way is Way.KERNELS_WHILE_COMPILING:
                name, runs = self._compute.nodes[-1].name, self._ways.runs_of(key) - 1
                _log.debug(
                    "%s with inputs of %s is compiled after %d runs; it has had inputs of %d distinct shapes",
                    name,
                    key[0],
                    runs,
                    self._ways.distinct,
                )
                if self._device is None:
                    if len(self._compilations) >= MOST_EXECUTABLES:
                        self._compilations.clear()  # of shapes that did not occur again
                    self._compilations[key] = self._compile_in_background(inputs)
            weigh = self._ways.weigher(key)
        # Kernels find errors in shapes and types only when they run, so the first run is never announced early.
        if part.may_fail or self._admits or not self._run_before:
            certain = None
        try:
            if not self._written:
                outputs = part(inputs, step_number, _never, _never, weigh)
            else:
                made: list[Callable[[], object]] = []

                def admit() -> None:
                    if self._admits:
                        made.extend(self._admitted(step))
                    if certain is not None:
                        certain()

                def end(outputs: object) -> None:
                    del outputs
                    for tell in made:
                        tell()

                outputs = part(inputs, step_number, admit, end, weigh)
        except NoKernel as missing:
            _log.debug("%s runs in an executable: %s", self._compute.nodes[-1].name, missing)
            self._kernels = None
            return None
        self._run_before = True
        return outputs

    def _program_for(self, inputs: Sequence[Any]) -> tuple[Program, object, Sequence[Any]]:
        """Returns the program for the values of static inputs, these values as a key, and the other inputs."""
        fixed = tuple([_static_key(inputs[i]) for i in self._static])
        program = self._by_static.get(fixed)
        if program is None:
            # Copies, since the program may change arrays that it has fed.
            static = {self._compute.inputs[i]: np.array(inputs[i]) for i in self._static}
            if len(self._by_static) >= MOST_EXECUTABLES:
                self._by_static.clear()
            # Two threads may build it at the same time; both use the same result, so that it is compiled once.
            program = self._by_static.setdefault(fixed, self._build(static))
        return program, fixed, [inputs[i] for i in self._dynamic] if self._static else inputs

    def _compile_in_background(self, inputs: Sequence[Any]) -> Compilation | None:
        """Traces for the shapes of ``inputs`` and starts compiling; returns None if that fails.

        The trace delays this run. Beside runs on kernels it would take several times longer, and so would these, since
        both would wait for the interpreter's lock after each operation on arrays.

        The compilation refers to no array of a variable or input. So kernels can change variables in place meanwhile,
        and the program can change arrays that it has fed.
        """
        name = self._compute.nodes[-1].name
        try:
            program, _, dynamic = self._program_for(inputs)
            with self._lock:
                state = [list(map(_shape_and_type, values)) for values in self._state()]
            donated, kept, dynamic = map(shapes_of, (*state, map(_shape_and_type, dynamic)))
            compile_it = program.lowered(donated, kept, dynamic, np.uint32(0) if self._random else None)
        except Exception as error:  # noqa: BLE001  raised by the first run of the executable
            _log.debug("%s is not compiled in the background: %s", name, error)
            return None
        return Compilation(compile_it, name)

    def _admitted(self, step: Step | None) -> Sequence[Callable[[], object]]:
        """Asks operations to admit the change; returns callbacks for when it is done. Raises if an operation
        refuses."""
        return [admit(step) for admit in self._admits]

    def _raise(self, faults: Mapping[str, Any]) -> None:
        """Raises the error of the first operation that failed; waits for the run."""
        for node in self._compute.nodes:
            if faults.get(node.name):
                raise error_of(node.type, node.name, node.attrs)
            for inner in inner_nodes(node.attrs):
                if faults.get(inner.name):
                    raise error_of(inner.definition.name, inner.name, inner.attrs)

    def _record(
        self,
        step: Step | None,
        given: Sequence[Any],
        outputs: Sequence[object] = (),
        faults: Mapping[str, Any] | None = None,
    ) -> None:
        """Records the run with inputs ``given``. The caller holds the lock."""
        assert self._recorder is not None
        assert step is not None
        # None makes the recorder send the new values instead of the inputs.
        inputs = given if self._repeatable else None
        self._recorder.changed(step, self._place, inputs, self._written_cells, Outcome(outputs, faults or {}))

    def _store(
        self,
        inputs: Sequence[AnyArray],
        sources: Mapping[str, int],
        certain: Callable[[], None] | None,
        step: Step | None,
    ) -> bool:
        """Assigns small values without an executable, in a tenth of the time; returns False if the values do not
        fit."""
        with self._lock:
            pairs = [(self._cells[name], inputs[index]) for name, index in sources.items()]
            if not all(_fits(cell.value, value) for cell, value in pairs):
                return False
            if certain is not None:
                certain()
            for cell, value in pairs:
                cell.value = np.array(value)
                cell.value.flags.writeable = False  # a program that fetches it gets a copy
                cell.counts[cell.slot] += 1
            if self._recorder is not None:
                self._record(step, inputs)
        return True

    def _initialise(
        self, initial: KernelPart, inputs: Sequence[Any], step_number: int, step: Step | None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Computes initial values on kernels, and compiles only the other operations."""
        assert self._initial_part is not None
        values = dict(zip(self._compute.inputs, inputs, strict=True))
        given = [values[name] for name in self._initial_part.inputs]

        def end(outputs: Sequence[object]) -> None:
            if self._recorder is not None:
                self._record(step, inputs, outputs)

        outputs = initial(given, step_number, _nothing, end)
        values.update(zip(self._initial_part.outputs, outputs, strict=True))
        changed: Sequence[Any] = ()
        if self._rest is not None:
            found, changed = self._rest([values[name] for name in self._rest.inputs], step_number, None, step)
            values.update(zip(self._rest.outputs, found, strict=True))
        return [values[name] for name in self._compute.outputs], changed

    def _build(self, static: Mapping[str, np.ndarray[Any, Any]]) -> Program:
        names = self._donated, self._kept, self._written
        # Programs with random operations are not shared: operations without seeds must draw different numbers in each
        # session.
        if self._shared and not self._random:
            return shared_program(self._compute, static, *names, self._looked_at)
        return Program(self._compute, static, *names, self._seed, self._looked_at)

    def _prepare(self, program: Program, inputs: Sequence[AnyArray], counter: np.uint32 | None) -> None:
        """Traces and compiles a program before the lock is taken, so that other steps need not wait."""
        # Only shapes and types are used, so the values may be replaced, and donated, after the lock is released.
        with self._lock:
            donated, kept = self._state()
        program.compile(donated, kept, inputs, counter)

    def _state(self) -> tuple[list[AnyArray], list[AnyArray]]:
        """Returns the values of the variables that a run changes, and of the variables that it only reads. The caller
        holds the lock."""
        donated, kept = values_of(self._donated_cells), values_of(self._kept_cells)
        if self._device is not None:  # another session may have placed a variable on another device
            donated, kept = moved(donated, self._device), moved(kept, self._device)
        return donated, kept


def _nothing() -> None:
    """Placeholder for the callback before changes that nothing may refuse."""


def _never(*unused: object) -> Any:
    """Placeholder for the callback before changes, in parts that change no variable."""
    raise AssertionError(f"a part without variables changes one: {unused}")


def values_of(cells: Sequence[Cell]) -> list[AnyArray]:
    """Returns the variables' values; raises as `cell_value`."""
    # Functions in C for the usual case, as this runs in each step. The loop in Python is only needed to name the
    # variable.
    values = list(map(_value_of, cells))
    if _NONE in map(type, values):
        return [cell_value(cell) for cell in cells]
    return values


def _draws(node: Node) -> bool:
    """Whether an operation draws different random numbers when it is repeated in the same step."""
    return node.definition.kind is Kind.RANDOM and not (node.attrs.get("seed") or node.attrs.get("seed2"))


def _static_key(value: object) -> object:
    array = np.asarray(value)
    return array.tobytes(), array.shape, array.dtype.str


def _stores(compute: Compute) -> dict[str, int] | None:
    """Maps variables to input positions, if the `Compute` only assigns inputs to variables; else None."""
    if compute.outputs or not all(node.type == "Assign" and node.inputs[1] in compute.inputs for node in compute.nodes):
        return None
    return {node.refs[0]: compute.inputs.index(node.inputs[1]) for node in compute.nodes}


def _assigned(compute: Compute, written: Sequence[str], read: Collection[str]) -> list[bool | None]:
    """Returns, for each written variable, whether a new value must have the shape of the old one; None for a variable
    whose old value is read.

    Returns an empty list if the old values of all variables are read: then tracing has compared the shapes.
    """
    keeps: dict[str, bool | None] = dict.fromkeys(written)
    for node in compute.nodes:
        if node.type == "Assign" and node.refs[0] not in read:
            keeps[node.refs[0]] = bool(node.attrs.get("validate_shape", True))
    found = list(keeps.values())
    return found if any(keep is not None for keep in found) else []


def _accepted(
    written: Iterable[tuple[Cell, Any]], assigned: Sequence[bool | None]
) -> tuple[list[tuple[Cell, Any]], OpError | None]:
    """Returns the acceptable new values, and the error of the first unacceptable one."""
    accepted: list[tuple[Cell, Any]] = []
    refused: OpError | None = None
    for (cell, value), keeps_shape in zip(written, assigned, strict=True):
        try:
            if keeps_shape is not None:
                check_assigned(cell, value, keeps_shape)
            accepted.append((cell, value))
        except OpError as error:
            refused = refused or error
    return accepted, refused


def _fits(old: Any, new: Any) -> bool:
    return old is not None and old.shape == new.shape and old.dtype == new.dtype and new.nbytes <= _SMALL_BYTES


def _variables_of(compute: Compute) -> tuple[dict[str, None], dict[str, None]]:
    """Returns the variables that are read initially, and the variables that are changed."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for node in compute.nodes:
        definition = node.definition
        if node.type == "VariableV2" and node.name not in writes:
            reads[node.name] = None
        for position, variable in node.refs.items():
            needed = position not in definition.refs or position in definition.reads
            if needed and variable not in writes:
                reads[variable] = None
        for position in definition.updates:
            writes[node.refs[position]] = None
    return reads, writes
