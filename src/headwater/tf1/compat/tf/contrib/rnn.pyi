# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import rnn_cell as rnn_cell
from headwater.tf1.contrib.rnn.projections import EmbeddingWrapper as EmbeddingWrapper
from headwater.tf1.contrib.rnn.projections import InputProjectionWrapper as InputProjectionWrapper
from headwater.tf1.contrib.rnn.projections import OutputProjectionWrapper as OutputProjectionWrapper
from headwater.tf1.contrib.rnn.stacks import best_effort_input_batch_size as best_effort_input_batch_size
from headwater.tf1.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from headwater.tf1.contrib.rnn.stacks import stack_bidirectional_rnn as stack_bidirectional_rnn
from headwater.tf1.contrib.rnn.stacks import transpose_batch_time as transpose_batch_time
from headwater.tf1.rnn.cells import BasicRNNCell as BasicRNNCell
from headwater.tf1.rnn.cells import GRUCell as GRUCell
from headwater.tf1.rnn.cells import LayerCell as LayerRNNCell
from headwater.tf1.rnn.cells import RNNCell as RNNCell
from headwater.tf1.rnn.lstm import BasicLSTMCell as BasicLSTMCell
from headwater.tf1.rnn.lstm import LSTMBlockCell as LSTMBlockCell
from headwater.tf1.rnn.lstm import LSTMCell as LSTMCell
from headwater.tf1.rnn.lstm import LSTMStateTuple as LSTMStateTuple
from headwater.tf1.rnn.networks import static_bidirectional_rnn as static_bidirectional_rnn
from headwater.tf1.rnn.networks import static_rnn as static_rnn
from headwater.tf1.rnn.networks import static_state_saving_rnn as static_state_saving_rnn
from headwater.tf1.rnn.wrappers import DeviceWrapper as DeviceWrapper
from headwater.tf1.rnn.wrappers import DropoutWrapper as DropoutWrapper
from headwater.tf1.rnn.wrappers import MultiRNNCell as MultiRNNCell
from headwater.tf1.rnn.wrappers import ResidualWrapper as ResidualWrapper

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GRUCell",
    "InputProjectionWrapper",
    "LSTMBlockCell",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerRNNCell",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "RNNCell",
    "ResidualWrapper",
    "best_effort_input_batch_size",
    "rnn_cell",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]
