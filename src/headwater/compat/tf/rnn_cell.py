"""``tf.nn.rnn_cell``: cells of recurrent networks."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.build.rnn.cells": "BasicRNNCell GRUCell RNNCell",
    "headwater.build.rnn.lstm": "BasicLSTMCell LSTMCell LSTMStateTuple",
    "headwater.build.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
