"""Random programs over several tasks, for property tests of passes and of the execution of their plans.

A `Program` is plain data. `build` makes a graph from it: placed on the tasks that the program names, or without
devices. All values are float32 vectors of `SIZE` whole numbers, so that sums are exact in any order. Control edges
order all reads and updates of a variable, so that the result does not depend on the placement of operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from headwater import dtypes
from headwater.graph.convert import make_const
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.prune import RunRequest
from headwater.shapes import TensorShape
from tests.support import host_ops

SIZE = 6
TASKS = ("/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1")
SHAPES = ((2, 3), (3, 2), (6, 1), (1, -1))

VALUES = (
    "constant",
    "placeholder",
    "default",
    "negate",
    "add",
    "subtract",
    "maximum",
    "host",
    "text",
    "read",
    "use",
    "use_update",
    "reshape",
    "two_uses_of_a_shape",
    "split",
)
EFFECTS = ("assign", "assign_add", "group")


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, or a few that belong together.

    Attributes:
      kind: one of `VALUES` or `EFFECTS`.
      picks: random numbers that choose inputs, variables and other parameters, each modulo the number of choices.
      task: the index in `TASKS` of the task to run on; -1 for none.
      controls: random numbers that choose earlier operations, as control inputs.
    """

    kind: str
    picks: tuple[int, int, int]
    task: int
    controls: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A graph and a request, described by random numbers.

    Attributes:
      variables: the index of the task of each variable.
      steps: the steps, in order.
      fetches: numbers that choose the fetched tensors.
      targets: numbers that choose the target operations.
      feeds: numbers that choose the tensors to feed besides the placeholders.
    """

    variables: tuple[int, ...]
    steps: tuple[Step, ...]
    fetches: tuple[int, ...]
    targets: tuple[int, ...]
    feeds: tuple[int, ...]


_number = st.integers(0, 63)
_steps = st.builds(
    Step,
    kind=st.sampled_from(VALUES + EFFECTS),
    picks=st.tuples(_number, _number, _number),
    task=st.integers(-1, len(TASKS) - 1),
    controls=st.lists(_number, max_size=2).map(tuple),
)
programs = st.builds(
    Program,
    variables=st.lists(st.integers(0, len(TASKS) - 1), min_size=1, max_size=3).map(tuple),
    steps=st.lists(_steps, min_size=1, max_size=16).map(tuple),
    fetches=st.lists(_number, min_size=1, max_size=4).map(tuple),
    targets=st.lists(_number, max_size=2).map(tuple),
    feeds=st.lists(_number, max_size=2).map(tuple),
)


@dataclass(slots=True)
class _Variable:
    task: int
    ref: Tensor
    last_update: Operation | None = None
    readers: list[Operation] = field(default_factory=list[Operation])


@dataclass(frozen=True, slots=True)
class Built:
    """A program as a graph.

    Attributes:
      graph: the graph.
      initializers: the operations that initialize the variables.
      references: the reference tensors of the variables.
      request: the request to run.
      values: the values of the request's feeds, in order.
    """

    graph: Graph
    initializers: tuple[Operation, ...]
    references: tuple[Tensor, ...]
    request: RunRequest
    values: tuple[np.ndarray[tuple[int], np.dtype[np.float32]], ...]


def build(program: Program, *, placed: bool) -> Built:
    """Returns the graph of ``program``; without ``placed``, no operation requests a device."""
    return _Builder(program, placed).run()


def _vector(number: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return (np.arange(SIZE, dtype=np.float32) * (1 + number % 5) - number).astype(np.float32)


class _Builder:
    def __init__(self, program: Program, placed: bool) -> None:
        self._program = program
        self._placed = placed
        self._graph = Graph()
        self._variables: list[_Variable] = []
        self._initializers: list[Operation] = []
        self._tensors: list[Tensor] = []
        self._ops: list[Operation] = []
        self._updates: list[tuple[_Variable, Tensor]] = []
        self._placeholders: dict[Tensor, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}

    def run(self) -> Built:
        with self._graph.as_default():
            for index, task in enumerate(self._program.variables):
                self._add_variable(index, task)
            # Ensures that there are an operation and a tensor to choose, whatever the steps are.
            self._op("NoOp", [], -1)
            self._keep(self._const(_vector(1), -1))
            for step in self._program.steps:
                getattr(self, f"_{step.kind}")(step)
        program = self._program
        fed = {**self._placeholders}
        for pick in program.feeds:
            tensor = self._tensors[pick % len(self._tensors)]
            # A placeholder keeps its value if it is chosen here.
            fed.setdefault(tensor, _vector(pick))
        fetches = tuple(dict.fromkeys(self._tensors[pick % len(self._tensors)] for pick in program.fetches))
        targets = tuple(dict.fromkeys(self._ops[pick % len(self._ops)] for pick in program.targets))
        return Built(
            self._graph,
            tuple(self._initializers),
            tuple(variable.ref for variable in self._variables),
            RunRequest(fetches, tuple(fed), targets),
            tuple(fed.values()),
        )

    def _op(
        self,
        op_type: str,
        inputs: list[Tensor],
        task: int,
        attrs: dict[str, object] | None = None,
        controls: list[Operation] | None = None,
    ) -> Operation:
        device = TASKS[task] if self._placed and task >= 0 else ""
        op = self._graph.create_op(op_type, inputs, attrs, device=device, control_inputs=controls or [])
        self._ops.append(op)
        return op

    def _const(self, array: np.ndarray[tuple[int], np.dtype[np.generic]], task: int) -> Tensor:
        tensor = make_const(array)
        if self._placed and task >= 0:
            tensor.op._set_device(TASKS[task])
        return tensor

    def _keep(self, tensor: Tensor) -> None:
        self._tensors.append(tensor)

    def _value(self, pick: int) -> Tensor:
        return self._tensors[pick % len(self._tensors)]

    def _controls(self, step: Step) -> list[Operation]:
        return [self._ops[pick % len(self._ops)] for pick in step.controls] if self._ops else []

    def _add_variable(self, index: int, task: int) -> None:
        attrs: dict[str, object] = {
            "dtype": dtypes.float32,
            "shape": TensorShape([SIZE]),
            "container": "",
            "shared_name": "",
        }
        ref = self._op("VariableV2", [], task, attrs).outputs[0]
        self._variables.append(_Variable(task, ref))
        self._initializers.append(self._op("Assign", [ref, self._const(_vector(index + 2), task)], task))
        # Initializers run in a step of their own, so no operation of the program may depend on them.
        self._ops.clear()

    def _variable(self, step: Step) -> _Variable:
        return self._variables[step.picks[2] % len(self._variables)]

    def _read_op(self, op_type: str, tensor: Tensor, variable: _Variable, step: Step, task: int) -> None:
        after = [variable.last_update] if variable.last_update else []
        op = self._op(op_type, [tensor], task, controls=[*self._controls(step), *after])
        variable.readers.append(op)
        self._keep(op.outputs[0])

    # One method for each kind --------------------------------------------------------------------------------------

    def _constant(self, step: Step) -> None:
        self._keep(self._const(_vector(step.picks[0]), step.task))

    def _placeholder(self, step: Step) -> None:
        attrs: dict[str, object] = {"dtype": dtypes.float32, "shape": TensorShape([SIZE])}
        tensor = self._op("Placeholder", [], step.task, attrs).outputs[0]
        self._placeholders[tensor] = _vector(step.picks[0])
        self._keep(tensor)

    def _default(self, step: Step) -> None:
        shape = TensorShape([SIZE] if step.picks[1] % 2 else None)
        op = self._op("PlaceholderWithDefault", [self._value(step.picks[0])], step.task, {"shape": shape})
        self._keep(
            self._op("Reshape", [op.outputs[0], self._const(np.array([SIZE], np.int32), -1)], step.task).outputs[0]
        )

    def _unary(self, op_type: str, step: Step) -> None:
        op = self._op(op_type, [self._value(step.picks[0])], step.task, controls=self._controls(step))
        self._keep(op.outputs[0])

    def _negate(self, step: Step) -> None:
        self._unary("Neg", step)

    def _host(self, step: Step) -> None:
        self._unary("TestHostNegate", step)

    def _binary(self, op_type: str, step: Step) -> None:
        inputs = [self._value(step.picks[0]), self._value(step.picks[1])]
        self._keep(self._op(op_type, inputs, step.task, controls=self._controls(step)).outputs[0])

    def _add(self, step: Step) -> None:
        self._binary("AddV2", step)

    def _subtract(self, step: Step) -> None:
        self._binary("Sub", step)

    def _maximum(self, step: Step) -> None:
        self._binary("Maximum", step)

    def _text(self, step: Step) -> None:
        text = self._op("TestToText", [self._value(step.picks[0])], step.task).outputs[0]
        same = self._op("Identity", [text], step.picks[1] % len(TASKS), controls=self._controls(step)).outputs[0]
        self._keep(self._op("TestFromText", [same], step.picks[2] % len(TASKS)).outputs[0])

    def _split(self, step: Step) -> None:
        axis = self._const(np.array(0, np.int32), -1)
        parts = self._op("Split", [axis, self._value(step.picks[0])], step.task, {"num_split": 2}).outputs
        whole = self._op("ConcatV2", [parts[1], parts[step.picks[1] % 2], axis], step.picks[2] % len(TASKS), {"N": 2})
        self._keep(whole.outputs[0])

    def _reshape(self, step: Step) -> None:
        shape = self._const(np.array(SHAPES[step.picks[1] % len(SHAPES)], np.int32), step.task)
        match step.picks[2] % 5:
            case 1:
                shape = self._op("TestHostNegate", [shape], step.picks[2] % len(TASKS)).outputs[0]
                shape = self._op("Neg", [shape], step.task).outputs[0]
            case 2:
                value = self._op("Reshape", [self._value(step.picks[0]), shape], step.task).outputs[0]
                shape = self._op("Shape", [value], step.task, {"out_type": dtypes.int32}).outputs[0]
            case 3:
                ones = self._const(np.array([1, 1], np.int32), -1)
                op = self._op("Mul", [shape, ones], step.picks[2] % len(TASKS), controls=self._controls(step))
                shape = op.outputs[0]
            case 4:
                value = self._op("Reshape", [self._value(step.picks[0]), shape], step.task).outputs[0]
                shape = self._op("Shape", [value], step.task, {"out_type": dtypes.int32}).outputs[0]
                op = self._op("Identity", [shape], step.task, controls=self._controls(step))
                shape = op.outputs[0]
            case _:
                pass
        matrix = self._op("Reshape", [self._value(step.picks[0]), shape], step.task, controls=self._controls(step))
        flat = self._const(np.array([SIZE], np.int32), -1)
        self._keep(self._op("Reshape", [matrix.outputs[0], flat], step.picks[2] % len(TASKS)).outputs[0])

    def _two_uses_of_a_shape(self, step: Step) -> None:
        """Adds two consumers of one shape: an update, and an operation that may have to wait for other operations."""
        variable = self._variable(step)
        wanted = self._const(np.array(SHAPES[step.picks[1] % len(SHAPES)], np.int32), variable.task)
        matrix = self._op("Reshape", [self._value(step.picks[0]), wanted], variable.task).outputs[0]
        shape = self._op("Shape", [matrix], variable.task, {"out_type": dtypes.int32}).outputs[0]
        flat = self._const(np.array([SIZE], np.int32), -1)
        fill = self._op("Fill", [shape, self._const(np.array(step.picks[0], np.float32), -1)], variable.task).outputs[0]
        self._change("AssignAdd", variable, self._op("Reshape", [fill, flat], variable.task).outputs[0], step)
        later = self._op("Identity", [shape], variable.task, controls=self._controls(step)).outputs[0]
        again = self._op("Reshape", [self._value(step.picks[2]), later], variable.task).outputs[0]
        self._keep(self._op("Reshape", [again, flat], step.task).outputs[0])

    def _read(self, step: Step) -> None:
        variable = self._variable(step)
        self._read_op("Identity", variable.ref, variable, step, variable.task)

    def _use(self, step: Step) -> None:
        variable = self._variable(step)
        self._read_op("Neg", variable.ref, variable, step, variable.task)

    def _use_update(self, step: Step) -> None:
        current = [(v, t) for v, t in self._updates if v.last_update is t.op]
        if current:
            variable, tensor = current[step.picks[0] % len(current)]
            task = variable.task if step.picks[1] % 2 else step.task
            self._read_op("Identity", tensor, variable, step, task)

    def _update(self, op_type: str, step: Step) -> None:
        self._change(op_type, self._variable(step), self._value(step.picks[0]), step)

    def _change(self, op_type: str, variable: _Variable, value: Tensor, step: Step) -> None:
        # After all reads of the previous value: otherwise the result would depend on the order of execution.
        after = [*([variable.last_update] if variable.last_update else []), *variable.readers]
        op = self._op(op_type, [variable.ref, value], variable.task, controls=[*self._controls(step), *after])
        variable.last_update, variable.readers = op, []
        self._updates.append((variable, op.outputs[0]))

    def _assign(self, step: Step) -> None:
        self._update("Assign", step)

    def _assign_add(self, step: Step) -> None:
        self._update("AssignAdd", step)

    def _group(self, step: Step) -> None:
        if self._ops:
            self._op("NoOp", [], step.task, controls=[*self._controls(step), self._ops[step.picks[0] % len(self._ops)]])


del host_ops  # imported for its side effect: it registers the operation types
