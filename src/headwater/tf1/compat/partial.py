"""Names of TensorFlow with partial support, and the differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PARTIAL: Final[Mapping[str, str]] = {
    "tf.distribute.experimental.CentralStorageStrategy": (
        "a `MirroredStrategy`, whose variables are on each device; without `parameter_device`"
    ),
    "tf.keras.layers.DenseFeatures": "for tensors of graphs, not as a part of a model of Keras 3",
    "tf.keras.experimental.SequenceFeatures": "for tensors of graphs, not as a part of a model of Keras 3",
    "tf.py_function": (
        "arguments are arrays that have `numpy()`; tensors that functions of `tf` make of them are computed when the "
        "function returns; a gradient through it is refused"
    ),
    "tf.experimental.function_executor_type": "changes nothing: XLA compiles each part of a step",
    "tf.experimental.output_all_intermediates": "changes nothing: a branch has no graph of its own that could give it",
    "tf.ConfigProto": (
        "of its fields `allow_soft_placement`, `log_device_placement`, `device_count`, `device_filters`, "
        "`gpu_options`, `intra_op_parallelism_threads`, `isolate_session_state` and `operation_timeout_in_ms` count; "
        "the others may be set, and change nothing"
    ),
    "tf.GPUOptions": (
        "`allow_growth`, `per_process_gpu_memory_fraction` and `visible_device_list` count, where nothing has used a "
        "GPU before; the others may be set, and change nothing"
    ),
    "tf.GraphOptions": (
        "`build_cost_model` counts; the others may be set, and change nothing: XLA compiles each part of a step"
    ),
    "tf.OptimizerOptions": "`global_jit_level` counts, see [performance](performance.md); the others change nothing",
    "tf.RaggedTensor": (
        "operators and the functions that TensorFlow 1.15 lists take it; other functions take its `flat_values`, as in "
        "`tf.ragged.map_flat_values`, or the result of `to_tensor`"
    ),
    "tf.RunMetadata": (
        "`step_stats`, `partition_graphs` and `cost_graph` are filled in; operations that XLA fused have one time, by "
        "the name of the last of them"
    ),
    "tf.RunOptions": "of its fields `timeout_in_ms`, `trace_level` and `output_partition_graphs` count",
    "tf.data.Dataset": "an error in a function ends the iteration",
    "tf.data.Options": "of its settings the policy of sharding counts; the others may be set, and change nothing",
    "tf.data.experimental.MapVectorizationOptions": "may be set, and changes nothing",
    "tf.data.experimental.OptimizationOptions": "may be set, and changes nothing",
    "tf.data.experimental.ThreadingOptions": "may be set, and changes nothing",
    "tf.depth_to_space": "for channels last only",
    "tf.config.experimental.set_memory_growth": "one setting for all GPUs of the process",
    "tf.config.experimental.set_virtual_device_configuration": "of the CPU; JAX does not divide a GPU's memory",
    "tf.contrib.distribute.CollectiveAllReduceStrategy": (
        "for Keras's `fit` and loops of one's own; an Estimator cannot use it"
    ),
    "tf.contrib.distribute.DistributeConfig": "without `remote_cluster`",
    "tf.contrib.distribute.MirroredStrategy": (
        "for Keras's `fit`, estimators of Keras models, and loops of one's own; a `model_fn` builds towers"
    ),
    "tf.contrib.tfprof.model_analyzer.print_model_analysis": (
        "by names: parameters and operations on floats; not times, which `Timeline` shows; of gradients those of "
        "products and convolutions count"
    ),
    "tf.contrib.learn.DNNLinearCombinedClassifier": "without `gradient_clip_norm`",
    "tf.contrib.learn.Experiment": "without `export_strategies`; metrics are the estimator's own",
    "tf.contrib.layers.batch_norm": "without `batch_weights`, `zero_debias_moving_mean`, `renorm` and `adjustment`",
    "tf.estimator.tpu.TPUEstimator": "with `use_tpu=False`, as TensorFlow trains where there are no TPUs",
    "tf.feature_column.embedding_column": "without `ckpt_to_load_from`: `tf.train.init_from_checkpoint` does it",
    "tf.feature_column.shared_embedding_columns": "without `ckpt_to_load_from`",
    "tf.keras.backend.set_learning_phase": (
        "for layers and models that are called directly; `fit` trains, `evaluate` and `predict` infer, whatever it is"
    ),
    "tf.keras.estimator.model_to_estimator": (
        "trains in one task, whose devices share each batch; checkpoints of `tf.train.Saver`; without export, which "
        "is the model's own `export`"
    ),
    "tf.layers.BatchNormalization": "without `renorm`, `virtual_batch_size` and `adjustment`",
    "tf.layers.batch_normalization": "without `renorm`, `virtual_batch_size` and `adjustment`",
    "tf.metrics.precision_at_k": "with labels of two dimensions, dense or sparse",
    "tf.metrics.recall_at_k": "with labels of two dimensions, dense or sparse",
    "tf.nn.pool": "for two and three dimensions of space, windows without holes",
    "tf.CriticalSection": "made anew in each graph, not from a `critical_section_def`",
    "tf.profiler.ProfileOptionBuilder": "without output for timelines (`Timeline` writes them) and pprof",
    "tf.profiler.Profiler": "by names and by types, not by lines of Python or the graph's edges",
    "tf.profiler.advise": "on what takes the most time, and on layouts of images; results are plain objects",
    "tf.profiler.profile": (
        "by names and by types, with parameters, operations on floats, times and bytes; results are plain objects"
    ),
    "tf.profiler.write_op_log": "of the code that made an operation the program's own line, without functions",
    "tf.keras.experimental.WideDeepModel": "one optimizer trains both models",
    "tf.keras.utils.GeneratorEnqueuer": "with threads",
    "tf.random.experimental.Generator": (
        "Philox; of float32, float64 and integers, without `binomial` and `split`; what resets and skips are "
        "operations to run"
    ),
    "tf.recompute_grad": "what a gradient computes again rather than keep is XLA's choice",
    "tf.repeat": "with repeats that are known when the graph is built",
    "tf.train.experimental.enable_mixed_precision_graph_rewrite": "scales losses; the graph is not rewritten",
    "tf.saved_model.Builder": "binary files only",
    "tf.space_to_depth": "for channels last only",
    "tf.string_split": "gives a `tf.SparseTensor` only",
    "tf.strings.split": "gives a `tf.SparseTensor` only",
}
"""For each name, as written in programs, a clause that describes the difference from TensorFlow 1.15."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "models for phones: the converter and its interpreter are TensorFlow's own": "tf.lite.",
    "TPUs: on them JAX itself runs, without parameter servers": (
        "tf.tpu. tf.estimator.tpu.experimental. tf.distribute.cluster_resolver.TPUClusterResolver "
        "tf.distribute.experimental.TPUStrategy"
    ),
    "puts the rounding to few bits into graphs that were built without": "tf.train.do_quantize_training_on_graphdef",
    "libraries of compiled operations for TensorFlow's own runtime": (
        "tf.load_library tf.load_op_library tf.load_file_system_library tf.sysconfig.get_"
    ),
    "Keras 2's own: Keras 3, which `tf.keras` is, has them no more": (
        "tf.keras.experimental.export_saved_model tf.keras.experimental.load_from_saved_model "
        "tf.keras.models.model_from_yaml tf.keras.utils.multi_gpu_model"
    ),
    "eager execution: programs of this dialect build graphs, and sessions run them": (
        "tf.enable_eager_execution tf.enable_v2_behavior tf.config.experimental_run_functions_eagerly"
    ),
    "messages of C++ about its own status": "tf.errors.raise_exception_on_not_ok_status",
    "functions of TensorFlow 2: programs of that dialect have them, graphs do not": ("tf.function tf.wrap_function"),
    "objects of TensorFlow 2: programs of that dialect save models with Keras's `export`": (
        "tf.saved_model.save tf.saved_model.load_v2 tf.saved_model.experimental."
    ),
    "clusters for eager execution": "tf.config.experimental_connect_to_",
    "statistics and positions of TensorFlow's own pipelines; here an epoch's ledger keeps the position": (
        "tf.data.experimental.CheckpointInputPipelineHook tf.data.experimental.make_saveable_from_iterator "
        "tf.data.experimental.StatsAggregator tf.data.experimental.StatsOptions "
        "tf.data.experimental.bytes_produced_stats tf.data.experimental.latency_stats"
    ),
    "sparse tensors are no elements of datasets": "tf.data.experimental.dense_to_sparse_batch",
    "methods of their own (trees, k-means, dual coordinate ascent), which TensorFlow compiles operations for": (
        "tf.estimator.BoostedTreesClassifier tf.estimator.BoostedTreesEstimator tf.estimator.BoostedTreesRegressor "
        "tf.estimator.experimental.KMeans tf.estimator.experimental.LinearSDCA "
        "tf.train.sdca_optimizer"
    ),
    "batches of requests to a server of models": "tf.nondifferentiable_batch_function",
    "written by the writers of TensorFlow 2's summaries, which programs of that dialect have": "tf.summary.initialize",
}
"""Why names are left out on purpose: each reason with names, or beginnings of names, as programs write them."""
