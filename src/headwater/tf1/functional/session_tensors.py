"""Tensors that a session keeps between its steps, under handles that programs pass from one step to another."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DType, DTypeLike, as_dtype, string
from headwater.errors import InvalidArgumentError
from headwater.graph.context import get_default_graph, get_default_session
from headwater.graph.convert import name_scope
from headwater.graph.fetch_types import register_session_run_conversion_functions
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.arrays import placeholder

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike


class TensorHandle(bytes):
    """Handle of a tensor that a session keeps, to be fed to the placeholder of `get_session_tensor`."""

    _session: SessionLike | None = None

    @classmethod
    def of(cls, session: SessionLike | None, name: bytes) -> TensorHandle:
        """Returns the handle ``name`` of a tensor that ``session`` keeps; the default session if None."""
        handle = cls(name)
        handle._session = session
        return handle

    @property
    def handle(self) -> str:
        """The name."""
        return self.decode()

    def get_raw_handle(self) -> str:
        """The name."""
        return self.decode()

    @property
    def _dtype(self) -> DType:
        return as_dtype(self.decode().rpartition(";")[2])

    def eval(self) -> Any:
        """The tensor's value.

        Raises:
          TypeError: the tensor has been deleted.
        """
        return self._run(lambda: get_session_tensor(self.handle, self._dtype))

    def delete(self) -> None:
        """Deletes the tensor from its session.

        Raises:
          TypeError: the tensor has been deleted.
        """
        self._run(lambda: delete_session_tensor(self.handle))

    def _run(self, build: Any) -> Any:
        session = self._session or get_default_session()
        if session is None:
            raise ValueError("There is no default session: use the handle within `with tf.Session()`")
        with session.graph.as_default():
            holder, wanted = build()
        try:
            return session.run(wanted, {holder: self})
        except InvalidArgumentError as error:
            raise TypeError(f"Persistent tensor {self.handle} may have already been deleted.") from error

    def __str__(self) -> str:
        return self.decode()


class HandleTensor(Tensor):
    """A tensor with a handle, which a session returns as a `TensorHandle`."""

    __slots__ = ()


def get_session_handle(data: Tensor, name: str | None = None) -> Tensor:
    """Makes the session keep a value; returns its handle, a `TensorHandle` once a session has run it.

    Args:
      data: the tensor.

    Raises:
      TypeError: ``data`` is not a tensor.
    """
    if not isinstance(data, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("`data` must be of type Tensor.")
    graph = get_default_graph()
    with graph.colocate_with(data.op):
        found = one("GetSessionHandleV2", data, T=data.dtype.base_dtype, name=name or "GetSessionHandleV2")
    found.__class__ = HandleTensor
    return found


def get_session_tensor(handle: str, dtype: DTypeLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns a placeholder for a handle, and the tensor that the session keeps under this handle.

    Args:
      handle: ignored; the handle fed to the placeholder is used.
      dtype: the tensor's type.
    """
    del handle
    with name_scope(name, "GetSessionTensor"):
        holder = placeholder(string, [])
        return holder, one("GetSessionTensor", holder, dtype=as_dtype(dtype))


def delete_session_tensor(handle: str, name: str | None = None) -> tuple[Tensor, Operation]:
    """Returns a placeholder for a handle, and the operation that deletes the session's tensor.

    Args:
      handle: ignored; the handle fed to the placeholder is used.
    """
    del handle
    with name_scope(name, "DeleteSessionTensor"):
        holder = placeholder(string, [])
        return holder, get_default_graph().create_op("DeleteSessionTensor", [holder], {}, "DeleteSessionTensor")


def _fetch_handle(tensor: Tensor) -> tuple[list[str], Callable[[Any], TensorHandle]]:
    session = get_default_session()  # the session that prepares the fetch
    owner = (lambda: None) if session is None else weakref.ref(session)
    return [tensor.name], lambda found: TensorHandle.of(owner(), found[0])


register_session_run_conversion_functions(HandleTensor, _fetch_handle, lambda tensor, value: [(tensor.name, value)])
