"""Names that no other table calls: constants, messages, checks, files, flags, pictures, transforms, small operations.

Each line is an expression of the namespace; its result is evaluated if it is a tensor.
"""

# ruff: noqa: E501, PERF401, UP032 - a line is an expression; Python 3.7 reads this

import os
import struct
import tempfile

import numpy as np

X = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 4.0]], "float32")
COLOURS = (np.arange(1 * 4 * 5 * 3).reshape(1, 4, 5, 3) * 7 % 97 / 97.0).astype("float32")
BYTES = (np.arange(4 * 5 * 3).reshape(4, 5, 3) * 11 % 251).astype("uint8")
VOLUME = np.sin(np.arange(1 * 4 * 4 * 4 * 2)).reshape(1, 4, 4, 4, 2).astype("float32")
COMPLEX = (np.sin(np.arange(24)) + 1j * np.cos(np.arange(24))).reshape(2, 3, 4).astype("complex64")
PIXELS = (np.arange(2 * 2 * 3) * 20).astype("uint8")
BITMAP = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0)
BITMAP += PIXELS[:6].tobytes() + b"\0\0" + PIXELS[6:].tobytes() + b"\0\0"
GIF = (
    b"GIF89a\x01\x00\x01\x00\x80\x01\x00\xff\x80\x40\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)


def halved(x):
    while x > 1:
        x = x / 2
    return x


TABLES = {
    "saved_models": """
        [getattr(tf.saved_model, n) for n in 'CLASSIFY_INPUTS CLASSIFY_METHOD_NAME CLASSIFY_OUTPUT_CLASSES'.split()]
        [getattr(tf.saved_model, n) for n in 'CLASSIFY_OUTPUT_SCORES PREDICT_INPUTS PREDICT_METHOD_NAME'.split()]
        [getattr(tf.saved_model, n) for n in 'PREDICT_OUTPUTS REGRESS_INPUTS REGRESS_METHOD_NAME REGRESS_OUTPUTS'.split()]
        [tf.saved_model.GPU, tf.saved_model.TPU, tf.saved_model.TRAINING, tf.saved_model.SERVING]
        [tf.saved_model.tag_constants.GPU, tf.saved_model.tag_constants.TPU, tf.saved_model.tag_constants.TRAINING]
        tf.saved_model.utils.build_tensor_info(tf.placeholder(tf.int64, [None, 2], name='p')).name
        tf.saved_model.build_tensor_info(tf.constant([[1.0]], name='c')).tensor_shape.dim[0].size
        tf.saved_model.utils.get_tensor_from_tensor_info(tf.saved_model.build_tensor_info(tf.constant([2.5])))
        tf.saved_model.get_tensor_from_tensor_info(tf.saved_model.build_tensor_info(tf.constant(3)))
        tf.saved_model.main_op.main_op().type
        tf.saved_model.builder.SavedModelBuilder is tf.saved_model.Builder
    """,
    "error_codes": """
        [tf.errors.OK, tf.errors.CANCELLED, tf.errors.UNKNOWN, tf.errors.INVALID_ARGUMENT, tf.errors.DEADLINE_EXCEEDED]
        [tf.errors.NOT_FOUND, tf.errors.ALREADY_EXISTS, tf.errors.PERMISSION_DENIED, tf.errors.UNAUTHENTICATED]
        [tf.errors.RESOURCE_EXHAUSTED, tf.errors.FAILED_PRECONDITION, tf.errors.ABORTED, tf.errors.OUT_OF_RANGE]
        [tf.errors.UNIMPLEMENTED, tf.errors.INTERNAL, tf.errors.UNAVAILABLE, tf.errors.DATA_LOSS]
        tf.errors.AlreadyExistsError(None, None, 'there').error_code
        tf.errors.PermissionDeniedError(None, None, 'no').message
        tf.errors.UnauthenticatedError(None, None, 'who').error_code
        tf.errors.UnknownError(None, None, 'what').error_code
        tf.errors.error_code_from_exception_type(tf.errors.AbortedError)
        tf.errors.exception_type_from_error_code(5).__name__
    """,
    "constants": """
        [tf.GraphKeys.ASSET_FILEPATHS, tf.GraphKeys.GLOBAL_STEP, tf.GraphKeys.GLOBAL_VARIABLES]
        [tf.GraphKeys.QUEUE_RUNNERS, tf.GraphKeys.SUMMARIES, tf.GraphKeys.TRAINABLE_VARIABLES]
        [tf.AggregationMethod.ADD_N, tf.AggregationMethod.DEFAULT, tf.AggregationMethod.EXPERIMENTAL_TREE]
        [tf.VariableAggregation.NONE.value, tf.VariableAggregation.SUM.value, tf.VariableAggregation.MEAN.value]
        [tf.VariableSynchronization.AUTO.value, tf.VariableSynchronization.ON_READ.value]
        [tf.data.experimental.AUTOTUNE, tf.contrib.data.AUTOTUNE]
        [tf.data.experimental.INFINITE_CARDINALITY, tf.data.experimental.UNKNOWN_CARDINALITY]
        tf.contrib.learn.TaskType.PS
        [tf.contrib.learn.TaskType.MASTER, tf.contrib.learn.TaskType.WORKER]
        sorted(tf.contrib.layers.OPTIMIZER_CLS_NAMES)
        list(tf.contrib.layers.OPTIMIZER_SUMMARIES)
        [tf.logging.DEBUG, tf.logging.INFO, tf.logging.WARN, tf.logging.ERROR, tf.logging.FATAL]
        [tf.io.TFRecordCompressionType.NONE, tf.io.TFRecordCompressionType.ZLIB, tf.io.TFRecordCompressionType.GZIP]
        tf.io.TFRecordOptions.get_compression_type_string(tf.io.TFRecordOptions('GZIP'))
        tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.ZLIB).compression_type
        tf.distribute.experimental.CollectiveCommunication.NCCL.value
        tf.distribute.experimental.CollectiveCommunication.AUTO.value
        tf.distribute.InputReplicationMode.PER_WORKER.value
        [type(tf.VERSION).__name__, type(tf.version.VERSION).__name__, tf.version.VERSION == tf.VERSION]
        [type(tf.GIT_VERSION).__name__, tf.version.GIT_VERSION == tf.__git_version__]
        [type(tf.COMPILER_VERSION).__name__, tf.version.COMPILER_VERSION == tf.__compiler_version__]
        [tf.GRAPH_DEF_VERSION >= tf.version.GRAPH_DEF_VERSION_MIN_CONSUMER, tf.version.GRAPH_DEF_VERSION > 20]
        [tf.GRAPH_DEF_VERSION_MIN_PRODUCER == tf.version.GRAPH_DEF_VERSION_MIN_PRODUCER, tf.MONOLITHIC_BUILD]
        [tf.GRAPH_DEF_VERSION_MIN_CONSUMER, type(tf.CXX11_ABI_FLAG).__name__]
    """,
    "types": """
        [t.name for t in (tf.double, tf.half, tf.int8, tf.uint32, tf.uint64, tf.qint8, tf.qint32, tf.quint8)]
        [tf.resource.name, tf.variant.name, tf.dtypes.double == tf.float64, tf.dtypes.half == tf.float16]
        [t.as_datatype_enum for t in (tf.dtypes.int8, tf.dtypes.qint8, tf.dtypes.qint32, tf.dtypes.quint8)]
        [t.as_datatype_enum for t in (tf.dtypes.resource, tf.dtypes.variant, tf.dtypes.uint32, tf.dtypes.uint64)]
        [isinstance(tf.int8, tf.DType), tf.dtypes.DType is tf.DType]
        tf.cast([1.0, -2.0], tf.int8)
        tf.constant([1, 2], tf.uint64)
        tf.constant([1, 2], tf.uint32)
        tf.to_complex64([1.5, -2.0])
        tf.to_complex128([1.5, -2.0])
        tf.cast(tf.to_bfloat16([1.5, -2.0]), tf.float32)
    """,
    "messages": """
        tf.AttrValue(i=3).SerializeToString()
        tf.compat.v1.AttrValue(s=b'x').SerializeToString()
        tf.NodeDef(name='n', op='NoOp', input=['a']).SerializeToString()
        tf.NameAttrList(name='f').SerializeToString()
        tf.HistogramProto(min=1.0, max=2.0, num=3.0).SerializeToString()
        tf.LogMessage(level=20, message='m').SerializeToString()
        tf.MetaGraphDef().SerializeToString()
        tf.TensorInfo(name='t:0', dtype=1).SerializeToString()
        tf.SummaryMetadata(display_name='d').SerializeToString()
        tf.OptimizerOptions(opt_level=tf.OptimizerOptions.L0).SerializeToString()
        tf.summary.SummaryDescription(type_hint='scalar').SerializeToString()
        tf.summary.TaggedRunMetadata(tag='t', run_metadata=b'x').SerializeToString()
        tf.train.ClusterDef(job=[tf.train.JobDef(name='ps', tasks={0: 'a:1'})]).SerializeToString()
        tf.train.SaverDef(filename_tensor_name='f', max_to_keep=3).SerializeToString()
        tf.train.ServerDef(job_name='worker', task_index=2, protocol='grpc').SerializeToString()
        tf.logging.TaskLevelStatusMessage is not None
    """,
    "texts": """
        [tf.compat.as_str('a'), tf.compat.as_str(b'a'), tf.compat.as_str_any(3), tf.compat.as_text(b'b')]
        [isinstance(x, tf.compat.bytes_or_text_types) for x in ('a', b'a', 1)]
        [isinstance(x, tf.compat.complex_types) for x in (1, 1.5, 1j, np.complex64(1))]
        [isinstance(x, tf.compat.integral_types) for x in (1, 1.5, np.int32(1))]
        [isinstance(x, tf.compat.real_types) for x in (1, 1.5, 1j, np.float32(1))]
        tf.compat.path_to_str('/a')
        [tf.compat.dimension_value(tf.TensorShape([2, None])[0]), tf.compat.dimension_value(tf.TensorShape([None])[0])]
        [tf.dimension_value(tf.Dimension(3)), tf.dimension_at_index(tf.TensorShape([4]), 0).value]
        tf.compat.dimension_at_index(tf.TensorShape(None), 1).value
    """,
    "checks": """
        tf.assert_greater([2, 3], [1, 2])
        tf.assert_greater([2, 1], [1, 2])
        tf.debugging.assert_greater_equal([2, 2], [1, 2])
        tf.assert_greater_equal([0, 2], [1, 2])
        tf.assert_integer(tf.constant([1]))
        tf.debugging.assert_integer(tf.constant([1.0]))
        tf.assert_less_equal([1], [1])
        tf.debugging.assert_less_equal([2], [1])
        tf.assert_near([1.0], [1.0 + 1e-7])
        tf.debugging.assert_near([1.0], [1.1])
        tf.assert_negative([-1.0])
        tf.debugging.assert_negative([1.0])
        tf.assert_non_negative([0])
        tf.debugging.assert_non_negative([-1])
        tf.assert_non_positive([0])
        tf.debugging.assert_non_positive([1])
        tf.assert_none_equal([0], [1])
        tf.debugging.assert_none_equal([1], [1])
        tf.assert_proper_iterable([1])
        tf.debugging.assert_proper_iterable(np.array([1]))
        tf.assert_rank_in([1], [1, 2])
        tf.debugging.assert_rank_in([[[1]]], (1, 2))
        tf.assert_same_float_dtype([tf.constant(1.0)]).name
        tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant(1.0, tf.float64)])
        tf.assert_scalar(tf.constant(1)).name
        tf.debugging.assert_scalar(tf.constant([1]))
        tf.verify_tensor_all_finite([1.0, 2.0], 'not finite')
        tf.debugging.assert_all_finite(tf.constant([1.0, np.inf]), 'not finite')
        [tf.is_non_decreasing([1, 1, 2]), tf.math.is_non_decreasing([2, 1]), tf.debugging.is_non_decreasing([1])]
        [tf.is_strictly_increasing([1, 1, 2]), tf.math.is_strictly_increasing([1, 2])]
        tf.debugging.is_strictly_increasing([[1, 2], [3, 4]])
        [tf.is_numeric_tensor(tf.constant(1)), tf.debugging.is_numeric_tensor(tf.constant('a'))]
        [tf.is_tensor(tf.constant(1)), tf.contrib.framework.is_tensor(1), tf.contrib.framework.is_tensor(tf.Variable(1))]
        tf.contrib.framework.assert_same_float_dtype([tf.constant(1.0)]).name
        tf.contrib.framework.assert_scalar(tf.constant(1)).name
    """,
    "switches": """
        [tf.executing_eagerly(), tf.control_flow_v2_enabled(), tf.resource_variables_enabled()]
        tf.contrib.framework.smart_constant_value(tf.constant(True))
        tf.contrib.framework.smart_cond(tf.constant(True), lambda: tf.constant(1), lambda: tf.constant(2))
        tf.contrib.framework.smart_cond(False, lambda: 1, lambda: 2)
        [tf.config.threading.get_inter_op_parallelism_threads(), tf.config.threading.get_intra_op_parallelism_threads()]
        [tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context()]
        [type(tf.distribute.get_replica_context()).__name__, tf.contrib.distribute.has_distribution_strategy()]
        [tf.contrib.distribute.has_strategy(), tf.contrib.distribute.in_cross_replica_context()]
        type(tf.contrib.distribute.get_replica_context()).__name__
        tf.distribute.InputContext(4, 1, 2).get_per_replica_batch_size(8)
        str(tf.distribute.InputContext(4, 1, 2).input_pipeline_id)
        issubclass(tf.distribute.HierarchicalCopyAllReduce, tf.distribute.CrossDeviceOps)
        issubclass(tf.contrib.distribute.CrossDeviceOps, tf.distribute.CrossDeviceOps)
        tf.distribute.cluster_resolver.SlurmClusterResolver is not tf.distribute.cluster_resolver.ClusterResolver
        tf.distribute.OneDeviceStrategy('/cpu:0').num_replicas_in_sync
        [tf.init_scope.__name__, tf.enable_resource_variables.__name__]
        [issubclass(tf.FIFOQueue, tf.QueueBase), tf.queue.QueueBase is tf.io.QueueBase]
        issubclass(tf.TextLineReader, tf.ReaderBase)
        issubclass(tf.ConditionalAccumulator, tf.ConditionalAccumulatorBase)
        issubclass(tf.SparseConditionalAccumulator, tf.sparse.SparseConditionalAccumulator)
        issubclass(tf.distributions.Normal, tf.distributions.Distribution)
        issubclass(tf.linalg.LinearOperatorIdentity, tf.linalg.LinearOperator)
        [isinstance(tf.no_op(), tf.Operation), isinstance(tf.get_variable_scope(), tf.VariableScope)]
        [tf.layers.InputSpec(ndim=3).ndim, tf.layers.InputSpec(shape=(2, None)).shape]
        tf.estimator.SessionRunContext is tf.train.SessionRunContext
        [f for f in tf.train.SessionRunValues._fields] + [f for f in tf.estimator.SessionRunValues._fields]
        sorted(f for f in ('LISTS', 'EQUALITY_OPERATORS') if hasattr(tf.autograph.experimental.Feature, f))
        [type(tf.config.experimental.list_physical_devices('CPU')[0]).__name__, tf.autograph.trace()]
        tf.config.experimental.list_logical_devices('CPU')[0].device_type
        tf.config.experimental.get_visible_devices('CPU')[0].device_type
        issubclass(tf.estimator.LatestExporter, tf.estimator.Exporter)
        issubclass(tf.estimator.BestExporter, tf.estimator.Exporter)
        tf.estimator.BestExporter(serving_input_receiver_fn=lambda: None).name
        issubclass(tf.estimator.BinaryClassHead, tf.estimator.Head)
        issubclass(tf.estimator.export.ClassificationOutput, tf.estimator.export.ExportOutput)
        tf.estimator.export.ClassificationOutput(scores=tf.constant([0.5])).scores
        tf.estimator.export.RegressionOutput(tf.constant([1.5])).value
        tf.estimator.export.RegressionOutput(tf.constant(['a']))
        sorted(tf.estimator.export.ServingInputReceiver(tf.constant([1.0]), tf.placeholder(tf.string)).features)
        tf.estimator.export.TensorServingInputReceiver(tf.constant([1.0]), tf.placeholder(tf.string)).features
    """,
    "small": """
        [tf.bitwise.bitwise_or([5], [3]), tf.bitwise.bitwise_xor([5], [3]), tf.bitwise.right_shift([-8], [1])]
        tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([1, 3])).as_list()
        tf.broadcast_static_shape(tf.TensorShape([2]), tf.TensorShape([3]))
        tf.convert_to_tensor_or_indexed_slices([1.0, 2.0])
        tf.convert_to_tensor_or_indexed_slices(tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))).values
        tf.decode_compressed([b'ab'])
        tf.io.decode_compressed([__import__('zlib').compress(b'text')], 'ZLIB')
        tf.guarantee_const([1.5])
        tf.numpy_function(lambda x: x * 2, [tf.constant([1.5])], tf.float32)
        tf.parallel_stack([tf.constant([1, 2]), tf.constant([3, 4])])
        tf.recompute_grad(lambda x: x * 2.0).__class__.__name__
        tf.required_space_to_batch_paddings([5, 6], [2, 4])
        tf.reverse_v2(tf.constant(X), [1])
        tf.manip.reverse(tf.constant(X), [0, -1])
        tf.sparse_matmul(tf.constant(X), tf.constant(X), transpose_b=True, a_is_sparse=True)
        tf.self_adjoint_eig(tf.constant([[2.0, 1.0], [1.0, 3.0]]))[0]
        tf.linalg.eigh(tf.constant([[2.0, 1.0], [1.0, 3.0]]))[0]
        tf.abs(tf.qr(tf.constant(X))[1])
        tf.abs(tf.linalg.qr(tf.constant(X.T), full_matrices=True)[1])
        [tf.timestamp().dtype.name, tf.timestamp().shape.as_list()]
        tf.random.categorical(tf.constant([[0.0, -1e9, -1e9]]), 4)
        tf.random.stateless_truncated_normal([3], [1, 2]).shape.as_list()
        tf.random.stateless_uniform([2, 2], [1, 2], 1.0, 2.0) >= 1.0
        [tf.nest.is_nested([1]), tf.nest.is_nested(1)]
        tf.nest.pack_sequence_as({'a': 1, 'b': (2, 3)}, [4, 5, 6])
        tf.nest.assert_same_structure([1, (2,)], [3, (4,)])
        tf.nest.assert_same_structure([1, (2,)], [3, 4])
        tf.nest.assert_same_structure([1, 2], (1, 2))
        tf.nest.assert_same_structure([1, 2], (1, 2), check_types=False)
        tf.data.get_output_classes(tf.data.Dataset.range(3)).__name__
        tf.train.limit_epochs(tf.constant([1, 2]), None)
        tf.train.noisy_linear_cosine_decay(0.1, tf.constant(5), 10, initial_variance=0.0)
        tf.train.checkpoint_exists('/nothing')
        tf.train.get_checkpoint_mtimes([])
        tf.train.generate_checkpoint_state_proto('/d', '/d/m-2', ['/d/m-1']).model_checkpoint_path
        tf.train.generate_checkpoint_state_proto('/d', '/d/m-2').all_model_checkpoint_paths
        tf.contrib.metrics.aggregate_metrics(('a', 'b'), ('c', 'd'))
    """,
    "layers": """
        tf.layers.AveragePooling1D(2, 1)(tf.constant(VOLUME[0, 0]))
        tf.layers.AveragePooling2D(2, 2, 'same')(tf.constant(COLOURS))
        tf.layers.AveragePooling3D(2, 2)(tf.constant(VOLUME))
        tf.layers.MaxPooling1D(3, 2, padding='same')(tf.constant(VOLUME[0, 0]))
        tf.layers.MaxPooling3D((1, 2, 2), (1, 1, 2))(tf.constant(VOLUME))
        tf.layers.Conv1D(2, 2, kernel_initializer=tf.constant_initializer(0.1))(tf.constant(VOLUME[0, 0]))
        tf.layers.Conv3D(1, 2, kernel_initializer=tf.constant_initializer(0.1))(tf.constant(VOLUME))
        tf.layers.Conv3DTranspose(1, 2, 2, kernel_initializer=tf.constant_initializer(0.1))(tf.constant(VOLUME[:, :1]))
        tf.layers.SeparableConv1D(2, 2, depthwise_initializer=tf.ones_initializer(), pointwise_initializer=tf.ones_initializer())(tf.constant(VOLUME[0, 0]))
        tf.layers.SeparableConv2D(2, 2, depthwise_initializer=tf.ones_initializer(), pointwise_initializer=tf.ones_initializer())(tf.constant(COLOURS))
        tf.nn.avg_pool3d(tf.constant(VOLUME), [1, 2, 2, 2, 1], [1, 1, 2, 2, 1], 'SAME')
        tf.nn.conv2d_backprop_filter(tf.constant(COLOURS), [2, 2, 3, 1], tf.ones([1, 3, 4, 1]), [1, 1, 1, 1], 'VALID')
        tf.nn.conv2d_backprop_input([1, 4, 5, 3], tf.ones([2, 2, 3, 1]), tf.ones([1, 4, 5, 1]), [1, 1, 1, 1], 'SAME')
        tf.nn.conv3d_transpose(tf.constant(VOLUME), tf.ones([2, 2, 2, 1, 2]), [1, 8, 4, 4, 1], [1, 2, 1, 1, 1])
    """,
    "pictures": """
        tf.image.adjust_brightness(tf.constant(COLOURS), 0.25)
        tf.image.adjust_brightness(tf.constant(BYTES), 0.25)
        tf.image.adjust_contrast(tf.constant(COLOURS), 1.5)
        tf.image.adjust_contrast(tf.constant(BYTES), 0.5)
        tf.image.adjust_hue(tf.constant(COLOURS), 0.3)
        tf.image.adjust_saturation(tf.constant(COLOURS), 0.5)
        tf.image.central_crop(tf.constant(COLOURS), 0.5)
        tf.image.central_crop(tf.constant(COLOURS), 1.5)
        tf.image.crop_to_bounding_box(tf.constant(COLOURS), 1, 2, 3, 2)
        tf.image.crop_to_bounding_box(tf.constant(COLOURS), 1, 2, 5, 2)
        tf.image.pad_to_bounding_box(tf.constant(BYTES), 1, 2, 8, 9)
        tf.image.flip_left_right(tf.constant(BYTES))
        tf.image.flip_up_down(tf.constant(COLOURS))
        tf.image.grayscale_to_rgb(tf.constant(BYTES[..., :1]))
        tf.image.hsv_to_rgb(tf.constant(COLOURS))
        tf.image.rgb_to_hsv(tf.constant(COLOURS))
        tf.image.rgb_to_grayscale(tf.constant(COLOURS))
        tf.image.rgb_to_grayscale(tf.constant(BYTES))
        tf.image.per_image_standardization(tf.constant(COLOURS))
        tf.image.random_hue(tf.constant(COLOURS), 0.0)
        tf.image.random_saturation(tf.constant(COLOURS), 0.99999, 1.00001).shape.as_list()
        tf.image.resize_image_with_crop_or_pad(tf.constant(BYTES), 7, 3)
        tf.image.resize_with_crop_or_pad(tf.constant(COLOURS), 3, 9)
        tf.image.resize_nearest_neighbor(tf.constant(COLOURS), [3, 9])
        tf.image.rot90(tf.constant(BYTES), 3)
        tf.image.transpose(tf.constant(BYTES))
        tf.image.transpose_image(tf.constant(COLOURS))
        tf.contrib.image.rotate(tf.constant(COLOURS), 0.5)
        tf.contrib.image.rotate(tf.constant(COLOURS), [-1.0], 'BILINEAR')
    """,
    "transforms": """
        tf.fft2d(tf.constant(COMPLEX))
        tf.signal.fft3d(tf.constant(COMPLEX))
        tf.spectral.fft3d(tf.constant(COMPLEX))
        tf.ifft(tf.constant(COMPLEX))
        tf.signal.ifft3d(tf.constant(COMPLEX))
        tf.signal.rfft2d(tf.constant(VOLUME[0, 0]), [4, 2])
        tf.spectral.rfft3d(tf.constant(VOLUME[0]))
        tf.signal.irfft2d(tf.constant(COMPLEX))
        tf.spectral.irfft3d(tf.constant(COMPLEX), [2, 3, 6])
    """,
    "contrib_layers": """
        tf.contrib.layers.avg_pool3d(tf.constant(VOLUME), 2)
        tf.contrib.slim.bias_add(tf.constant(X), initializer=tf.ones_initializer())
        tf.contrib.layers.conv1d(tf.constant(VOLUME[0, 0]), 2, 2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.conv3d(tf.constant(VOLUME), 1, 2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.conv2d_transpose(tf.constant(COLOURS), 2, 2, 2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.conv3d_transpose(tf.constant(VOLUME[:, :2, :2]), 1, 2, 2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.convolution(tf.constant(COLOURS), 1, 2, rate=2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.convolution1d(tf.constant(VOLUME[0, 0]), 1, 2, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.convolution3d(tf.constant(VOLUME), 1, 1, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.convolution2d_transpose(tf.constant(COLOURS), 1, 1, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.convolution3d_transpose(tf.constant(VOLUME), 1, 1, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.separable_conv2d(tf.constant(COLOURS), 2, 2, 1, weights_initializer=tf.ones_initializer())
        tf.contrib.slim.separable_convolution2d(tf.constant(COLOURS), None, 2, 1, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.dropout(tf.constant(X), 0.5, is_training=False)
        tf.contrib.layers.elu(tf.constant(X), 3, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.relu(tf.constant(X), 3, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.relu6(tf.constant(X), 3, weights_initializer=tf.constant_initializer(4.0))
        tf.contrib.layers.linear(tf.constant(X), 3, weights_initializer=tf.ones_initializer())
        tf.contrib.layers.embed_sequence([[0, 1], [2, 1]], 3, 2, initializer=tf.ones_initializer())
        tf.contrib.layers.instance_norm(tf.constant(COLOURS))
        tf.contrib.layers.layer_norm(tf.constant(X))
        tf.contrib.layers.max_pool2d(tf.constant(COLOURS), [2, 2], 1)
        tf.contrib.slim.layers.max_pool2d(tf.constant(COLOURS), 2)
        tf.contrib.layers.max_pool3d(tf.constant(VOLUME), 2)
        tf.contrib.layers.one_hot_encoding([0, 2], 3)
        tf.contrib.layers.one_hot_encoding([0, 2], 3, 5.0, -1.0)
        tf.contrib.layers.softmax(tf.constant(X))
        tf.contrib.layers.softmax(tf.constant(VOLUME[0]))
        tf.contrib.layers.unit_norm(tf.constant(X), 1)
        tf.contrib.layers.sum_regularizer([tf.contrib.layers.l2_regularizer(0.5)])(tf.constant(X))
        tf.contrib.layers.summarize_tensor(tf.constant(1.0, name='s')).op.name
        tf.contrib.layers.summarize_activation(tf.nn.relu(tf.constant(X), name='r')).op.name
        tf.contrib.layers.summarize_tensors([tf.constant([1.0], name='t')])[0].op.type
        [tf.contrib.layers.summarize_collection('none'), tf.contrib.layers.summarize_activations()]
        tf.get_variable('v', [3], initializer=tf.contrib.layers.xavier_initializer()).shape.as_list()
        tf.get_variable('v', [2, 2, 3, 1], initializer=tf.contrib.layers.xavier_initializer_conv2d()).dtype.name
        tf.get_variable('v', [3], initializer=tf.contrib.slim.variance_scaling_initializer(0.0, mode='FAN_AVG')).op.name
        tf.contrib.layers.sparse_column_with_integerized_feature('a', 5).name
        sorted(tf.contrib.layers.create_feature_spec_for_parsing([tf.contrib.layers.real_valued_column('a')]))
        tf.contrib.losses.cosine_distance(tf.constant(X), tf.constant(X), 1)
        tf.contrib.losses.hinge_loss(tf.constant(X), tf.cast(tf.constant(X) > 0, tf.float32))
        tf.contrib.losses.mean_pairwise_squared_error(tf.constant(X), tf.constant(X * X))
    """,
    "inner modules": """
        tf.contrib.rnn.LSTMStateTuple(1, 2).h
        tf.nn.rnn_cell.LSTMStateTuple is tf.contrib.rnn.LSTMStateTuple
        tf.contrib.rnn.ResidualWrapper(tf.contrib.rnn.GRUCell(3, kernel_initializer=tf.ones_initializer()))(tf.constant(X), tf.zeros([2, 3]))[0]
        tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.LSTMCell(2, initializer=tf.ones_initializer()), '/cpu:0')(tf.constant(X), (tf.zeros([2, 2]), tf.zeros([2, 2])))[0]
        tf.contrib.rnn.DeviceWrapper is tf.nn.rnn_cell.DeviceWrapper
        tf.contrib.rnn.LSTMCell is tf.nn.rnn_cell.LSTMCell
        tf.contrib.lookup.TextFileIndex.LINE_NUMBER
        [tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER]
        type(tf.data.experimental.copy_to_device('/cpu:0')).__name__
        type(tf.contrib.data.prefetch_to_device('/cpu:0')).__name__
        tf.image.decode_bmp(BITMAP)
        tf.io.decode_bmp(BITMAP, 3)
        tf.image.decode_gif(GIF)
        tf.io.decode_gif(b'no')
        issubclass(tf.distribute.StrategyExtended, object)
        tf.contrib.distribute.ReplicaContext is tf.distribute.ReplicaContext
        tf.autograph.set_verbosity(0)
        'while' in tf.autograph.to_code(halved)
    """,
    "initializers": """
        tf.get_variable('a', [4, 3], initializer=tf.initializers.he_normal(1)).shape.as_list()
        tf.abs(tf.get_variable('b', [400, 3], initializer=tf.initializers.he_uniform(1))) <= np.sqrt(6.0 / 400)
        tf.abs(tf.get_variable('c', [3, 3], initializer=tf.initializers.lecun_uniform(1))) <= 1.0
        tf.abs(tf.get_variable('d', [3, 3], initializer=tf.initializers.lecun_normal(1))) <= 2.0 / np.sqrt(3.0) / 0.87
    """,
    "columns": """
        tf.feature_column.weighted_categorical_column(tf.feature_column.categorical_column_with_identity('a', 3), 'w').name
        tf.feature_column.categorical_column_with_vocabulary_file('a', 'no', 3).vocabulary_size
    """,
}


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name, lines in TABLES.items():
        expressions = [line.strip() for line in lines.split("\n") if line.strip()]
        found[name] = lambda tf, expressions=expressions: [valued(tf, expression) for expression in expressions]
    return found


def valued(tf, expression):
    """The expression's value, or the class of its error; a graph for each."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        try:
            value = eval(expression, {**globals(), "tf": tf})
            if not _has_tensors(tf, value):
                return value
            with tf.Session() as session:
                session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
                return session.run(value)
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return type(error).__name__


def _has_tensors(tf, value):
    return any(
        isinstance(each, (tf.Tensor, tf.Operation)) for each in (value if isinstance(value, (list, tuple)) else [value])
    )


def case_files(tf):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "a.txt")
    found = []
    with tf.Session() as session:
        session.run(tf.write_file(path, "text"))
        session.run(tf.io.write_file(os.path.join(folder, "b.txt"), "more"))
        found.append(session.run([tf.read_file(path), tf.io.read_file(os.path.join(folder, "b.txt"))]))
        for function in (tf.matching_files, tf.io.matching_files):
            found.append([os.path.basename(name) for name in session.run(function(os.path.join(folder, "*.txt")))])
    old, new = tf.gfile, tf.io.gfile
    old.MkDir(os.path.join(folder, "one"))
    new.mkdir(os.path.join(folder, "two"))
    old.MakeDirs(os.path.join(folder, "three", "four"))
    new.makedirs(os.path.join(folder, "three", "five"))
    old.Copy(path, os.path.join(folder, "one", "c.txt"))
    new.copy(path, os.path.join(folder, "two", "d.txt"), overwrite=True)
    old.Rename(os.path.join(folder, "one", "c.txt"), os.path.join(folder, "one", "e.txt"))
    new.rename(os.path.join(folder, "two", "d.txt"), os.path.join(folder, "two", "f.txt"))
    found.append([sorted(old.ListDirectory(folder)), sorted(new.listdir(os.path.join(folder, "three")))])
    found.append([[os.path.basename(name) for name in glob(folder + "/*/*.txt")] for glob in (old.Glob, new.glob)])
    found.append([old.Exists(path), new.exists(path + "x"), old.IsDirectory(folder), new.isdir(path)])
    found.append([old.Stat(path).length, new.stat(path).length])
    for walk in (old.Walk, new.walk):
        found.append(
            sorted([os.path.relpath(at, folder), sorted(under), sorted(names)] for at, under, names in walk(folder))
        )
    old.Remove(path)
    new.remove(os.path.join(folder, "b.txt"))
    old.DeleteRecursively(os.path.join(folder, "one"))
    new.rmtree(os.path.join(folder, "two"))
    found.append(sorted(os.listdir(folder)))
    for call in (lambda: old.Remove(path), lambda: new.rmtree(path), lambda: old.MkDir(os.path.join(folder, "x", "y"))):
        try:
            found.append(call())
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return found


def case_graphs_and_checkpoints(tf):
    folder = tempfile.mkdtemp()
    tf.model_variables()
    a = tf.contrib.framework.add_model_variable
    v = tf.get_variable("here/v", initializer=[1.0, 2.0])
    a(v)
    w = tf.contrib.framework.global_variable(tf.zeros([1]), name="w")
    found = [
        [each.op.name for each in tf.model_variables()],
        [each.op.name for each in tf.contrib.framework.get_trainable_variables("here")],
        tf.contrib.framework.get_variable_full_name(v),
        [each.op.name for each in tf.contrib.framework.get_variables_by_suffix("v")],
        [each.op.name for each in tf.contrib.framework.filter_variables([v, w], exclude_patterns=["here"])],
    ]
    tf.add_to_collections(["p", "q"], 7)
    tf.get_collection_ref("p").append(8)
    found.append([tf.get_collection("p"), tf.get_collection("q")])
    counter = tf.Variable(0)
    up = tf.count_up_to(counter, 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found.append(session.run(up))
        try:
            session.run(up)
        except tf.errors.OutOfRangeError:
            found.append("out of range")
        path = tf.train.Saver([v, w]).save(session, os.path.join(folder, "m"), 3)
        for write in (tf.train.write_graph, tf.io.write_graph):
            found.append(os.path.basename(write(session.graph, folder, "graph.pbtxt")))
    found.append(os.path.getsize(os.path.join(folder, "graph.pbtxt")) > 100)
    found.append([tf.train.checkpoint_exists(path), len(tf.train.get_checkpoint_mtimes([path]))])
    found.append([list(each) for each in tf.contrib.framework.list_variables(path)])
    found.append(tf.contrib.framework.load_checkpoint(path).get_tensor("here/v"))
    with tf.Graph().as_default():
        x = tf.get_variable("x", [2])
        y = tf.get_variable("y", [1], initializer=tf.ones_initializer())
        operation, feeds = tf.contrib.framework.assign_from_checkpoint(path, {"here/v": x})
        restore = tf.contrib.framework.assign_from_checkpoint_fn(path, {"w": y})
        values = tf.contrib.framework.assign_from_values_fn({"x": np.array([5.0, 6.0], "float32")})
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(operation, feeds)
            found.append(session.run([x, y]))
            restore(session)
            found.append(session.run([x, y]))
            values(session)
            found.append(session.run([x, y]))
    for init in (tf.train.init_from_checkpoint, tf.contrib.framework.init_from_checkpoint):
        with tf.Graph().as_default():
            x = tf.get_variable("x", [2])
            init(path, {"here/v": "x"})
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                found.append(session.run(x))
    tf.train.remove_checkpoint(path)
    found.append(tf.train.checkpoint_exists(path))
    return found


def case_scopes_of_arguments(tf):
    framework = tf.contrib.framework

    @framework.add_arg_scope
    def asked(a, b=1):
        return [a, b]

    found = [asked(0), list(framework.arg_scoped_arguments(asked))]
    with framework.arg_scope([asked], b=5):
        found += [asked(1), asked(1, b=2), len(framework.current_arg_scope())]
    return [*found, asked(2), len(framework.current_arg_scope())]


def case_pipelines(tf):
    data = tf.data.experimental
    old = tf.contrib.data

    def listed(dataset):
        element = tf.data.make_one_shot_iterator(dataset).get_next()
        found = []
        with tf.Session() as session:
            while len(found) < 20:
                try:
                    found.append(session.run(element))
                except tf.errors.OutOfRangeError:
                    break
        return found

    numbers = tf.data.Dataset.range(7)
    found = [
        listed(numbers.apply(data.enumerate_dataset(3)))[:2],
        listed(numbers.apply(old.enumerate_dataset(3)))[-1:],
        listed(numbers.apply(old.batch_and_drop_remainder(3))),
        listed(
            numbers.map(lambda n: tf.fill([tf.cast(n % 2 + 1, tf.int32)], n)).apply(
                old.padded_batch_and_drop_remainder(3, [None])
            )
        ),
        sorted(listed(numbers.apply(data.shuffle_and_repeat(3, 2, seed=4)))),
        sorted(listed(numbers.apply(old.shuffle_and_repeat(3, 1, seed=4)))),
        listed(numbers.apply(data.parallel_interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2), 2))),
        sorted(listed(numbers.apply(old.parallel_interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2), 2)))),
        sorted(listed(numbers.apply(old.sloppy_interleave(lambda n: tf.data.Dataset.from_tensors(n), 2)))),
        sorted(listed(data.sample_from_datasets([numbers, numbers], seed=3))),
        sorted(listed(old.sample_from_datasets([numbers], [1.0], seed=3))),
    ]
    options = tf.data.Options()
    options.experimental_deterministic = False
    options.experimental_distribute = data.DistributeOptions()
    options.experimental_optimization = data.OptimizationOptions()
    options.experimental_threading = data.ThreadingOptions()
    found.append(listed(numbers.with_options(options)))
    found.append(numbers.with_options(options).options().experimental_deterministic)
    return found


def case_metrics_of_old(tf):
    metrics = tf.contrib.metrics
    predictions, labels = tf.constant([0.1, 0.8, 0.6, 0.3]), tf.constant([0, 1, 0, 1])
    truth, said = tf.constant([True, False, True, True]), tf.constant([True, True, False, True])
    scores = tf.constant([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    classes = tf.constant([[1], [2]], tf.int64)
    found = {
        "false_negatives": metrics.streaming_false_negatives(said, truth),
        "false_positives": metrics.streaming_false_positives(said, truth),
        "true_negatives": metrics.streaming_true_negatives(said, truth),
        "true_positives": metrics.streaming_true_positives(said, truth),
        "mean_absolute_error": metrics.streaming_mean_absolute_error(predictions, tf.cast(labels, tf.float32)),
        "mean_cosine_distance": metrics.streaming_mean_cosine_distance(scores, scores * scores, 1),
        "mean_iou": metrics.streaming_mean_iou(tf.constant([0, 1, 1, 0]), labels, 2),
        "mean_relative_error": metrics.streaming_mean_relative_error(predictions, tf.ones([4]), tf.fill([4], 2.0)),
        "recall": metrics.streaming_recall(said, truth),
        "root_mean_squared_error": metrics.streaming_root_mean_squared_error(predictions, tf.cast(labels, tf.float32)),
        "sensitivity": metrics.streaming_sensitivity_at_specificity(predictions, truth, 0.5),
        "specificity": metrics.streaming_specificity_at_sensitivity(predictions, truth, 0.5),
        "sparse_precision": metrics.streaming_sparse_precision_at_k(scores, classes, 2),
        "sparse_recall": metrics.streaming_sparse_recall_at_k(scores, classes, 2),
        "precision_at_top_k": tf.metrics.precision_at_top_k(classes, tf.constant([[1, 0], [0, 1]], tf.int64)),
    }
    several = (
        metrics.streaming_false_negatives_at_thresholds,
        metrics.streaming_false_positives_at_thresholds,
        metrics.streaming_true_negatives_at_thresholds,
        metrics.streaming_true_positives_at_thresholds,
        metrics.streaming_precision_at_thresholds,
        metrics.streaming_recall_at_thresholds,
    )
    for number, function in enumerate(several):
        found["at thresholds {}".format(number)] = function(predictions, truth, [0.2, 0.5])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        return {name: [session.run(update), session.run(value)] for name, (value, update) in found.items()}


def case_files_of_words(tf):
    path = os.path.join(tempfile.mkdtemp(), "words")
    with open(path, "w") as file:
        file.write("a\nb\nc\n")
    lookup = tf.contrib.lookup
    index = lookup.HashTable(lookup.TextFileIdTableInitializer(path), -1)
    words = lookup.HashTable(lookup.TextFileStringTableInitializer(path), "none")
    more = lookup.IdTableWithHashBuckets(index, 2)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        strings = tf.constant(["b", "c", "x"])
        return session.run([index.lookup(strings), words.lookup(tf.constant([1, 9], tf.int64)), more.lookup(strings)])


def case_threads_that_loop(tf):
    coordinator = tf.train.Coordinator()
    turns = []

    def once():
        turns.append(1)
        if len(turns) == 3:
            coordinator.request_stop()

    thread = tf.train.LooperThread.loop(coordinator, None, once)
    coordinator.join([thread])
    return len(turns)


def case_settings_of_threads(tf):
    # set_inter_op_parallelism_threads and set_intra_op_parallelism_threads of what is there already
    threading = tf.config.threading
    before = [threading.get_inter_op_parallelism_threads(), threading.get_intra_op_parallelism_threads()]
    threading.set_inter_op_parallelism_threads(before[0])
    threading.set_intra_op_parallelism_threads(before[1])
    tf.debugging.set_log_device_placement(False)
    devices = tf.config.experimental
    devices.set_visible_devices(devices.get_visible_devices("CPU"), "CPU")
    return before


def case_baselines(tf):
    column = tf.feature_column.numeric_column("x")
    fed = tf.estimator.inputs.numpy_input_fn({"x": X[:, 0]}, np.array([1.0, 3.0]), 2, 200, False)
    head = tf.estimator.RegressionHead()
    baseline = tf.estimator.BaselineEstimator(head, optimizer=tf.train.FtrlOptimizer(0.5))
    baseline.train(fed)
    once = tf.estimator.inputs.numpy_input_fn({"x": X[:, 0]}, None, 2, 1, False)
    found = [round(float(each["predictions"][0]), 2) for each in baseline.predict(once)]
    both = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[column], dnn_feature_columns=[column], dnn_hidden_units=[2]
    )
    both.train(tf.estimator.inputs.numpy_input_fn({"x": X[:, 0]}, np.array([0, 1]), 2, 2, False))
    return [*found, sorted(next(iter(both.predict(once))))[:3]]


def case_registered_conversions(tf):
    class Metres:
        def __init__(self, number):
            self.number = number

    def converted(value, dtype=None, name=None, as_ref=False):
        return tf.constant(value.number, dtype, name=name)

    tf.register_tensor_conversion_function(Metres, converted)
    with tf.op_scope([], "here", "default") as scope, tf.Session() as session:
        return [scope, session.run(tf.convert_to_tensor(Metres(2.5)) + 1.0)]


def case_gradients_passed_through(tf):
    with tf.variable_scope("here", use_resource=True):
        x = tf.get_variable("x", initializer=1.5)
        y = tf.get_variable("y", initializer=2.5)
    z = tf.grad_pass_through(x.assign)(y * 2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(z), session.run(tf.gradients(z, y)[0])]


def case_summaries(tf):
    v = tf.summary.scalar("s", 1.5)
    folder = tempfile.mkdtemp()
    writer = tf.summary.FileWriterCache.get(folder)
    with tf.Session() as session:
        writer.add_summary(session.run(v), 1)
    same = tf.summary.FileWriterCache.get(folder) is writer
    tf.summary.FileWriterCache.clear()
    return [same, [e.summary.value[0].simple_value for p in os.listdir(folder) for e in _events(tf, folder, p)]]


def _events(tf, folder, name):
    return [e for e in tf.train.summary_iterator(os.path.join(folder, name)) if e.HasField("summary")]


def case_batches_maybe(tf):
    keep = tf.constant(True)
    number = tf.constant([1.0, 2.0])
    batches = [
        tf.train.maybe_batch_join([[number], [number]], keep, 2),
        tf.train.maybe_shuffle_batch([number], 2, 10, 2, keep),
        tf.train.maybe_shuffle_batch_join([[number], [number]], 2, 10, 2, keep),
    ]
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = session.run(batches)
        coordinator.request_stop()
        coordinator.join(threads, ignore_live_threads=True)
    return found


def case_optimizers(tf):
    v = tf.get_variable("v", initializer=[1.0, -2.0])
    found = []
    step = tf.train.get_or_create_global_step()
    for optimizer in (
        tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.1),
        tf.train.ProximalGradientDescentOptimizer(0.1, l2_regularization_strength=0.1),
        tf.train.AdagradDAOptimizer(0.1, step),
    ):
        train = optimizer.minimize(tf.reduce_sum(v * v), step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            found.append(session.run(v))
    return found


def case_sessions_made(tf):
    v = tf.get_variable("v", initializer=1.5)
    manager = tf.train.SessionManager()
    with manager.prepare_session("", init_op=tf.global_variables_initializer()) as session:
        found = [session.run(v)]

    class Fed(tf.train.SessionRunHook):
        def before_run(self, run_context):
            found.append(isinstance(run_context, tf.train.SessionRunContext))
            return tf.train.SessionRunArgs(v)

        def after_run(self, run_context, run_values):
            found.append([isinstance(run_values, tf.train.SessionRunValues), run_values.results])

    with tf.train.SingularMonitoredSession([Fed()]) as session:
        session.run(v.op)
    return [*found, issubclass(tf.train.WorkerSessionCreator, tf.train.SessionCreator)]
