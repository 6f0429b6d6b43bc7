"""Bounds checks of indices on the host, before a step computes anything.

On CPUs, TensorFlow raises an error for an index out of range. An executable cannot raise an error, and an update that
has started cannot be undone, so indices are checked before the run where possible. Most indices are inputs of the
executable, from feeds, a pipeline or another task, and index a variable or another input. Checking them takes one pass
over the indices, about two microseconds for a batch. Indices that the executable itself computes are checked after the
run (`headwater.graph.ops.faults`). Indices that another executable of the step computes are not checked: if one is out
of range, its result is zeros, as in TensorFlow on GPUs. See docs/decisions/indices.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.graph.ops.indexing import require_elements, require_rows
from headwater.graph.passes.plan import Compute, Node
from headwater.graph.registry import CHECKED, CLASSES, SAME_NUMBERS
from headwater.graph.resources.containers import Cell
from headwater.graph.tensor_names import operation_of

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


#: Operations whose second input has indices into the first dimension of their first input.
_ROWS: Final = frozenset(
    {
        "Gather",
        "GatherV2",
        "ScatterAdd",
        "ScatterDiv",
        "ScatterMax",
        "ScatterMin",
        "ScatterMul",
        "ScatterSub",
        "ScatterUpdate",
    }
)
_ELEMENTS: Final = frozenset({"GatherNd", "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate"})
_LABELS: Final = "SparseSoftmaxCrossEntropyWithLogits"
_UNSIGNED: Final = {np.dtype(np.int32): np.dtype(np.uint32), np.dtype(np.int64): np.dtype(np.uint64)}

Find = Callable[[Sequence[Any]], Any]
"""Maps an executable's inputs to an array; None if there is no array yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    node: Node
    indices: Find
    params: Find
    axis: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _LabelCheck:
    node: Node
    find: Find
    classes: int


class IndexChecks:
    """The checks of one executable.

    Args:
      compute: the executable's operations.
      cells: the variables that it uses.
    """

    def __init__(self, compute: Compute, cells: dict[str, Cell]) -> None:
        self._inputs = {name: position for position, name in enumerate(compute.inputs)}
        self._nodes = {node.name: node for node in compute.nodes}
        self._cells = cells
        # Check on CPUs only, as TensorFlow does; on GPUs, results for indices out of range are zeros.
        nodes = compute.nodes if compute.device.startswith("CPU") else ()
        self._checks = [check for node in nodes if (check := self._check_of(node)) is not None]
        self._labels = [check for node in nodes if (check := self._check_of_labels(node)) is not None]

    @property
    def prechecked(self) -> frozenset[str]:
        """Names of the operations with checked indices."""
        return frozenset(check.node.name for check in (*self._checks, *self._labels))

    def __bool__(self) -> bool:
        return bool(self._checks or self._labels)

    def __call__(self, inputs: Sequence[AnyArray]) -> None:
        """Checks the indices of one run.

        Args:
          inputs: the executable's inputs.

        Raises:
          InvalidArgumentError: an index is out of range; the message has the index, its position, and the operation.
        """
        for check in self._labels:
            labels = check.find(inputs)
            unsigned = _UNSIGNED.get(labels.dtype) if type(labels) is np.ndarray and labels.size else None
            if unsigned is not None and np.maximum.reduce(labels.view(unsigned), None) >= check.classes:
                bad = labels[(labels < 0) | (labels >= check.classes)][0]
                raise InvalidArgumentError(
                    f"Received a label value of {bad} which is outside the valid range of [0, {check.classes}) "
                    f"[in {_LABELS} operation {check.node.name!r}]"
                )
        largest: dict[int, Any] = {}  # of each array of indices, which often index several tables
        for check in self._checks:
            indices, params = check.indices(inputs), check.params(inputs)
            # Check NumPy arrays only. A JAX array was computed in this step, and reading it would wait for the
            # computation.
            if type(indices) is not np.ndarray or params is None or not indices.size:
                continue
            unsigned = _UNSIGNED.get(indices.dtype)
            if unsigned is None:
                continue
            try:
                if check.node.type in _ELEMENTS:
                    require_elements(indices, params.shape)
                elif check.axis < len(params.shape):
                    if (found := largest.get(id(indices))) is None:
                        # Viewed as an unsigned number, a negative index is greater than any size, so one comparison
                        # finds both.
                        found = largest[id(indices)] = np.maximum.reduce(indices.view(unsigned), None)
                    if found >= params.shape[check.axis]:
                        require_rows(indices, params.shape[check.axis])
            except IndexError as error:
                raise InvalidArgumentError(f"{error} [in {check.node.type} operation {check.node.name!r}]") from error

    def _check_of(self, node: Node) -> _Check | None:
        if node.type not in _ROWS and node.type not in _ELEMENTS:
            return None
        indices = self._source_of(node.inputs[1], same_shape=node.type in _ELEMENTS)
        params = self._variable(node.refs[0]) if 0 in node.refs else self._source_of(node.inputs[0], same_shape=True)
        axis: Any = 0
        if node.type == "GatherV2":
            found = self._source_of(node.inputs[2], same_shape=True)
            # The axis selects the dimension whose size limits the indices, so it must be a constant.
            axis = found(()) if found is not None and node.inputs[2] not in self._inputs else None
        if indices is None or params is None or axis is None or int(axis) < 0:
            return None
        return _Check(node=node, indices=indices, params=params, axis=int(axis))

    def _check_of_labels(self, node: Node) -> _LabelCheck | None:
        classes = node.attrs.get(CLASSES)
        if node.type != _LABELS or not node.attrs.get(CHECKED) or classes is None:
            return None
        labels = self._source_of(node.inputs[1], same_shape=False)
        return None if labels is None else _LabelCheck(node=node, find=labels, classes=int(classes))

    def _source_of(self, tensor: str, *, same_shape: bool) -> Find | None:
        """Returns a function that finds a tensor's values; None if the executable computes them."""
        position = self._inputs.get(tensor)
        if position is not None:
            return lambda inputs: inputs[position]
        node = self._nodes.get(operation_of(tensor))
        if node is None or tensor != f"{node.name}:0":
            return None
        if node.type == "Const":
            value = np.asarray(node.attrs["value"])
            return lambda inputs: value
        if node.type == "VariableV2":
            return self._variable(node.name)
        if 0 in node.refs:
            return self._variable(node.refs[0]) if node.type == "Identity" else None
        if node.type in ("Identity", "StopGradient") or (node.type in SAME_NUMBERS and not same_shape):
            return self._source_of(node.inputs[0], same_shape=same_shape)
        return None

    def _variable(self, name: str) -> Find | None:
        cell = self._cells.get(name)
        return None if cell is None else lambda inputs: cell.value
