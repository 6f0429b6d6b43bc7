"""Control flow over the tensors of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.functional import arrays, conditions, indexing, loops, math
from headwater.functional.tensor_arrays import TensorArray
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor

if TYPE_CHECKING:
    from headwater.graph.types import Structure

_NUMBERS = {int: dtypes.int32, float: dtypes.float32}


class GraphStaging:
    """`Staging` for tensors of graphs: operations of the default graph."""

    lazy_ranges = False

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")

    def convert(self, value: Structure) -> Any:
        return value if isinstance(value, TensorArray) else convert_to_tensor(value)

    def cond(self, pred: Any, yes: Callable[[], list[Any]], no: Callable[[], list[Any]]) -> list[Any]:
        def branch(values: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
            # A branch has a result even where the program has none.
            return lambda: [*values(), convert_to_tensor(value=True)]

        try:
            found: list[Any] = conditions.cond(pred, branch(yes), branch(no), strict=True)
        except ValueError as error:
            if "must have the same type" in str(error):
                raise TypeError(str(error)) from error
            raise
        return found[:-1]

    def while_loop(
        self,
        test: Callable[[Sequence[Any]], Any],
        turn: Callable[[Sequence[Any]], list[Any]],
        start: Sequence[Any],
        names: Sequence[str],
        options: dict[str, Any],
    ) -> list[Any]:
        invariants = {id(tensor): given for tensor, given in options.get("shape_invariants", ())}
        shapes = (
            [invariants.get(id(tensor), getattr(tensor, "shape", None)) for tensor in start] if invariants else None
        )

        def body(*values: Any) -> list[Any]:
            found = turn(values)
            for name, before, after in zip(names, values, found, strict=True):
                if isinstance(before, Tensor) and before.dtype.base_dtype != after.dtype.base_dtype:
                    raise TypeError(
                        f"{name!r} has dtype {before.dtype.base_dtype.name} before the loop, but dtype "
                        f"{after.dtype.base_dtype.name} after one iteration"
                    )
            return found

        return loops.while_loop(
            lambda *values: test(values),
            body,
            list(start),
            shape_invariants=shapes,
            parallel_iterations=options.get("parallel_iterations", 10),
            back_prop=options.get("back_prop", True),
            maximum_iterations=options.get("maximum_iterations"),
            return_same_structure=True,
        )

    def specs(self, function: Callable[[], list[Any]], options: dict[str, Any]) -> list[Any]:
        raise ValueError("a name must be defined before a loop over tensors, which may end before its first turn")

    def logical_not(self, value: Any) -> Any:
        return math.logical_not(convert_to_tensor(value))

    def size(self, value: Any) -> Any:
        return arrays.shape(convert_to_tensor(value))[0]

    def item(self, value: Any, index: Any) -> Any:
        return indexing.gather(value, index)

    def range(self, *limits: Any) -> Any:
        return arrays.range(*limits)

    def number(self, value: Any, kind: type) -> Any:
        return math.cast(convert_to_tensor(value), _NUMBERS[kind])
