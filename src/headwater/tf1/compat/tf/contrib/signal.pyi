# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.signal import frame as frame
from headwater.tf1.functional.signal import hamming_window as hamming_window
from headwater.tf1.functional.signal import hann_window as hann_window
from headwater.tf1.functional.signal import inverse_stft as inverse_stft
from headwater.tf1.functional.signal import inverse_stft_window_fn as inverse_stft_window_fn
from headwater.tf1.functional.signal import linear_to_mel_weight_matrix as linear_to_mel_weight_matrix
from headwater.tf1.functional.signal import mfccs_from_log_mel_spectrograms as mfccs_from_log_mel_spectrograms
from headwater.tf1.functional.signal import overlap_and_add as overlap_and_add
from headwater.tf1.functional.signal import stft as stft

__all__ = [
    "frame",
    "hamming_window",
    "hann_window",
    "inverse_stft",
    "inverse_stft_window_fn",
    "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
]
