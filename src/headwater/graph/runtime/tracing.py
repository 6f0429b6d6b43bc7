"""Records the times of a plan's instructions in a traced step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.cluster.telemetry.step_stats import EXECUTABLE, Activity, StepTrace
from headwater.graph.passes.plan import Compute, Host, Receive, Send, TaskPlan
from headwater.graph.passes.plan import Instruction as PlanInstruction
from headwater.graph.runtime.devices import wait_until_computed
from headwater.graph.runtime.profile import Instruction, Profile

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


def _now_us() -> int:
    return time.time_ns() // 1000


class PlanTracer:
    """Runs a plan's instructions and records the start and end of each.

    Executables run concurrently on different devices, and the plan does not wait for them. So for each executable, a
    thread waits and determines its times. An executable starts when its inputs are computed and its device has finished
    the previous executable; it ends when its outputs are computed. The times of single operations are from XLA's
    profiler; executables are then listed separately, under a device with the suffix ``executables``. If something else
    in this process uses the profiler, only executables are listed.

    A context manager: leaving it waits until all instructions have ended.

    Args:
      trace: receives the records.
    """

    def __init__(self, plan: TaskPlan, trace: StepTrace) -> None:
        self._task = plan.task
        self._trace = trace
        self._latest: dict[str, _Watch] = {}
        self._watches: list[_Watch] = []
        self._profile = Profile()
        self._nodes = {
            node.name: (item.device, node)
            for item in plan.instructions
            if isinstance(item, Compute)
            for node in item.nodes
            if node.type != "Const"
        }

    def __enter__(self) -> PlanTracer:
        if self._nodes:
            self._profile.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for watch in self._watches:
            watch.join()
        known = self._operations(self._profile.stop())
        for watch in self._watches:
            device = watch.activity.device + ("/executables" if known else "")
            self._trace.add(replace(watch.activity, device=device))

    def _operations(self, instructions: Iterable[Instruction]) -> bool:
        """Adds the times of the operations inside executables; returns whether there are any."""
        found: dict[str, list[Instruction]] = {}
        for each in instructions:
            name = each.scope
            # The innermost scope may be one that JAX has added within an operation.
            while name and name not in self._nodes:
                name = name.rpartition("/")[0]
            if name:
                found.setdefault(name, []).append(each)
        for name, ran in found.items():
            device, node = self._nodes[name]
            start_us = min(each.start_us for each in ran)
            # The sum over all runs of the operation, for example in a loop.
            lasted_us = sum(each.end_us - each.start_us for each in ran)
            self._trace.add(
                Activity(
                    device=f"{self._task}/device:{device}",
                    name=name,
                    type=node.type,
                    inputs=node.inputs,
                    start_us=start_us,
                    # If instructions of the operation ran at the same time, the sum exceeds the elapsed time: limit it.
                    end_us=min(start_us + lasted_us, max(each.end_us for each in ran)),
                )
            )
        return bool(found)

    def perform(
        self,
        item: PlanInstruction,
        act: Callable[[], Any],
        inputs: Sequence[Any],
        outputs: Callable[[], Sequence[AnyArray]],
    ) -> Any:
        """Runs ``act`` and returns its result.

        Args:
          item: the instruction.
          act: runs the instruction.
          inputs: the values of its inputs.
          outputs: returns the values of its outputs, after the run.
        """
        start_us = _now_us()
        ready = all(_is_ready(value) for value in inputs)
        result = act()
        given = outputs()
        activity = Activity(
            device=f"{self._task}/device:{_device(item)}",
            **_description(item),
            start_us=start_us,
            end_us=_now_us(),
            output_bytes=sum(int(value.nbytes) for value in given if hasattr(value, "nbytes")),
        )
        if not isinstance(item, Compute):
            self._trace.add(activity)
            return result
        watch = _Watch(activity, () if ready else inputs, [*given, *(result or ())], self._latest.get(item.device))
        self._latest[item.device] = watch
        self._watches.append(watch)
        return result


class _Watch(threading.Thread):
    """A thread that waits for an executable, and determines when it ran.

    Attributes:
      activity: the executable's activity; its times are set after `join`.
    """

    def __init__(
        self, activity: Activity, inputs: Sequence[Any], outputs: Sequence[AnyArray], before: _Watch | None
    ) -> None:
        super().__init__(name=f"watches {activity.name}", daemon=True)
        self.activity = activity
        self._inputs = _device_arrays(inputs)
        self._outputs = _device_arrays(outputs)
        self._before = before
        self.start()

    def run(self) -> None:
        start_us = self.activity.start_us
        if self._inputs:
            wait_until_computed(self._inputs)
            start_us = max(start_us, _now_us())
        if self._before is not None:
            self._before.join()
            start_us = max(start_us, self._before.activity.end_us)
        wait_until_computed(self._outputs)
        self.activity = replace(self.activity, start_us=start_us, end_us=max(start_us, _now_us()))


def _device_arrays(values: Sequence[AnyArray]) -> list[AnyArray]:
    """Returns the values that may not be computed yet."""
    return [value for value in values if hasattr(value, "block_until_ready")]


def _is_ready(value: Any) -> bool:
    return not hasattr(value, "is_ready") or value.is_deleted() or value.is_ready()


def _device(item: PlanInstruction) -> str:
    return item.device if isinstance(item, Compute) else "CPU:0"


def _description(item: PlanInstruction) -> dict[str, Any]:
    match item:
        case Compute():
            name = item.nodes[-1].name if item.nodes else "empty"
            return {"name": name, "type": EXECUTABLE, "inputs": item.inputs}
        case Host():
            return {"name": item.node.name, "type": item.node.type, "inputs": item.node.inputs}
        case Send():
            return {"name": f"send_{item.transfer}_to_{item.destination}", "type": "_Send", "inputs": item.tensors}
        case Receive():
            return {"name": f"receive_{item.transfer}_from_{item.source}", "type": "_Recv"}
