"""``tf.saved_model``: models with their values and signatures in a folder."""

from __future__ import annotations

from headwater.compat.names import namespace

_SIGNATURES = """
    build_signature_def classification_signature_def predict_signature_def regression_signature_def"""
_NAMES = {
    "headwater.training.saved_model": f"""
        Builder=SavedModelBuilder build_tensor_info get_tensor_from_tensor_info load
        maybe_saved_model_directory simple_save {_SIGNATURES}
        DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS CLASSIFY_INPUTS
        CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES REGRESS_INPUTS REGRESS_METHOD_NAME
        REGRESS_OUTPUTS SERVING TRAINING GPU TPU""",
}

_MODULES = {
    "builder": "headwater.compat.tf.saved_model_parts",
    "constants": "headwater.compat.tf.saved_model_parts",
    "loader": "headwater.compat.tf.saved_model_parts",
    "main_op": "headwater.compat.tf.saved_model_parts",
    "signature_constants": "headwater.compat.tf.saved_model_parts",
    "signature_def_utils": "headwater.compat.tf.saved_model_parts",
    "tag_constants": "headwater.compat.tf.saved_model_parts",
    "utils": "headwater.compat.tf.saved_model_parts",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
