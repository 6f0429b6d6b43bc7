"""Stamps what a plan does in a step that is traced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headwater.passes.plan import Compute, Host, Instruction, Receive, Send, TaskPlan
from headwater.runtime.devices import settle
from headwater.telemetry.step_stats import EXECUTABLE, Activity, StepTrace


def _now_us() -> int:
    return time.time_ns() // 1000


class PlanTracer:
    """Performs a plan's instructions and says when each began and ended.

    Executables run beside each other, on different devices; none is waited for. A thread for each finds out when it
    began (its inputs were there, and its device had done what came before) and when it ended.

    Args:
      plan: whose instructions they are.
      trace: where to say it.
    """

    def __init__(self, plan: TaskPlan, trace: StepTrace) -> None:
        self._task = plan.task
        self._trace = trace
        self._latest: dict[str, _Watch] = {}
        self._watches: list[_Watch] = []

    def perform(
        self, item: Instruction, act: Callable[[], Any], inputs: Sequence[Any], outputs: Callable[[], Sequence[Any]]
    ) -> Any:
        """Does what ``act`` does and gives its result.

        Args:
          item: the instruction.
          act: performs it.
          inputs: the values that it takes.
          outputs: gives the values that it has given, afterwards.
        """
        start_us = _now_us()
        ready = all(_is_ready(value) for value in inputs)
        result = act()
        given = outputs()
        activity = Activity(
            device=f"{self._task}/device:{_device(item)}", **_told(item), start_us=start_us, end_us=_now_us(),
            output_bytes=sum(int(value.nbytes) for value in given if hasattr(value, "nbytes")),
        )  # fmt: skip
        if not isinstance(item, Compute):
            self._trace.add(activity)
            return result
        watch = _Watch(
            activity, () if ready else inputs, [*given, *(result or ())], self._latest.get(item.device), self._trace
        )
        self._latest[item.device] = watch
        self._watches.append(watch)
        return result

    def finish(self) -> None:
        """Waits until all of it has ended."""
        for watch in self._watches:
            watch.join()


class _Watch(threading.Thread):
    """Waits for an executable, and says when it ran."""

    def __init__(
        self, activity: Activity, inputs: Sequence[Any], outputs: Sequence[Any], before: _Watch | None, trace: StepTrace
    ) -> None:
        super().__init__(name=f"watches {activity.name}", daemon=True)
        self._activity = activity
        self._inputs = _of_devices(inputs)
        self._outputs = _of_devices(outputs)
        self._before = before
        self._trace = trace
        self.end_us = 0
        self.start()

    def run(self) -> None:
        activity = self._activity
        start_us = activity.start_us
        if self._inputs:
            settle(self._inputs)
            start_us = max(start_us, _now_us())
        if self._before is not None:
            self._before.join()
            start_us = max(start_us, self._before.end_us)
        settle(self._outputs)
        self.end_us = max(start_us, _now_us())
        self._trace.add(replace(activity, start_us=start_us, end_us=self.end_us))


def _of_devices(values: Sequence[Any]) -> list[Any]:
    """Those that may still be on their way."""
    return [value for value in values if hasattr(value, "block_until_ready")]


def _is_ready(value: Any) -> bool:
    return not hasattr(value, "is_ready") or value.is_deleted() or value.is_ready()


def _device(item: Instruction) -> str:
    return item.device if isinstance(item, Compute) else "CPU:0"


def _told(item: Instruction) -> dict[str, Any]:
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
