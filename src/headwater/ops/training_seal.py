"""Operations on a task's note of the training whose variables it holds; see `headwater.training.seals`."""

from __future__ import annotations

import numpy as np

from headwater.dtypes import string
from headwater.ops.define import fixed, host, no_outputs
from headwater.registry import HostArray
from headwater.resources.host_context import HostContext


class Note:
    """A text that a task keeps for as long as its variables.

    Attributes:
      text: empty before it is written.
    """

    def __init__(self) -> None:
        self.text = b""


def _note(context: HostContext) -> Note:
    return context.resources.get_or_make("", "training", Note, Note)


@host("TrainingSealRead", infer=fixed(string, ()), inputs="")
def read(context: HostContext) -> HostArray:
    return np.array(_note(context).text, object)


@host("TrainingSealWrite", infer=no_outputs, inputs="text:string")
def write(context: HostContext, text: HostArray) -> None:
    _note(context).text = bytes(text.item())
