# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import rnn_cell as rnn_cell
from headwater.tf1.contrib.rnn.convolutional import Conv1DLSTMCell as Conv1DLSTMCell
from headwater.tf1.contrib.rnn.convolutional import Conv2DLSTMCell as Conv2DLSTMCell
from headwater.tf1.contrib.rnn.convolutional import Conv3DLSTMCell as Conv3DLSTMCell
from headwater.tf1.contrib.rnn.convolutional import ConvLSTMCell as ConvLSTMCell
from headwater.tf1.contrib.rnn.fused import FusedRNNCell as FusedRNNCell
from headwater.tf1.contrib.rnn.fused import FusedRNNCellAdaptor as FusedRNNCellAdaptor
from headwater.tf1.contrib.rnn.fused import GRUBlockCell as GRUBlockCell
from headwater.tf1.contrib.rnn.fused import GRUBlockCellV2 as GRUBlockCellV2
from headwater.tf1.contrib.rnn.fused import LSTMBlockFusedCell as LSTMBlockFusedCell
from headwater.tf1.contrib.rnn.fused import LSTMBlockWrapper as LSTMBlockWrapper
from headwater.tf1.contrib.rnn.fused import TimeReversedFusedRNN as TimeReversedFusedRNN
from headwater.tf1.contrib.rnn.gated import IntersectionRNNCell as IntersectionRNNCell
from headwater.tf1.contrib.rnn.gated import NASCell as NASCell
from headwater.tf1.contrib.rnn.gated import SRUCell as SRUCell
from headwater.tf1.contrib.rnn.gated import UGRNNCell as UGRNNCell
from headwater.tf1.contrib.rnn.grid import BidirectionalGridLSTMCell as BidirectionalGridLSTMCell
from headwater.tf1.contrib.rnn.grid import GridLSTMCell as GridLSTMCell
from headwater.tf1.contrib.rnn.grid import TimeFreqLSTMCell as TimeFreqLSTMCell
from headwater.tf1.contrib.rnn.independent import IndRNNCell as IndRNNCell
from headwater.tf1.contrib.rnn.independent import IndyGRUCell as IndyGRUCell
from headwater.tf1.contrib.rnn.independent import IndyLSTMCell as IndyLSTMCell
from headwater.tf1.contrib.rnn.lstms import CoupledInputForgetGateLSTMCell as CoupledInputForgetGateLSTMCell
from headwater.tf1.contrib.rnn.lstms import GLSTMCell as GLSTMCell
from headwater.tf1.contrib.rnn.lstms import LayerNormBasicLSTMCell as LayerNormBasicLSTMCell
from headwater.tf1.contrib.rnn.lstms import PhasedLSTMCell as PhasedLSTMCell
from headwater.tf1.contrib.rnn.projections import EmbeddingWrapper as EmbeddingWrapper
from headwater.tf1.contrib.rnn.projections import InputProjectionWrapper as InputProjectionWrapper
from headwater.tf1.contrib.rnn.projections import OutputProjectionWrapper as OutputProjectionWrapper
from headwater.tf1.contrib.rnn.stacks import best_effort_input_batch_size as best_effort_input_batch_size
from headwater.tf1.contrib.rnn.stacks import stack_bidirectional_dynamic_rnn as stack_bidirectional_dynamic_rnn
from headwater.tf1.contrib.rnn.stacks import stack_bidirectional_rnn as stack_bidirectional_rnn
from headwater.tf1.contrib.rnn.stacks import transpose_batch_time as transpose_batch_time
from headwater.tf1.contrib.rnn.wrapped import AttentionCellWrapper as AttentionCellWrapper
from headwater.tf1.contrib.rnn.wrapped import CompiledWrapper as CompiledWrapper
from headwater.tf1.contrib.rnn.wrapped import HighwayWrapper as HighwayWrapper
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
    "AttentionCellWrapper",
    "BasicLSTMCell",
    "BasicRNNCell",
    "BidirectionalGridLSTMCell",
    "CompiledWrapper",
    "Conv1DLSTMCell",
    "Conv2DLSTMCell",
    "Conv3DLSTMCell",
    "ConvLSTMCell",
    "CoupledInputForgetGateLSTMCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GLSTMCell",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "GRUCell",
    "GridLSTMCell",
    "HighwayWrapper",
    "IndRNNCell",
    "IndyGRUCell",
    "IndyLSTMCell",
    "InputProjectionWrapper",
    "IntersectionRNNCell",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LSTMBlockWrapper",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "NASCell",
    "OutputProjectionWrapper",
    "PhasedLSTMCell",
    "RNNCell",
    "ResidualWrapper",
    "SRUCell",
    "TimeFreqLSTMCell",
    "TimeReversedFusedRNN",
    "UGRNNCell",
    "best_effort_input_batch_size",
    "rnn_cell",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]
