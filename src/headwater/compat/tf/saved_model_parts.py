"""The parts of ``tf.saved_model``: ``builder``, ``loader``, ``utils``, ``signature_constants`` and the others.

No two of them share a name, so one module stands for all.
"""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.saved_model": """
        SavedModelBuilder load main_op maybe_saved_model_directory build_signature_def build_tensor_info
        classification_signature_def get_tensor_from_tensor_info predict_signature_def regression_signature_def
        DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS CLASSIFY_INPUTS
        CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES REGRESS_INPUTS REGRESS_METHOD_NAME
        REGRESS_OUTPUTS SERVING TRAINING EVAL GPU TPU""",
    "headwater.io.saved_model": "SAVED_MODEL_FILENAME_PB=FILE_NAME ASSETS_DIRECTORY=ASSETS",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
