"""Functions of tensors that differ in TensorFlow 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater.data.spec import TensorSpec
from headwater.dtypes import as_dtype, float64
from headwater.graph.composites import CompositeTensor
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import arrays, higher_order, math, nest, ragged
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.ragged_tensor import RaggedTensor
from headwater.tf1.input.composites import described, spec_of_tensors
from headwater.tf1.input.specs import RaggedTensorSpec
from headwater.tf2 import tensors
from headwater.tf2.at_once import at_once

if TYPE_CHECKING:
    from headwater.keras.types import Tree


def _linspace(start: Tree, stop: Tree, num: Tree, name: str | None = None, axis: int = 0) -> Tree:
    ends = [convert_to_tensor(start), convert_to_tensor(stop)]
    if not ends[0].dtype.is_floating:
        ends = [math.cast(end, float64) for end in ends]
    if ends[0].dims == () and ends[1].dims == ():
        return one("LinSpace", *ends, num, name=name)
    first = arrays.expand_dims(ends[0], axis)
    steps = math.cast(arrays.range(num), first.dtype)
    rank = len(first.dims or ())
    place = axis % rank
    steps = arrays.reshape(steps, [-1 if at == place else 1 for at in range(rank)])
    count = math.cast(convert_to_tensor(num) - 1, first.dtype)
    return first + (arrays.expand_dims(ends[1], axis) - first) * steps / math.maximum(count, 1)


linspace = at_once(_linspace, "linspace")


def map_fn(
    fn: Callable[..., Tree],
    elems: Tree,
    dtype: Tree = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Tree = None,
) -> Tree:
    """Applies ``fn`` to every slice of ``elems`` along the first dimension, and stacks the results.

    Args:
      elems: a tensor, also a ragged one, or a nested structure of tensors with equal first dimensions.
      fn_output_signature: element types or specs of the results of ``fn``, in their structure; the types of ``elems``
        if None. A `tf.RaggedTensorSpec` stacks results of different lengths.
      dtype: the older name of ``fn_output_signature``.

    Raises:
      TypeError: ``fn`` is not callable.
      ValueError: ``fn`` returns another structure.
    """
    if not callable(fn):
        raise TypeError(f"The provided fn {fn} is not callable.")
    signature = dtype if fn_output_signature is None else fn_output_signature
    leaves = nest.flatten(elems)
    specs = [] if signature is None else nest.flatten(signature)
    has_ragged = any(isinstance(leaf, RaggedTensor) for leaf in leaves)
    if not has_ragged and not any(isinstance(spec, RaggedTensorSpec) for spec in specs):
        types = None if signature is None else nest.map_structure(lambda spec: getattr(spec, "dtype", spec), signature)
        return _map_dense(fn, elems, types, parallel_iterations, back_prop, swap_memory, infer_shape, name)
    count = len(leaves[0].to_list() if isinstance(leaves[0], RaggedTensor) else leaves[0])
    rows = [nest.flatten(fn(nest.pack(elems, [leaf[at] for leaf in leaves]))) for at in range(count)]
    pattern = elems if signature is None else signature
    stacks_ragged = [isinstance(each, RaggedTensorSpec | RaggedTensor) for each in nest.flatten(pattern)]
    columns = [
        _stack_ragged(list(column), keeps_rows=True) if is_ragged else _stack(list(column))
        for column, is_ragged in zip(zip(*rows, strict=True), stacks_ragged, strict=True)
    ]
    return nest.pack(pattern, columns)


_map_dense = at_once(higher_order.map_fn)
_stack = at_once(arrays.stack)
_stack_ragged = at_once(ragged.stack)


def get_current_name_scope() -> str:
    """Returns the name scope, such as ``a/b``; empty outside of all scopes."""
    return get_default_graph().get_name_scope()


def type_spec_from_value(value: object) -> Tree:
    """Returns the spec of a tensor, a ragged or sparse tensor, or a value that can be converted to a tensor.

    Raises:
      TypeError: ``value`` cannot be converted.
    """
    if isinstance(value, CompositeTensor):
        return described(spec_of_tensors(value))
    try:
        tensor = tensors.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"Could not build a TypeSpec for {value!r} of unsupported type {type(value)}.") from error
    return TensorSpec(tensor.shape, as_dtype(tensor.dtype))
