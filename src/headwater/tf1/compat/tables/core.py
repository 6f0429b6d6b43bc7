"""The names of ``tf`` itself."""

from __future__ import annotations

from typing import Final

from headwater.tf1.compat.names import Area

CORE: Final = Area(
    "Graphs, sessions, variables, operations.",
    names={
        "headwater.graph.graph": "Graph",
        "headwater.graph.operation": "Operation Tensor",
        "headwater.graph.indexed_slices": "IndexedSlices",
        "headwater.graph.collections": "GraphKeys",
        "headwater.graph.constants": "get_static_value",
        "headwater.graph.context": "get_default_graph get_default_session reset_default_graph",
        "headwater.graph.convert": "constant convert_to_tensor register_tensor_conversion_function",
        "headwater.graph.importer": "import_graph_def",
        "headwater.data.io.tensor_proto": "make_ndarray make_tensor_proto",
        "headwater.graph.session.session": "InteractiveSession Session",
        "headwater.cluster.devices": "DeviceSpec",
        "headwater.errors": "OpError",
        "headwater.shapes": "Dimension TensorShape dimension_at_index dimension_value",
        "headwater.dtypes": """
            DType as_dtype bfloat16 bool=bool_ complex128 complex64 double float16 float32 float64 half int16 int32
            int64 int8 qint16 qint32 qint8 quint16 quint8 QUANTIZED_DTYPES resource string uint16 uint32
            uint64 uint8 variant""",
        "headwater.tf1.functional.default_graph": """
            add_to_collection add_to_collections colocate_with container control_dependencies
            convert_to_tensor_or_indexed_slices device get_collection get_collection_ref is_tensor name_scope
            op_scope""",
        "headwater.tf1.functional.critical_section": "CriticalSection",
        "headwater.tf1.functional.gradients": """
            AggregationMethod NoGradient NotDifferentiable RegisterGradient UnconnectedGradients custom_gradient
            grad_pass_through gradients hessians no_gradient=NotDifferentiable recompute_grad""",
        "headwater.tf1.compat.switches": """
            control_flow_v2_enabled disable_control_flow_v2 disable_eager_execution disable_resource_variables
            disable_tensor_equality disable_v2_behavior disable_v2_tensorshape enable_control_flow_v2
            enable_eager_execution enable_resource_variables enable_tensor_equality enable_v2_behavior
            enable_v2_tensorshape executing_eagerly
            resource_variables_enabled""",
        "headwater.tf1.compat.logging": "get_logger",
        "tensorboard.compat.proto.attr_value_pb2": "AttrValue NameAttrList",
        "tensorboard.compat.proto.config_pb2": """
            ConfigProto GPUOptions GraphOptions OptimizerOptions RunMetadata RunOptions""",
        "tensorboard.compat.proto.event_pb2": "Event LogMessage SessionLog",
        "tensorboard.compat.proto.graph_pb2": "GraphDef",
        "tensorboard.compat.proto.meta_graph_pb2": "MetaGraphDef TensorInfo",
        "tensorboard.compat.proto.node_def_pb2": "NodeDef",
        "tensorboard.compat.proto.summary_pb2": "HistogramProto Summary SummaryMetadata",
        "headwater.tf1.functional.quantized": "dequantize quantize quantize_v2 quantized_concat",
        "headwater.tf1.variables.creators": "variable_creator_scope",
        "headwater.tf1.variables.module": "Module",
        "headwater.tf1.variables.variables": "Variable VariableAggregation VariableSynchronization init_scope",
        "headwater.tf1.variables.variable_lists": """
            all_variables assert_variables_initialized global_variables global_variables_initializer
            initialize_all_variables initialize_local_variables initialize_variables local_variables
            local_variables_initializer model_variables moving_average_variables report_uninitialized_variables
            trainable_variables variables_initializer""",
        "headwater.tf1.variables.scope_settings": "AUTO_REUSE VariableScope no_regularizer",
        "headwater.tf1.variables.variable_scope": """
            get_local_variable get_variable get_variable_scope variable_op_scope variable_scope""",
        "headwater.tf1.variables.template": "make_template",
        "headwater.tf1.variables.old_partitions": "create_partitioned_variables",
        "headwater.tf1.variables.partitioned": """
            fixed_size_partitioner min_max_variable_partitioner variable_axis_size_partitioner""",
        "headwater.tf1.variables.initializers": """
            constant_initializer=Constant glorot_normal_initializer=GlorotNormal
            glorot_uniform_initializer=GlorotUniform ones_initializer=Ones orthogonal_initializer=Orthogonal
            random_normal_initializer=RandomNormal random_uniform_initializer=RandomUniform
            truncated_normal_initializer=TruncatedNormal uniform_unit_scaling_initializer=UniformUnitScaling
            variance_scaling_initializer=VarianceScaling zeros_initializer=Zeros""",
        "headwater.tf1.variables.state": """
            assign assign_add assign_sub batch_scatter_update count_up_to is_variable_initialized scatter_add
            scatter_div scatter_max scatter_min scatter_mul scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub
            scatter_update""",
        "headwater.tf1.input.queues": "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue",
        "headwater.tf1.functional.accumulators": """
            ConditionalAccumulator ConditionalAccumulatorBase SparseConditionalAccumulator""",
        "headwater.tf1.input.readers": """
            FixedLengthRecordReader IdentityReader LMDBReader ReaderBase TFRecordReader TextLineReader WholeFileReader
            matching_files read_file write_file""",
        "headwater.data.spec": "TensorSpec",
        "headwater.tf1.input.optionals": "OptionalSpec",
        "headwater.tf1.input.specs": "IndexedSlicesSpec RaggedTensorSpec SparseTensorSpec TensorArraySpec TypeSpec",
        "headwater.tf1.functional.fake_quantization": """
            fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars
            fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel
            fake_quant_with_min_max_vars_per_channel_gradient""",
        "headwater.tf1.input.sequences": """
            deserialize_many_sparse parse_single_sequence_example serialize_many_sparse serialize_sparse""",
        "headwater.tf1.input.parsing": """
            FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_compressed decode_csv
            parse_example parse_single_example parse_tensor serialize_tensor""",
        "headwater.tf1.functional.conditions": "case cond switch_case",
        "headwater.tf1.functional.control_flow": """
            group initialize_all_tables=tables_initializer no_op tables_initializer tuple""",
        "headwater.tf1.functional.gradient_tape": "GradientTape",
        "headwater.tf1.functional.py_functions": "py_function",
        "headwater.tf1.functional.graph_functions": "function",
        "headwater.tf1.functional.higher_order": "foldl foldr map_fn scan",
        "headwater.tf1.functional.loops": "while_loop",
        "headwater.tf1.functional.tensor_arrays": "TensorArray",
        "headwater.tf1.functional.math": """
            abs accumulate_n acos acosh add add_n angle asin asinh atan atan2 atanh bitcast cast ceil complex
            complex_abs=abs conj cos cosh div div_no_nan divide equal exp expm1 floor floor_div floordiv floormod
            greater greater_equal imag is_finite is_inf is_nan is_non_decreasing is_numeric_tensor
            is_strictly_increasing less less_equal log log1p log_sigmoid logical_and logical_not logical_or
            logical_xor maximum minimum mod=floormod mul=multiply multiply neg=negative negative not_equal pow real
            realdiv reciprocal rint round rsqrt saturate_cast scalar_mul sigmoid sign sin sinh sqrt square
            squared_difference sub=subtract subtract tan tanh to_bfloat16 to_complex128 to_complex64 to_double
            to_float to_int32 to_int64 truediv truncatediv truncatemod""",
        "headwater.tf1.functional.reductions": """
            argmax argmin bincount count_nonzero cumprod cumsum histogram_fixed_width histogram_fixed_width_bins
            reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
            segment_max segment_mean segment_min segment_prod segment_sum sparse_segment_mean sparse_segment_sqrt_n
            sparse_segment_sum unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod
            unsorted_segment_sqrt_n unsorted_segment_sum""",
        "headwater.tf1.functional.arrays": """
            batch_matrix_transpose=matrix_transpose broadcast_dynamic_shape broadcast_static_shape broadcast_to
            concat_v2=concat ensure_shape expand_dims fill guarantee_const identity identity_n matrix_transpose ones
            ones_like pad parallel_stack placeholder placeholder_with_default range rank reshape reverse_v2=reverse
            roll shape shape_n size squeeze stack stop_gradient tile transpose unstack zeros zeros_like""",
        "headwater.tf1.functional.grids": "invert_permutation lin_space linspace=lin_space meshgrid repeat",
        "headwater.tf1.functional.searching": """
            argsort searchsorted setdiff1d sort unique unique_with_counts unravel_index""",
        "headwater.tf1.functional.ragged_tensor": "RaggedTensor",
        "headwater.tf1.functional.session_tensors": "delete_session_tensor get_session_handle get_session_tensor",
        "headwater.tf1.functional.small_functions": "decode_json_example extract_volume_patches vectorized_map",
        "headwater.tf1.functional.indexing": """
            batch_gather boolean_mask dynamic_partition dynamic_stitch gather gather_nd newaxis one_hot
            reverse_sequence scatter_nd select sequence_mask slice sparse_to_dense strided_slice tensor_scatter_add
            tensor_scatter_nd_add=tensor_scatter_add tensor_scatter_nd_sub=tensor_scatter_sub
            tensor_scatter_nd_update=tensor_scatter_update tensor_scatter_sub tensor_scatter_update where where_v2""",
        "headwater.tf1.functional.factorisations": """
            batch_cholesky=cholesky batch_cholesky_solve=cholesky_solve batch_matrix_determinant=matrix_determinant
            batch_matrix_inverse=matrix_inverse batch_matrix_solve=matrix_solve
            batch_matrix_triangular_solve=matrix_triangular_solve
            batch_self_adjoint_eig=self_adjoint_eig batch_self_adjoint_eigvals=self_adjoint_eigvals batch_svd=svd
            cholesky cholesky_solve matrix_determinant matrix_inverse matrix_solve
            matrix_square_root matrix_triangular_solve qr self_adjoint_eig self_adjoint_eigvals svd""",
        "headwater.tf1.functional.matrices": "batch_matrix_solve_ls=matrix_solve_ls matrix_solve_ls",
        "headwater.tf1.functional.special": "betainc digamma erf erfc igamma igammac lbeta lgamma polygamma zeta",
        "headwater.tf1.functional.linalg": """
            batch_matrix_band_part=matrix_band_part batch_matrix_diag=matrix_diag
            batch_matrix_diag_part=matrix_diag_part batch_matrix_set_diag=matrix_set_diag cross diag diag_part
            einsum eye matmul matrix_band_part matrix_diag matrix_diag_part matrix_set_diag norm sparse_matmul
            tensordot trace""",
        "headwater.tf1.functional.random": """
            get_seed multinomial random_crop random_gamma random_normal random_poisson random_shuffle random_uniform
            set_random_seed truncated_normal""",
        "headwater.tf1.functional.clip": """
            clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm""",
        "headwater.tf1.functional.space_to_batch": """
            batch_to_space batch_to_space_nd depth_to_space extract_image_patches required_space_to_batch_paddings
            space_to_batch space_to_batch_nd space_to_depth""",
        "headwater.tf1.functional.fourier": """
            batch_fft=fft batch_fft2d=fft2d batch_fft3d=fft3d batch_ifft=ifft batch_ifft2d=ifft2d
            batch_ifft3d=ifft3d fft fft2d fft3d ifft ifft2d ifft3d""",
        "headwater.tf1.functional.losses": "confusion_matrix",
        "headwater.tf1.functional.checks": """
            Assert assert_equal assert_greater assert_greater_equal assert_integer assert_less assert_less_equal
            assert_near assert_negative assert_non_negative assert_non_positive assert_none_equal assert_positive
            assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in assert_same_float_dtype
            add_check_numerics_ops assert_scalar assert_type check_numerics verify_tensor_all_finite""",
        "headwater.tf1.functional.script": "Print numpy_function print=print_ py_func timestamp",
        "headwater.tf1.functional.sparse": """
            SparseTensor SparseTensorValue convert_to_tensor_or_sparse_tensor sparse_placeholder
            sparse_tensor_dense_matmul sparse_tensor_to_dense""",
        "headwater.tf1.functional.sparse_changes": """
            sparse_concat sparse_fill_empty_rows sparse_reduce_max sparse_reduce_max_sparse sparse_reduce_sum
            sparse_reduce_sum_sparse sparse_reorder sparse_reshape sparse_retain sparse_to_indicator
            sparse_transpose""",
        "headwater.tf1.functional.sparse_parts": "sparse_mask sparse_slice",
        "headwater.tf1.functional.sparse_pairs": """
            sparse_add sparse_maximum sparse_merge sparse_minimum sparse_reset_shape sparse_softmax sparse_split""",
        "headwater.tf1.functional.sets": "edit_distance",
        "headwater.tf1.functional.tables": """
            string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong""",
        "headwater.tf1.functional.strings": """
            as_string decode_base64 decode_raw encode_base64 reduce_join regex_replace string_join
            string_strip string_to_number substr fingerprint""",
        "headwater.tf1.functional.ragged_parts": "string_split",
        "headwater.tf1.compat.old_summaries": """
            audio_summary histogram_summary image_summary merge_all_summaries merge_summary scalar_summary""",
        "headwater.tf1.compat.old": "arg_max arg_min batch_matmul concat inv listdiff pack reverse split unpack",
    },
    modules={
        "headwater.tf1.compat": "app flags gfile logging nest resource_loader",
        "headwater.tf1.compat.tf": """
            audio autograph bitwise compat config contrib data debugging distribute distributions dtypes errors
            estimator examples experimental feature_column graph_util image initializers io layers linalg lookup
            losses manip math metrics nn profiler python_io quantization queue ragged random saved_model sets signal
            sparse spectral strings summary sysconfig test tpu train user_ops version xla""",
        "headwater.keras": "keras=namespace",
        "headwater.tf1.functional": "raw_ops",
    },
)
