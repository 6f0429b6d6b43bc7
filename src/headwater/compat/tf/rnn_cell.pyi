# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.rnn.cells import BasicRNNCell as BasicRNNCell
from headwater.rnn.cells import GRUCell as GRUCell
from headwater.rnn.cells import RNNCell as RNNCell
from headwater.rnn.lstm import BasicLSTMCell as BasicLSTMCell
from headwater.rnn.lstm import LSTMCell as LSTMCell
from headwater.rnn.lstm import LSTMStateTuple as LSTMStateTuple
from headwater.rnn.wrappers import DeviceWrapper as DeviceWrapper
from headwater.rnn.wrappers import DropoutWrapper as DropoutWrapper
from headwater.rnn.wrappers import MultiRNNCell as MultiRNNCell
from headwater.rnn.wrappers import ResidualWrapper as ResidualWrapper

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
]
