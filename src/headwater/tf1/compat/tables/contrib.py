"""The names of ``tf.contrib``, and of the examples shipped with TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.tf1.compat.names import Area

_LAYERS: Final = {
    "headwater.tf1.variables.regularizers": """
        apply_regularization l1_l2_regularizer l1_regularizer l2_regularizer sum_regularizer""",
    "headwater.tf1.contrib.slim.layers": """
        bias_add conv1d=convolution1d conv2d=convolution2d conv2d_transpose=convolution2d_transpose
        conv3d=convolution3d conv3d_transpose=convolution3d_transpose convolution=convolution_layer
        convolution1d convolution2d convolution2d_transpose convolution3d convolution3d_transpose elu
        embed_sequence fully_connected linear relu relu6 separable_conv2d=separable_convolution2d
        separable_convolution2d""",
    "headwater.tf1.contrib.slim.normalization": "batch_norm group_norm instance_norm layer_norm unit_norm",
    "headwater.tf1.contrib.slim.images": """
        conv2d_in_plane=convolution2d_in_plane convolution2d_in_plane images_to_sequence maxout
        sequence_to_images spatial_softmax""",
    "headwater.tf1.contrib.slim.embeddings": "bow_encoder dense_to_sparse embedding_lookup_unique",
    "headwater.tf1.variables.embedding": "safe_embedding_lookup_sparse",
    "headwater.tf1.contrib.slim.plain": """
        avg_pool2d avg_pool3d dropout flatten max_pool2d max_pool3d one_hot_encoding repeat softmax stack""",
    "headwater.tf1.contrib.slim.initializers": """
        variance_scaling_initializer xavier_initializer xavier_initializer_conv2d=xavier_initializer""",
    "headwater.tf1.feature_columns.old": """
        bucketized_column create_feature_spec_for_parsing crossed_column embedding_column one_hot_column
        real_valued_column sparse_column_with_hash_bucket sparse_column_with_integerized_feature
        sparse_column_with_keys""",
    "headwater.tf1.feature_columns.old_inputs": "input_from_feature_columns weighted_sum_from_feature_columns",
    "headwater.tf1.training.train_ops": """
        OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES optimize_loss summarize_activation summarize_activations
        summarize_collection summarize_tensor summarize_tensors""",
}
_VARIABLES: Final = {
    "headwater.tf1.contrib.slim.arg_scope": """
        add_arg_scope arg_scope arg_scoped_arguments current_arg_scope has_arg_scope""",
    "headwater.tf1.contrib.slim.variables": """
        add_model_variable assign_from_values assign_from_values_fn filter_variables get_local_variables
        get_model_variables get_trainable_variables get_unique_variable get_variable_full_name get_variables
        get_variables_by_name get_variables_by_suffix get_variables_to_restore global_variable local_variable
        model_variable variable""",
    "headwater.tf1.training.training_util": """
        assert_global_step create_global_step get_global_step get_or_create_global_step""",
    "headwater.tf1.training.warm_start": "assign_from_checkpoint assign_from_checkpoint_fn",
}

CONTRIB: Final[Mapping[str, Area]] = {
    "tf.contrib": Area(
        "``tf.contrib``: its most used functions.",
        modules={
            "headwater.tf1.compat.tf.contrib": """
                cluster_resolver crf cudnn_rnn data deprecated distribute distributions eager estimator
                factorization feature_column framework image layers learn legacy_seq2seq nn opt predictor rnn
                seq2seq signal slim sparsemax staging stateless tfprof training util""",
            "headwater.tf1.compat": "lookup=contrib_lookup losses=slim_losses",
            "headwater.tf1.contrib.metrics": "metrics=names",
            "headwater.tf1.compat.tf": "tpu=estimator_tpu",
        },
    ),
    "tf.contrib.cluster_resolver": Area(
        "``tf.contrib.cluster_resolver``: sources of the cluster specification.",
        names={
            "headwater.cluster.resolvers": """
                ClusterResolver GCEClusterResolver KubernetesClusterResolver SimpleClusterResolver SlurmClusterResolver
                TFConfigClusterResolver UnionClusterResolver"""
        },
    ),
    "tf.contrib.crf": Area(
        "``tf.contrib.crf``: conditional random fields over sequences of tags.",
        names={
            "headwater.tf1.contrib.crf.cells": "CrfDecodeBackwardRnnCell CrfDecodeForwardRnnCell CrfForwardRnnCell",
            "headwater.tf1.contrib.crf.scores": """
                crf_binary_score crf_decode crf_log_likelihood crf_log_norm crf_multitag_sequence_score
                crf_sequence_score crf_unary_score viterbi_decode""",
        },
    ),
    "tf.contrib.cudnn_rnn": Area(
        "``tf.contrib.cudnn_rnn``: recurrent networks with the parameters of cuDNN.",
        names={
            "headwater.tf1.contrib.cudnn_rnn.cells": "CudnnCompatibleGRUCell CudnnCompatibleLSTMCell",
            "headwater.tf1.contrib.cudnn_rnn.converters": """
                CudnnParamsFormatConverterGRU CudnnParamsFormatConverterLSTM CudnnParamsFormatConverterRelu
                CudnnParamsFormatConverterTanh""",
            "headwater.tf1.contrib.cudnn_rnn.layers": "CudnnGRU CudnnLSTM CudnnRNNRelu CudnnRNNTanh",
            "headwater.tf1.contrib.cudnn_rnn.saveables": """
                CudnnGRUSaveable CudnnLSTMSaveable CudnnRNNReluSaveable CudnnRNNTanhSaveable""",
        },
    ),
    "tf.contrib.data": Area(
        "``tf.contrib.data``: input pipelines under older names.",
        names={
            "headwater.tf1.input.dataset": "Counter=counter get_single_element",
            "headwater.tf1.input.dataset_groups": """
                Reducer bucket_by_sequence_length group_by_reducer group_by_window rejection_resample""",
            "headwater.tf1.input.file_datasets": """
                CsvDataset RandomDataset SqlDataset TFRecordWriter make_batched_features_dataset make_csv_dataset
                parse_example_dataset""",
            "headwater.tf1.input.iterators": "Iterator make_saveable_from_iterator",
            "headwater.tf1.input.optionals": "Optional get_next_as_optional",
            "headwater.tf1.input.old_dataset": "Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset",
            "headwater.data.experimental": """
                batch_and_drop_remainder choose_from_datasets copy_to_device dense_to_sparse_batch enumerate_dataset
                ignore_errors map_and_batch padded_batch_and_drop_remainder parallel_interleave prefetch_to_device
                sample_from_datasets scan shuffle_and_repeat sloppy_interleave=parallel_interleave unbatch unique""",
            "headwater.data.prefetch": "AUTOTUNE",
        },
    ),
    "tf.contrib.deprecated": Area(
        "``tf.contrib.deprecated``: summaries as before TensorFlow 1.0.",
        names={
            "headwater.tf1.compat.old_summaries": """
                audio_summary histogram_summary image_summary merge_all_summaries merge_summary scalar_summary"""
        },
    ),
    "tf.contrib.distribute": Area(
        "``tf.contrib.distribute``: strategies with older names and arguments.",
        names={
            "headwater.keras.old_strategies": "CollectiveAllReduceStrategy MirroredStrategy",
            "headwater.graph.server.standard_server": "run_standard_tensorflow_server",
            "headwater.tf1.training.estimator.run_config": "DistributeConfig",
            "headwater.keras.strategy": """
                DistributionStrategy=Strategy OneDeviceStrategy ReplicaContext get_distribution_strategy=get_strategy
                get_replica_context get_strategy has_distribution_strategy=has_strategy has_strategy
                in_cross_replica_context""",
            "headwater.keras.mirrored.settings": "CrossDeviceOps",
        },
    ),
    "tf.contrib.distributions": Area(
        "``tf.contrib.distributions``: probability distributions, more than those of ``tf.distributions``.",
        names={
            "headwater.tf1.functional.distributions": """
                Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential
                FULLY_REPARAMETERIZED Gamma Laplace Multinomial NOT_REPARAMETERIZED Normal RegisterKL
                ReparameterizationType StudentT Uniform kl_divergence""",
            "headwater.tf1.contrib.distributions.combined": """
                Independent Mixture MixtureSameFamily softplus_inverse""",
            "headwater.tf1.contrib.distributions.normal_vectors": """
                MultivariateNormalDiag MultivariateNormalDiagWithSoftplusScale MultivariateNormalFullCovariance
                MultivariateNormalTriL NormalWithSoftplusScale""",
            "headwater.tf1.contrib.distributions.relaxed": """
                Chi2 Deterministic ExpRelaxedOneHotCategorical Logistic OneHotCategorical Poisson RelaxedBernoulli
                RelaxedOneHotCategorical""",
        },
    ),
    "tf.contrib.eager": Area(
        "``tf.contrib.eager``: functions that graph programs use, too.",
        names={
            "headwater.data.spec": "TensorSpec",
            "headwater.tf1.compat.switches": "enable_eager_execution executing_eagerly in_eager_mode=executing_eagerly",
            "headwater.tf1.functional.gradient_tape": "GradientTape",
            "headwater.tf1.functional.gradients": "custom_gradient",
            "headwater.tf1.functional.graph_functions": "defun=function function",
            "headwater.tf1.functional.py_functions": "py_func=py_function",
            "headwater.tf1.training.object_checkpoints": "Checkpoint",
            "headwater.tf1.variables.template": "make_template",
            "headwater.tf1.variables.variables": "Variable",
        },
    ),
    "tf.contrib.estimator": Area(
        "``tf.contrib.estimator``: heads of estimators, and wrappers of estimators and optimizers.",
        names={
            "headwater.tf1.contrib.estimator.heads": """
                binary_classification_head logistic_regression_head multi_class_head multi_head multi_label_head
                poisson_regression_head regression_head""",
            "headwater.tf1.contrib.estimator.wrappers": "clip_gradients_by_norm forward_features",
            "headwater.tf1.training.estimator.canned": "dnn_logit_fn_builder linear_logit_fn_builder",
            "headwater.tf1.training.estimator.export": "build_raw_supervised_input_receiver_fn",
            "headwater.tf1.training.estimator.headed": "add_metrics call_logit_fn",
        },
    ),
    "tf.contrib.factorization": Area(
        "``tf.contrib.factorization``: clusters of points by k-means.",
        names={
            "headwater.tf1.contrib.factorization.clustering": """
                COSINE_DISTANCE KMEANS_PLUS_PLUS_INIT KMeans RANDOM_INIT
                SQUARED_EUCLIDEAN_DISTANCE""",
            "headwater.tf1.contrib.factorization.kmeans": "KMeansClustering",
        },
    ),
    "tf.contrib.feature_column": Area(
        "``tf.contrib.feature_column``: feature columns of sequences, and their input layer.",
        names={
            "headwater.tf1.feature_columns.sequences": """
                sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity
                sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list
                sequence_input_layer sequence_numeric_column"""
        },
    ),
    "tf.contrib.framework": Area(
        "``tf.contrib.framework``: settings by scope, variables, checkpoints, and names that moved to ``tf``.",
        names={
            **_VARIABLES,
            "headwater.tf1.contrib.framework.functions": """
                VariableDeviceChooser assert_or_get_global_step get_name_scope get_placeholders prepend_name_scope
                reduce_sum_n strip_name_scope""",
            "headwater.tf1.compat.contrib_framework": """
                init_from_checkpoint list_variables load_checkpoint load_variable py_func smart_cond""",
            "headwater.data.spec": "TensorSpec",
            "headwater.tf1.functional.default_graph": "is_tensor",
            "headwater.tf1.functional.checks": "assert_same_float_dtype assert_scalar",
            "headwater.tf1.functional.conditions": "smart_constant_value",
            "headwater.tf1.variables.orthogonal_convolutions": """
                convolutional_delta_orthogonal=ConvolutionDeltaOrthogonal
                convolutional_orthogonal_1d=ConvolutionOrthogonal1D
                convolutional_orthogonal_2d=ConvolutionOrthogonal2D
                convolutional_orthogonal_3d=ConvolutionOrthogonal3D""",
            "headwater.tf1.functional.searching": "argsort sort",
            "headwater.tf1.functional.sparse": "convert_to_tensor_or_sparse_tensor",
        },
    ),
    "tf.contrib.image": Area(
        "``tf.contrib.image``: geometric transformations of images.",
        names={
            "headwater.tf1.contrib.image.transforms": """
                angles_to_projective_transforms compose_transforms flat_transforms_to_matrices
                matrices_to_flat_transforms rotate transform translate translations_to_projective_transforms"""
        },
    ),
    "tf.contrib.layers": Area(
        "``tf.contrib.layers``: layers as functions, their initial values, regularizers, training operations.",
        names=_LAYERS,
        modules={"headwater.tf1.contrib.slim": "utils"},
    ),
    "tf.contrib.learn": Area(
        "``tf.contrib.learn``: estimators and experiments before ``tf.estimator``.",
        names={
            "headwater.tf1.training.estimator.learn": """
                Experiment ModeKeys=LearnModeKeys RunConfig=LearnRunConfig infer_real_valued_columns_from_input run""",
            "headwater.tf1.contrib.learn.models": """
                DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor LinearClassifier
                LinearRegressor SKCompat""",
            "headwater.tf1.training.estimator.learn_estimator": """
                Estimator=LearnEstimator InputFnOps ModelFnOps NotFittedError build_parsing_serving_input_fn""",
            "headwater.tf1.training.estimator.metric_spec": "MetricSpec",
            "headwater.tf1.training.estimator.run_config": "TaskType",
        },
        modules={
            "headwater.tf1.compat.tf.contrib.learn": "monitors",
            "headwater.tf1.training.estimator": "learn_runner=learn",
            "headwater.tf1.contrib.learn": "preprocessing",
        },
    ),
    "tf.contrib.learn.monitors": Area(
        "``tf.contrib.learn.monitors``: callbacks of estimators, older than hooks.",
        names={
            "headwater.tf1.training.basic_session_run_hooks": "NanLossDuringTrainingError",
            "headwater.tf1.training.estimator.monitors": """
                BaseMonitor CaptureVariable CheckpointSaver EveryN LoggingTrainable NanLoss PrintTensor
                RunHookAdapterForMonitors StepCounter StopAtStep SummarySaver ValidationMonitor get_default_monitors
                replace_monitors_with_hooks""",
        },
    ),
    "tf.contrib.legacy_seq2seq": Area(
        "``tf.contrib.legacy_seq2seq``: sequence-to-sequence models unrolled in the graph.",
        names={
            "headwater.tf1.contrib.legacy_seq2seq.decoders": """
                attention_decoder embedding_attention_decoder embedding_rnn_decoder rnn_decoder""",
            "headwater.tf1.contrib.legacy_seq2seq.losses": """
                model_with_buckets sequence_loss sequence_loss_by_example""",
            "headwater.tf1.contrib.legacy_seq2seq.models": """
                basic_rnn_seq2seq embedding_attention_seq2seq embedding_rnn_seq2seq embedding_tied_rnn_seq2seq
                one2many_rnn_seq2seq tied_rnn_seq2seq""",
        },
    ),
    "tf.contrib.nn": Area(
        "``tf.contrib.nn``: dropout for self-normalising networks, and losses with other arguments.",
        names={
            "headwater.tf1.contrib.nn.functions": """
                alpha_dropout deprecated_flipped_sigmoid_cross_entropy_with_logits
                deprecated_flipped_softmax_cross_entropy_with_logits
                deprecated_flipped_sparse_softmax_cross_entropy_with_logits nth_element sampled_sparse_softmax_loss
                scaled_softplus""",
            "headwater.tf1.functional.transposed": "conv1d_transpose",
        },
    ),
    "tf.contrib.opt": Area(
        "``tf.contrib.opt``: further optimizers, and optimizers that wrap others.",
        names={
            "headwater.tf1.contrib.opt.adam": """
                AdaMaxOptimizer AdamGSOptimizer LazyAdamGSOptimizer LazyAdamOptimizer NadamOptimizer""",
            "headwater.tf1.contrib.opt.agn": "AGNCustomGetter AGNOptimizer",
            "headwater.tf1.contrib.opt.elastic_average": "ElasticAverageCustomGetter ElasticAverageOptimizer",
            "headwater.tf1.contrib.opt.external": "ExternalOptimizerInterface ScipyOptimizerInterface",
            "headwater.tf1.contrib.opt.ggt": "GGTOptimizer",
            "headwater.tf1.contrib.opt.model_average": "ModelAverageCustomGetter ModelAverageOptimizer",
            "headwater.tf1.contrib.opt.scaled": "LARSOptimizer RegAdagradOptimizer",
            "headwater.tf1.contrib.opt.shampoo": "ShampooOptimizer",
            "headwater.tf1.contrib.opt.signs": "AddSignOptimizer PowerSignOptimizer",
            "headwater.tf1.contrib.opt.weight_decay": """
                AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer extend_with_decoupled_weight_decay""",
            "headwater.tf1.contrib.opt.wrappers": """
                DropStaleGradientOptimizer MovingAverageOptimizer MultitaskOptimizerWrapper VariableClippingOptimizer
                clip_gradients_by_global_norm""",
        },
    ),
    "tf.contrib.predictor": Area(
        "``tf.contrib.predictor``: functions around exported models and estimators.",
        names={"headwater.tf1.contrib.predictor.predictors": "from_estimator from_saved_model"},
    ),
    "tf.contrib.rnn": Area(
        "``tf.contrib.rnn``: recurrent networks, under the names of 1.0 and later.",
        names={
            "headwater.tf1.rnn.cells": "BasicRNNCell GRUCell LayerRNNCell=LayerCell RNNCell",
            "headwater.tf1.rnn.lstm": "BasicLSTMCell LSTMBlockCell LSTMCell LSTMStateTuple",
            "headwater.tf1.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
            "headwater.tf1.rnn.networks": "static_bidirectional_rnn static_rnn static_state_saving_rnn",
            "headwater.tf1.contrib.rnn.convolutional": "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell",
            "headwater.tf1.contrib.rnn.fused": """
                FusedRNNCell FusedRNNCellAdaptor GRUBlockCell GRUBlockCellV2 LSTMBlockFusedCell LSTMBlockWrapper
                TimeReversedFusedRNN""",
            "headwater.tf1.contrib.rnn.gated": "IntersectionRNNCell NASCell SRUCell UGRNNCell",
            "headwater.tf1.contrib.rnn.grid": "BidirectionalGridLSTMCell GridLSTMCell TimeFreqLSTMCell",
            "headwater.tf1.contrib.rnn.independent": "IndRNNCell IndyGRUCell IndyLSTMCell",
            "headwater.tf1.contrib.rnn.lstms": """
                CoupledInputForgetGateLSTMCell GLSTMCell LayerNormBasicLSTMCell PhasedLSTMCell""",
            "headwater.tf1.contrib.rnn.wrapped": "AttentionCellWrapper CompiledWrapper HighwayWrapper",
            "headwater.tf1.contrib.rnn.projections": """
                EmbeddingWrapper InputProjectionWrapper OutputProjectionWrapper""",
            "headwater.tf1.contrib.rnn.stacks": """
                best_effort_input_batch_size stack_bidirectional_dynamic_rnn stack_bidirectional_rnn
                transpose_batch_time""",
        },
        modules={"headwater.tf1.compat.tf": "rnn_cell"},
    ),
    "tf.contrib.seq2seq": Area(
        "``tf.contrib.seq2seq``: attention, decoders and beam search.",
        names={
            "headwater.tf1.contrib.seq2seq.mechanisms": """
                AttentionMechanism BahdanauAttention BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention
                hardmax monotonic_attention safe_cumprod""",
            "headwater.tf1.contrib.seq2seq.wrapper": "AttentionWrapper AttentionWrapperState",
            "headwater.tf1.contrib.seq2seq.decoding": "Decoder dynamic_decode",
            "headwater.tf1.contrib.seq2seq.basic": "BasicDecoder BasicDecoderOutput",
            "headwater.tf1.contrib.seq2seq.helpers": """
                CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper
                ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper TrainingHelper""",
            "headwater.tf1.contrib.seq2seq.beams": """
                BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput
                tile_batch""",
            "headwater.tf1.contrib.seq2seq.trees": "gather_tree",
            "headwater.tf1.contrib.seq2seq.losses": "sequence_loss",
        },
    ),
    "tf.contrib.signal": Area(
        "``tf.contrib.signal``: an earlier name of ``tf.signal``.",
        names={
            "headwater.tf1.functional.signal": """
                frame hamming_window hann_window inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix
                mfccs_from_log_mel_spectrograms overlap_and_add stft"""
        },
    ),
    "tf.contrib.slim": Area(
        "``tf.contrib.slim``: layers as functions, with settings by scope.",
        names={**_LAYERS, **_VARIABLES},
        modules={
            "headwater.tf1.compat.tf.contrib": "layers",
            "headwater.tf1.compat.tf.contrib.slim": "learning nets",
            "headwater.tf1.compat": "losses=slim_losses",
            "headwater.tf1.contrib.metrics": "metrics=names",
            "headwater.tf1.contrib.slim": "utils",
        },
    ),
    "tf.contrib.slim.nets": Area(
        "``tf.contrib.slim.nets``: networks for images.",
        modules={"headwater.tf1.contrib.slim.nets": "resnet_utils resnet_v1 resnet_v2 vgg"},
    ),
    "tf.contrib.slim.learning": Area(
        "``tf.contrib.slim.learning``: a training operation and a loop around it.",
        names={
            "headwater.tf1.training.train_ops": """
                add_gradients_summaries clip_gradient_norms create_train_op multiply_gradients""",
            "headwater.tf1.training.slim_training": "train train_step",
        },
    ),
    "tf.contrib.sparsemax": Area(
        "``tf.contrib.sparsemax``: a softmax that sets small probabilities to 0.",
        names={"headwater.tf1.contrib.sparsemax.projection": "sparsemax sparsemax_loss"},
    ),
    "tf.contrib.staging": Area(
        "``tf.contrib.staging``: buffers between parts of a pipeline.",
        names={"headwater.tf1.input.staging": "StagingArea"},
    ),
    "tf.contrib.stateless": Area(
        "``tf.contrib.stateless``: random numbers that depend on a seed tensor only.",
        names={
            "headwater.tf1.functional.random": """
                stateless_multinomial stateless_random_normal stateless_random_uniform stateless_truncated_normal"""
        },
    ),
    "tf.contrib.tfprof": Area(
        "``tf.contrib.tfprof``: size of a model.", modules={"headwater.tf1.training": "model_analyzer=model_analysis"}
    ),
    "tf.contrib.training": Area(
        "``tf.contrib.training``: hyperparameters, training operations and placement of variables.",
        names={
            "headwater.tf1.contrib.training.hparams": "HParams parse_values",
            "headwater.tf1.training.train_ops": """
                add_gradients_summaries=add_training_gradients_summaries clip_gradient_norms multiply_gradients""",
            "headwater.tf1.training.loops": "checkpoints_iterator wait_for_new_checkpoint",
            "headwater.tf1.training.estimator.evaluation": "StopAfterNEvalsHook get_or_create_eval_step",
            "headwater.tf1.contrib.training.evaluation": "SummaryAtEndHook evaluate_once evaluate_repeatedly",
            "headwater.tf1.contrib.training.loops": "clip_gradient_norms_fn create_train_op train",
            "headwater.tf1.contrib.training.sampling": """
                rejection_sample resample_at_rate stratified_sample weighted_resample""",
            "headwater.tf1.training.device_setter": "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
            "headwater.tf1.training.buckets": "bucket bucket_by_sequence_length",
            "headwater.tf1.training.training_util": "get_or_create_global_step",
        },
    ),
    "tf.contrib.util": Area(
        "``tf.contrib.util``: constants of tensors, and their messages.",
        names={
            "headwater.data.io.tensor_proto": "make_ndarray make_tensor_proto",
            "headwater.graph.constants": "constant_value=get_static_value",
        },
    ),
    "tf.examples": Area(
        "``tf.examples``: modules of the tutorials.", modules={"headwater.tf1.compat.tf.examples": "tutorials"}
    ),
    "tf.examples.tutorials": Area(
        "``tf.examples.tutorials``: data and networks of the tutorials.",
        modules={"headwater.tf1.compat.tf.examples.tutorials": "mnist"},
    ),
    "tf.examples.tutorials.mnist": Area(
        "``tf.examples.tutorials.mnist``: handwritten digits, and a network for them.",
        modules={"headwater.data": "input_data=mnist_data", "headwater.tf1.training": "mnist=mnist_model"},
    ),
}
