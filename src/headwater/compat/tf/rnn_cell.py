"""``tf.nn.rnn_cell``: cells of recurrent networks."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.rnn.cells": "BasicRNNCell GRUCell RNNCell",
    "headwater.rnn.lstm": "BasicLSTMCell LSTMCell LSTMStateTuple",
    "headwater.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
