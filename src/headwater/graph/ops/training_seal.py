"""Operations on a task's seal, which records that the chief has prepared the model; see
`headwater.tf1.training.seals`."""

from __future__ import annotations

import numpy as np

from headwater.dtypes import bool_, string
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.training_note import training_note_of


@host("TrainingSealRead", infer=fixed(string, ()), inputs="")
def read(context: HostContext) -> HostArray:
    return np.array(training_note_of(context.resources).text, object)


@host("TrainingBeingPrepared", infer=fixed(bool_, ()), inputs="")
def being_prepared(context: HostContext) -> HostArray:
    return np.array(training_note_of(context.resources).prepares)


@host("TrainingSealWrite", infer=no_outputs, inputs="text:string")
def write(context: HostContext, text: HostArray, *, together: str = "", prepares: bool = False) -> None:
    training_note_of(context.resources).change(bytes(text.item()), together, prepares=prepares)
