# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.legacy_seq2seq.decoders import attention_decoder as attention_decoder
from headwater.tf1.contrib.legacy_seq2seq.decoders import embedding_attention_decoder as embedding_attention_decoder
from headwater.tf1.contrib.legacy_seq2seq.decoders import embedding_rnn_decoder as embedding_rnn_decoder
from headwater.tf1.contrib.legacy_seq2seq.decoders import rnn_decoder as rnn_decoder
from headwater.tf1.contrib.legacy_seq2seq.losses import model_with_buckets as model_with_buckets
from headwater.tf1.contrib.legacy_seq2seq.losses import sequence_loss as sequence_loss
from headwater.tf1.contrib.legacy_seq2seq.losses import sequence_loss_by_example as sequence_loss_by_example
from headwater.tf1.contrib.legacy_seq2seq.models import basic_rnn_seq2seq as basic_rnn_seq2seq
from headwater.tf1.contrib.legacy_seq2seq.models import embedding_attention_seq2seq as embedding_attention_seq2seq
from headwater.tf1.contrib.legacy_seq2seq.models import embedding_rnn_seq2seq as embedding_rnn_seq2seq
from headwater.tf1.contrib.legacy_seq2seq.models import embedding_tied_rnn_seq2seq as embedding_tied_rnn_seq2seq
from headwater.tf1.contrib.legacy_seq2seq.models import one2many_rnn_seq2seq as one2many_rnn_seq2seq
from headwater.tf1.contrib.legacy_seq2seq.models import tied_rnn_seq2seq as tied_rnn_seq2seq

__all__ = [
    "attention_decoder",
    "basic_rnn_seq2seq",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "model_with_buckets",
    "one2many_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "tied_rnn_seq2seq",
]
