"""`cond` and `case`: one of several parts of a graph runs, chosen by values of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph import bodies
from headwater.graph.composites import CompositeTensor, components_of
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.divided_conditions import add_conditions
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import math, nest, program_order, reductions
from headwater.tf1.functional.checks import Assert
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.leaves import flow_of, like_leaf
from headwater.tf1.functional.tensor_arrays import TensorArray

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.graph.types import Structure


_NONE_HOLDS = "Input error: None of the conditions of case holds: "


def cond(
    pred: TensorLike,
    true_fn: Callable[[], object] | None = None,
    false_fn: Callable[[], object] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], object] | None = None,
    fn2: Callable[[], object] | None = None,
) -> Any:
    """Returns the result of ``true_fn`` if ``pred`` is true, else the result of ``false_fn``.

    Results may contain sparse tensors, `tf.IndexedSlices` and TensorArrays.

    Only operations made by the chosen function run; outer tensors that either function uses are computed in any case.
    Both functions return the same structure of the same element types. The conditional is compiled and has gradients,
    unless an operation in it changes a variable, handles strings or runs on the host; then the conditional runs on the
    host, one operation after the other, without gradients.

    Args:
      pred: a boolean tensor.
      strict: return a list or tuple of one result unchanged, not the result alone, and require it of both functions.
      fn1: old name of ``true_fn``.
      fn2: old name of ``false_fn``.

    Raises:
      TypeError: ``pred`` is a Python bool, a function is not callable, or one returns a list and one a tuple.
      ValueError: the functions return different structures or types.
    """
    true_fn, false_fn = true_fn or fn1, false_fn or fn2
    if not callable(true_fn):
        raise TypeError("true_fn must be callable.")
    if not callable(false_fn):
        raise TypeError("false_fn must be callable.")
    if isinstance(pred, bool):
        raise TypeError("pred must not be a Python bool")
    graph = get_default_graph()
    with name_scope(name, "cond", [pred]):
        pred = convert_to_tensor(pred, name="pred")
        if pred.dtype.base_dtype != dtypes.bool_:
            raise TypeError(f"pred must be of type bool, not {pred.dtype.name}")
        branches: list[bodies.Recorded] = []
        structures: list[object] = []
        for function in (true_fn, false_fn):
            first = graph.version
            result = _branch(function, graph, first)
            structures.append(result if strict else _unpacked(result))
            outputs = [flow_of(part) for leaf in nest.flatten(structures[-1]) for part in components_of(leaf)]
            branches.append(bodies.record(graph, first, outputs))
        _check(structures, branches)
        found = iter(add_conditions(pred, branches, shapes_differ=_may_differ(structures)))
        leaves = [like_leaf(leaf, found) for leaf in nest.flatten(structures[0])]
    return nest.pack(structures[0], leaves)


def _unpacked(result: object) -> Any:
    """Returns the only item of a list or tuple of one item, else ``result``."""
    return result[0] if isinstance(result, list | tuple) and len(result) == 1 else result  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _branch(function: Callable[[], object], graph: Graph, first: int) -> Structure:
    """Calls ``function`` and returns its result as tensors of the branch, which begins with the version ``first``."""
    result = function()
    with control_dependencies(program_order.effects_of_body(graph, first)):
        return as_value(True) if result is None else nest.map_structure(as_value, result)


def _may_differ(structures: Sequence[object]) -> bool:
    """Returns whether values made of several tensors may have other shapes in one branch than in the other branch."""
    parts = [leaf.components for one in structures for leaf in nest.flatten(one) if isinstance(leaf, CompositeTensor)]
    return any(part.dims is None or None in part.dims for leaf in parts for part in leaf)


def as_value(leaf: TensorLike) -> Any:
    """Returns ``leaf`` as a tensor that waits for the current control dependencies; True for an operation."""
    if isinstance(leaf, TensorArray):
        return leaf
    if isinstance(leaf, CompositeTensor):
        return leaf.with_components([as_value(part) for part in leaf.components])
    if isinstance(leaf, Operation):
        with control_dependencies([leaf]):
            return as_value(True)
    tensor = convert_to_tensor(leaf)
    return tensor.graph.create_op("Identity", [tensor], name="Identity").outputs[0]


def _check(structures: Sequence[object], branches: Sequence[bodies.Recorded]) -> None:
    kinds = [[type(leaf) for leaf in nest.flatten(one) if isinstance(leaf, CompositeTensor)] for one in structures]
    counts = [len(branch.outputs) for branch in branches]
    if not nest.same_structure(*structures) or kinds[0] != kinds[1] or counts[0] != counts[1]:
        other_type = all(map(nest.is_nested, structures)) and type(structures[0]) is not type(structures[1])
        raise (TypeError if other_type else ValueError)(
            f"Incompatible return values of true_fn and false_fn: {structures[0]!r} and {structures[1]!r} differ in "
            "structure"
        )
    for yes, no in zip(branches[0].outputs, branches[1].outputs, strict=True):
        if yes.dtype.base_dtype != no.dtype.base_dtype:
            raise ValueError(
                f"Outputs of true_fn and false_fn must have the same type: {yes.dtype.name}, {no.dtype.name}"
            )


def smart_cond(
    pred: TensorLike, true_fn: Callable[[], object], false_fn: Callable[[], object], name: str | None = None
) -> Any:
    """Returns the chosen function's result if ``pred`` is known when the graph is built, else `cond`.

    Raises:
      TypeError: ``pred`` is not a bool, 0, 1 or a tensor.
    """
    known = smart_constant_value(pred)
    if known is None:
        return cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


def smart_constant_value(pred: TensorLike) -> bool | None:
    """Returns the truth value of ``pred``, or None if it is known only when a graph runs."""
    if pred in (0, 1, False, True):
        return bool(pred)
    if not isinstance(pred, Tensor):
        try:
            pred = convert_to_tensor(pred)
        except (TypeError, ValueError):
            raise TypeError(f"`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: {pred!r}") from None
    value = constant_value(pred)
    return None if value is None else bool(value)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Returns the result of the function of the first predicate that is true.

    Args:
      pred_fn_pairs: pairs of a boolean and a function, or a dictionary of such pairs.
      default: the function to use if no predicate is true; without it the run fails then.
      exclusive: fail if more than one predicate is true.
      strict: see `cond`.

    Raises:
      TypeError: an item is not a pair, a predicate is not boolean, or a function is not callable.
    """
    given = pred_fn_pairs
    pairs: list[Any] = list(given.items() if isinstance(given, dict) else given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    if not pairs and default is None:
        raise ValueError("case needs a pair of a truth value and a function, or a default")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError("Each entry in pred_fn_pairs must be a 2-tuple")
        if not callable(pair[1]):  # pyright: ignore[reportUnknownArgumentType]
            raise TypeError(f"fn for pred {pair[0]} must be callable.")
    if default is not None and not callable(default):
        raise TypeError("default must be callable.")
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        preds = [convert_to_tensor(pred) for pred, _ in pairs]
        functions: list[Callable[[], Any]] = [function for _, function in pairs]
        checks: list[Operation] = []
        if exclusive and len(preds) > 1:
            held = reductions.reduce_sum(convert_to_tensor([_as_int(pred) for pred in preds]))
            checks.append(Assert(held < 2, ["Input error: more than one predicate of case holds: ", *preds]))
        if default is None:
            last = functions.pop()
            if len(preds) == 1 and not functions:
                with control_dependencies([Assert(preds[0], [_NONE_HOLDS, *preds])]):
                    return last()
            checks.append(Assert(reductions.reduce_any(convert_to_tensor(preds)), [_NONE_HOLDS, *preds]))
            default = last
        with control_dependencies(checks):
            result: Callable[[], Tensor] = default
            for pred, function in reversed(list(zip(preds, functions, strict=False))):
                result = _chosen(pred, function, result, strict)
            return result()


def _as_int(pred: Tensor) -> Tensor:
    attrs = {"DstT": dtypes.int32}
    return pred.graph.create_op("Cast", [pred], attrs).outputs[0]


def _chosen(
    pred: Tensor, function: Callable[[], Tensor], otherwise: Callable[[], Tensor], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(pred, function, otherwise, strict=strict)


def switch_case(
    branch_index: TensorLike, branch_fns: object, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Tensor:
    """Returns the result of the function with the index ``branch_index``.

    Args:
      branch_index: the index, an int32 scalar.
      branch_fns: a list of functions; or a dictionary or pairs of indices, from 0, and functions.
      default: the function for other indices; the function with the greatest index if None.

    Raises:
      TypeError: ``branch_fns`` contains an object that is not a function, or an index that is not an integer.
      ValueError: there is no function, or the indices are not 0, 1, 2 and so on.
    """
    pairs: list[tuple[Any, Any]]
    if isinstance(branch_fns, Mapping):
        pairs = list(branch_fns.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    elif not isinstance(branch_fns, list | tuple):
        raise TypeError("branch_fns must be a list, tuple, or dict")
    else:
        given: list[Any] = list(branch_fns)  # pyright: ignore[reportUnknownArgumentType]
        pairs = list(enumerate(given)) if all(map(callable, given)) else [tuple(pair) for pair in given]
    for pair in pairs:
        if len(pair) != 2:
            raise TypeError(f"Each entry in branch_fns must be an int and a callable, and {pair!r} is not")
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        if not callable(pair[1]):
            raise TypeError(f"fn for key {pair[0]} must be callable.")
    if not pairs:
        raise ValueError("Must provide at least one item in branch_fns")
    keys = sorted(key for key, _ in pairs)
    if keys != list(range(len(pairs))):
        raise ValueError(f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found {keys}")
    if not isinstance(branch_index, Tensor):
        raise TypeError(f"branch_index must be a Tensor, got {type(branch_index)}")
    index = branch_index
    if not index.dtype.is_integer:
        raise TypeError(f"branch_index must an integer Tensor, got {index.dtype}")
    if index.dtype != dtypes.int32:
        index = math.cast(index, dtypes.int32)
    pairs.sort(key=lambda pair: pair[0])
    otherwise = pairs.pop()[1] if default is None else default
    if not pairs:
        return otherwise()
    return case([(math.equal(index, key), function) for key, function in pairs], otherwise, name=name)
