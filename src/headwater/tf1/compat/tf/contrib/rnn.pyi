# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import rnn_cell as rnn_cell
from headwater.tf1.rnn.cells import BasicRNNCell as BasicRNNCell
from headwater.tf1.rnn.cells import GRUCell as GRUCell
from headwater.tf1.rnn.cells import RNNCell as RNNCell
from headwater.tf1.rnn.lstm import BasicLSTMCell as BasicLSTMCell
from headwater.tf1.rnn.lstm import LSTMBlockCell as LSTMBlockCell
from headwater.tf1.rnn.lstm import LSTMCell as LSTMCell
from headwater.tf1.rnn.lstm import LSTMStateTuple as LSTMStateTuple
from headwater.tf1.rnn.networks import static_bidirectional_rnn as static_bidirectional_rnn
from headwater.tf1.rnn.networks import static_rnn as static_rnn
from headwater.tf1.rnn.wrappers import DeviceWrapper as DeviceWrapper
from headwater.tf1.rnn.wrappers import DropoutWrapper as DropoutWrapper
from headwater.tf1.rnn.wrappers import MultiRNNCell as MultiRNNCell
from headwater.tf1.rnn.wrappers import ResidualWrapper as ResidualWrapper

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMBlockCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
    "rnn_cell",
    "static_bidirectional_rnn",
    "static_rnn",
]
