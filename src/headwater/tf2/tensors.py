"""Tensors and variables of TensorFlow 2: JAX arrays, and Keras's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import jax
import jax.core
import jax.numpy as jnp
import keras
import numpy as np

from headwater.dtypes import DType, as_dtype
from headwater.graph.composites import CompositeTensor
from headwater.graph.convert import to_array
from headwater.graph.operation import Tensor as GraphTensor
from headwater.graph.runtime.jax_internals import ArrayImpl, core
from headwater.keras.internals import in_stateless_scope
from headwater.shapes import TensorShape
from headwater.tf1.functional.math import cast
from headwater.tf2.operators import called_by_library
from headwater.tf2.shapes import Sizes
from headwater.tf2.tape import value_of, variable_changes
from headwater.tf2.tracing import CreatesVariables, tracing

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

_jax = jax
_core: Any = core
_ArrayImpl: Any = ArrayImpl
_Base = keras.Variable
_in_scope = in_stateless_scope

Array = Any
"""A JAX array, or a `HostTensor`."""


class HostTensor(np.ndarray[Any, Any]):
    """A tensor in NumPy: text, and sizes that are known while a function is compiled."""

    def numpy(self) -> HostArray:
        """The value as a NumPy array, or as a NumPy number or the text itself if it has no dimensions."""
        return _numpy(self)

    @property
    def shape(self) -> Sizes:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The shape."""
        return Sizes(np.asarray(self).shape)

    def get_shape(self) -> TensorShape:
        """The shape."""
        return TensorShape(self.shape)

    def __getitem__(self, key: Any) -> HostTensor:
        return host_tensor(np.asarray(self)[key])


def host_tensor(value: object) -> HostTensor:
    """``value`` as a `HostTensor`."""
    array = np.empty((), object) if isinstance(value, (bytes, str)) else np.asarray(value)
    if isinstance(value, (bytes, str)):
        array[()] = value.encode() if isinstance(value, str) else value
    return array.view(HostTensor)


def known(array: HostArray) -> Array:
    """Converts a NumPy array to a tensor with a value that is known even while a function is traced."""
    if array.dtype.kind in "OSU":
        return host_tensor(array)
    with _jax.ensure_compile_time_eval():
        return jnp.asarray(array)


def _numpy(array: object) -> HostArray:
    """Returns the value; a number, which can be a key of dictionaries, if it has no dimensions."""
    found = np.asarray(array)
    return found if found.ndim else found[()]


def _no_numpy(tracer: object) -> object:
    raise NotImplementedError(
        "numpy() is only available when eager execution is enabled: within a tf.function a tensor has no value yet"
    )


def _get_shape(array: Any) -> TensorShape:
    return TensorShape(array.shape)


def _set_shape(array: Any, shape: Any) -> None:
    """Raises ValueError if the tensor, whose sizes are all known, cannot have this shape."""
    known, wanted = TensorShape(array.shape), TensorShape(shape)
    if not known.is_compatible_with(wanted):
        raise ValueError(f"Tensor's shape {known} is not compatible with supplied shape {wanted}")


class Reference:
    """A tensor or variable as a key of dictionaries, compared by identity instead of value.

    Args:
      value: the tensor or variable.
    """

    def __init__(self, value: object) -> None:
        self._value = value

    def deref(self) -> object:
        """The tensor or variable."""
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def attach() -> None:
    """Adds the methods of TensorFlow's tensors to JAX's arrays: ``numpy()``, ``get_shape()`` and others."""
    _ArrayImpl.numpy = _numpy
    _core.Tracer.numpy = _no_numpy
    for kind in (_ArrayImpl, _core.Tracer):
        kind.get_shape = _get_shape
        kind.set_shape = _set_shape
        kind.ref = Reference


def constant(value: object, dtype: Any = None, shape: Any = None, name: str | None = None) -> Array:
    """Returns a tensor with this value.

    Args:
      value: a number, text, an array, a tensor, or nested sequences of numbers or text.
      dtype: element type; found from the value if None.
      shape: the tensor's shape; one element fills it.

    Raises:
      TypeError: the value does not fit the element type.
      ValueError: the elements do not fill the shape.
    """
    del name
    wanted = None if dtype is None else as_dtype(dtype)
    array = convert_to_tensor(value, wanted) if _is_array(value) else known(to_array(value, wanted))
    if shape is None:
        return array
    sizes = tuple(int(size) for size in shape)
    if array.size == 1:
        return jnp.broadcast_to(array.reshape(()), sizes)
    if array.size != int(np.prod(sizes)):
        raise TypeError(
            f"Eager execution of tf.constant with unsupported shape. Tensor has {array.size} elements, shape {sizes}"
        )
    return array.reshape(sizes)


def _is_array(value: object) -> bool:
    return isinstance(value, (_jax.Array, _Base, HostTensor))


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    """Converts ``value`` to a tensor.

    Args:
      value: a tensor, variable, number, text, array, or nested sequences of these.
      dtype: the element type it must have.
      dtype_hint: the element type for values that could be of several.

    Raises:
      ValueError: a tensor has the wrong element type.
      TypeError: the value does not fit the element type.
    """
    del name
    if isinstance(value, GraphTensor | keras.KerasTensor):
        return value
    wanted: DType | None = None if dtype is None else as_dtype(dtype)
    if isinstance(value, _Base):
        value = value_of(value)
    if _is_array(value):
        if wanted is not None and wanted.numpy_dtype != value.dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.name}: {value!r}"
            )
        return value
    if isinstance(value, (list, tuple)) and any(map(_is_array, jax.tree_util.tree_leaves(value))):
        items: object = value
        stacked = jnp.stack([convert_to_tensor(item) for item in items])
        return stacked if wanted is None else stacked.astype(wanted.numpy_dtype)
    if wanted is None and dtype_hint is not None:
        try:
            return known(to_array(value, as_dtype(dtype_hint)))
        except (TypeError, ValueError):
            pass
    return known(to_array(value, wanted))


class ElementType(str):
    """The name of an element type, with the attributes of the `tf.DType`: ``name``, ``is_floating`` and the like."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(as_dtype(str(self)), name)


class _VariableType(type):
    """Every variable of Keras's is a ``tf.Variable``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Base)


class Variable(_Base, metaclass=_VariableType):
    """A variable.

    Args:
      initial_value: its first value, or a function that returns it.
      trainable: whether tapes watch it automatically; True if None.
      name: for messages and checkpoints.
      dtype: element type; the value's type if None.
      constraint: a function of a value, which an optimizer applies after each of its updates.
      aggregation: how the values of several replicas are combined: ``tf.VariableAggregation``.
      synchronization: TensorFlow's ``AUTO`` and ``ON_READ`` have the same effect: values are combined when they change.
      validate_shape, import_scope, experimental_enable_variable_lifting: ignored, as in TensorFlow 2.

    Raises:
      NotImplementedError: the shape differs from the value's, or ``caching_device`` or ``variable_def`` is given.
      ValueError: there is no initial value.
    """

    def __init__(
        self,
        initial_value: object = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: object = None,
        name: str | None = None,
        variable_def: object = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: object = None,
        synchronization: object = None,
        aggregation: object = None,
        shape: Any = None,
        experimental_enable_variable_lifting: bool = True,
    ) -> None:
        del validate_shape, import_scope, experimental_enable_variable_lifting, synchronization
        for what, given in (("caching_device", caching_device), ("variable_def", variable_def)):
            if given is not None:
                raise NotImplementedError(f"tf.Variable: {what} is not supported")
        if initial_value is None:
            raise ValueError("Cannot create a variable without an initial value: initial_value is None")
        if _in_scope():
            if tracing() is not None:
                raise CreatesVariables
            raise ValueError(
                "tf.function-decorated function tried to create variables on non-first call: make variables before the "
                "function runs, as Keras's layers do"
            )
        given = initial_value() if callable(initial_value) and not _is_array(initial_value) else initial_value
        kind = None if dtype is None else as_dtype(dtype)
        value = convert_to_tensor(given) if _is_array(given) else constant(given, kind)
        if isinstance(value, HostTensor):
            raise NotImplementedError("tf.Variable: text is not supported")
        if kind is not None:
            value = value.astype(kind.numpy_dtype)
        if shape is not None and TensorShape(shape).as_list() != list(value.shape):
            raise NotImplementedError(f"tf.Variable: shape {shape} differs from the initial value's, {value.shape}")
        super().__init__(
            value,
            dtype=str(value.dtype),
            trainable=trainable is None or trainable,
            autocast=False,
            name=name or "Variable",
            aggregation=_AGGREGATIONS[str(getattr(aggregation, "name", aggregation or "NONE")).upper()],
        )
        self.constraint = constraint

    def assign(self, value: object, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns a value."""
        del use_locking, name
        if not _in_scope():
            variable_changes(self)
        super().assign(self._as_mine(value))
        return self if read_value else None

    @property
    def value(self) -> Any:
        """Its value for Keras, which reads an attribute; for a program the method of TensorFlow 2 that returns it."""
        found = super().value
        return found if called_by_library() else lambda: found

    def _as_mine(self, value: object) -> Array:
        """Converts ``value`` to the variable's type; raises TypeError for inexact values of an integer variable."""
        array = _plain(value)
        if isinstance(array, GraphTensor):
            return cast(array, as_dtype(str(self.dtype)))
        array = jnp.asarray(array)
        if self._is_whole and jnp.issubdtype(array.dtype, jnp.inexact):
            raise TypeError(f"Cannot convert {value!r} to the type of variable {self.name!r}, {self.dtype}")
        return array.astype(self.dtype)

    @property
    def dtype(self) -> ElementType:
        """Its element type: the text that Keras uses, with the attributes of a `tf.DType`."""
        return ElementType(super().dtype)

    @property
    def _is_whole(self) -> bool:
        return not jnp.issubdtype(np.dtype(self.dtype), jnp.inexact)

    @property
    def device(self) -> str:
        """The name of the device that holds the value."""
        (device,) = value_of(self).devices() if not _in_scope() else (jax.devices()[0],)
        return f"/job:localhost/replica:0/task:0/device:{device.platform.upper()}:{device.id}"

    def sparse_read(self, indices: object, name: str | None = None) -> Array:
        """The rows ``indices``."""
        del name
        return jnp.take(value_of(self), jnp.asarray(_plain(indices)), axis=0)

    def gather_nd(self, indices: object, name: str | None = None) -> Array:
        """The elements, or slices, at ``indices``; the last dimension of ``indices`` holds coordinates."""
        del name
        return value_of(self)[_coordinates(indices)]

    def scatter_nd_update(self, indices: object, updates: object, name: str | None = None) -> Any:
        """Assigns ``updates`` to the elements at ``indices``; the last dimension of ``indices`` holds coordinates."""
        return self.assign(value_of(self).at[_coordinates(indices)].set(self._as_mine(updates)), name=name)

    def scatter_nd_add(self, indices: object, updates: object, name: str | None = None) -> Any:
        """Adds ``updates`` at ``indices``."""
        return self.assign(value_of(self).at[_coordinates(indices)].add(self._as_mine(updates)), name=name)

    def scatter_nd_sub(self, indices: object, updates: object, name: str | None = None) -> Any:
        """Subtracts ``updates`` at ``indices``."""
        return self.assign(value_of(self).at[_coordinates(indices)].add(-self._as_mine(updates)), name=name)

    def assign_add(
        self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self | None:
        """Adds ``delta``."""
        return self.assign(value_of(self) + self._as_mine(delta), use_locking, name, read_value)

    def assign_sub(
        self, delta: object, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self | None:
        """Subtracts ``delta``."""
        return self.assign(value_of(self) - self._as_mine(delta), use_locking, name, read_value)

    @property
    def shape(self) -> Sizes:
        """Its shape."""
        return Sizes(self._shape)

    def read_value(self) -> Any:
        """Its value."""
        return value_of(self)

    def numpy(self) -> HostArray:
        """Its value in NumPy."""
        return _numpy(value_of(self))

    def get_shape(self) -> TensorShape:
        """Its shape."""
        return TensorShape(self.shape)

    def ref(self) -> Reference:
        """Itself as a key of dictionaries."""
        return Reference(self)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={tuple(self.shape)} dtype={self.dtype}, numpy={value_of(self)}>"


_AGGREGATIONS = {"NONE": "none", "SUM": "sum", "MEAN": "mean", "ONLY_FIRST_REPLICA": "only_first_replica"}


def _plain(value: object) -> Tree:
    return value_of(value) if isinstance(value, _Base) else value


def _coordinates(indices: object) -> tuple[Array, ...]:
    array = jnp.asarray(_plain(indices))
    return tuple(array[..., place] for place in range(array.shape[-1]))


def to_numpy(value: object) -> np.ndarray[Any, Any]:
    """Converts a tensor, a variable, or a value that can be converted to a tensor, to a NumPy array."""
    if isinstance(value, str):
        value = value.encode()
    return np.asarray(_plain(value), object if isinstance(value, bytes) else None)


def is_symbolic_tensor(tensor: object) -> bool:
    """Returns whether ``tensor`` is a tensor of a graph, or of a function that is being traced."""
    return isinstance(tensor, GraphTensor | jax.core.Tracer) and not isinstance(tensor, HostTensor)


def is_tensor(value: object) -> bool:
    """Returns whether ``value`` is a tensor or a variable."""
    return _is_array(value) or isinstance(value, GraphTensor | CompositeTensor)
