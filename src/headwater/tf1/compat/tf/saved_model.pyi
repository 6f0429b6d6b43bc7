# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.io.saved_model import ASSETS as ASSETS_DIRECTORY
from headwater.data.io.saved_model import ASSETS_KEY as ASSETS_KEY
from headwater.data.io.saved_model import FILE_NAME as SAVED_MODEL_FILENAME_PB
from headwater.data.io.saved_model import SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION
from headwater.data.io.saved_model import TEXT_FILE_NAME as SAVED_MODEL_FILENAME_PBTXT
from headwater.data.io.saved_model import VARIABLES_DIRECTORY as VARIABLES_DIRECTORY
from headwater.data.io.saved_model import VARIABLES_FILENAME as VARIABLES_FILENAME
from headwater.tf1.compat.tf import saved_model_parts as builder
from headwater.tf1.compat.tf import saved_model_parts as constants
from headwater.tf1.compat.tf import saved_model_parts as loader
from headwater.tf1.compat.tf import saved_model_parts as main_op
from headwater.tf1.compat.tf import saved_model_parts as signature_constants
from headwater.tf1.compat.tf import saved_model_parts as signature_def_utils
from headwater.tf1.compat.tf import saved_model_parts as tag_constants
from headwater.tf1.compat.tf import saved_model_parts as utils
from headwater.tf1.training.saved_model import CLASSIFY_INPUTS as CLASSIFY_INPUTS
from headwater.tf1.training.saved_model import CLASSIFY_METHOD_NAME as CLASSIFY_METHOD_NAME
from headwater.tf1.training.saved_model import CLASSIFY_OUTPUT_CLASSES as CLASSIFY_OUTPUT_CLASSES
from headwater.tf1.training.saved_model import CLASSIFY_OUTPUT_SCORES as CLASSIFY_OUTPUT_SCORES
from headwater.tf1.training.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY
from headwater.tf1.training.saved_model import GPU as GPU
from headwater.tf1.training.saved_model import LEGACY_INIT_OP as LEGACY_INIT_OP_KEY
from headwater.tf1.training.saved_model import MAIN_OP as MAIN_OP_KEY
from headwater.tf1.training.saved_model import PREDICT_INPUTS as PREDICT_INPUTS
from headwater.tf1.training.saved_model import PREDICT_METHOD_NAME as PREDICT_METHOD_NAME
from headwater.tf1.training.saved_model import PREDICT_OUTPUTS as PREDICT_OUTPUTS
from headwater.tf1.training.saved_model import REGRESS_INPUTS as REGRESS_INPUTS
from headwater.tf1.training.saved_model import REGRESS_METHOD_NAME as REGRESS_METHOD_NAME
from headwater.tf1.training.saved_model import REGRESS_OUTPUTS as REGRESS_OUTPUTS
from headwater.tf1.training.saved_model import SERVING as SERVING
from headwater.tf1.training.saved_model import SavedModelBuilder as Builder
from headwater.tf1.training.saved_model import TPU as TPU
from headwater.tf1.training.saved_model import TRAINING as TRAINING
from headwater.tf1.training.saved_model import build_signature_def as build_signature_def
from headwater.tf1.training.saved_model import build_tensor_info as build_tensor_info
from headwater.tf1.training.saved_model import classification_signature_def as classification_signature_def
from headwater.tf1.training.saved_model import get_tensor_from_tensor_info as get_tensor_from_tensor_info
from headwater.tf1.training.saved_model import is_valid_signature as is_valid_signature
from headwater.tf1.training.saved_model import load as load
from headwater.tf1.training.saved_model import main_op_with_restore as main_op_with_restore
from headwater.tf1.training.saved_model import maybe_saved_model_directory as contains_saved_model
from headwater.tf1.training.saved_model import maybe_saved_model_directory as maybe_saved_model_directory
from headwater.tf1.training.saved_model import predict_signature_def as predict_signature_def
from headwater.tf1.training.saved_model import regression_signature_def as regression_signature_def
from headwater.tf1.training.saved_model import simple_save as simple_save

__all__ = [
    "ASSETS_DIRECTORY",
    "ASSETS_KEY",
    "Builder",
    "CLASSIFY_INPUTS",
    "CLASSIFY_METHOD_NAME",
    "CLASSIFY_OUTPUT_CLASSES",
    "CLASSIFY_OUTPUT_SCORES",
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "GPU",
    "LEGACY_INIT_OP_KEY",
    "MAIN_OP_KEY",
    "PREDICT_INPUTS",
    "PREDICT_METHOD_NAME",
    "PREDICT_OUTPUTS",
    "REGRESS_INPUTS",
    "REGRESS_METHOD_NAME",
    "REGRESS_OUTPUTS",
    "SAVED_MODEL_FILENAME_PB",
    "SAVED_MODEL_FILENAME_PBTXT",
    "SAVED_MODEL_SCHEMA_VERSION",
    "SERVING",
    "TPU",
    "TRAINING",
    "VARIABLES_DIRECTORY",
    "VARIABLES_FILENAME",
    "build_signature_def",
    "build_tensor_info",
    "builder",
    "classification_signature_def",
    "constants",
    "contains_saved_model",
    "get_tensor_from_tensor_info",
    "is_valid_signature",
    "load",
    "loader",
    "main_op",
    "main_op_with_restore",
    "maybe_saved_model_directory",
    "predict_signature_def",
    "regression_signature_def",
    "signature_constants",
    "signature_def_utils",
    "simple_save",
    "tag_constants",
    "utils",
]
