"""`Variable`: state that outlives a step, stored on its task."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.dtypes import DType, as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph, get_default_session
from headwater.graph.convert import convert_to_tensor, name_scope, register_tensor_conversion_function
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor, TensorOperators
from headwater.shapes import TensorShape, as_shape, unknown_shape
from headwater.tensorboard_protos import variable_pb2
from headwater.tf1.functional import indexing, program_order
from headwater.tf1.variables import state
from headwater.tf1.variables.creators import any_creators, create_with_creators
from headwater.tf1.variables.initial_values import with_initialized_values
from headwater.tf1.variables.save_slice import SaveSliceInfo

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import DeviceLike, SessionLike, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tensorboard_protos import VariableDef
    from headwater.tf1.variables.types import Constraint

T = TypeVar("T")


class VariableSynchronization(enum.Enum):
    """The time at which copies of a variable are synchronised. Has no effect: a variable has no copies."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """The aggregation of copies of a variable. Has no effect: a variable has no copies."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = ONLY_FIRST_REPLICA


class _MadeByCreators(type):
    """Metaclass: calls the variable creators of open scopes to create a variable; see `variable_creator_scope`."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """Signature of the constructor, for callers of `inspect.signature`."""
        given = inspect.signature(vars(cls).get("__init__", Variable.__init__))
        return given.replace(parameters=[*given.parameters.values()][1:])

    def __call__(cls: type[T], *args: object, **kwargs: object) -> T:
        make: Callable[..., T] = super().__call__
        if cls is not Variable or not any_creators():
            return make(*args, **kwargs)
        bound = _SIGNATURE.bind(None, *args, **kwargs)
        bound.apply_defaults()
        bound.arguments.pop("self")
        return create_with_creators(make, **bound.arguments)


class Variable(TensorOperators, metaclass=_MadeByCreators):
    """A tensor that keeps its value between steps.

    It is stored in the container of its task, shared by all sessions with that task, under the name of its operation.
    Before its first use, its ``initializer`` must have run, or a checkpoint must have been restored. A variable can be
    used like a tensor with its value.

    Args:
      initial_value: the value that ``initializer`` assigns: any argument of `convert_to_tensor`, or a function that
        returns one; a function's operations run on the variable's device.
      trainable: add it to ``TRAINABLE_VARIABLES``, which optimizers update. None means True.
      collections: collections to add it to; ``[GLOBAL_VARIABLES]`` if None.
      validate_shape: require a fully known shape, and that assigned values have it.
      caching_device: device that caches the value for readers; None: read it from its own device.
      name: its name, made unique within the name scope.
      variable_def: a ``VariableDef`` of a variable already in the graph, in place of the other arguments.
      dtype: element type of ``initial_value``.
      expected_shape: accepted for compatibility.
      import_scope: name scope that ``variable_def`` was imported into.
      constraint: a function that projects the value after an optimizer's update.
      use_resource: accepted for compatibility; both kinds of variable behave like TensorFlow's resource variables.
      synchronization: `VariableSynchronization`; ``ON_READ`` makes a variable that is not trainable.
      aggregation: `VariableAggregation`, stored only.
      shape: the static shape, if the shape of ``initial_value`` is too specific.

    Raises:
      ValueError: the initial value is missing, or has an unknown shape with ``validate_shape``; or ``collections`` is
        invalid.
    """

    __array_priority__ = 100  # NumPy arrays on the left delegate operators to this class

    SaveSliceInfo = SaveSliceInfo

    def __init__(
        self,
        initial_value: object = None,
        trainable: bool | None = None,
        collections: Iterable[str] | None = None,
        validate_shape: bool = True,
        caching_device: DeviceLike | None = None,
        name: str | None = None,
        variable_def: VariableDef | None = None,
        dtype: DTypeLike | None = None,
        expected_shape: ShapeLike = None,
        import_scope: str | None = None,
        constraint: Constraint | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: ShapeLike = None,
    ) -> None:
        del expected_shape, use_resource
        self._constraint = constraint
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._save_slice_info: SaveSliceInfo | None = None
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._init_from_proto(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        if synchronization is VariableSynchronization.ON_READ and trainable:
            raise ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables. "
                "You have specified trainable=True and synchronization=VariableSynchronization.ON_READ."
            )
        self._trainable = trainable
        keys = _collections(collections, trainable)
        wanted = None if dtype is None else as_dtype(dtype).base_dtype
        with init_scope(), name_scope(name, "Variable", [] if callable(initial_value) else [initial_value]) as scope:
            self._create(initial_value, wanted, scope, validate_shape, caching_device, shape)
        self.graph.add_to_collections(keys, self)

    def _create(
        self,
        initial_value: Any,
        dtype: DType | None,
        scope: str,
        validate_shape: bool,
        caching_device: DeviceLike,
        shape: Any,
    ) -> None:
        graph = get_default_graph()
        if callable(initial_value):
            with graph.colocate_with_name(scope[:-1]), graph.name_scope("Initializer"):
                value: Any = initial_value()
                initial = convert_to_tensor(value, dtype, name="initial_value")
        else:
            initial = convert_to_tensor(initial_value, dtype, name="initial_value")
        dims = unknown_shape() if not validate_shape else initial.shape if shape is None else as_shape(shape)
        if validate_shape and not initial.shape.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {initial}")
        self._initial_value: Tensor | None = initial
        self._variable = state.variable_op(dims, initial.dtype.base_dtype, scope)
        start = with_initialized_values(initial, self._variable.op.name)
        self._initializer_op: Operation = state.assign(self._variable, start, validate_shape, name="Assign").op
        with self._beside() if caching_device is None else graph.device(caching_device):
            self._snapshot = graph.create_op("Identity", [self._variable], name="read").outputs[0]

    def _init_from_proto(self, proto: VariableDef, import_scope: str | None) -> None:
        graph = get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)

        self._variable = find(proto.variable_name)
        self._initializer_op = find(proto.initializer_name)
        self._initial_value = find(proto.initial_value_name) if proto.initial_value_name else None
        self._snapshot = find(proto.snapshot_name)
        self._trainable = proto.trainable
        self._synchronization = VariableSynchronization(proto.synchronization)
        self._aggregation = VariableAggregation(proto.aggregation)
        if proto.HasField("save_slice_info_def"):
            self._save_slice_info = SaveSliceInfo(
                save_slice_info_def=proto.save_slice_info_def, import_scope=import_scope
            )

    # Properties -------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._variable.name

    @property
    def _shared_name(self) -> str:
        return self._variable.op.name

    @property
    def op(self) -> Operation:
        """The operation that names the variable's cell."""
        return self._variable.op

    @property
    def graph(self) -> Graph:
        return self._variable.graph

    @property
    def device(self) -> str:
        return self._variable.device

    @property
    def dtype(self) -> DType:
        """The reference type, e.g. ``float32_ref``."""
        return self._variable.dtype

    @property
    def shape(self) -> TensorShape:
        return self._variable.shape

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Refines the static shape."""
        self._variable.set_shape(shape)
        self._snapshot.set_shape(shape)

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        return self._constraint

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Any:
        """The tensor that ``initializer`` assigns."""
        return self._initial_value

    # Reading ----------------------------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """Returns the value at the start of a step; within `tf.function`, and within control dependencies on a change
        of the variable, the value at that point."""
        if program_order.is_in_function() or self.graph.may_change_before(self._variable.op, self._initializer_op):
            with self._beside():
                return self.read_value()
        return self._snapshot

    def read_value(self) -> Tensor:
        """A new read of the variable, which control dependencies can order after an update."""
        return self.graph.create_op("Identity", [self._variable], name="read").outputs[0]

    def initialize_with(self, value: Tensor) -> None:
        """Replaces the initial value; the initializer assigns ``value`` from now on."""
        self._initial_value = value
        self._initializer_op = state.assign(self._variable, value).op

    def initialized_value(self) -> Tensor:
        """Returns the value, or the initial value if the variable has no value yet."""
        if self._initial_value is None:
            raise ValueError(f"{self!r} was imported without its initial value")
        with self.graph.as_default(), self._beside():
            return self.graph.create_op("InitializedValue", [self._variable, self._initial_value]).outputs[0]

    def eval(self, session: SessionLike | None = None) -> Any:
        """The value in ``session``, or in the default one."""
        return self._variable.eval(session=session)

    def load(self, value: TensorLike, session: SessionLike | None = None) -> None:
        """Gives the variable ``value`` in ``session``, or in the default one, without adding to the graph.

        Raises:
          ValueError: there is no session.
        """
        session = session or get_default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or default session should be established")
        session.run(self._initializer_op, {self._initializer_op.inputs[1]: value})

    def _ref(self) -> Tensor:
        return self._variable

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def _beside(self) -> AbstractContextManager[None]:
        return self.graph.colocate_with(self._variable.op)

    # Writing ----------------------------------------------------------------------------------------------------

    def assign(self, value: object, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Gives the variable a new value; the result is a reference to it, or the operation if not ``read_value``."""
        result = state.assign(self._variable, value, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds ``delta``; see `assign`."""
        result = state.assign_add(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor | Operation:
        """Subtracts ``delta``; see `assign`."""
        result = state.assign_sub(self._variable, delta, use_locking=use_locking, name=name)
        return result if read_value else result.op

    def count_up_to(self, limit: int) -> Tensor:
        """Adds one and returns the old value; `OutOfRangeError` at run time once ``limit`` is reached."""
        return state.count_up_to(self._variable, limit)

    def scatter_update(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Replaces the rows that ``sparse_delta``, `IndexedSlices`, has."""
        return self._scatter(state.scatter_update, sparse_delta, use_locking, name)

    def scatter_add(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Adds `IndexedSlices`."""
        return self._scatter(state.scatter_add, sparse_delta, use_locking, name)

    def scatter_sub(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Subtracts `IndexedSlices`."""
        return self._scatter(state.scatter_sub, sparse_delta, use_locking, name)

    def scatter_mul(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Multiplies the rows that `IndexedSlices` have."""
        return self._scatter(state.scatter_mul, sparse_delta, use_locking, name)

    def scatter_div(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Divides the rows that `IndexedSlices` have."""
        return self._scatter(state.scatter_div, sparse_delta, use_locking, name)

    def scatter_min(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Replaces elements of rows by the elements of `IndexedSlices` that are smaller."""
        return self._scatter(state.scatter_min, sparse_delta, use_locking, name)

    def scatter_max(self, sparse_delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Replaces elements of rows by the elements of `IndexedSlices` that are greater."""
        return self._scatter(state.scatter_max, sparse_delta, use_locking, name)

    def _scatter(
        self, function: Callable[..., Tensor], delta: TensorLike, use_locking: bool, name: str | None
    ) -> Tensor:
        if not isinstance(delta, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {delta}")
        return function(self._variable, delta.indices, delta.values, use_locking, name)

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Replaces slices; see `headwater.tf1.variables.state.scatter_nd_update`."""
        return state.scatter_nd_update(self._variable, indices, updates, True, name)

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Adds to slices."""
        return state.scatter_nd_add(self._variable, indices, updates, True, name)

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
        """Subtracts from slices."""
        return state.scatter_nd_sub(self._variable, indices, updates, True, name)

    def assign_slice(self, taken: Operation, value: TensorLike, name: str | None = None) -> Tensor:
        """Gives the elements that ``taken``, a strided slice of this variable, reads the new ``value``."""
        return state.assign_slice(self._variable, taken, value, name)

    def __getitem__(self, key: object) -> Tensor:
        """A slice of the value; its ``assign(value)`` changes these elements of the variable."""
        taken: Tensor = super().__getitem__(key)
        return indexing.assignable(taken, self) if taken.op.type == "StridedSlice" else taken

    # Serialised form --------------------------------------------------------------------------------------------

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns this variable as a ``VariableDef``; None if it is outside ``export_scope``."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def strip(name: str) -> str:
            return name.removeprefix(f"{export_scope}/") if export_scope else name

        proto = variable_pb2.VariableDef()
        proto.variable_name = strip(self.name)
        if self._initial_value is not None:
            proto.initial_value_name = strip(self._initial_value.name)
        proto.initializer_name = strip(self._initializer_op.name)
        proto.snapshot_name = strip(self._snapshot.name)
        proto.trainable = self._trainable
        proto.synchronization = self._synchronization.value
        proto.aggregation = self._aggregation.value
        if self._save_slice_info is not None:
            proto.save_slice_info_def.CopyFrom(self._save_slice_info.to_proto(export_scope))
        return proto

    @staticmethod
    def from_proto(variable_def: VariableDef, import_scope: str | None = None) -> Variable:
        """The variable that a ``VariableDef`` describes; its operations must be in the default graph."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    @property
    def save_slice_info(self) -> SaveSliceInfo | None:
        """The larger tensor of which this variable is a part in checkpoints, and the part; None for a whole tensor."""
        return self._save_slice_info

    def set_save_slice_info(self, info: SaveSliceInfo) -> None:
        """Declares this variable as a part of a larger tensor in checkpoints."""
        self._save_slice_info = info

    def _get_save_slice_info(self) -> SaveSliceInfo | None:
        return self._save_slice_info

    _set_save_slice_info = set_save_slice_info

    def _operand(self) -> Tensor:
        return self.value()

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"


def _to_tensor(value: Variable, dtype: DType | None, name: str | None, as_ref: bool) -> Tensor:
    del dtype, name
    return value._ref() if as_ref else value.value()  # pyright: ignore[reportPrivateUsage]


register_tensor_conversion_function(Variable, _to_tensor)


def _collections(collections: object, trainable: bool) -> list[str]:
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, list | tuple | set):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or set. "
            f"Got {collections} of type {type(collections)}"
        )
    keys: list[str] = list(collections)  # pyright: ignore[reportUnknownArgumentType]
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
    return keys


_SIGNATURE = inspect.signature(Variable.__init__)


def init_scope() -> AbstractContextManager[None]:
    """Returns a context without control dependencies, so that its operations can run alone, as initial values must."""
    return get_default_graph().control_dependencies(None)
