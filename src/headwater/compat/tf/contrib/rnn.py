"""``tf.contrib.rnn``: recurrent networks, under the names of 1.0 and later."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.rnn.cells": "BasicRNNCell GRUCell RNNCell",
    "headwater.rnn.lstm": "BasicLSTMCell LSTMBlockCell LSTMCell LSTMStateTuple",
    "headwater.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
    "headwater.rnn.networks": "static_bidirectional_rnn static_rnn",
}

_MODULES = {"rnn_cell": "headwater.compat.tf.rnn_cell"}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
