"""Runs a `Compute` instruction, on kernels or as an XLA executable.

Values of variables that the executable changes are donated to it, so that updates happen in place. The executable is
traced and compiled (`headwater.graph.runtime.programs`) before the lock of the variables is acquired, so that other
steps need not wait for the compilation (docs/decisions/one-lock.md).
"""

from __future__ import annotations

import functools
import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.background import Compilation
from headwater.graph.kernels.blas import use_one_thread
from headwater.graph.kernels.registry import NoKernel
from headwater.graph.ops.bodies import inner_nodes
from headwater.graph.ops.faults import error_of
from headwater.graph.passes.ahead import variables_read
from headwater.graph.passes.plan import Compute, VariableInfo
from headwater.graph.registry import Kind
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.recording import NOWHERE, InstructionPlace, Outcome
from headwater.graph.runtime.compilations import count_compilations
from headwater.graph.runtime.compute_variables import (
    accepted_values,
    assignment_checks,
    draws_without_seed,
    stored_inputs,
    variables_of,
)
from headwater.graph.runtime.devices import is_default, local_device, moved
from headwater.graph.runtime.host_values import cell_value
from headwater.graph.runtime.indices import IndexChecks
from headwater.graph.runtime.initial_values import MAX_RUNS, split
from headwater.graph.runtime.kernel_lookup import WithoutKernel
from headwater.graph.runtime.kernel_part import KernelPart
from headwater.graph.runtime.mode_choice import Jit, Mode, ModeChooser
from headwater.graph.runtime.programs import Program, executables, shapes_of, shared_program
from headwater.graph.runtime.step import Step
from headwater.import_hooks import on_import

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

#: Up to this size, in bytes, a copy by NumPy is faster than a call of an executable.
_SMALL_BYTES = 4096
#: Number of shapes of a part's inputs after which shapes and programs that are no longer in use are forgotten.
_MAX_SHAPES = 128
_NONE = type(None)
_log = logging.getLogger(__name__)
_value_of: Callable[[Cell], Any] = attrgetter("value")
_shape_and_type = attrgetter("shape", "dtype")
on_import("jax", count_compilations)


class Executable:
    """Runs a `Compute`, on kernels or as executables, one for each shape of its inputs.

    Args:
      compute: the operations.
      variables: the plan's variables.
      resources: the task's resources, with the variables' cells.
      shared: whether other sessions may run the same program.
      place: position of the instruction in the session's plans.
      jit: the setting that chooses between kernels and executables.
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
        reads, writes = variables_of(compute)
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
        # One program for each combination of values of static inputs, which are constants in a program, and of shapes
        # and types of the other inputs.
        self._programs: dict[object, Program] = {}
        self._shared = shared
        checks = IndexChecks(compute, self._cells)
        self._check_indices = checks or None
        self._prechecked = checks.prechecked
        self._device = None if is_default(compute.device) else local_device(compute.device)
        # Compile before the lock is acquired in two cases. On a shared task, other sessions would otherwise wait for
        # the lock during the compilation. On a GPU, the compilation may fail for lack of memory; this must not happen
        # after variables were donated, because a donated value cannot be recovered.
        self._prepares = shared or self._device is not None
        self.touches_state: bool = bool(self._cells)
        self._stores = stored_inputs(compute)
        self._assigned = assignment_checks(compute, self._written, reads)
        attrs_of = [(node.definition.admit, node.attrs, node.definition.attrs) for node in compute.nodes]
        # Operations that may refuse the update, such as the accounting of examples. The operations are asked under the
        # lock of the variables, so that the answer is valid until the update is made.
        self._admits = [
            functools.partial(admit, resources, **{key: value for key, value in attrs.items() if key in taken})
            for admit, attrs, taken in attrs_of
            if admit is not None
        ]
        shown = variables_read(compute)
        self.only_reads: bool = shown is not None
        self._place = place
        self._recorder = resources.recorder if self._written else None
        # A backup repeats the operations with the same inputs. A backup cannot repeat draws of random numbers without
        # seeds, so the primary then sends the new values instead.
        self._repeatable = not any(draws_without_seed(node) for node in compute.nodes)
        self._output_cells = [self._cells[name] for name in shown or ()]
        self._chooser: ModeChooser | None = None
        # Kernels are used only without a backup. Primary and backup must compute the same bits. But the choice between
        # kernels and executable depends on the number of earlier runs, which may differ between primary and backup.
        alone = self._recorder is None
        self._kernels = self._part(compute, fetched) if alone and jit is not Jit.ON and not self.only_reads else None
        if self._kernels is not None and jit is Jit.AUTO:
            self._chooser = ModeChooser(compute.nodes[-1].name if compute.nodes else "empty")
        self._compilations: dict[object, Compilation] = {}
        self._run_before = False
        first, rest = split(compute) if self._device is None and self._kernels is None else (None, None)
        if rest is not None and resources.recorder is not None:
            first = None  # one part, because all its changes have to be sent to the backup as one change
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
        # While other tasks computed, a matrix product took OpenBLAS 12 to 50 ms with two threads, and 0.5 ms with one
        # (docs/decisions/kernels.md).
        use_one_thread()
        try:
            return KernelPart(compute, self._cells, self._lock, self._seed, self._prechecked, fetched)
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

        The arrays are NumPy views, which keep the variables' buffers in use. So the next update allocates another
        buffer instead of writing in place (copy on write), and the read needs no copy.
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
        """Runs the operations.

        Args:
          inputs: arrays for the compute's inputs, in order.
          step_number: number of the step, from which random numbers are derived.
          certain: called just before the run if the run can no longer fail: the variables have values, and inputs of
            these shapes and types have succeeded before. Not called if the run may fail. The lock is held from this
            call until the variables have their new values, so a step that reads them waits for the update.
          step: the running step. Operations that may refuse a change, and the recorder of changes, need it.

        Returns:
          The outputs, and the variables' new values, so that the caller can wait until they are computed.

        Raises:
          FailedPreconditionError: a variable that is read has no value; the message names the variable.
          InvalidArgumentError: incompatible shapes, an index out of range, or an integer division by zero; the message
            names the operation. A failure inside the executable is detected only after the run, when the variables have
            their new values already.
        """
        if self._recorder is not None:
            assert step is not None
            known = self._recorder.find_outcome(step, self._place)
            if known is not None:
                if known.faults:
                    self._raise(known.faults)
                return known.outputs, ()
            # Convert before the lock is acquired: the conversion may wait for a computation.
            inputs = [np.asarray(value) for value in inputs]
        given = inputs
        # Run initialisation on kernels: it usually runs once, and compiling a random number generator for each variable
        # would take longer than it saves.
        if self._initial is not None and self._runs < MAX_RUNS:
            self._runs += 1
            return self._initialise(self._initial, inputs, step_number, step)
        if self._check_indices is not None:
            self._check_indices(inputs)
        if self._kernels is not None:
            found = self._on_kernels(self._kernels, inputs, step_number, certain, step)
            if found is not None:
                return found, ()
        program, inputs = self._program_for(inputs)
        run = program.run
        if self._device is not None:
            inputs = moved(inputs, self._device)
        # `certain` acknowledges the update, so it must not be called if the update may still fail: because an operation
        # has a check, because an operation may refuse the update, or because a GPU may run out of memory.
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
        if self._prepares and not program.has_run:
            self._prepare(program, inputs, counter)
        with self._lock:
            # Read and donate while the lock is held: once the run has started, the donated buffers are invalid for
            # every reader, until the cells have their new values.
            donated, kept = self._state()
            made = self._admitted(step) if self._admits else ()
            if certain is not None and program.has_run:
                certain()
            changed, outputs, faults = run(donated, kept, inputs, counter)
            written = zip(self._written_cells, changed, strict=True)
            refused = None
            if self._assigned:
                # Install the acceptable values even if one value is refused: the old values of the other variables were
                # donated to this run and no longer exist.
                written, refused = accepted_values(written, self._assigned)
            for cell, value in written:
                cell.value = value
                cell.counts[cell.slot] += 1
            if self._recorder is not None:
                self._record(step, given, outputs, faults)
            for tell in made:
                tell()
        program.has_run = True
        # Only after the lock is released, because reading the results of checks waits for the executable.
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
        """Runs the operations on kernels and returns their outputs; returns None if this run has to use an
        executable."""
        weigh = pending = None
        wait_s = 0.0
        if self._chooser is not None:
            key = tuple([value.shape for value in inputs]), tuple([_static_key(inputs[i]) for i in self._static])
            way = self._chooser.next_mode(key)
            if way is Mode.EXECUTABLE:
                if compilation := self._compilations.pop(key, None):
                    compilation.wait()
                return None
            if way is Mode.KERNELS_AND_COMPILATION and self._device is None:
                if len(self._compilations) >= _MAX_SHAPES:
                    self._compilations.clear()  # of shapes that did not occur again
                self._compilations[key] = self._compile_in_background(inputs, self._chooser.runs_of(key) - 1)
            if way is not Mode.KERNELS:
                pending, wait_s = self._compilations.get(key), self._chooser.longest_wait_s(key)
            weigh = self._chooser.cost_recorder(key)
        # Kernels detect incompatible shapes and types only when they run, so the first run is never acknowledged before
        # it is made.
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
        if pending is not None:
            pending.wait(wait_s)
        return outputs

    def _program_for(self, inputs: Sequence[Any]) -> tuple[Program, Sequence[Any]]:
        """Returns the program for these inputs, and the inputs that are not static, which the program takes."""
        key = self._key(inputs)
        program = self._programs.get(key) or self._add_program(key, self._copies_of_static(inputs))
        executables.use(program)
        return program, [inputs[i] for i in self._dynamic] if self._static else inputs

    def _key(self, inputs: Sequence[Any]) -> tuple[object, tuple[Any, ...]]:
        fixed = tuple([_static_key(inputs[i]) for i in self._static])
        return fixed, tuple([_shape_and_type(inputs[i]) for i in self._dynamic])

    def _copies_of_static(self, inputs: Sequence[Any]) -> Mapping[str, np.ndarray[Any, Any]]:
        # The user's program may later change the arrays that it has fed.
        return {self._compute.inputs[i]: np.array(inputs[i]) for i in self._static}

    def _add_program(self, key: tuple[object, Any], static: Mapping[str, np.ndarray[Any, Any]]) -> Program:
        if len(self._programs) >= _MAX_SHAPES:
            self._programs = {each: program for each, program in self._programs.items() if executables.is_kept(program)}
        # Two threads may build the program at the same time. `setdefault` makes both use the same program, so that only
        # one is compiled.
        return self._programs.setdefault(key, self._build(static, key[1]))

    def _compile_in_background(self, inputs: Sequence[Any], runs: int) -> Compilation:
        """Starts tracing and compiling for the shapes of ``inputs`` in the background, after ``runs`` runs with them.

        The compilation refers to no array of a variable or input. Meanwhile, kernels can therefore change variables in
        place, and the user's program can change arrays that it has fed.
        """
        key, static = self._key(inputs), self._copies_of_static(inputs)

        def compile_it() -> None:
            program = self._programs.get(key) or self._add_program(key, static)
            with self._lock:
                state = [list(map(_shape_and_type, values)) for values in self._state()]
            donated, kept, given = map(shapes_of, (*state, key[1]))
            program.compile(donated, kept, given, np.uint32(0) if self._random else None)

        name = self._compute.nodes[-1].name
        _log.debug("%s with inputs of %s is compiled after %d runs", name, key[1], runs)
        return Compilation(compile_it, f"the compilation of {name}")

    def _admitted(self, step: Step | None) -> Sequence[Callable[[], object]]:
        """Asks the operations that may refuse the change to admit it. Returns functions to call after the change.
        Raises the error of an operation that refuses."""
        return [admit(step) for admit in self._admits]

    def _raise(self, faults: Mapping[str, Any]) -> None:
        """Waits for the results of the checks, and raises the error of the first failed operation, if any."""
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
        self._recorder.record_change(step, self._place, inputs, self._written_cells, Outcome(outputs, faults or {}))

    def _store(
        self,
        inputs: Sequence[AnyArray],
        sources: Mapping[str, int],
        certain: Callable[[], None] | None,
        step: Step | None,
    ) -> bool:
        """Assigns small values without an executable, in a tenth of the time. Returns False, and assigns nothing, if a
        value is too large or its shape or type differs from the variable."""
        with self._lock:
            pairs = [(self._cells[name], inputs[index]) for name, index in sources.items()]
            if not all(_fits(cell.value, value) for cell, value in pairs):
                return False
            if certain is not None:
                certain()
            for cell, value in pairs:
                cell.value = np.array(value)
                cell.value.flags.writeable = False  # a program that fetches the array gets a copy
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

    def _build(self, static: Mapping[str, np.ndarray[Any, Any]], shapes: object) -> Program:
        names = self._donated, self._kept, self._written
        # Do not share programs with random operations: operations without seeds must draw different numbers in each
        # session.
        if self._shared and not self._random:
            return shared_program(self._compute, static, *names, self._prechecked, shapes)
        return Program(self._compute, static, *names, self._seed, self._prechecked)

    def _prepare(self, program: Program, inputs: Sequence[AnyArray], counter: np.uint32 | None) -> None:
        """Traces and compiles a program before the lock is taken, so that other steps need not wait."""
        # Tracing uses only the shapes and types of the values, so other steps may replace or donate the values after
        # the lock is released.
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
    """Does nothing: the callback before a change that no operation may refuse."""


def _never(*unused: object) -> Any:
    """Placeholder for the callbacks before and after changes, in parts that change no variable and never call them."""
    raise AssertionError(f"a part without variables changes one: {unused}")


def values_of(cells: Sequence[Cell]) -> list[AnyArray]:
    """Returns the variables' values; raises as `cell_value`."""
    # This runs in each step, so the usual case uses functions in C. The loop in Python only finds the variable for the
    # error message.
    values = list(map(_value_of, cells))
    return [cell_value(cell) for cell in cells] if _NONE in map(type, values) else values


def _static_key(value: object) -> object:
    array = np.asarray(value)
    return array.tobytes(), array.shape, array.dtype.str


def _fits(old: Any, new: Any) -> bool:
    return old is not None and old.shape == new.shape and old.dtype == new.dtype and new.nbytes <= _SMALL_BYTES
