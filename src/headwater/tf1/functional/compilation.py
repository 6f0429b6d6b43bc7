"""``tf.xla.experimental``: requests to compile a part of a graph. XLA compiles whole steps in any case."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, nest
from headwater.tf1.functional.control_flow import no_op
from headwater.tf1.functional.default_graph import control_dependencies


def compile(computation: Callable[..., object], inputs: Sequence[TensorLike] | None = None) -> list[Tensor] | Operation:
    """Returns the results of ``computation`` for the inputs as a list; operations among the results run with them.

    Args:
      computation: a function of tensors.
      inputs: its arguments.

    Returns:
      A list of tensors; an operation if there is no tensor.
    """
    found = computation(*(convert_to_tensor(value) for value in inputs or ()))
    results = nest.flatten(found) if found is not None else []
    operations = [result for result in results if isinstance(result, Operation)]
    tensors = [convert_to_tensor(result) for result in results if not isinstance(result, Operation)]
    with control_dependencies(operations):
        return [arrays.identity(tensor) for tensor in tensors] if tensors else no_op()


@contextlib.contextmanager
def jit_scope(
    compile_ops: bool | Callable[..., bool] = True, separate_compiled_gradients: bool = False
) -> Generator[None]:
    """Returns a context without effect: operations are compiled in any case."""
    del compile_ops, separate_compiled_gradients
    yield
