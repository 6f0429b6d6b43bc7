"""``tf.estimator.export``: what an exported model takes and gives."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.estimator.export": """
        ClassificationOutput ExportOutput PredictOutput RegressionOutput ServingInputReceiver
        TensorServingInputReceiver build_parsing_serving_input_receiver_fn build_raw_serving_input_receiver_fn""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
