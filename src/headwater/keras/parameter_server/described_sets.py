"""Descriptions of models that a program trains after its first one.

A ``ps`` serves in the first call of ``fit`` or ``train_on_batch`` and does not run the rest of the program, so it never
creates the models of later calls. The workers describe these models: the layout of the variables, and the class and
configuration of the optimizer. A description contains no code. Its classes are Keras's, or registered with
`keras.saving.register_keras_serializable` in the part of the program that the ``ps`` has run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.cluster.task.agreement import encode_topics
from headwater.errors import InvalidArgumentError
from headwater.keras.parameter_server.optimizers import KerasUpdater, ServerPart
from headwater.keras.programs import optimizer_topics
from headwater.ps.layout import Block, Layout, VariableSpec
from headwater.ps.round_sums import sum_of_squares

if TYPE_CHECKING:
    from headwater.keras.parameter_server.strategy import ParameterServerStrategy
    from headwater.ps.process import ParameterTask

_saving: Any = keras.saving


@dataclass(frozen=True, kw_only=True, eq=False)
class _Variable:
    """The properties of a variable that its optimizer uses on a ``ps``."""

    name: str
    path: str
    dtype: str
    constraint: object
    overwrite_with_gradient: bool


def describe(layout: Layout, variables: Sequence[Any], optimizer: Any, part: ServerPart) -> bytes:
    """Returns the description of a set of variables, from which a ``ps`` can host it.

    Args:
      layout: the placement of the variables, none of which is a table.
      variables: the variables, in the layout's order.
      optimizer: the model's optimizer.
      part: the parts of the optimizer that run on the ``ps``.
    """
    excluded: set[int] = getattr(optimizer, "_exclude_from_weight_decay", set())
    pattern = getattr(optimizer, "_exclude_from_weight_decay_pattern", None)
    described = {
        "variables": [
            {
                "spec": asdict(spec),
                "name": variable.name,
                "constraint": _saving.serialize_keras_object(variable.constraint),
                "overwrite": bool(getattr(variable, "overwrite_with_gradient", False)),
                "excluded": id(variable) in excluded,
            }
            for spec, variable in zip(layout.variables, variables, strict=True)
        ],
        "blocks": [[asdict(block) for block in blocks] for blocks in layout.blocks],
        "optimizer": _saving.serialize_keras_object(optimizer),
        "excluded names": pattern and pattern.pattern,
        "part": asdict(part),
    }
    return json.dumps(described, default=_plain).encode()


@dataclass(frozen=True, kw_only=True)
class DescribedSet:
    """A set of variables and its optimizer, made from a description; the attributes are the arguments of `describe`."""

    layout: Layout
    variables: Sequence[Any]
    optimizer: Any
    part: ServerPart

    def updater(self, index: int) -> KerasUpdater:
        """Returns the updater of the ``ps`` with this number."""
        return KerasUpdater(self.layout, index, self.variables, self.optimizer, part=self.part)


def described_set(description: bytes) -> DescribedSet:
    """Creates a set from the result of `describe`.

    Raises:
      InvalidArgumentError: the description names a class that this program does not know.
    """
    decoded = json.loads(description)
    layout = Layout(
        tuple(
            VariableSpec(**(each["spec"] | {"shape": tuple(each["spec"]["shape"])})) for each in decoded["variables"]
        ),
        tuple(tuple(Block(**block) for block in blocks) for blocks in decoded["blocks"]),
    )
    variables = [
        _Variable(
            name=each["name"],
            path=each["spec"]["name"],
            dtype=each["spec"]["dtype"],
            constraint=_restore(each["constraint"]),
            overwrite_with_gradient=each["overwrite"],
        )
        for each in decoded["variables"]
    ]
    optimizer = _restore(decoded["optimizer"])
    excluded = [variable for variable, each in zip(variables, decoded["variables"], strict=True) if each["excluded"]]
    names = [decoded["excluded names"]] if decoded["excluded names"] else None
    if excluded or names:
        optimizer.exclude_from_weight_decay(var_list=excluded, var_names=names)
    return DescribedSet(layout=layout, variables=variables, optimizer=optimizer, part=ServerPart(**decoded["part"]))


def host_described(task: ParameterTask, place: ParameterServerStrategy, name: str, description: bytes) -> None:
    """On a ``ps``: starts to serve the set that a worker has described.

    Raises:
      InvalidArgumentError: the description names a class that this program does not know.
    """
    described = described_set(description)
    task.host(
        name,
        described.layout,
        described.updater,
        place.choice,
        encode_topics(optimizer_topics(described.optimizer)),
        staleness_aware=place.staleness_aware,
        saves=place.saves,
        squares=(lambda _: sum_of_squares) if described.part.clips == "jointly" else None,
    )


def _restore(described: Any) -> Any:
    """Creates an object from its description, unless the description names a class outside of Keras and the program."""
    _require_known(described)
    return _saving.deserialize_keras_object(described)


def _require_known(described: Any) -> None:
    """Raises InvalidArgumentError if a description names a class that Keras would have to import."""
    if isinstance(described, dict):
        module, registered = described.get("module"), described.get("registered_name")
        known = registered and _saving.get_registered_object(registered) is not None
        if "class_name" in described and not known and str(module).partition(".")[0] not in ("keras", "builtins"):
            raise InvalidArgumentError(
                f"a ps cannot make {described['class_name']!r} for a second model of a program: register the class "
                "with keras.saving.register_keras_serializable before the first fit"
            )
    for each in described.values() if isinstance(described, dict) else described if isinstance(described, list) else ():
        _require_known(each)


def _plain(value: object) -> object:
    """Converts NumPy's scalars and arrays for JSON."""
    return np.asarray(value).tolist()
