"""Functions applied along the first dimension: `map_fn`, `scan`, `foldl`, `foldr`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.dtypes import DTypeLike
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import Dims
from headwater.tf1.functional import arrays, indexing, nest
from headwater.tf1.functional.loops import while_loop
from headwater.tf1.functional.tensor_arrays import TensorArray

if TYPE_CHECKING:
    from headwater.graph.types import Structure
    from headwater.tf1.variables.types import InitializerLike


Function = Callable[..., Any]


def _elements(elems: TensorLike) -> tuple[list[Tensor], Any]:
    """Returns the tensors to iterate over, and their number of slices."""
    leaves = [convert_to_tensor(leaf, name="elem") for leaf in nest.flatten(elems)]
    dims = leaves[0].dims
    return leaves, dims[0] if dims and dims[0] is not None else arrays.shape(leaves[0])[0]


def _at(elems: TensorLike, leaves: list[Tensor], index: Tensor) -> Structure:
    return nest.pack(elems, [indexing.gather(leaf, index) for leaf in leaves])


def map_fn(
    fn: Function,
    elems: TensorLike,
    dtype: DTypeLike | None = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Structure:
    """Applies ``fn`` to every slice of ``elems`` along the first dimension, and stacks the results.

    Args:
      elems: a tensor, or a nested structure of tensors with equal first dimensions; ``fn`` takes such a structure.
      dtype: element types of the results of ``fn``, in their structure; the types of ``elems`` if None.

    Raises:
      TypeError: ``fn`` is not callable.
      ValueError: ``fn`` returns another structure than ``dtype``.
    """
    del infer_shape
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "map", nest.flatten(elems)):
        leaves, count = _elements(elems)
        pattern = elems if dtype is None else dtype
        types = [leaf.dtype for leaf in leaves] if dtype is None else nest.flatten(dtype)
        results = [TensorArray(item, size=count) for item in types]
        shapes: list[Dims] = []

        def more(index: Tensor, *_: object) -> Any:
            return index < count

        def turn(index: Tensor, written: list[TensorArray]) -> tuple[Tensor, list[TensorArray]]:
            found = fn(_at(elems, leaves, index))
            if not nest.same_structure(_plain(found), _plain(pattern)):
                raise ValueError(f"fn returned {found!r}, whose structure is not that of {pattern!r}")
            values = [convert_to_tensor(value, item) for value, item in zip(nest.flatten(found), types, strict=True)]
            shapes[:] = [value.dims for value in values]
            return index + 1, [array.write(index, value) for array, value in zip(written, values, strict=True)]

        done = while_loop(
            more,
            turn,
            (0, results),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )[1]
        return nest.pack(pattern, [_stacked(*each, leaves[0]) for each in zip(done, shapes, strict=True)])


def _plain(structure: Structure) -> Structure:
    """Replaces tuples by lists, so that they compare as equal."""
    if isinstance(structure, dict):
        return {key: _plain(value) for key, value in structure.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_plain(item) for item in structure] if isinstance(structure, list | tuple) else 0  # pyright: ignore[reportUnknownVariableType]


def _stacked(array: TensorArray, dims: Dims, like: Tensor) -> Tensor:
    """Returns all results, of shape ``dims`` each, stacked; ``like`` has the first dimension."""
    result = array.stack()
    if dims is not None and None not in dims and (like.dims is None or not like.dims[0]):
        # A loop without iterations does not determine the shape of the results.
        result = arrays.reshape(result, [array.size(), *dims])
    if like.dims is not None and result.dims is not None:
        result.set_shape([like.dims[0], *([None] * (len(result.dims) - 1))])
    return result


def foldl(
    fn: Function,
    elems: Structure,
    initializer: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(… fn(fn(initializer, elems[0]), elems[1]) …)``; without initializer it begins with ``elems[0]``."""
    return _fold("foldl", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def foldr(
    fn: Function,
    elems: Structure,
    initializer: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Like `foldl`, but from the last slice to the first."""
    return _fold("foldr", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def _fold(
    kind: str,
    fn: Function,
    elems: Structure,
    initializer: object,
    parallel_iterations: int,
    back_prop: bool,
    swap_memory: bool,
    name: str | None,
) -> Any:
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, kind, nest.flatten(elems)):
        leaves, count = _elements(elems)
        first = 0 if initializer is not None else 1

        def place(turn: object) -> Any:
            return turn if kind == "foldl" else count - 1 - turn

        start = _at(elems, leaves, convert_to_tensor(place(0))) if initializer is None else initializer
        start = nest.map_structure(convert_to_tensor, start)

        def more(turn: Tensor, *_: object) -> Any:
            return turn < count

        def step(turn: Tensor, value: Tensor) -> Any:
            return turn + 1, fn(value, _at(elems, leaves, place(turn)))

        return while_loop(
            more,
            step,
            (first, start),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )[1]


def scan(
    fn: Function,
    elems: TensorLike,
    initializer: InitializerLike | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Structure:
    """Returns all intermediate values of `foldl`, stacked; from the last slice to the first with ``reverse``."""
    del infer_shape
    if not callable(fn):
        raise TypeError("fn must be callable.")
    with name_scope(name, "scan", nest.flatten(elems)):
        leaves, count = _elements(elems)

        def place(turn: object) -> Any:
            return count - 1 - turn if reverse else turn

        start = _at(elems, leaves, convert_to_tensor(place(0))) if initializer is None else initializer
        start = nest.map_structure(convert_to_tensor, start)
        results = [TensorArray(leaf.dtype, size=count) for leaf in nest.flatten(start)]
        first = 0
        if initializer is None:
            first = 1
            results = [array.write(place(0), leaf) for array, leaf in zip(results, nest.flatten(start), strict=True)]

        def more(step: Tensor, *_: object) -> Any:
            return step < count

        def turn(step: Tensor, value: TensorLike, written: list[TensorArray]) -> Any:
            value = fn(value, _at(elems, leaves, place(step)))
            found = zip(written, nest.flatten(value), strict=True)
            return step + 1, value, [array.write(place(step), leaf) for array, leaf in found]

        done = while_loop(
            more,
            turn,
            (first, start, results),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
        )[2]
        found = zip(done, nest.flatten(start), strict=True)
        return nest.pack(start, [_stacked(array, leaf.dims, leaves[0]) for array, leaf in found])
