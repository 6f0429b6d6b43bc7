"""``tf.contrib.rnn``: recurrent networks, under the names of 1.0 and later."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.build.rnn.cells": "BasicRNNCell GRUCell RNNCell",
    "headwater.build.rnn.lstm": "BasicLSTMCell LSTMBlockCell LSTMCell LSTMStateTuple",
    "headwater.build.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
    "headwater.build.rnn.networks": "static_bidirectional_rnn static_rnn",
}

_MODULES = {"rnn_cell": "headwater.compat.tf.rnn_cell"}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
