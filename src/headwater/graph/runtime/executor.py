"""Executes plans.

A plan is compiled once to a list of functions, one for each instruction. The values of a run are in a list of *slots*,
one for each tensor of the plan (not to be confused with the slots of an optimizer). Slots are numbered when the plan is
compiled, so that a step looks up no names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.errors import CancelledError
from headwater.graph.passes.ahead import EXCHANGE, exchange_of
from headwater.graph.passes.block_plan import in_blocks
from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan, inputs_of, outputs_of
from headwater.graph.passes.repetition import can_repeat
from headwater.graph.passes.training import trains
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.recording import InstructionPlace, ResourceOperation
from headwater.graph.runtime.actions import Action, HostAction, Slots, receive_action, send_action
from headwater.graph.runtime.aligned import AlignedCopies
from headwater.graph.runtime.block_runner import BlockRunner
from headwater.graph.runtime.compile import Executable
from headwater.graph.runtime.devices import memory_stats, wait_until_computed
from headwater.graph.runtime.element_work import attributes_of, element_work
from headwater.graph.runtime.first_reads import FirstReads
from headwater.graph.runtime.memory import out_of_memory
from headwater.graph.runtime.mode_choice import jit_of
from headwater.graph.runtime.step import Step, Stopped, TaskContext
from headwater.graph.runtime.tracing import PlanTracer
from headwater.graph.tensor_names import split_name
from headwater.ps.memory import memory_errors


class CompiledPlan:
    """A plan compiled to run on this task.

    Args:
      resources: the task's state.
      master: full name of the master's task.
      number: the plan's number in its session.

    Attributes:
      plan: the plan.
      changes: whether a run is not idempotent: it changes state, runs an operation in Python, or exchanges tensors with
        tasks other than its master.
      trains: whether a run is a training step of its master.
      first_reads: the variables that the plan sends to its master before it receives anything from the master; None if
        the plan does not begin with such a transfer.
    """

    def __init__(self, plan: TaskPlan, resources: Resources, master: str = "", number: int = 0) -> None:
        self.plan = plan
        self._master = master
        self._number = number
        self._executables: dict[int, Executable] = {}
        self._kept: dict[int, ResourceOperation] = {}
        self.changes: bool = any(_changes(item, master) for item in plan.instructions)
        self.trains: bool = trains(plan)
        self._resources = resources
        self._shared = bool(master)
        self._variables = dict(plan.variables)
        self._jit = jit_of(plan.jit_level)
        self._fetched_names = frozenset(plan.fetches)
        self._index: dict[str, int] = {}
        self._template: Slots = []
        for name in plan.feeds:
            self._slot(name)
        for name, value in plan.constants.items():
            constant = value.view()
            constant.flags.writeable = False  # a program that fetches the array gets a copy
            self._template[self._slot(name)] = constant
        on_cpu = [item for item in plan.instructions if not _on_gpu(item)]
        self._wanted_on_host = {*plan.fetches, *(name for item in on_cpu for name in inputs_of(item))}
        self._blocks = self._block_runner()
        # On a replicated task, a step runs the plan once: a promoted backup can resume one run, not a series of runs.
        self._repeats = plan.block if can_repeat(plan) and resources.recorder is None else 1
        # A backup repeats single operations in their order, so a replicated task does not process an element before the
        # step that uses it (see `element_work`).
        self._element_work = {} if resources.recorder is not None else element_work(plan, self._outputs_of)
        self._in_advance = {name for work in self._element_work.values() for name in work.outputs}
        actions = [self._action(item, position) for position, item in enumerate(plan.instructions)]
        if plan.instructions and isinstance(last := plan.instructions[-1], Send):
            # A transfer at the end of the plan is sent within the answer, which saves a frame.
            actions[-1] = send_action(last, self._slots(last.tensors), ends=True)
        exchange = exchange_of(plan, master)
        self.first_reads: FirstReads | None = None
        self._exchanged: list[int] = []
        if exchange is not None:
            # The exchange reads variables and sends them to the master. A run skips it if the master has already read
            # the values, and they are current. Variables that later instructions use must then be read separately.
            later = {name for item in plan.instructions[EXCHANGE:] for name in inputs_of(item)} | {*plan.fetches}
            kept = {name: variable for name, variable in exchange.variable_of.items() if name in later}
            self.first_reads = FirstReads(exchange, resources, self._cell, list(kept.values()))
            self._exchanged = [*self._slots([*kept]), *self._slots(exchange.reply.tensors)]
        self._fetches = [self._index[name] for name in plan.fetches]
        of_gpus = {name for item in plan.instructions if _on_gpu(item) for name in outputs_of(item)}
        self._fetched_from_gpus = [self._index[name] for name in plan.fetches if name in of_gpus]
        computed = {name for item in on_cpu if isinstance(item, Compute) for name in item.inputs}
        fed = [index for index, name in enumerate(plan.feeds) if name in computed and name not in plan.fetches]
        # A replicated task does not use aligned copies. Such a task sends changes to the backup from the fed arrays,
        # and the memory of an aligned copy could be reused for the next step before the copy was sent.
        self._aligned = AlignedCopies(fed) if fed and resources.recorder is None else None
        self._actions = list(zip(actions, self._dead_after(), strict=True))
        at = _last_update(plan.instructions)
        # The last update is separate from the other actions, because the method `_last_update` may first release
        # barriers and answer the master, so that neither has to wait for the update.
        self._before_update = self._actions[:at]
        self._after_exchange = self._actions[EXCHANGE:at]
        self._update = actions[at] if at < len(actions) else None
        self._announcements = actions[at + 1 :]

    def _block_runner(self) -> BlockRunner | None:
        """Returns a runner that runs the plan for many elements at once, if the plan allows it."""
        block = in_blocks(self.plan) if self.plan.block > 1 else None
        if block is None:
            return None
        used = [*block.source.inputs, *block.sink.inputs, *(name for item in block.body for name in inputs_of(item))]
        needed = tuple(dict.fromkeys(name for name in used if not block.varies(name)))
        setup = CompiledPlan(replace(self.plan, instructions=block.setup, fetches=needed, block=1), self._resources)
        return BlockRunner(
            block, self.plan.task, self._resources, lambda step: setup.execute((), step), needed, self.plan.block
        )

    def _cell(self, variable: str) -> Cell:
        info = self._variables[variable]
        return self._resources.cell(info.container, info.cell)

    def _slot(self, name: str) -> int:
        if name not in self._index:
            self._index[name] = len(self._template)
            self._template.append(None)
        return self._index[name]

    def _slots(self, names: Sequence[str]) -> list[int]:
        return [self._slot(name) for name in names]

    def execute(
        self,
        feeds: Sequence[object],
        step: Step,
        *,
        wait: bool = True,
        answer: Callable[[list[Any]], None] | None = None,
    ) -> list[Any]:
        """Runs the plan.

        Args:
          feeds: arrays for ``plan.feeds``, in order.
          step: the step that runs the plan.
          wait: whether to return only after all state is updated, so that the caller may change the arrays of
            ``feeds``.
          answer: called with the result just before the last update, if the update can no longer fail. Not called if
            the update may fail, if the plan does not end with an update or runs in blocks, in a traced step, or on a
            task with a backup. A task that reads the variables after the answer waits for the update. The function must
            neither raise an error nor wait.

        Returns:
          Arrays (NumPy or JAX) for ``plan.fetches``, in order.
        """
        if self._blocks is not None:
            self._blocks.run(step)
            return []
        # A step with a deadline or a trace runs the plan once, because both apply to a single run.
        if self._repeats > 1 and step.trace is None and step.deadline is None:
            self._repeat(step, wait)
        return self._once(feeds, step, wait, answer)

    def resume(self, step: Step, stopped: Stopped) -> list[Any]:
        """Resumes a run that was cancelled in an earlier incarnation of the task; see `can_resume`.

        Args:
          step: the step of the run.
          stopped: the point in the plan at which the run was cancelled.

        Returns:
          Arrays for ``plan.fetches``, as `execute`.
        """
        return self._once((), step, False, None, stopped)

    def slots(self) -> Slots:
        """Returns the initial slots of a run, without its feeds."""
        return self._template.copy()

    def can_resume(self, stopped: Stopped) -> bool:
        """Returns whether a run can resume at the instruction at which it was cancelled.

        A run can resume if the instruction was waiting, and had no effect before the wait.
        """
        item = self.plan.instructions[stopped.position]
        if self._blocks is not None or stopped.position >= len(self._before_update):
            return False
        # These two kinds of instructions have no effect before or during a wait. Other host operations may have had
        # effects before the wait, and a plan that runs in blocks (`BlockRunner`) may have added some elements to its
        # queue.
        return isinstance(item, Receive) or (isinstance(item, Host) and item.node.definition.keeps)

    def _repeat(self, step: Step, wait: bool) -> None:
        """Performs all runs of a repeated plan except the last run, which `execute` performs.

        A run waits for input, such as the gradients of other workers. If the first operation supports it, the run is
        made in the thread that supplies the last input, so the thread of this step need not be woken each time.
        """

        def run() -> None:
            self._once((), step, wait, None)
            step.check()

        first = self.plan.instructions[0]
        assert isinstance(first, Host), first  # see `can_repeat`
        node, times = first.node, self._repeats - 1
        try:
            if node.definition.repeat is None:
                for _ in range(times):
                    run()
            else:
                inputs = [self._template[self._index[name]] for name in node.inputs]
                node.definition.repeat(self._context(node, step), run, times, *inputs, **attributes_of(node))
        except CancelledError as error:
            if step.stopped is None:  # between two runs
                self._record_stop(step, error, 0, self._template)
            raise

    def _context(self, node: Node, step: Step) -> TaskContext:
        return TaskContext(node.name, self.plan.task, step, self._resources, self._variables, node.inputs)

    @staticmethod
    def _record_stop(step: Step, error: CancelledError, position: int, slots: Slots) -> None:
        """Records the point at which a step is cancelled, unless the instruction was interrupted halfway: such a step
        cannot resume."""
        if not error.half_done:
            step.stopped = Stopped(position, slots)

    def _once(
        self,
        feeds: Sequence[object],
        step: Step,
        wait: bool,
        answer: Callable[[list[Any]], None] | None,
        stopped: Stopped | None = None,
    ) -> list[object]:
        slots = self._template.copy()
        slots[: len(feeds)] = feeds  # feeds have the first slots
        pending: list[Any] = []
        if step.trace is not None:
            self._run_traced(slots, step, step.trace)
            return [slots[index] for index in self._fetches]
        action = None
        copies = None if self._aligned is None else self._aligned.replace(slots)
        actions = self._before_update
        if stopped is not None:
            slots, actions = list(stopped.slots), actions[stopped.position :]
        if step.has_read_ahead and (found := step.pop_given()) is not None:
            for index, value in zip(self._exchanged, found, strict=True):
                slots[index] = value
            actions = self._after_exchange
        try:
            for action, dead in actions:
                result = action(slots, step)
                if result:
                    pending.extend(result)
                if dead:
                    for index in dead:
                        slots[index] = None
            if self._update is not None:
                action = self._update
                pending.extend(self._last_update(action, slots, step, answer))
            if wait:
                wait_until_computed(pending)
            # Copy to the host here, inside this `try`: a lack of GPU memory is reported only by the copy.
            for index in self._fetched_from_gpus:
                slots[index] = np.asarray(slots[index])
            if copies:
                assert self._aligned is not None
                self._aligned.recycle(copies)
        except CancelledError as error:
            self._record_stop(step, error, self._position(action), slots)
            raise
        except memory_errors() as error:
            # Determine the instruction only after an error: keeping track of it would cost time in each step.
            item = self.plan.instructions[self._position(action)]
            gpu = memory_stats(item.device) if isinstance(item, Compute) else None
            found = out_of_memory(error, self.plan.task, item, gpu)
            if found is None:
                raise
            raise found from error
        return list(map(slots.__getitem__, self._fetches))

    def _position(self, action: object) -> int:
        """Returns the position in the plan of the instruction that ``action`` runs."""
        return [known for known, _ in self._actions].index(action)

    def changed_nothing(self, stopped: Stopped) -> bool:
        """Returns whether a run that was cancelled at ``stopped`` was in a wait and had changed nothing before, so that
        it can be repeated from its start."""
        *before, at = self.plan.instructions[: stopped.position + 1]
        return isinstance(at, Receive | Host) and not any(_changes(item, self._master) for item in before)

    def _last_update(
        self, update: Any, slots: Slots, step: Step, answer: Callable[[list[Any]], None] | None
    ) -> Sequence[object]:
        """Runs the update that ends the plan, and announces it as soon as it can no longer fail.

        To announce the update means to release barriers and to send the answer. A task without a backup does so before
        the update, so that the master can start its next step while this task updates the variables. The lock of the
        variables is held from the announcement to the end of the update. A step that reads the variables waits for that
        lock, so it gets the updated values.
        """
        notified = False

        def certain() -> None:
            nonlocal notified
            notified = True
            for announce in self._announcements:
                announce(slots, step)
            if answer is not None:
                answer([np.asarray(slots[index]) for index in self._fetches])

        tells = self._announcements or answer is not None
        # With a backup, the update must be sent to the backup before it is announced, because an announced update must
        # not be lost in a failover.
        early = certain if tells and self._resources.recorder is None else None
        changed: Sequence[Any] = update(slots, step, early) or ()
        if not notified:
            for announce in self._announcements:
                announce(slots, step)
        return changed

    def _run_traced(self, slots: Slots, step: Step, trace: StepTrace) -> None:
        with PlanTracer(self.plan, trace) as tracer:
            for (action, dead), item in zip(self._actions, self.plan.instructions, strict=True):
                taken = [slots[self._index[name]] for name in inputs_of(item) if name in self._index]
                given = [self._index[name] for name in outputs_of(item)]
                act = functools.partial(action, slots, step)
                tracer.perform(item, act, taken, functools.partial(_values, slots, given))
                for index in dead:
                    slots[index] = None

    def _dead_after(self) -> list[tuple[int, ...]]:
        """Returns, for each instruction, the slots that no later instruction and no fetch uses.

        A run clears these slots after the instruction, because an update cannot change a value in place while a slot
        refers to the value.
        """
        last: dict[int, int] = {}
        for position, item in enumerate(self.plan.instructions):
            last.update((self._index[name], position) for name in inputs_of(item) if name in self._index)
        # The template of all runs refers to the constants, so clearing their slots would free no memory.
        kept = {*self._fetches, *(self._index[name] for name in self.plan.constants)}
        dead: list[list[int]] = [[] for _ in self.plan.instructions]
        for slot, position in last.items():
            if slot not in kept:
                dead[position].append(slot)
        return [tuple(slots) for slots in dead]

    def repeat(self, position: int, inputs: Sequence[object], step: Step) -> None:
        """Runs a single instruction on a backup, as the primary did in ``step``.

        Args:
          position: the position of the instruction.
          inputs: its inputs except variables and constants of the plan, in order; see `inputs_for_backup`.
          step: the step of the instruction.
        """
        given = iter(inputs)
        constants = self.plan.constants
        names = inputs_of(self.plan.instructions[position])
        values = [self._template[self._index[name]] if name in constants else next(given) for name in names]
        if self.uses_resources(position):
            assert self._resources.recorder is not None
            self._resources.recorder.run_operation(self._kept[position], step, values)
        else:
            self._executables[position](values, step.number, None, step)

    def uses_resources(self, position: int) -> bool:
        """Returns whether an instruction is an operation on resources other than variables."""
        return position in self._kept

    def inputs_for_backup(self, position: int, inputs: Sequence[Any]) -> Sequence[Any]:
        """Selects, of an instruction's inputs, those that the primary has to send to the backup for `repeat`: all
        except variables and constants of the plan."""
        constants = self.plan.constants
        names = inputs_of(self.plan.instructions[position])
        return [value for name, value in zip(names, inputs, strict=True) if name not in constants]

    def _action(self, item: object, position: int) -> Any:
        match item:
            case Compute():
                return self._compute(item, position)
            case Host():
                return self._host(item.node, position)
            case Send():
                return send_action(item, self._slots(item.tensors))
            case Receive():
                return receive_action(item, self._slots(item.tensors))
            case _:
                raise AssertionError(item)

    def _compute(self, item: Compute, position: int) -> Any:
        place = InstructionPlace(self._number, position)
        fetched = self._fetched_names.intersection(item.outputs)
        executable = Executable(item, self._variables, self._resources, self._shared, place, self._jit, fetched)
        self._executables[position] = executable
        sources = self._slots(item.inputs)
        targets = self._slots(item.outputs)
        # The slots of the outputs are nearly always consecutive, and one assignment to a slice is faster than a loop.
        put = _consecutive_slice(targets)
        # Outputs that are copied from a GPU to the host: start all copies before waiting for the first.
        copied = [at for at, name in enumerate(item.outputs) if _on_gpu(item) and name in self._wanted_on_host]
        if executable.only_reads:

            def read(slots: Slots, step: Step, certain: Callable[[], None] | None = None) -> None:
                del step, certain
                if put is not None:
                    slots[put] = executable.read()
                    return
                for index, value in zip(targets, executable.read(), strict=True):
                    slots[index] = value

            return read

        def run(slots: Slots, step: Step, certain: Callable[[], None] | None = None) -> Sequence[object]:
            outputs, changed = executable(list(map(slots.__getitem__, sources)), step.number, certain, step)
            for at in copied:
                outputs[at].copy_to_host_async()
            if put is not None:
                slots[put] = outputs
                return changed
            for index, value in zip(targets, outputs, strict=True):
                slots[index] = value
            return changed

        return run

    def _host(self, node: Node, position: int) -> Action:
        outputs, work = self._outputs_of(node), self._element_work.get(node.name)
        action = HostAction(
            node=node,
            sources=[self._slot(name) if index not in node.refs else -1 for index, name in enumerate(node.inputs)],
            targets=self._slots(outputs),
            cells={index: self._cell(name) for index, name in node.refs.items()},
            context=functools.partial(self._context, node),
            resources=self._resources,
            place=InstructionPlace(self._number, position),
            task=self.plan.task,
            work=work,
            results=() if work is None else self._slots(work.outputs),
            in_advance=not self._in_advance.isdisjoint(outputs),
        )
        if action.kept is not None:
            self._kept[position] = action.kept
        return action.run

    def _outputs_of(self, node: Node) -> list[str]:
        return [f"{node.name}:{index}" for index in range(self._used_outputs.get(node.name, 0))]

    @functools.cached_property
    def _used_outputs(self) -> dict[str, int]:
        """Returns, for each operation, the number of its outputs up to and including the last one in use."""
        found: dict[str, int] = {}
        for names in (*map(inputs_of, self.plan.instructions), self.plan.fetches):
            for op, index in (split_name(name) for name in names if ":" in name):
                found[op] = max(found.get(op, 0), index + 1)
        return found


def _changes(item: Instruction, master: str) -> bool:
    """Returns whether an instruction is not idempotent."""
    match item:
        case Send(destination=other) | Receive(source=other):
            return other != master
        case Compute(nodes=nodes):
            return any(node.definition.updates for node in nodes)
        case Host():
            return True


def _last_update(instructions: Sequence[Any]) -> int:
    """Returns the position of the last update of variables, if it is followed only by operations that announce it, such
    as those that release a barrier. Otherwise returns the number of instructions."""
    at = len(instructions) - 1
    while at >= 0 and isinstance(instructions[at], Host) and instructions[at].node.definition.announces:
        at -= 1
    last = instructions[at] if at >= 0 else None
    return at if isinstance(last, Compute) and not last.outputs else len(instructions)


def _consecutive_slice(indices: Sequence[int]) -> slice | None:
    """Returns the slots as one slice, which a single assignment fills; None if they are not consecutive.

    The assigned sequence always has the slice's length: both are derived from the same plan.
    """
    first = indices[0] if indices else 0
    return slice(first, first + len(indices)) if list(indices) == [*range(first, first + len(indices))] else None


def _values(slots: Slots, indices: Sequence[int]) -> list[Any]:
    return [slots[index] for index in indices]


def _on_gpu(item: Instruction) -> bool:
    return isinstance(item, Compute) and not item.device.startswith("CPU")
