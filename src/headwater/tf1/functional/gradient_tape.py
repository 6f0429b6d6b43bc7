"""``tf.GradientTape`` in graphs: gradients through operations added to the graph while a tape recorded."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, nest
from headwater.tf1.functional.gradients import UnconnectedGradients, gradients

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class GradientTape:
    """Records operations, for derivatives with respect to watched tensors and variables.

    A trainable variable is watched when a recorded operation reads it; a tensor from the call of `watch`.

    Args:
      persistent: allow more than one gradient.
      watch_accessed_variables: watch variables automatically.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watches_variables = watch_accessed_variables
        self._spans: list[tuple[int, int | None]] = []
        self._watched: dict[Tensor, int] = {}
        self._used = False

    def __enter__(self) -> GradientTape:
        self._start_recording()
        return self

    def __exit__(self, *details: object) -> None:
        if self._recording:
            self._end()

    @property
    def _recording(self) -> bool:
        return bool(self._spans) and self._spans[-1][1] is None

    def _start_recording(self) -> None:
        if self._recording:
            raise ValueError("Tape is already recording.")
        self._spans.append((get_default_graph().version, None))

    def _end(self) -> None:
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._spans[-1] = self._spans[-1][0], get_default_graph().version

    def watch(self, tensor: Structure) -> None:
        """Starts watching a tensor, or each tensor of a structure."""
        for each in nest.flatten(tensor):
            self._watched.setdefault(convert_to_tensor(each, as_ref=True), get_default_graph().version)

    @contextmanager
    def stop_recording(self) -> Generator[None]:
        """Returns a context in which operations are not recorded.

        Raises:
          ValueError: the tape does not record.
        """
        self._end()
        try:
            yield
        finally:
            self._start_recording()

    def reset(self) -> None:
        """Discards all recorded operations and watched tensors."""
        recording = self._recording
        self._spans, self._watched = [], {}
        if recording:
            self._start_recording()

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that are watched, in the order in which recorded operations read them."""
        read = [tensor for op in get_default_graph().get_operations() if self._has(op) for tensor in op.inputs]
        return tuple(dict.fromkeys(found for tensor in read if (found := self._variable(tensor)) is not None))

    def gradient(
        self,
        target: Structure,
        sources: Structure,
        output_gradients: Structure = None,
        unconnected_gradients: str = UnconnectedGradients.NONE,
    ) -> Structure:
        """The derivatives of the sum of ``target`` with respect to ``sources``, in their structure.

        Raises:
          RuntimeError: a tape that is not persistent was used before.
          ValueError: ``unconnected_gradients`` has an invalid value.
        """
        if self._used and not self._persistent:
            raise RuntimeError("GradientTape.gradient can only be called once on non-persistent tapes.")
        if self._recording and not self._persistent:
            self._end()
        targets = [convert_to_tensor(each) for each in nest.flatten(target)]
        given = None if output_gradients is None else nest.flatten(output_gradients)
        found = [self._one(targets, source, given, unconnected_gradients) for source in nest.flatten(sources)]
        self._used = True
        return nest.pack(sources, found)

    def _one(self, targets: Sequence[Tensor], source: Any, given: Sequence[Any] | None, unconnected: str) -> object:
        wanted = convert_to_tensor(source, as_ref=True)
        since = self._watched.get(wanted)
        if since is None and self._watches_variables and getattr(source, "trainable", False):
            since = 0
        if since is None:  # not watched: no target depends on it
            return gradients([], source, unconnected_gradients=unconnected)[0]
        stops = self._outside(targets, wanted, since)
        if any(stop is target for stop in stops for target in targets):
            kept = [at for at, target in enumerate(targets) if all(stop is not target for stop in stops)]
            targets = [targets[at] for at in kept]
            given = None if given is None else [given[at] for at in kept]
        return gradients(targets, source, given, stop_gradients=stops, unconnected_gradients=unconnected)[0]

    def _outside(self, targets: Sequence[Tensor], source: Tensor, since: int) -> list[Tensor]:
        """Returns tensors on which targets depend, and which are not results of recorded operations."""
        stops: dict[Tensor, None] = {}
        seen: set[Tensor] = set()
        left = list(targets)
        while left:
            tensor = left.pop()
            if tensor in seen or tensor is source:
                continue
            seen.add(tensor)
            if (self._has(tensor.op) and tensor.op.number >= since) or tensor.op.read_reference is source:
                left.extend(tensor.op.inputs)
            else:
                stops[tensor] = None
        return list(stops)

    def _has(self, op: Operation) -> bool:
        return any(first <= op.number and (last is None or op.number < last) for first, last in self._spans)

    def _variable(self, tensor: Tensor) -> Any:
        """The variable of which ``tensor`` is the value, if it is watched."""
        reference = tensor.op.inputs[0] if tensor.op.type == "Identity" and tensor.op.inputs else tensor
        for variable in tensor.graph.get_collection_ref("trainable_variables"):
            if convert_to_tensor(variable, as_ref=True) is reference:
                return variable if self._watches_variables or reference in self._watched else None
        return None

    def jacobian(
        self,
        target: Any,
        sources: Structure,
        unconnected_gradients: str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Structure:
        """Returns the derivatives of each number of ``target``, which must have a known size: the shape is the shape of
        ``target``, followed by the shape of the source.

        Raises:
          RuntimeError: a tape that is not persistent was used before.
          ValueError: the size of ``target`` is not known.
        """
        del parallel_iterations, experimental_use_pfor
        target = convert_to_tensor(target)
        with self._asked_for_several():
            with self._paused():
                flat = arrays.unstack(arrays.reshape(_flat_ones(target), [-1, *target.shape.as_list()]))
            rows = [self.gradient(target, sources, one, unconnected_gradients) for one in flat]
        return _stacked(sources, rows, target.shape.as_list(), 0)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Returns, for each row, the Jacobian: shape of ``target``, followed by the shape of a row of ``source``.

        Raises:
          RuntimeError: a tape that is not persistent was used before.
          ValueError: the shapes of rows are not known, or the numbers of rows differ.
        """
        del parallel_iterations, experimental_use_pfor
        target, before = convert_to_tensor(target), convert_to_tensor(source)
        if target.shape.ndims is None or not target.shape[:1].is_compatible_with(before.shape[:1]):
            raise ValueError("Need first dimension of target shape and source shape to match.")
        row = target.shape.as_list()[1:]
        if None in row:
            raise ValueError(f"batch_jacobian needs rows of a known shape, not {target.shape}")
        with self._asked_for_several():
            with self._paused():
                ones = arrays.unstack(arrays.reshape(_flat_ones(arrays.zeros(row, target.dtype)), [-1, *row]))
                each = [arrays.ones_like(target) * one for one in ones]
            rows = [self.gradient(target, source, one, unconnected_gradients) for one in each]
        return _stacked(source, rows, row, 1)

    @contextmanager
    def _paused(self) -> Generator[None]:
        if not self._recording:
            yield
            return
        with self.stop_recording():
            yield

    @contextmanager
    def _asked_for_several(self) -> Generator[None]:
        if self._used and not self._persistent:
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients")
        before, self._persistent = self._persistent, True
        try:
            yield
        finally:
            self._persistent = before


def _flat_ones(target: Tensor) -> Tensor:
    """A matrix with a one in each row, for each number of ``target``."""
    count = target.shape.num_elements()
    if count is None:
        raise ValueError(f"jacobian needs a target of known shape, not {target.shape}")
    return convert_to_tensor(np.eye(count, dtype=target.dtype.numpy_dtype))


def _stacked(sources: Structure, rows: Sequence[Structure], dims: Sequence[int], axis: int) -> Structure:
    """Stacks the rows of each source to one tensor, with the dimensions ``dims`` at ``axis``."""
    by_source = zip(*[nest.flatten(row) for row in rows], strict=True)
    found: list[Any] = []
    for parts in by_source:
        if any(part is None for part in parts):
            found.append(None)
            continue
        stacked = arrays.stack([convert_to_tensor(part) for part in parts], axis)
        shape = stacked.shape.as_list()
        first = [-1] if axis and shape[0] is None else shape[:axis]
        found.append(arrays.reshape(stacked, [*first, *dims, *shape[axis + 1 :]]))
    return nest.pack(sources, found)
