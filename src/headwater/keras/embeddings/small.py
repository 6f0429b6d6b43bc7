"""Small embedding tables that are sent by rows, because a batch uses so few rows that this takes fewer bytes.

If a whole table is sent, a step transfers twice its size: the values and the gradient. If rows are sent, a step
transfers twice the rows of a batch (at most one row for each id) and the numbers of the rows. Reading rows takes an
additional round trip. So in a model that sends no other table by rows, a table is sent by rows only if this saves
enough bytes.

An update of such a table changes all its rows (*exact*, see `headwater.keras.parameter_server.table_updates`). Training
therefore has the same results as with the whole table; only the transferred data differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import jax
import keras

from headwater.keras.embeddings.calls import noting, patch_layers
from headwater.keras.embeddings.ids import IdFinder
from headwater.keras.old_optimizers import CLASSES as OLD_OPTIMIZERS

if TYPE_CHECKING:
    from headwater.keras.types import Tree


#: Least saving in a step that justifies an additional round trip for rows, in bytes.
_MIN_SAVING_BYTES: Final = 64 << 10
#: Size of a row number in a message.
_NUMBER_BYTES: Final = 8
#: Optimizers that update each element of a variable independently of other elements.
_BY_ELEMENT: Final = ("SGD", "Adagrad", "RMSprop", "Adam", "AdamW", "Nadam", "Adamax", "Adadelta", "Ftrl", "Lion")


def is_elementwise(optimizer: keras.Optimizer) -> bool:
    """Returns whether ``optimizer`` updates each element of a variable independently, with per-element state only."""
    kinds = [*(getattr(keras.optimizers, name) for name in _BY_ELEMENT), *OLD_OPTIMIZERS]
    return type(optimizer) in kinds and not optimizer.use_ema and not optimizer.gradient_accumulation_steps


def travel_bytes(rows: int, dim: int, ids: int) -> tuple[int, int]:
    """Returns the maximum number of bytes that are transferred for a table in a step: if rows are sent, and if the
    whole table is sent.

    Args:
      rows: number of rows of the table.
      dim: number of elements of a row, of 4 bytes each.
      ids: number of ids for the table in a batch.
    """
    return min(rows, ids) * (2 * 4 * dim + _NUMBER_BYTES), 2 * 4 * rows * dim


def worth_rows(model: Any, layers: Sequence[Any], data: object, others: Sequence[object]) -> list[object]:
    """Returns the layers of ``layers`` with tables that should be sent by rows.

    Args:
      model: a Keras model, built and compiled, with its optimizer.
      layers: Keras's own embedding layers.
      data: a batch, as ``(x, y, sample_weight)``.
      others: embedding layers that are sent by rows in any case.
    """
    if not layers or not is_elementwise(model.optimizer):
        return []
    ids, read = _count_ids(model, layers, data, others)
    chosen: list[Any] = []
    saved = 0
    for layer, count, whole in zip(layers, ids, read, strict=True):
        in_rows, all_of_it = travel_bytes(layer.input_dim, layer.output_dim, count)
        if not whole and 2 * in_rows <= all_of_it:
            chosen.append(layer)
            saved += all_of_it - in_rows
    return chosen if others or saved >= _MIN_SAVING_BYTES else []


def _count_ids(
    model: Any, layers: Sequence[keras.Layer], data: Tree, others: Sequence[object]
) -> tuple[list[int], list[bool]]:
    """Returns for each layer the number of its ids in ``data``, and whether a step also reads its weights directly."""
    every = [*layers, *others]
    patch_layers([layer for layer in every if type(layer) is keras.layers.Embedding])
    x, y, sample_weight = data
    coded = IdFinder(model, every).code(x).x
    counts: dict[int, int] = {}

    def step(
        trainable: Sequence[jax.Array], rest: Sequence[jax.Array], metrics: Sequence[jax.Array], state: object
    ) -> Tree:
        with noting(every) as noted:
            total, (loss, y_pred, rest, metrics) = model.compute_loss_and_updates(
                trainable, rest, metrics, coded, y, sample_weight, training=True, optimizer_variables=state
            )
            logs, metrics = model._update_metrics_variables(metrics, loss, coded, y, y_pred, sample_weight)
        for layer in layers:
            counts[id(layer)] = sum(math.prod(ids.shape) for ids, _ in noted[id(layer)])
        return total, rest, logs, metrics

    variables = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.metrics_variables,
        model.optimizer.variables,
    )
    shapes = [[jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in group] for group in variables]
    traced = jax.make_jaxpr(step)(*shapes).jaxpr
    used = {id(variable) for equation in traced.eqns for variable in equation.invars}
    used |= {id(variable) for variable in traced.outvars}
    places = {id(variable): at for at, variable in enumerate(model.trainable_variables)}
    inputs = [traced.invars[places[id(layer.embeddings)]] for layer in layers]
    return [counts[id(layer)] for layer in layers], [id(variable) in used for variable in inputs]
