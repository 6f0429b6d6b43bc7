"""``tf.estimator``: models as functions, trained, evaluated and exported by one object."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.estimator.specs": "EstimatorSpec EvalSpec ModeKeys TrainSpec",
    "headwater.training.estimator.run_config": "RunConfig",
    "headwater.training.estimator.estimator": "Estimator",
    "headwater.training.estimator.warm_start_settings": "WarmStartSettings",
    "headwater.training.estimator.canned": """
        DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor LinearClassifier
        LinearRegressor""",
    "headwater.training.estimator.train_and_evaluate": "train_and_evaluate",
    "headwater.training.estimator.export": "BestExporter Exporter FinalExporter LatestExporter",
    "headwater.training.basic_session_run_hooks": """
        CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook LoggingTensorHook
        NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer StepCounterHook StopAtStepHook
        SummarySaverHook""",
    "headwater.training.session_run_hook": "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues",
}

_MODULES = {
    "export": "headwater.compat.tf.estimator_export",
    "inputs": "headwater.compat.tf.estimator_inputs",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
