"""``tf.contrib.framework``: functions with other argument names than in ``tf``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.data.io.files import Path
from headwater.tf1.functional import conditions, nest, script
from headwater.tf1.training import checkpoint_reader, warm_start

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import Structure, TensorLike


def init_from_checkpoint(checkpoint_dir: Path, assignment_map: Mapping[str, object]) -> None:
    """``tf.train.init_from_checkpoint``."""
    warm_start.init_from_checkpoint(checkpoint_dir, assignment_map)


def list_variables(checkpoint_dir: Path) -> list[tuple[str, list[int]]]:
    """``tf.train.list_variables``."""
    return checkpoint_reader.list_variables(checkpoint_dir)


def load_checkpoint(filepattern: Path) -> checkpoint_reader.CheckpointReader:
    """``tf.train.load_checkpoint``."""
    return checkpoint_reader.load_checkpoint(filepattern)


def load_variable(checkpoint_dir: Path, name: str) -> HostArray:
    """``tf.train.load_variable``."""
    return checkpoint_reader.load_variable(checkpoint_dir, name)


def smart_cond(
    pred: TensorLike,
    true_fn: Callable[[], object] | None = None,
    false_fn: Callable[[], object] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the chosen function's result if ``pred`` is known when the graph is built, else `cond`.

    Raises:
      TypeError: a function is missing.
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("`true_fn` and `false_fn` must be callable.")
    return conditions.smart_cond(pred, true_fn, false_fn, name)


def py_func(
    func: Callable[..., object],
    args: Any = (),
    kwargs: Mapping[str, object] | None = None,
    output_types: Structure = None,
    output_shapes: Structure = None,
    stateful: bool = True,
    name: str | None = None,
) -> Structure:
    """Calls a Python function as `tf.py_func`, with structures of arguments and results.

    Args:
      func: takes arrays in the structure of ``args`` and ``kwargs``.
      output_types: a structure of element types; None: the function has no results, and the operation is returned.
      output_shapes: a structure of shapes like ``output_types``.

    Returns:
      Tensors in the structure of ``output_types``.

    Raises:
      ValueError: the structures of shapes and types differ.
    """
    given = [list(args), dict(kwargs or {})]
    flat = nest.flatten(given)
    types = [] if output_types is None else nest.flatten(output_types)

    def call(*values: Any) -> list[Any]:
        positional, named = nest.pack(given, list(values))
        result = func(*positional, **named)
        return [] if output_types is None else nest.flatten(result)

    results = script.py_func(call, flat, types, stateful, name)
    if output_types is None:
        return results
    if output_shapes is not None:
        shapes = nest.flatten_up_to(output_types, output_shapes)
        for tensor, shape in zip(results, shapes, strict=True):
            tensor.set_shape(shape)
    return nest.pack(output_types, list(results))
