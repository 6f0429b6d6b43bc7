# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.crf.cells import CrfDecodeBackwardRnnCell as CrfDecodeBackwardRnnCell
from headwater.tf1.contrib.crf.cells import CrfDecodeForwardRnnCell as CrfDecodeForwardRnnCell
from headwater.tf1.contrib.crf.cells import CrfForwardRnnCell as CrfForwardRnnCell
from headwater.tf1.contrib.crf.scores import crf_binary_score as crf_binary_score
from headwater.tf1.contrib.crf.scores import crf_decode as crf_decode
from headwater.tf1.contrib.crf.scores import crf_log_likelihood as crf_log_likelihood
from headwater.tf1.contrib.crf.scores import crf_log_norm as crf_log_norm
from headwater.tf1.contrib.crf.scores import crf_multitag_sequence_score as crf_multitag_sequence_score
from headwater.tf1.contrib.crf.scores import crf_sequence_score as crf_sequence_score
from headwater.tf1.contrib.crf.scores import crf_unary_score as crf_unary_score
from headwater.tf1.contrib.crf.scores import viterbi_decode as viterbi_decode

__all__ = [
    "CrfDecodeBackwardRnnCell",
    "CrfDecodeForwardRnnCell",
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]
