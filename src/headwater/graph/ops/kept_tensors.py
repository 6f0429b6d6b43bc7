"""Operations on tensors that a session keeps between its steps, on the host of the task that they are placed on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from headwater.dtypes import DType, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import fixed, host, no_outputs
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.containers import session_container
from headwater.graph.resources.host_context import HostContext


class KeptTensors:
    """Maps handles to the tensors that one session keeps on one task."""

    def __init__(self) -> None:
        self.by_handle: dict[bytes, HostArray] = {}
        self._numbers = itertools.count()

    def keep(self, value: HostArray, dtype: DType) -> bytes:
        """Stores a value and returns its handle."""
        handle = f"GetSessionHandle;{next(self._numbers)};{dtype.base_dtype.name}".encode()
        self.by_handle[handle] = value
        return handle

    def find(self, handle: bytes) -> HostArray:
        """Returns the value of a handle.

        Raises:
          InvalidArgumentError: the handle is unknown.
        """
        if handle not in self.by_handle:
            raise InvalidArgumentError(
                f"The tensor with handle '{handle.decode(errors='replace')}' is not in the session store."
            )
        return self.by_handle[handle]


def _kept(context: HostContext) -> KeptTensors:
    container = session_container(context.step.session)
    return context.resources.get_or_make(container, "kept tensors", KeptTensors, KeptTensors)


@host("GetSessionHandleV2", infer=fixed(string, ()), inputs="value:T")
def get_handle(context: HostContext, value: HostArray, *, T: DType) -> bytes:
    return _kept(context).keep(value, T)


def _dtype_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["dtype"], None)]


@host("GetSessionTensor", infer=_dtype_spec, inputs="handle:string")
def get_tensor(context: HostContext, handle: HostArray, *, dtype: DType) -> HostArray:
    del dtype
    return _kept(context).find(bytes(handle.item()))


@host("DeleteSessionTensor", infer=no_outputs, inputs="handle:string")
def delete_tensor(context: HostContext, handle: HostArray) -> None:
    kept = _kept(context)
    kept.find(bytes(handle.item()))
    del kept.by_handle[bytes(handle.item())]
