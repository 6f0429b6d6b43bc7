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
        "arguments are arrays that have `numpy()`; tensors that the function creates from them are computed when it "
        "returns; gradients through it are not supported"
    ),
    "tf.experimental.function_executor_type": "has no effect: XLA compiles each part of a step",
    "tf.experimental.output_all_intermediates": "has no effect: a branch has no separate graph",
    "tf.ConfigProto": (
        "supported fields: `allow_soft_placement`, `log_device_placement`, `device_count`, `device_filters`, "
        "`gpu_options`, `intra_op_parallelism_threads`, `isolate_session_state` and `operation_timeout_in_ms`; "
        "others are accepted and ignored"
    ),
    "tf.GPUOptions": (
        "supported before the first use of a GPU: `allow_growth`, `per_process_gpu_memory_fraction` and "
        "`visible_device_list`; others are accepted and ignored"
    ),
    "tf.GraphOptions": (
        "supported: `build_cost_model`; others are accepted and ignored, as XLA compiles each part of a step"
    ),
    "tf.OptimizerOptions": "only `global_jit_level`, see [performance](performance.md); others are ignored",
    "tf.RaggedTensor": (
        "accepted by operators and by the functions that TensorFlow 1.15 lists; other functions accept its "
        "`flat_values`, as in `tf.ragged.map_flat_values`, or the result of `to_tensor`"
    ),
    "tf.RunMetadata": (
        "`step_stats`, `partition_graphs` and `cost_graph` are filled in; operations that XLA fused have one time, "
        "under the name of the last operation"
    ),
    "tf.RunOptions": "supported fields: `timeout_in_ms`, `trace_level` and `output_partition_graphs`",
    "tf.data.Options": "supported: the sharding policy; others are accepted and ignored",
    "tf.data.experimental.MapVectorizationOptions": "accepted and ignored",
    "tf.data.experimental.OptimizationOptions": "accepted and ignored",
    "tf.data.experimental.ThreadingOptions": "accepted and ignored",
    "tf.depth_to_space": "only with channels last",
    "tf.config.experimental.set_memory_growth": "one setting for all GPUs of the process",
    "tf.config.experimental.set_virtual_device_configuration": "only for the CPU; JAX does not divide a GPU's memory",
    "tf.contrib.distribute.CollectiveAllReduceStrategy": (
        "for Keras's `fit` and custom training loops, not for an Estimator"
    ),
    "tf.contrib.distribute.DistributeConfig": "without `remote_cluster`",
    "tf.contrib.distribute.MirroredStrategy": (
        "for Keras's `fit`, estimators of Keras models, and custom training loops; a `model_fn` builds towers"
    ),
    "tf.contrib.tfprof.model_analyzer.print_model_analysis": (
        "by names: parameters and floating-point operations, for gradients only of matrix products and convolutions; "
        "without times, which `Timeline` shows"
    ),
    "tf.contrib.learn.DNNLinearCombinedClassifier": (
        "counts each step once, as with `fix_global_step_increment_bug=True`; without `embedding_lr_multipliers`"
    ),
    "tf.contrib.learn.DNNLinearCombinedRegressor": "as `DNNLinearCombinedClassifier`",
    "tf.contrib.learn.Experiment": "without `export_strategies`",
    "tf.contrib.layers.batch_norm": "without `batch_weights` and `zero_debias_moving_mean`",
    "tf.estimator.tpu.TPUEstimator": "with `use_tpu=False`, as in TensorFlow without TPUs",
    "tf.feature_column.embedding_column": "without `ckpt_to_load_from`; use `tf.train.init_from_checkpoint`",
    "tf.feature_column.shared_embedding_columns": "without `ckpt_to_load_from`",
    "tf.keras.backend.set_learning_phase": (
        "a phase that is set before a model is made is a part of it; phase 1 has no effect on `fit`, `evaluate` and "
        "`predict` of other models"
    ),
    "tf.keras.estimator.model_to_estimator": (
        "trains in one task, which divides each batch among its devices; writes checkpoints of `tf.train.Saver`; "
        "cannot export, use the model's `export`"
    ),
    "tf.metrics.precision_at_k": "with labels of two dimensions, dense or sparse",
    "tf.metrics.recall_at_k": "with labels of two dimensions, dense or sparse",
    "tf.nn.pool": "for two and three spatial dimensions, without dilation",
    "tf.CriticalSection": "cannot be created from a `critical_section_def`",
    "tf.profiler.ProfileOptionBuilder": "without output for timelines (`Timeline` writes them) and pprof",
    "tf.profiler.Profiler": "by names and by types, not by lines of code or edges of the graph",
    "tf.profiler.advise": "advice on the slowest operations and on image layouts; results are plain objects",
    "tf.profiler.profile": (
        "by names and by types, with parameters, floating-point operations, times and bytes; results are plain objects"
    ),
    "tf.profiler.write_op_log": "of the code that created an operation, only the program's line, without functions",
    "tf.keras.experimental.WideDeepModel": "one optimizer trains both models",
    "tf.keras.utils.GeneratorEnqueuer": "uses threads, not processes",
    "tf.random.experimental.Generator": (
        "only Philox; float32, float64 and integers, without `binomial` and `split`; resets and skips are operations "
        "to run"
    ),
    "tf.recompute_grad": "has no effect: XLA decides which values a gradient computes again",
    "tf.repeat": "only with repeats that are known when the graph is built",
    "tf.train.experimental.enable_mixed_precision_graph_rewrite": "scales losses; the graph is not rewritten",
    "tf.saved_model.Builder": "binary files only",
    "tf.space_to_depth": "only with channels last",
}
"""For each name, as written in programs, a clause that describes the difference from TensorFlow 1.15."""

UNSUPPORTED: Final[Mapping[str, str]] = {
    "models for phones, which need TensorFlow's converter and interpreter": "tf.lite.",
    "TPUs: use JAX directly, without parameter servers": (
        "tf.tpu. tf.estimator.tpu.experimental. tf.distribute.cluster_resolver.TPUClusterResolver "
        "tf.distribute.experimental.TPUStrategy"
    ),
    "rewrites graphs for quantized training": "tf.train.do_quantize_training_on_graphdef",
    "libraries of compiled operations for TensorFlow's own runtime": (
        "tf.load_library tf.load_op_library tf.load_file_system_library tf.sysconfig.get_"
    ),
    "removed from Keras 3, which is `tf.keras`": (
        "tf.keras.experimental.export_saved_model tf.keras.experimental.load_from_saved_model "
        "tf.keras.models.model_from_yaml tf.keras.utils.multi_gpu_model"
    ),
    "eager execution: programs for TensorFlow 1 build graphs, which sessions run": (
        "tf.config.experimental_run_functions_eagerly"
    ),
    "status messages of TensorFlow's C++ code": "tf.errors.raise_exception_on_not_ok_status",
    "available in programs for TensorFlow 2, not in graphs": "tf.wrap_function",
    "objects of TensorFlow 2: programs for TensorFlow 2 save models with Keras's `export`": (
        "tf.saved_model.save tf.saved_model.load_v2 tf.saved_model.experimental."
    ),
    "clusters for eager execution": "tf.config.experimental_connect_to_",
    "statistics and positions of TensorFlow's own pipelines; here an epoch's ledger keeps the position": (
        "tf.data.experimental.CheckpointInputPipelineHook "
        "tf.data.experimental.StatsAggregator tf.data.experimental.StatsOptions "
        "tf.data.experimental.bytes_produced_stats tf.data.experimental.latency_stats"
    ),
    "training methods with special operations (trees, k-means, dual coordinate ascent)": (
        "tf.estimator.BoostedTreesClassifier tf.estimator.BoostedTreesEstimator tf.estimator.BoostedTreesRegressor "
        "tf.estimator.experimental.KMeans tf.estimator.experimental.LinearSDCA "
        "tf.train.sdca_optimizer"
    ),
    "batching of requests to a model server": "tf.nondifferentiable_batch_function",
    "for the summary writers of TensorFlow 2, which programs for TensorFlow 2 can use": "tf.summary.initialize",
}
"""Reasons for deliberately unsupported names: each reason with names, or prefixes of names, as programs write them."""


UNSUPPORTED_CONTRIB: Final[Mapping[str, tuple[str, str]]] = {
    "autograph": ("an earlier name", "`tf.autograph`"),
    "batching": ("batches requests within TensorFlow's own server", "the batching of TensorFlow Serving"),
    "bayesflow": ("moved to TensorFlow Probability", "`tf.distributions`"),
    "bigtable": ("reads a service of Google", "`tf.data.Dataset.from_generator` with its client library"),
    "boosted_trees": ("trains trees in compiled operations", "LightGBM or XGBoost"),
    "checkpoint": ("earlier names, and tools for objects", "`tf.train.Checkpoint` and `tf.train.CheckpointManager`"),
    "cloud": ("reads services of Google", "`tf.data.Dataset.from_generator` with their client libraries"),
    "cluster_resolver": ("earlier names", "`tf.distribute.cluster_resolver`"),
    "compiler": ("selects what XLA compiles; here all compiled parts use XLA", "`tf.xla.experimental`"),
    "constrained_optimization": ("moved to a library of its own", "multipliers as variables, minimised negatively"),
    "copy_graph": ("copies by rewriting graphs", "`tf.import_graph_def` of `graph.as_graph_def()`"),
    "data": ("names of 1.0 to 1.12", "`tf.data.experimental`"),
    "decision_trees": ("messages of boosted trees", "LightGBM or XGBoost"),
    "distribute": ("strategies for TPUs, and earlier names", "`tf.distribute`"),
    "distributions": ("bijectors and rarely imported distributions", "`tf.distributions`, or samples transformed"),
    "eager": ("values at once, a dialect of its own", "TensorFlow 2's dialect (`headwater exec --dialect 2`)"),
    "estimator": ("heads and wrappers of estimators", "`tf.estimator`"),
    "factorization": ("mixtures and factors in compiled operations", "scikit-learn, or `tf.train` optimizers"),
    "ffmpeg": ("calls the program ffmpeg", "`tf.audio.decode_wav`, or ffmpeg before training"),
    "framework": ("earlier names", "`tf` and `tf.train`"),
    "fused_conv": ("one operation of GPUs; XLA fuses", "`tf.nn.conv2d` and `tf.nn.bias_add`"),
    "gan": ("moved to TF-GAN", "two losses with two `tf.train` optimizers and `var_list`"),
    "graph_editor": ("rewrites built graphs", "`tf.import_graph_def` with `input_map`, and `tf.graph_util`"),
    "grid_rnn": ("cells with several recurrent dimensions", "`tf.contrib.rnn`"),
    "hadoop": ("reads Hadoop's files by compiled operations", "`tf.data.Dataset.from_generator`"),
    "hooks": ("a hook for profiles", "`tf.train.ProfilerHook`"),
    "ignite": ("reads Apache Ignite", "`tf.data.Dataset.from_generator` with its client library"),
    "image": ("warps, and matches of points", "`tf.image`, or Pillow and SciPy in `tf.py_func`"),
    "input_pipeline": ("one operation on lists of strings", "`tf.train.string_input_producer`"),
    "integrate": ("solves differential equations", "`scipy.integrate.odeint` in `tf.py_func`"),
    "kafka": ("reads Apache Kafka", "`tf.data.Dataset.from_generator` with its client library"),
    "keras": ("an earlier name", "`tf.keras`"),
    "kernel_methods": ("random features for kernels", "`tf.cos` of a product with constant random weights"),
    "kinesis": ("reads a service of Amazon", "`tf.data.Dataset.from_generator` with its client library"),
    "labeled_tensor": ("tensors with named axes", "xarray before training"),
    "layers": ("rarely imported layers", "`tf.layers` and `tf.feature_column`"),
    "learn": ("deprecated by TensorFlow since 1.7", "`tf.estimator`"),
    "libsvm": ("reads LIBSVM's files", "`sklearn.datasets.load_svmlight_file`"),
    "linear_optimizer": ("dual coordinate ascent in compiled operations", "`tf.train.FtrlOptimizer`"),
    "lookup": ("earlier names", "`tf.lookup`"),
    "memory_stats": ("statistics of TensorFlow's allocator", "`tf.RunMetadata`"),
    "meta_graph_transform": ("rewrites graphs by compiled tools", "`tf.graph_util`"),
    "metrics": ("rarely imported metrics", "`tf.metrics`"),
    "mixed_precision": ("earlier names", "`tf.train.experimental.DynamicLossScale` and `FixedLossScale`"),
    "model_pruning": ("masks of weights, updated by hooks", "variables as masks, multiplied with weights"),
    "nearest_neighbor": ("hashes in compiled operations", "scikit-learn or FAISS"),
    "nn": ("one loss with a second sampling", "`tf.nn.sampled_softmax_loss`"),
    "optimizer_v2": ("drafts of later optimizers", "`tf.train`"),
    "periodic_resample": ("one compiled operation", "`tf.reshape` and `tf.transpose`"),
    "predictor": ("estimators of `tf.contrib.learn`", "`tf.contrib.predictor.from_saved_model`"),
    "proto": ("compiled operations on messages", "the messages' classes in `tf.py_func`"),
    "quantization": ("all operation types, by a mistaken import", "`tf.quantization` and `tf.raw_ops`"),
    "quantize": ("rewrites graphs for TensorFlow Lite", "`tf.quantization.fake_quant_with_min_max_vars`"),
    "receptive_field": ("analyses graphs of convolutions", "the receptive fields' formula"),
    "recurrent": ("recurrent networks of functions", "`tf.nn.dynamic_rnn`"),
    "reduce_slice_ops": ("compiled operations", "`tf.math.segment_sum` of gathered rows"),
    "remote_fused_graph": ("runs on Hexagon processors", "the model's vendor tools"),
    "resampler": ("one compiled operation", "`tf.gather_nd` at four neighbours"),
    "rpc": ("calls services by compiled operations", "grpcio in `tf.py_func`"),
    "saved_model": ("models of Keras 2", "`tf.keras.Model.save` and `export`"),
    "session_bundle": ("the format before SavedModel", "`tf.saved_model`"),
    "slim": ("earlier names", "`tf.layers`, `tf.losses` and `tf.metrics`"),
    "solvers": ("iterative solvers", "`tf.linalg.solve`, or `scipy.sparse.linalg` in `tf.py_func`"),
    "specs": ("a language of layers", "`tf.layers`"),
    "stat_summarizer": ("statistics of TensorFlow's executor", "`tf.RunMetadata` with `Timeline`"),
    "summary": ("writers for values at once", "`tf.summary`"),
    "tensor_forest": ("trains trees in compiled operations", "scikit-learn's random forests"),
    "tensorboard": ("settings of a plugin", "`projector_config.pbtxt`, which TensorBoard reads"),
    "tensorrt": ("compiles for GPUs with TensorRT; here XLA does", "the exported model with TensorRT's tools"),
    "testing": ("assertions on event files", "`tf.train.summary_iterator`"),
    "text": ("skip-grams in compiled operations", "`tf.data.Dataset.from_generator`"),
    "tfprof": ("an earlier name", "`tf.profiler`"),
    "timeseries": ("a library of its own within contrib", "statsmodels, or `tf.nn.dynamic_rnn`"),
    "tpu": ("TPUs: use JAX directly, without parameter servers", "JAX"),
    "training": ("queues that `tf.data` replaced", "`tf.data` and `tf.train`"),
    "util": ("lists of operation types", "`graph_def.node`"),
}
"""For packages of ``tf.contrib`` that are missing, or lack names: the reason, and the replacement."""
