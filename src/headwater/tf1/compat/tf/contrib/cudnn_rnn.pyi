# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.cudnn_rnn.cells import CudnnCompatibleGRUCell as CudnnCompatibleGRUCell
from headwater.tf1.contrib.cudnn_rnn.cells import CudnnCompatibleLSTMCell as CudnnCompatibleLSTMCell
from headwater.tf1.contrib.cudnn_rnn.converters import CudnnParamsFormatConverterGRU as CudnnParamsFormatConverterGRU
from headwater.tf1.contrib.cudnn_rnn.converters import CudnnParamsFormatConverterLSTM as CudnnParamsFormatConverterLSTM
from headwater.tf1.contrib.cudnn_rnn.converters import CudnnParamsFormatConverterRelu as CudnnParamsFormatConverterRelu
from headwater.tf1.contrib.cudnn_rnn.converters import CudnnParamsFormatConverterTanh as CudnnParamsFormatConverterTanh
from headwater.tf1.contrib.cudnn_rnn.layers import CudnnGRU as CudnnGRU
from headwater.tf1.contrib.cudnn_rnn.layers import CudnnLSTM as CudnnLSTM
from headwater.tf1.contrib.cudnn_rnn.layers import CudnnRNNRelu as CudnnRNNRelu
from headwater.tf1.contrib.cudnn_rnn.layers import CudnnRNNTanh as CudnnRNNTanh
from headwater.tf1.contrib.cudnn_rnn.saveables import CudnnGRUSaveable as CudnnGRUSaveable
from headwater.tf1.contrib.cudnn_rnn.saveables import CudnnLSTMSaveable as CudnnLSTMSaveable
from headwater.tf1.contrib.cudnn_rnn.saveables import CudnnRNNReluSaveable as CudnnRNNReluSaveable
from headwater.tf1.contrib.cudnn_rnn.saveables import CudnnRNNTanhSaveable as CudnnRNNTanhSaveable

__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnGRUSaveable",
    "CudnnLSTM",
    "CudnnLSTMSaveable",
    "CudnnParamsFormatConverterGRU",
    "CudnnParamsFormatConverterLSTM",
    "CudnnParamsFormatConverterRelu",
    "CudnnParamsFormatConverterTanh",
    "CudnnRNNRelu",
    "CudnnRNNReluSaveable",
    "CudnnRNNTanh",
    "CudnnRNNTanhSaveable",
]
