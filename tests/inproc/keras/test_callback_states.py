"""The state of callbacks that is saved with a model, in a run that continues another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.keras.callback_states import CallbackStates

import keras  # isort: skip - the package before it chooses the backend


def plateau() -> Any:
    return keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=0.05, factor=0.5)


def stopping() -> Any:
    return keras.callbacks.EarlyStopping(monitor="loss", patience=1, min_delta=0.05)


def started(callback: Any) -> CallbackStates:
    """Begins a run of a callback with a model."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback.set_model(model)
    callback.on_train_begin()
    states = CallbackStates([callback])
    states.record_initial()
    return states


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("make", [plateau, stopping])
def test_the_smallest_improvement_is_the_same_after_a_restart(make: Any) -> None:
    """A loss that decreases by less than ``min_delta`` is no improvement, before and after the restart."""
    before, after = make(), make()
    states = started(before)
    before.on_epoch_end(0, {"loss": 1.0})
    states.collect_changes()
    restarted = started(after)
    restarted.restore(*states.saved())
    for callback in (before, after):
        callback.on_epoch_end(1, {"loss": 0.99})
    assert (after.best, after.wait) == (before.best, before.wait)
    assert before.best == 1.0
    rates = [float(np.asarray(callback.model.optimizer.learning_rate)) for callback in (before, after)]
    assert rates[0] == rates[1]
