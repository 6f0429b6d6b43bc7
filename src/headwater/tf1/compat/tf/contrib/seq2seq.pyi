# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.seq2seq.basic import BasicDecoder as BasicDecoder
from headwater.tf1.contrib.seq2seq.basic import BasicDecoderOutput as BasicDecoderOutput
from headwater.tf1.contrib.seq2seq.beams import BeamSearchDecoder as BeamSearchDecoder
from headwater.tf1.contrib.seq2seq.beams import BeamSearchDecoderOutput as BeamSearchDecoderOutput
from headwater.tf1.contrib.seq2seq.beams import BeamSearchDecoderState as BeamSearchDecoderState
from headwater.tf1.contrib.seq2seq.beams import FinalBeamSearchDecoderOutput as FinalBeamSearchDecoderOutput
from headwater.tf1.contrib.seq2seq.beams import tile_batch as tile_batch
from headwater.tf1.contrib.seq2seq.decoding import Decoder as Decoder
from headwater.tf1.contrib.seq2seq.decoding import dynamic_decode as dynamic_decode
from headwater.tf1.contrib.seq2seq.helpers import CustomHelper as CustomHelper
from headwater.tf1.contrib.seq2seq.helpers import GreedyEmbeddingHelper as GreedyEmbeddingHelper
from headwater.tf1.contrib.seq2seq.helpers import Helper as Helper
from headwater.tf1.contrib.seq2seq.helpers import InferenceHelper as InferenceHelper
from headwater.tf1.contrib.seq2seq.helpers import SampleEmbeddingHelper as SampleEmbeddingHelper
from headwater.tf1.contrib.seq2seq.helpers import ScheduledEmbeddingTrainingHelper as ScheduledEmbeddingTrainingHelper
from headwater.tf1.contrib.seq2seq.helpers import ScheduledOutputTrainingHelper as ScheduledOutputTrainingHelper
from headwater.tf1.contrib.seq2seq.helpers import TrainingHelper as TrainingHelper
from headwater.tf1.contrib.seq2seq.losses import sequence_loss as sequence_loss
from headwater.tf1.contrib.seq2seq.mechanisms import AttentionMechanism as AttentionMechanism
from headwater.tf1.contrib.seq2seq.mechanisms import BahdanauAttention as BahdanauAttention
from headwater.tf1.contrib.seq2seq.mechanisms import BahdanauMonotonicAttention as BahdanauMonotonicAttention
from headwater.tf1.contrib.seq2seq.mechanisms import LuongAttention as LuongAttention
from headwater.tf1.contrib.seq2seq.mechanisms import LuongMonotonicAttention as LuongMonotonicAttention
from headwater.tf1.contrib.seq2seq.mechanisms import hardmax as hardmax
from headwater.tf1.contrib.seq2seq.mechanisms import monotonic_attention as monotonic_attention
from headwater.tf1.contrib.seq2seq.mechanisms import safe_cumprod as safe_cumprod
from headwater.tf1.contrib.seq2seq.trees import gather_tree as gather_tree
from headwater.tf1.contrib.seq2seq.wrapper import AttentionWrapper as AttentionWrapper
from headwater.tf1.contrib.seq2seq.wrapper import AttentionWrapperState as AttentionWrapperState

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "LuongMonotonicAttention",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
    "sequence_loss",
    "tile_batch",
]
