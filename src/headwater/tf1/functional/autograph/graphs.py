"""Control flow over the tensors of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, conditions, indexing, loops, math
from headwater.tf1.functional.tensor_arrays import TensorArray

if TYPE_CHECKING:
    from headwater.graph.types import Structure

_NUMBERS = {int: dtypes.int32, float: dtypes.float32}


class GraphStaging:
    """`Staging` for tensors of graphs: operations of the default graph."""

    lazy_ranges = False

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, Tensor) or hasattr(value, "_as_graph_element")

    def convert(self, value: Structure) -> Structure:
        return value if isinstance(value, TensorArray) else convert_to_tensor(value)

    def cond(
        self, pred: Structure, yes: Callable[[], list[Structure]], no: Callable[[], list[Structure]]
    ) -> list[Structure]:
        def branch(values: Callable[[], list[Structure]]) -> Callable[[], list[Structure]]:
            # A branch needs a result, even if the program's branch has none.
            return lambda: [*values(), convert_to_tensor(value=True)]

        try:
            found: list[Structure] = conditions.cond(pred, branch(yes), branch(no), strict=True)
        except ValueError as error:
            if "must have the same type" in str(error):
                raise TypeError(str(error)) from error
            raise
        return found[:-1]

    def while_loop(
        self,
        test: Callable[[Sequence[Structure]], Structure],
        turn: Callable[[Sequence[Structure]], list[Structure]],
        start: Sequence[Structure],
        names: Sequence[str],
        options: dict[str, Structure],
    ) -> list[Structure]:
        invariants = {id(tensor): given for tensor, given in options.get("shape_invariants", ())}
        shapes = (
            [invariants.get(id(tensor), getattr(tensor, "shape", None)) for tensor in start] if invariants else None
        )

        def body(*values: Structure) -> list[Structure]:
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

    def specs(self, function: Callable[[], list[Structure]], options: dict[str, Structure]) -> list[Structure]:
        raise ValueError("a name must be defined before a loop over tensors, which may end before its first iteration")

    def logical_not(self, value: Structure) -> Structure:
        return math.logical_not(convert_to_tensor(value))

    def size(self, value: Structure) -> Structure:
        return arrays.shape(convert_to_tensor(value))[0]

    def item(self, value: Structure, index: Structure) -> Structure:
        return indexing.gather(value, index)

    def range(self, *limits: Structure) -> Structure:
        return arrays.range(*limits)

    def number(self, value: Structure, kind: type) -> Structure:
        return math.cast(convert_to_tensor(value), _NUMBERS[kind])
