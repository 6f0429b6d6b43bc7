"""Operations on the lock of a `tf.CriticalSection`."""

from __future__ import annotations

from headwater.graph.ops.define import host, no_outputs
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.mutex import Mutex


def _mutex(context: HostContext, name: str) -> Mutex:
    return context.resources.get_or_make("", name, Mutex, lambda: Mutex(name))


@host("MutexLock", infer=no_outputs, inputs="", blocking=True)
def lock(context: HostContext, *, shared_name: str) -> None:
    """Acquires the lock, waiting until it is free."""
    _mutex(context, shared_name).lock(context.step)


@host("ConsumeMutexLock", infer=no_outputs, inputs="")
def unlock(context: HostContext, *, shared_name: str) -> None:
    """Releases the lock."""
    _mutex(context, shared_name).unlock(context.step)
