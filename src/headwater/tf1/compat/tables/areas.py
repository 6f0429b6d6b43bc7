"""The names of ``tf.train``, ``tf.nn`` and the other areas of ``tf``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headwater.tf1.compat.names import Area

AREAS: Final[Mapping[str, Area]] = {
    "tf.audio": Area("``tf.audio``: audio files.", names={"headwater.tf1.functional.audio": "decode_wav encode_wav"}),
    "tf.autograph": Area(
        "``tf.autograph``: conversion of Python control flow to graphs.",
        names={"headwater.tf1.functional.autograph.public": "set_verbosity to_code to_graph trace"},
        modules={"headwater.tf1.compat.tf": "experimental=autograph_experimental"},
    ),
    "tf.autograph_experimental": Area(
        "``tf.autograph.experimental``: options of the conversion.",
        names={"headwater.tf1.functional.autograph.public": "Feature do_not_convert set_loop_options"},
    ),
    "tf.bitwise": Area(
        "``tf.bitwise``: bitwise operations on integers.",
        names={"headwater.tf1.functional.math": "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"},
    ),
    "tf.cluster_resolver": Area(
        "``tf.distribute.cluster_resolver``: sources of the cluster specification.",
        names={
            "headwater.cluster.resolvers": """
                ClusterResolver GCEClusterResolver KubernetesClusterResolver SimpleClusterResolver SlurmClusterResolver
                TFConfigClusterResolver UnionResolver=UnionClusterResolver"""
        },
    ),
    "tf.compat": Area(
        "``tf.compat``: conversions of text and bytes, and versions of TensorFlow's API.",
        names={
            "headwater.tf1.compat.text": """
                as_bytes as_str as_str_any as_text bytes_or_text_types complex_types forward_compatibility_horizon
                forward_compatible integral_types path_to_str real_types""",
            "headwater.shapes": "dimension_at_index dimension_value",
        },
        modules={"headwater.tf1.compat": "v1=tf"},
    ),
    "tf.config": Area(
        "``tf.config``: the devices of this process and their settings.",
        names={
            "headwater.graph.runtime.device_settings": """
                LogicalDevice PhysicalDevice get_visible_devices list_logical_devices list_physical_devices
                set_visible_devices""",
            "headwater.graph.session.default_config": """
                experimental_list_devices=list_devices get_soft_device_placement set_soft_device_placement""",
        },
        modules={
            "headwater.tf1.compat.tf": """
                experimental=config_experimental optimizer=config_optimizer threading=config_threading"""
        },
    ),
    "tf.config_experimental": Area(
        "``tf.config.experimental``: older names of functions of ``tf.config``, and GPU memory settings.",
        names={
            "headwater.graph.runtime.device_settings": """
                VirtualDeviceConfiguration enable_tensor_float_32_execution get_memory_growth
                get_virtual_device_configuration get_visible_devices list_logical_devices list_physical_devices
                set_memory_growth set_virtual_device_configuration set_visible_devices
                tensor_float_32_execution_enabled""",
            "headwater.graph.session.default_config": """
                get_device_policy get_synchronous_execution set_device_policy set_synchronous_execution""",
        },
    ),
    "tf.config_threading": Area(
        "``tf.config.threading``: numbers of computing threads.",
        names={
            "headwater.graph.runtime.device_settings": """
                get_intra_op_parallelism_threads set_intra_op_parallelism_threads""",
            "headwater.graph.session.default_config": """
                get_inter_op_parallelism_threads set_inter_op_parallelism_threads""",
        },
    ),
    "tf.config_optimizer": Area(
        "``tf.config.optimizer``: compiler options.",
        names={
            "headwater.graph.session.default_config": """
                get_experimental_options get_jit set_experimental_options set_jit"""
        },
    ),
    "tf.data": Area(
        "``tf.data``: input pipelines.",
        names={
            "headwater.tf1.input.dataset": """
                Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset get_output_classes get_output_shapes
                get_output_types make_initializable_iterator make_one_shot_iterator""",
            "headwater.tf1.input.iterators": "Iterator",
            "headwater.data.node": "INFINITE_CARDINALITY=INFINITE UNKNOWN_CARDINALITY=UNKNOWN",
            "headwater.data.options": "Options",
            "headwater.tf1.input.specs": "DatasetSpec",
            "headwater.data.prefetch": "AUTOTUNE",
        },
        modules={"headwater.tf1.compat.tf.data": "experimental"},
    ),
    "tf.data.experimental": Area(
        "``tf.data.experimental``: further dataset transformations and options.",
        names={
            "headwater.tf1.input.dataset": "Counter=counter cardinality get_single_element",
            "headwater.tf1.input.dataset_groups": """
                Reducer bucket_by_sequence_length group_by_reducer group_by_window rejection_resample""",
            "headwater.tf1.input.file_datasets": """
                CsvDataset RandomDataset SqlDataset TFRecordWriter make_batched_features_dataset make_csv_dataset
                parse_example_dataset""",
            "headwater.tf1.input.optionals": """
                Optional OptionalStructure=OptionalSpec from_variant get_next_as_optional to_variant""",
            "headwater.tf1.input.iterators": "make_saveable_from_iterator",
            "headwater.data.experimental": """
                INFINITE_CARDINALITY UNKNOWN_CARDINALITY choose_from_datasets copy_to_device
                dense_to_sparse_batch enumerate_dataset ignore_errors map_and_batch
                map_and_batch_with_legacy_function=map_and_batch parallel_interleave prefetch_to_device
                sample_from_datasets scan shuffle_and_repeat take_while unbatch unique""",
            "headwater.tf1.input.specs": """
                DatasetStructure=DatasetSpec RaggedTensorStructure=ragged_tensor_structure
                SparseTensorStructure=sparse_tensor_structure Structure=TypeSpec
                TensorArrayStructure=tensor_array_structure TensorStructure=tensor_structure get_structure""",
            "headwater.data.options": """
                AutoShardPolicy DistributeOptions ExternalStatePolicy MapVectorizationOptions OptimizationOptions
                 ThreadingOptions""",
            "headwater.data.prefetch": "AUTOTUNE",
        },
    ),
    "tf.debugging": Area(
        "``tf.debugging``: assertions.",
        names={
            "headwater.tf1.functional.checks": """
                Assert assert_all_finite=verify_tensor_all_finite assert_equal assert_greater assert_greater_equal
                assert_integer assert_less assert_less_equal assert_near assert_negative assert_non_negative
                assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank
                assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_type check_numerics""",
            "headwater.tf1.functional.shape_checks": "assert_shapes",
            "headwater.graph.session.default_config": "get_log_device_placement set_log_device_placement",
            "headwater.tf1.functional.math": """
                is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing""",
        },
    ),
    "tf.distribute": Area(
        "``tf.distribute``: strategies for Keras models and custom training loops.",
        names={
            "headwater.keras.mirrored.strategy": "MirroredStrategy MultiWorkerMirroredStrategy",
            "headwater.keras.mirrored.settings": """
                CrossDeviceOps HierarchicalCopyAllReduce InputOptions InputReplicationMode NcclAllReduce
                ReductionToOneDevice RunOptions""",
            "headwater.keras.strategy": """
                InputContext OneDeviceStrategy ReplicaContext Strategy StrategyExtended
                experimental_set_strategy=set_strategy get_loss_reduction get_replica_context get_strategy
                has_strategy in_cross_replica_context""",
            "headwater.keras.parameter_server.strategy": "ParameterServerStrategy",
            "headwater.keras.mirrored.inputs": "DistributedDataset",
            "headwater.graph.server.server": "Server",
            "headwater.keras.values": "DistributedValues=PerReplica ReduceOp",
        },
        modules={
            "headwater.tf1.compat.tf": """
                cluster_resolver coordinator=distribute_coordinator experimental=distribute_experimental"""
        },
    ),
    "tf.distribute_coordinator": Area(
        "``tf.distribute.coordinator``: scheduling of functions on workers by one task.",
        names={
            "headwater.keras.coordinator.coordinator": """
                ClusterCoordinator PerWorkerValues=PerWorkerDataset RemoteValue"""
        },
    ),
    "tf.distribute_experimental": Area(
        "``tf.distribute.experimental``: older names of strategies, and their options.",
        names={
            "headwater.keras.mirrored.strategy": "MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy",
            "headwater.keras.mirrored.settings": """
                CollectiveCommunication=CommunicationImplementation CollectiveHints=CommunicationOptions
                CommunicationImplementation CommunicationOptions""",
            "headwater.keras.old_strategies": "CentralStorageStrategy",
            "headwater.keras.parameter_server.strategy": "ParameterServerStrategy",
        },
        modules={"headwater.tf1.compat.tf": "coordinator=distribute_coordinator partitioners=distribute_partitioners"},
    ),
    "tf.distribute_partitioners": Area(
        "``tf.distribute.experimental.partitioners``: partitioning of variables among parameter servers.",
        names={"headwater.ps.layout": "FixedShardsPartitioner MaxSizePartitioner MinSizePartitioner Partitioner"},
    ),
    "tf.distributions": Area(
        "``tf.distributions``: probability distributions.",
        names={
            "headwater.tf1.functional.distributions": """
                Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential
                FULLY_REPARAMETERIZED Gamma Laplace Multinomial NOT_REPARAMETERIZED Normal RegisterKL
                ReparameterizationType StudentT Uniform kl_divergence"""
        },
    ),
    "tf.dtypes": Area(
        "``tf.dtypes``: element types.",
        names={
            "headwater.dtypes": """
                DType as_dtype bfloat16 bool=bool_ complex128 complex64 double float16 float32 float64 half int16 int32
                int64 int8 qint16 qint32 qint8 quint16 quint8 resource string uint16 uint32
                uint64 uint8 variant QUANTIZED_DTYPES""",
            "headwater.tf1.functional.math": "cast complex saturate_cast",
            "headwater.tf1.functional.strings": "as_string",
        },
    ),
    "tf.errors": Area(
        "``tf.errors``: exception classes by error code.",
        names={
            "headwater.errors": """
                ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS
                DEADLINE_EXCEEDED DataLossError DeadlineExceededError FAILED_PRECONDITION FailedPreconditionError
                INTERNAL INVALID_ARGUMENT InternalError InvalidArgumentError NOT_FOUND NotFoundError OK OUT_OF_RANGE
                OpError OutOfRangeError OperatorNotAllowedInGraphError PERMISSION_DENIED PermissionDeniedError
                RESOURCE_EXHAUSTED ResourceExhaustedError UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN
                UnauthenticatedError UnavailableError UnimplementedError UnknownError error_code_from_exception_type
                exception_type_from_error_code"""
        },
    ),
    "tf.estimator": Area(
        "``tf.estimator``: estimators, which train, evaluate and export a model function.",
        names={
            "headwater.tf1.training.estimator.specs": "EstimatorSpec EvalSpec ModeKeys TrainSpec",
            "headwater.tf1.training.estimator.run_config": "RunConfig",
            "headwater.tf1.training.estimator.estimator": "Estimator",
            "headwater.tf1.training.estimator.warm_start_settings": "WarmStartSettings",
            "headwater.tf1.training.vocabularies": "VocabInfo",
            "headwater.tf1.training.estimator.canned": """
                DNNClassifier DNNLinearCombinedClassifier DNNLinearCombinedRegressor DNNRegressor LinearClassifier
                LinearRegressor""",
            "headwater.tf1.training.estimator.headed": """
                BaselineClassifier BaselineEstimator BaselineRegressor DNNEstimator DNNLinearCombinedEstimator
                LinearEstimator add_metrics""",
            "headwater.tf1.training.estimator.public_heads": """
                BinaryClassHead Head LogisticRegressionHead MultiClassHead PoissonRegressionHead RegressionHead""",
            "headwater.tf1.training.estimator.several_heads": "MultiHead MultiLabelHead",
            "headwater.tf1.training.estimator.train_and_evaluate": "train_and_evaluate",
            "headwater.tf1.training.estimator.example_specs": """
                classifier_parse_example_spec regressor_parse_example_spec""",
            "headwater.tf1.training.estimator.export": "BestExporter Exporter FinalExporter LatestExporter",
            "headwater.tf1.training.basic_session_run_hooks": """
                CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook
                LoggingTensorHook NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer
                StepCounterHook StopAtStepHook SummarySaverHook""",
            "headwater.tf1.training.session_run_hook": """
                SessionRunArgs SessionRunContext SessionRunHook SessionRunValues""",
        },
        modules={
            "headwater.tf1.compat.tf": """
                experimental=estimator_experimental export=estimator_export inputs=estimator_inputs
                tpu=estimator_tpu"""
        },
    ),
    "tf.estimator_tpu": Area(
        "``tf.estimator.tpu``: TPU estimators, which run without TPUs.",
        names={
            "headwater.tf1.training.estimator.tpu": """
                InputPipelineConfig RunConfig=TPURunConfig TPUConfig TPUEstimator TPUEstimatorSpec"""
        },
    ),
    "tf.estimator_experimental": Area(
        "``tf.estimator.experimental``: early stopping hooks.",
        names={
            "headwater.tf1.training.estimator.canned": "dnn_logit_fn_builder linear_logit_fn_builder",
            "headwater.tf1.training.estimator.export": "build_raw_supervised_input_receiver_fn",
            "headwater.tf1.training.estimator.headed": "call_logit_fn",
            "headwater.tf1.training.estimator.in_memory": "InMemoryEvaluatorHook",
            "headwater.tf1.training.estimator.early_stopping": """
                make_early_stopping_hook make_stop_at_checkpoint_step_hook stop_if_higher_hook stop_if_lower_hook
                stop_if_no_decrease_hook stop_if_no_increase_hook""",
        },
    ),
    "tf.estimator_export": Area(
        "``tf.estimator.export``: inputs and outputs of exported models.",
        names={
            "headwater.tf1.training.estimator.export": """
                ClassificationOutput ExportOutput PredictOutput RegressionOutput ServingInputReceiver
                TensorServingInputReceiver build_parsing_serving_input_receiver_fn
                build_raw_serving_input_receiver_fn"""
        },
    ),
    "tf.estimator_inputs": Area(
        "``tf.estimator.inputs``: input functions of arrays and data frames.",
        names={"headwater.tf1.training.estimator.inputs": "numpy_input_fn pandas_input_fn"},
    ),
    "tf.experimental": Area(
        "``tf.experimental``: settings of TensorFlow's runtime.",
        names={"headwater.tf1.compat.switches": "function_executor_type output_all_intermediates"},
    ),
    "tf.feature_column": Area(
        "``tf.feature_column``: conversion of features of examples to inputs of a model.",
        names={
            "headwater.tf1.feature_columns.categorical": """
                categorical_column_with_hash_bucket categorical_column_with_identity
                categorical_column_with_vocabulary_file categorical_column_with_vocabulary_list crossed_column
                weighted_categorical_column""",
            "headwater.tf1.feature_columns.dense": """
                bucketized_column embedding_column indicator_column input_layer linear_model make_parse_example_spec
                numeric_column shared_embedding_columns""",
            "headwater.tf1.feature_columns.sequences": """
                sequence_categorical_column_with_hash_bucket sequence_categorical_column_with_identity
                sequence_categorical_column_with_vocabulary_file sequence_categorical_column_with_vocabulary_list
                sequence_numeric_column""",
        },
    ),
    "tf.image": Area(
        "``tf.image``: images and their formats.",
        names={
            "headwater.tf1.functional.small_functions": "adjust_jpeg_quality extract_glimpse random_jpeg_quality",
            "headwater.tf1.functional.images": """
                adjust_brightness adjust_contrast adjust_hue adjust_saturation central_crop convert_image_dtype
                crop_to_bounding_box flip_left_right flip_up_down grayscale_to_rgb hsv_to_rgb pad_to_bounding_box
                per_image_standardization per_image_whitening=per_image_standardization random_brightness
                random_contrast random_flip_left_right random_flip_up_down random_hue random_saturation
                resize_image_with_crop_or_pad resize_with_crop_or_pad=resize_image_with_crop_or_pad rgb_to_grayscale
                rgb_to_hsv rot90 transpose=transpose_image transpose_image""",
            "headwater.tf1.functional.resizing": """
                ResizeMethod resize=resize_images resize_area resize_bicubic resize_bilinear resize_images
                resize_nearest_neighbor""",
            "headwater.tf1.functional.boxes": """
                crop_and_resize draw_bounding_boxes non_max_suppression non_max_suppression_overlaps
                combined_non_max_suppression non_max_suppression_padded non_max_suppression_with_scores
                sample_distorted_bounding_box""",
            "headwater.tf1.functional.image_quality": """
                adjust_gamma image_gradients psnr resize_image_with_pad rgb_to_yiq rgb_to_yuv sobel_edges ssim
                ssim_multiscale total_variation yiq_to_rgb yuv_to_rgb""",
            "headwater.tf1.functional.space_to_batch": "extract_image_patches extract_patches",
            "headwater.tf1.functional.random": "random_crop",
            "headwater.tf1.functional.image_files": """
                decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png
                extract_jpeg_shape is_jpeg""",
        },
    ),
    "tf.initializers": Area(
        "``tf.initializers``: initializers of variables.",
        names={
            "headwater.tf1.variables.initializers": """
                constant=Constant glorot_normal=GlorotNormal glorot_uniform=GlorotUniform he_normal he_uniform
                identity=Identity lecun_normal lecun_uniform ones=Ones orthogonal=Orthogonal random_normal=RandomNormal
                random_uniform=RandomUniform truncated_normal=TruncatedNormal uniform_unit_scaling=UniformUnitScaling
                variance_scaling=VarianceScaling zeros=Zeros""",
            "headwater.tf1.variables.variable_lists": """
                global_variables=global_variables_initializer local_variables=local_variables_initializer
                variables=variables_initializer""",
            "headwater.tf1.functional.control_flow": "tables_initializer",
        },
    ),
    "tf.io": Area(
        "``tf.io``: files, records and their formats.",
        names={
            "headwater.tf1.functional.small_functions": "decode_json_example",
            "headwater.tf1.input.messages": "decode_proto encode_proto",
            "headwater.tf1.input.readers": "matching_files read_file write_file",
            "headwater.tf1.input.sequences": """
                deserialize_many_sparse parse_sequence_example parse_single_sequence_example serialize_many_sparse
                serialize_sparse""",
            "headwater.tf1.input.parsing": """
                FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_compressed decode_csv
                parse_example parse_single_example parse_tensor serialize_tensor""",
            "headwater.tf1.functional.image_files": """
                decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png
                extract_jpeg_shape is_jpeg""",
            "headwater.tf1.input.queues": "PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
            "headwater.tf1.functional.strings": "decode_base64 decode_raw encode_base64",
            "headwater.data.io.tfrecord": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
            "headwater.tf1.training.input_producers": "match_filenames_once",
            "headwater.tf1.training.training_util": "write_graph",
        },
        modules={"headwater.tf1.compat": "gfile"},
    ),
    "tf.layers": Area(
        "``tf.layers``: layers as functions and classes.",
        names={
            "headwater.tf1.layers.base": "InputSpec Layer",
            "headwater.tf1.layers.core": "Dense Dropout Flatten dense dropout flatten",
            "headwater.tf1.layers.convolution": """
                Conv1D Conv2D Conv2DTranspose Conv3D Conv3DTranspose SeparableConv1D SeparableConv2D conv1d conv2d
                conv2d_transpose conv3d conv3d_transpose separable_conv1d separable_conv2d""",
            "headwater.tf1.layers.pooling": """
                AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D
                average_pooling1d average_pooling2d average_pooling3d max_pooling1d max_pooling2d max_pooling3d""",
            "headwater.tf1.layers.normalization": "BatchNormalization batch_normalization",
        },
        modules={"headwater.tf1.compat.tf.layers": "experimental"},
    ),
    "tf.layers.experimental": Area(
        "``tf.layers.experimental``: layers that keep their variables.",
        names={"headwater.tf1.layers.naming": "keras_style_scope set_keras_style"},
    ),
    "tf.linalg": Area(
        "``tf.linalg``: linear algebra.",
        names={
            "headwater.tf1.functional.linear_operators": """
                LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorCirculant
                LinearOperatorCirculant2D LinearOperatorCirculant3D LinearOperatorComposition LinearOperatorDiag
                LinearOperatorFullMatrix LinearOperatorHouseholder LinearOperatorIdentity LinearOperatorInversion
                LinearOperatorKronecker LinearOperatorLowRankUpdate LinearOperatorLowerTriangular
                LinearOperatorScaledIdentity LinearOperatorToeplitz LinearOperatorZeros""",
            "headwater.tf1.functional.factorisations": """
                cholesky cholesky_solve det=matrix_determinant eigh=self_adjoint_eig eigvalsh=self_adjoint_eigvals expm
                inv=matrix_inverse logdet qr slogdet solve=matrix_solve sqrtm=matrix_square_root
                svd triangular_solve=matrix_triangular_solve""",
            "headwater.tf1.functional.linalg": """
                adjoint band_part=matrix_band_part cross diag=matrix_diag diag_part=matrix_diag_part einsum eye matmul
                matvec norm set_diag=matrix_set_diag tensor_diag=diag tensor_diag_part=diag_part tensordot trace""",
            "headwater.tf1.functional.arrays": "matrix_transpose transpose=matrix_transpose",
            "headwater.tf1.functional.matrices": """
                logm lstsq=matrix_solve_ls lu matrix_rank normalize pinv tridiagonal_matmul tridiagonal_solve""",
            "headwater.tf1.functional.nn": "l2_normalize",
            "headwater.tf1.functional.clip": "global_norm",
        },
    ),
    "tf.lookup": Area(
        "``tf.lookup``: lookup tables.",
        names={
            "headwater.tf1.functional.table_initializers": """
                KeyValueTensorInitializer TextFileIndex TextFileInitializer""",
            "headwater.tf1.functional.tables": "StaticHashTable StaticVocabularyTable",
        },
        modules={"headwater.tf1.compat.tf": "experimental=lookup_experimental"},
    ),
    "tf.lookup_experimental": Area(
        "``tf.lookup.experimental``: further lookup tables.",
        names={"headwater.tf1.functional.dense_tables": "DenseHashTable"},
    ),
    "tf.losses": Area(
        "``tf.losses``: losses of models, weighted and collected.",
        names={
            "headwater.tf1.functional.weighted_losses": """
                Reduction absolute_difference add_loss compute_weighted_loss cosine_distance get_losses
                get_regularization_loss get_regularization_losses get_total_loss hinge_loss huber_loss log_loss
                mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy softmax_cross_entropy
                sparse_softmax_cross_entropy"""
        },
    ),
    "tf.manip": Area(
        "``tf.manip``: reshaping and reordering of tensors.",
        names={
            "headwater.tf1.functional.arrays": "reshape reverse roll tile",
            "headwater.tf1.functional.space_to_batch": "batch_to_space_nd space_to_batch_nd",
            "headwater.tf1.functional.indexing": "gather_nd scatter_nd",
        },
    ),
    "tf.math": Area(
        "``tf.math``: mathematical functions.",
        names={
            "headwater.tf1.functional.special": """
                bessel_i0 bessel_i1 cumulative_logsumexp nextafter
                bessel_i0e bessel_i1e betainc digamma erf erfc igamma igammac lbeta lgamma polygamma polyval zeta""",
            "headwater.tf1.functional.math": """
                abs accumulate_n acos acosh add add_n angle asin asinh atan atan2 atanh ceil conj cos cosh divide
                divide_no_nan=div_no_nan equal exp expm1 floor floordiv floormod greater greater_equal imag is_finite
                is_inf is_nan is_non_decreasing is_strictly_increasing less less_equal log log1p log_sigmoid logical_and
                logical_not logical_or logical_xor maximum minimum mod=floormod multiply multiply_no_nan negative
                not_equal pow real reciprocal reciprocal_no_nan rint round rsqrt scalar_mul sigmoid sign sin sinh sqrt
                square squared_difference subtract tan tanh truediv xdivy xlogy""",
            "headwater.tf1.functional.reductions": """
                argmax argmin bincount count_nonzero cumprod cumsum reduce_all reduce_any reduce_euclidean_norm
                reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance
                segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max unsorted_segment_mean
                unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum""",
            "headwater.tf1.functional.losses": "confusion_matrix",
            "headwater.tf1.functional.grids": "invert_permutation",
            "headwater.tf1.functional.nn": """
                in_top_k l2_normalize log_softmax softmax softplus softsign top_k zero_fraction""",
        },
    ),
    "tf.metrics": Area(
        "``tf.metrics``: metrics accumulated over steps.",
        names={
            "headwater.tf1.metrics.means": """
                accuracy mean mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy
                mean_relative_error mean_squared_error mean_tensor percentage_below root_mean_squared_error""",
            "headwater.tf1.metrics.counts": """
                false_negatives false_positives precision recall true_negatives true_positives""",
            "headwater.tf1.metrics.thresholds": """
                auc false_negatives_at_thresholds false_positives_at_thresholds precision_at_thresholds
                recall_at_thresholds sensitivity_at_specificity specificity_at_sensitivity true_negatives_at_thresholds
                true_positives_at_thresholds""",
            "headwater.tf1.metrics.ranking": """
                average_precision_at_k
                precision_at_k precision_at_top_k recall_at_k recall_at_top_k sparse_precision_at_k=precision_at_k
                sparse_average_precision_at_k=average_precision_at_k""",
        },
    ),
    "tf.nn": Area(
        "``tf.nn``: operations of neural networks.",
        names={
            "headwater.tf1.functional.small_functions": """
                compute_average_loss ctc_unique_labels fractional_avg_pool fractional_max_pool
                scale_regularization_loss with_space_to_batch""",
            "headwater.tf1.functional.nn": """
                batch_norm_with_global_normalization batch_normalization bias_add crelu dropout elu fused_batch_norm
                in_top_k l2_loss l2_normalize leaky_relu
                local_response_normalization log_softmax lrn=local_response_normalization moments normalize_moments relu
                relu6 relu_layer selu softmax softplus softsign sufficient_statistics swish top_k weighted_moments
                xw_plus_b zero_fraction""",
            "headwater.tf1.functional.losses": """
                log_poisson_loss softmax_cross_entropy_with_logits_v2 weighted_cross_entropy_with_logits""",
            "headwater.tf1.compat.old": """
                nce_loss sampled_softmax_loss sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits
                sparse_softmax_cross_entropy_with_logits""",
            "headwater.tf1.functional.convolution": """
                conv3d_backprop_filter conv3d_backprop_filter_v2=conv3d_backprop_filter
                avg_pool avg_pool2d=avg_pool avg_pool3d avg_pool_v2 conv1d conv2d conv2d_backprop_filter
                conv2d_backprop_input conv2d_transpose conv3d conv3d_transpose depthwise_conv2d
                depthwise_conv2d_native max_pool max_pool2d max_pool3d max_pool_v2 separable_conv2d""",
            "headwater.tf1.functional.space_to_batch": """
                atrous_conv2d avg_pool1d convolution=convolution_ depth_to_space max_pool1d pool space_to_batch
                space_to_depth""",
            "headwater.tf1.functional.transposed": """
                atrous_conv2d_transpose conv1d_transpose conv_transpose
                depthwise_conv2d_backprop_filter=depthwise_conv2d_native_backprop_filter
                depthwise_conv2d_backprop_input=depthwise_conv2d_native_backprop_input
                depthwise_conv2d_native_backprop_filter depthwise_conv2d_native_backprop_input dilation2d erosion2d
                max_pool_with_argmax""",
            "headwater.tf1.functional.ctc": """
                collapse_repeated ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder ctc_loss
                ctc_loss_v2""",
            "headwater.tf1.functional.candidates": """
                all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler
                learned_unigram_candidate_sampler
                log_uniform_candidate_sampler uniform_candidate_sampler""",
            "headwater.tf1.variables.embedding": """
                embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse""",
            "headwater.tf1.functional.math": "log_sigmoid sigmoid tanh",
            "headwater.tf1.functional.quantized": """
                quantized_avg_pool quantized_conv2d quantized_max_pool quantized_relu_x""",
            "headwater.tf1.rnn.networks": """
                bidirectional_dynamic_rnn bidirectional_rnn=static_bidirectional_rnn dynamic_rnn rnn=static_rnn
                static_bidirectional_rnn static_rnn static_state_saving_rnn""",
            "headwater.tf1.rnn.raw": "raw_rnn",
        },
        modules={"headwater.tf1.compat.tf": "rnn_cell"},
    ),
    "tf.profiler": Area(
        "``tf.profiler``: parameters, floating-point operations, times and memory of a graph.",
        names={
            "headwater.tf1.training.profiler": "ProfileOptionBuilder Profiler advise profile",
            "headwater.tf1.training.op_log": "write_op_log",
            "headwater.data.io.tfprof_protos": "AdviceProto GraphNodeProto MultiGraphNodeProto OpLogProto",
        },
    ),
    "tf.tpu": Area(
        "``tf.tpu``: functions that are meaningful without TPUs.",
        names={"headwater.tf1.training.tpu": "bfloat16_scope core"},
    ),
    "tf.python_io": Area(
        "``tf.python_io``: TFRecord files.",
        names={
            "headwater.data.io.tfrecord": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator"
        },
    ),
    "tf.quantization": Area(
        "``tf.quantization``: quantization to few bits.",
        names={
            "headwater.tf1.functional.quantized": "dequantize quantize quantize_and_dequantize quantized_concat",
            "headwater.tf1.functional.fake_quantization": """
                fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
                fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
                fake_quant_with_min_max_vars_per_channel_gradient""",
        },
    ),
    "tf.queue_runner": Area(
        "``tf.train.queue_runner``: older names of queue runners of ``tf.train``.",
        names={"headwater.tf1.training.queue_runner": "QueueRunner add_queue_runner start_queue_runners"},
    ),
    "tf.sysconfig": Area(
        "``tf.sysconfig``: build information; there are no libraries to link with.",
        names={"headwater.tf1.compat.tf": "CXX11_ABI_FLAG MONOLITHIC_BUILD"},
    ),
    "tf.user_ops": Area(
        "``tf.user_ops``: the example of a user-defined operation.",
        names={"headwater.tf1.functional.strings": "my_fact"},
    ),
    "tf.xla": Area(
        "``tf.xla``: compilation, which is always enabled.",
        modules={"headwater.tf1.functional": "experimental=compilation"},
    ),
    "tf.ragged": Area(
        "``tf.ragged``: ragged tensors.",
        names={
            "headwater.tf1.functional.ragged": """
                boolean_mask constant constant_value placeholder range=ragged_range row_splits_to_segment_ids
                segment_ids_to_row_splits stack stack_dynamic_partitions""",
            "headwater.graph.ragged_value": "RaggedTensorValue",
            "headwater.tf1.functional.ragged_tensor": "map_flat_values",
        },
    ),
    "tf.random": Area(
        "``tf.random``: random numbers.",
        names={
            "headwater.tf1.functional.random": """
                categorical gamma=random_gamma get_seed multinomial normal=random_normal poisson=random_poisson
                set_random_seed shuffle=random_shuffle stateless_categorical
                stateless_multinomial stateless_normal=stateless_random_normal
                stateless_truncated_normal stateless_uniform=stateless_random_uniform truncated_normal
                uniform=random_uniform""",
            "headwater.tf1.functional.candidates": """
                all_candidate_sampler fixed_unigram_candidate_sampler learned_unigram_candidate_sampler
                log_uniform_candidate_sampler
                uniform_candidate_sampler""",
        },
        modules={"headwater.tf1.compat.tf": "experimental=random_experimental"},
    ),
    "tf.random_experimental": Area(
        "``tf.random.experimental``: random number generators with their state in a variable.",
        names={
            "headwater.tf1.variables.generators": """
                Generator create_rng_state get_global_generator set_global_generator"""
        },
    ),
    "tf.rnn_cell": Area(
        "``tf.nn.rnn_cell``: cells of recurrent networks.",
        names={
            "headwater.tf1.rnn.cells": "BasicRNNCell GRUCell RNNCell",
            "headwater.tf1.rnn.lstm": "BasicLSTMCell LSTMCell LSTMStateTuple",
            "headwater.tf1.rnn.wrappers": "DeviceWrapper DropoutWrapper MultiRNNCell ResidualWrapper",
        },
    ),
    "tf.saved_model": Area(
        "``tf.saved_model``: saved models with values and signatures.",
        names={
            "headwater.tf1.training.saved_model": """
                Builder=SavedModelBuilder build_tensor_info get_tensor_from_tensor_info load maybe_saved_model_directory
                simple_save build_signature_def classification_signature_def predict_signature_def
                regression_signature_def DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME
                PREDICT_OUTPUTS CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES
                REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS SERVING TRAINING GPU TPU
                LEGACY_INIT_OP_KEY=LEGACY_INIT_OP MAIN_OP_KEY=MAIN_OP contains_saved_model=maybe_saved_model_directory
                is_valid_signature main_op_with_restore""",
            "headwater.data.io.saved_model": """
                ASSETS_DIRECTORY=ASSETS ASSETS_KEY SAVED_MODEL_FILENAME_PB=FILE_NAME
                SAVED_MODEL_FILENAME_PBTXT=TEXT_FILE_NAME SAVED_MODEL_SCHEMA_VERSION=SCHEMA_VERSION
                VARIABLES_DIRECTORY VARIABLES_FILENAME""",
        },
        modules={
            "headwater.tf1.compat.tf": """
                builder=saved_model_parts constants=saved_model_parts loader=saved_model_parts
                main_op=saved_model_parts signature_constants=saved_model_parts
                signature_def_utils=saved_model_parts tag_constants=saved_model_parts utils=saved_model_parts"""
        },
    ),
    "tf.saved_model_parts": Area(
        "The parts of ``tf.saved_model``: ``builder``, ``loader``, ``utils``, ``signature_constants`` and the "
        "others. No two of them share a name, so one module stands for all. ",
        names={
            "headwater.tf1.training.saved_model": """
                SavedModelBuilder load main_op maybe_saved_model_directory build_signature_def build_tensor_info
                classification_signature_def get_tensor_from_tensor_info predict_signature_def regression_signature_def
                DEFAULT_SERVING_SIGNATURE_DEF_KEY PREDICT_INPUTS PREDICT_METHOD_NAME PREDICT_OUTPUTS CLASSIFY_INPUTS
                CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES CLASSIFY_OUTPUT_SCORES REGRESS_INPUTS REGRESS_METHOD_NAME
                REGRESS_OUTPUTS SERVING TRAINING EVAL GPU TPU LEGACY_INIT_OP_KEY=LEGACY_INIT_OP MAIN_OP_KEY=MAIN_OP
                is_valid_signature main_op_with_restore""",
            "headwater.data.io.saved_model": """
                ASSETS_DIRECTORY=ASSETS ASSETS_KEY SAVED_MODEL_FILENAME_PB=FILE_NAME
                SAVED_MODEL_FILENAME_PBTXT=TEXT_FILE_NAME SAVED_MODEL_SCHEMA_VERSION=SCHEMA_VERSION
                VARIABLES_DIRECTORY VARIABLES_FILENAME""",
        },
    ),
    "tf.signal": Area(
        "``tf.signal``: Fourier and cosine transforms, frames, windows.",
        names={
            "headwater.tf1.functional.fourier": """
                fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d""",
            "headwater.tf1.functional.signal": """
                dct fftshift frame hamming_window hann_window idct ifftshift inverse_stft inverse_stft_window_fn
                linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add stft""",
        },
    ),
    "tf.queue": Area(
        "``tf.queue``: queues.",
        names={"headwater.tf1.input.queues": "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue"},
    ),
    "tf.graph_util": Area(
        "``tf.graph_util``: extraction of subgraphs, and conversion of variables to constants.",
        names={
            "headwater.tf1.training.graph_util": """
                convert_variables_to_constants extract_sub_graph remove_training_nodes
                must_run_on_cpu tensor_shape_from_node_def_name""",
            "headwater.graph.importer": "import_graph_def",
        },
    ),
    "tf.sets": Area(
        "``tf.sets``: operations on sets in the rows of tensors.",
        names={
            "headwater.tf1.functional.sets": """
                difference=set_difference intersection=set_intersection set_difference set_intersection set_size
                set_union size=set_size union=set_union"""
        },
    ),
    "tf.sparse": Area(
        "``tf.sparse``: sparse tensors.",
        names={
            "headwater.tf1.functional.small_functions": "cross=sparse_cross cross_hashed=sparse_cross_hashed",
            "headwater.tf1.functional.sparse": """
                SparseTensor matmul=sparse_tensor_dense_matmul placeholder=sparse_placeholder
                sparse_dense_matmul=sparse_tensor_dense_matmul to_dense=sparse_tensor_to_dense""",
            "headwater.tf1.functional.sparse_changes": """
                concat=sparse_concat fill_empty_rows=sparse_fill_empty_rows reduce_max=sparse_reduce_max
                reduce_max_sparse=sparse_reduce_max_sparse reduce_sum=sparse_reduce_sum
                reduce_sum_sparse=sparse_reduce_sum_sparse reorder=sparse_reorder reshape=sparse_reshape
                retain=sparse_retain to_indicator=sparse_to_indicator transpose=sparse_transpose""",
            "headwater.tf1.functional.sparse_parts": """
                expand_dims=sparse_expand_dims eye=sparse_eye from_dense=sparse_from_dense mask=sparse_mask
                slice=sparse_slice""",
            "headwater.tf1.functional.sparse_pairs": """
                add=sparse_add maximum=sparse_maximum merge=sparse_merge minimum=sparse_minimum
                reset_shape=sparse_reset_shape softmax=sparse_softmax split=sparse_split""",
            "headwater.tf1.functional.accumulators": "SparseConditionalAccumulator",
            "headwater.tf1.functional.reductions": """
                segment_mean=sparse_segment_mean segment_sqrt_n=sparse_segment_sqrt_n
                segment_sum=sparse_segment_sum""",
        },
    ),
    "tf.spectral": Area(
        "``tf.spectral``: Fourier transforms, under the older name of ``tf.signal``.",
        names={
            "headwater.tf1.functional.fourier": """
                fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d""",
            "headwater.tf1.functional.signal": "dct idct",
        },
    ),
    "tf.strings": Area(
        "``tf.strings``: operations on strings.",
        names={
            "headwater.tf1.functional.ragged_parts": "split=string_split_v2",
            "headwater.tf1.functional.strings": """
                as_string format join=string_join length=string_length lower=string_lower reduce_join regex_full_match
                regex_replace strip=string_strip substr to_number=string_to_number
                unsorted_segment_join upper=string_upper""",
            "headwater.tf1.functional.unicode": """
                bytes_split=string_bytes_split ngrams unicode_decode unicode_decode_with_offsets unicode_encode
                unicode_script unicode_split unicode_split_with_offsets unicode_transcode""",
            "headwater.tf1.functional.tables": """
                to_hash_bucket=string_to_hash_bucket to_hash_bucket_fast=string_to_hash_bucket_fast
                to_hash_bucket_strong=string_to_hash_bucket_strong""",
        },
    ),
    "tf.summary": Area(
        "``tf.summary``: summaries for TensorBoard.",
        names={
            "headwater.tf1.functional.summary": "audio histogram image merge merge_all scalar tensor_summary text",
            "headwater.tf1.compat.old_summaries": "all_v2_summary_ops get_summary_description",
            "headwater.tf1.training.file_writer": "FileWriter FileWriterCache",
            "tensorboard.compat.proto.event_pb2": "Event SessionLog TaggedRunMetadata",
            "tensorboard.compat.proto.summary_pb2": "Summary SummaryDescription SummaryMetadata",
        },
    ),
    "tf.test": Area(
        "``tf.test``: test cases, gradient checks, clusters for tests.",
        names={
            "headwater.tf1.testing.benchmark": "Benchmark benchmark_config",
            "headwater.tf1.testing.stubs": "StubOutForTesting",
            "headwater.tf1.testing.test_case": "TestCase get_temp_dir",
            "headwater.tf1.testing.gradient_checker": "compute_gradient compute_gradient_error",
            "headwater.tf1.testing.devices": """
                gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm is_gpu_available""",
            "headwater.tf1.testing.running": "assert_equal_graph_def create_local_cluster main test_src_dir_path",
        },
        modules={"unittest": "mock"},
    ),
    "tf.train": Area(
        "``tf.train``: servers, optimizers, checkpoints, sessions and hooks.",
        names={
            "headwater.cluster.spec": "ClusterSpec",
            "headwater.cluster.server_def": "ServerDef",
            "headwater.graph.server.server": "Server",
            "headwater.tf1.training.device_setter": "replica_device_setter",
            "headwater.tf1.training.dual_ascent": "sdca_fprint sdca_shrink_l1",
            "headwater.tf1.training.optimizer": "Optimizer",
            "headwater.tf1.training.optimizers.adadelta": "AdadeltaOptimizer",
            "headwater.tf1.training.optimizers.adagrad": "AdagradDAOptimizer AdagradOptimizer ProximalAdagradOptimizer",
            "headwater.tf1.training.optimizers.adam": "AdamOptimizer",
            "headwater.tf1.training.optimizers.descent": """
                GradientDescentOptimizer MomentumOptimizer ProximalGradientDescentOptimizer""",
            "headwater.tf1.training.optimizers.ftrl": "FtrlOptimizer",
            "headwater.tf1.training.optimizers.rmsprop": "RMSPropOptimizer",
            "headwater.tf1.training.loops": "basic_train_loop checkpoints_iterator",
            "headwater.tf1.training.learning_rate": """
                cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay linear_cosine_decay
                natural_exp_decay noisy_linear_cosine_decay piecewise_constant
                piecewise_constant_decay=piecewise_constant polynomial_decay""",
            "headwater.tf1.training.moving_averages": "ExponentialMovingAverage",
            "headwater.tf1.training.warm_start": "init_from_checkpoint warm_start",
            "headwater.tf1.training.vocabularies": "VocabInfo",
            "headwater.tf1.training.saver": "Saver import_meta_graph",
            "headwater.tf1.training.object_checkpoints": "Checkpoint CheckpointManager",
            "headwater.tf1.training.meta_graph": "export_meta_graph",
            "headwater.tf1.training.checkpoint_reader": """
                NewCheckpointReader=CheckpointReader list_variables load_checkpoint load_variable""",
            "headwater.tf1.training.checkpoint_state": """
                checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes get_checkpoint_state
                latest_checkpoint remove_checkpoint update_checkpoint_state""",
            "headwater.data.io.protos.checkpoint_state_pb2": "CheckpointState",
            "headwater.tf1.training.basic_session_run_hooks": """
                CheckpointSaverHook CheckpointSaverListener FeedFnHook FinalOpsHook GlobalStepWaiterHook
                LoggingTensorHook NanLossDuringTrainingError NanTensorHook ProfilerHook SecondOrStepTimer
                StepCounterHook StopAtStepHook SummarySaverHook""",
            "headwater.tf1.training.coordinator": "Coordinator LooperThread",
            "headwater.tf1.training.monitored_session": """
                ChiefSessionCreator MonitoredSession MonitoredTrainingSession SessionCreator SingularMonitoredSession
                WorkerSessionCreator""",
            "headwater.tf1.training.queue_runner": "QueueRunner add_queue_runner start_queue_runners",
            "headwater.tf1.training.scaffold": "Scaffold",
            "headwater.tf1.training.input_producers": """
                input_producer limit_epochs match_filenames_once range_input_producer slice_input_producer
                string_input_producer""",
            "headwater.tf1.training.batching": """
                batch batch_join maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join shuffle_batch
                shuffle_batch_join""",
            "headwater.tf1.training.session_manager": "SessionManager",
            "headwater.tf1.training.session_run_hook": """
                SessionRunArgs SessionRunContext SessionRunHook SessionRunValues""",
            "headwater.tf1.training.supervisor": "Supervisor",
            "headwater.tf1.training.supervisor_services": "SVStepCounterThread SVSummaryThread SVTimerCheckpointThread",
            "tensorboard.compat.proto.cluster_pb2": "ClusterDef JobDef",
            "tensorboard.compat.proto.saver_pb2": "SaverDef",
            "headwater.tf1.training.sync_replicas_optimizer": """
                SyncReplicasOptimizer SyncReplicasOptimizerV2=SyncReplicasOptimizer""",
            "headwater.tf1.training.training_util": """
                assert_global_step create_global_step get_global_step get_or_create_global_step global_step
                write_graph""",
            "headwater.tf1.training.file_writer": "SummaryWriter=FileWriter SummaryWriterCache=FileWriterCache",
            "headwater.data.io.event_file": "summary_iterator",
            "headwater.data.io.protos.example_pb2": "Example SequenceExample",
            "headwater.data.io.protos.feature_pb2": """
                BytesList Feature FeatureList FeatureLists Features FloatList Int64List""",
        },
        modules={"headwater.tf1.compat.tf": "experimental=train_experimental queue_runner"},
    ),
    "tf.train_experimental": Area(
        "``tf.train.experimental``: loss scaling.",
        names={
            "headwater.tf1.training.loss_scale": """
                DynamicLossScale FixedLossScale LossScale MixedPrecisionLossScaleOptimizer
                disable_mixed_precision_graph_rewrite enable_mixed_precision_graph_rewrite""",
            "headwater.tf1.training.object_graph": "PythonState",
        },
    ),
    "tf.version": Area(
        "``tf.version``: the supported version of TensorFlow.",
        names={
            "headwater.tf1.compat.tf": """
                COMPILER_VERSION GIT_VERSION GRAPH_DEF_VERSION GRAPH_DEF_VERSION_MIN_CONSUMER
                GRAPH_DEF_VERSION_MIN_PRODUCER VERSION"""
        },
    ),
}
