"""TensorFlow 1's API on the graph engine: functions, variables, layers, input, training, estimators, names of ``tf``.

Code used by sessions, servers or strategies belongs in `headwater.graph` instead. Start with `headwater.tf1.compat.tf`,
the namespace; its tables in `headwater.tf1.compat.tables` list the module of each name.
"""

from __future__ import annotations

from types import ModuleType

from headwater.import_hooks import on_import


def _load_operators() -> object:
    from headwater.tf1.functional import operators  # noqa: PLC0415  a program that only looks up names needs none

    return operators


def _register(operation: ModuleType) -> None:
    operation.load_operators_with(_load_operators)


# A program may make tensors with functions of `headwater.graph` alone, such as `tf.constant`.
on_import("headwater.graph.operation", _register)
