"""Operations on the barrier of synchronous replicas."""

from __future__ import annotations

import numpy as np

from headwater.dtypes import int64
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.step_barrier import StepBarrier


def _barrier(context: HostContext, name: str) -> StepBarrier:
    return context.resources.get_or_make("", name, StepBarrier, StepBarrier)


@host("StepBarrierJoin", infer=fixed(int64, ()), inputs="", keeps=True)
def join(context: HostContext, *, shared_name: str) -> np.integer:
    return np.int64(_barrier(context, shared_name).join(context.step.session))


@host("StepBarrierLife", infer=fixed(int64, ()), inputs="", keeps=True, stable=True)
def run_number(context: HostContext, *, shared_name: str) -> np.integer:
    return np.int64(_barrier(context, shared_name).run_number)


@host("StepBarrierStart", infer=no_outputs, inputs="step:int64, elsewhere:int64, name:int64", keeps=True)
def start(
    context: HostContext, step: HostArray, elsewhere: HostArray, name: HostArray, *, shared_name: str, extra: int
) -> None:
    _barrier(context, shared_name).start(context.step.session, int(step), int(elsewhere), extra, int(name))


@host("StepBarrierSet", infer=no_outputs, inputs="step:int64", announces=True, keeps=True)
def set_step(context: HostContext, step: HostArray, *, shared_name: str, extra: int, tokens: int) -> None:
    _barrier(context, shared_name).set(context.step.session, int(step), extra, tokens)


@host("StepBarrierGive", infer=no_outputs, inputs="step:int64", keeps=True)
def issue_tokens(context: HostContext, step: HostArray, *, shared_name: str, tokens: int) -> None:
    _barrier(context, shared_name).issue_tokens(context.step.session, int(step), tokens)


@host("StepBarrierWait", infer=fixed(int64, ()), inputs="local_step:int64", blocking=True, keeps=True)
def wait_for_step(context: HostContext, local_step: HostArray, *, shared_name: str) -> np.integer:
    done = local_step[0] if local_step.ndim else local_step  # local_step may also have the name of the training's start
    return np.int64(_barrier(context, shared_name).wait(context.step, context.step.session, int(done)))
