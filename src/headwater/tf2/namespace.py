"""The namespace ``tf`` of TensorFlow 2: eager objects, and TensorFlow 1's functions with eager execution.

A function of `headwater.tf1.compat.tf` adds operations to a graph; here `headwater.tf2.at_once` runs it eagerly.
`ARGUMENTS` lists functions with other arguments in TensorFlow 2; `NAMES` lists names of different objects.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headwater.tf1.compat import tf as graphs
from headwater.tf1.compat.modules import missing_attribute
from headwater.tf1.functional.ragged_dispatch import dispatching

if TYPE_CHECKING:
    from headwater.graph.types import Structure


#: Names of each namespace of TensorFlow 2, by the module that defines them: ``name`` or ``name=name in the module``.
NAMES: Mapping[str, Mapping[str, str]] = {
    "": {
        "headwater.tf2.composites": "RaggedTensor SparseTensor",
        "headwater.tf2.tape": "GradientTape",
        "headwater.tf1.functional.factorisations": "eig eigvals",
        "headwater.tf1.functional.fourier": "fftnd ifftnd irfftnd rfftnd",
        "headwater.tf1.functional.indexing": "tensor_scatter_nd_max tensor_scatter_nd_min",
        "headwater.tf2.forward": "recompute_grad",
        "headwater.tf2.function": "function",
        "headwater.tf2.functional": "get_current_name_scope linspace map_fn type_spec_from_value",
        "headwater.tf2.modules": "Module",
        "headwater.tf2.reductions": "argmax argmin reduce_max reduce_min",
        "headwater.tf2.tensor_arrays": "TensorArray",
        "headwater.tf2.tensors": "Variable constant convert_to_tensor is_symbolic_tensor is_tensor",
        "headwater.tf2.programs": """
            Tensor executing_eagerly init_scope inside_function=inside_function numpy_function py_function""",
    },
    "autodiff": {"headwater.tf2.forward": "ForwardAccumulator", "headwater.tf2.tape": "GradientTape"},
    "autograph": {"headwater.tf1.functional.autograph.public": "set_verbosity to_code to_graph trace"},
    "autograph.experimental": {"headwater.tf1.functional.autograph.public": "Feature do_not_convert set_loop_options"},
    "config": {
        "headwater.tf2.function": """
            run_functions_eagerly functions_run_eagerly experimental_functions_run_eagerly=functions_run_eagerly
            experimental_run_functions_eagerly=run_functions_eagerly""",
        "headwater.graph.runtime.device_settings": """
            LogicalDeviceConfiguration=VirtualDeviceConfiguration
            get_logical_device_configuration=get_virtual_device_configuration
            set_logical_device_configuration=set_virtual_device_configuration""",
    },
    "config.experimental": {
        "headwater.graph.runtime.device_settings": "get_device_details get_memory_info get_memory_usage",
        "headwater.tf2.at_once": "enable_op_determinism",
    },
    "config.optimizer": {"headwater.graph.session.default_config": "get_jit=get_compiler set_jit=set_compiler"},
    "data": {
        "headwater.data.options": "ThreadingOptions",
        "headwater.tf2.data": "Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset",
        "headwater.tf2.numpy_iterator": "NumpyIterator",
    },
    "data.experimental": {
        "headwater.tf2.data": "assert_cardinality at dense_to_ragged_batch from_list load save snapshot",
        "headwater.tf2.file_datasets": "CsvDataset SqlDataset make_batched_features_dataset make_csv_dataset",
    },
    "debugging": {
        "keras.config": """
            disable_traceback_filtering enable_traceback_filtering is_traceback_filtering_enabled""",
        "headwater.tf2.numeric_checks": "disable_check_numerics enable_check_numerics",
    },
    "distribute": {
        "headwater.tf2.strategies": """
            MirroredStrategy MultiWorkerMirroredStrategy OneDeviceStrategy Strategy=DefaultStrategy get_strategy""",
        "headwater.tf2.parameter_server": "ParameterServerStrategy Server",
    },
    "distribute.coordinator": {"headwater.tf2.parameter_server": "ClusterCoordinator"},
    "distribute.experimental.coordinator": {"headwater.tf2.parameter_server": "ClusterCoordinator"},
    "distribute.experimental": {
        "headwater.tf2.strategies": "MultiWorkerMirroredStrategy=ExperimentalMultiWorkerMirroredStrategy",
        "headwater.tf2.parameter_server": "ParameterServerStrategy",
    },
    "image": {
        "headwater.tf1.functional.image_files": "decode_webp",
        "headwater.tf2.images": """
            resize resize_with_pad stateless_random_brightness stateless_random_contrast stateless_random_crop
            stateless_random_flip_left_right stateless_random_flip_up_down stateless_random_hue
            stateless_random_saturation""",
    },
    "io": {
        "headwater.tf1.functional.image_files": "decode_webp",
        "headwater.tf1.input.ragged_features": "RaggedFeature",
    },
    "io.gfile": {"posixpath": "join"},
    "linalg": {
        "headwater.tf1.functional.factorisations": "eig eigvals",
        "headwater.tf1.functional.matrices": "lu_matrix_inverse lu_reconstruct lu_solve",
    },
    "lookup": {"headwater.tf2.lookup_tables": "KeyValueTensorInitializer StaticHashTable StaticVocabularyTable"},
    "lookup.experimental": {"headwater.tf2.lookup_tables": "DenseHashTable MutableHashTable"},
    "math": {
        "headwater.tf2.reductions": "argmax argmin reduce_max reduce_min",
        "headwater.tf1.functional.special": "erfcinv erfinv ndtri xlog1py",
        "headwater.tf1.functional.ragged_parts": "bincount",
    },
    "math.special": {
        "headwater.tf1.functional.special": """
            bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e bessel_k1 bessel_k1e
            bessel_y0 bessel_y1 dawsn expint fresnel_cos fresnel_sin spence"""
    },
    "nn": {"headwater.tf1.functional.nn": "gelu silu=swish"},
    "ragged": {"headwater.tf1.functional.small_functions": "cross=ragged_cross cross_hashed=ragged_cross_hashed"},
    "random": {
        "headwater.tf1.functional.stateless": """
            Algorithm create_rng_state fold_in split stateless_binomial=binomial stateless_gamma=gamma
            stateless_normal=normal stateless_parameterized_truncated_normal=parameterized_truncated_normal
            stateless_poisson=poisson stateless_truncated_normal=truncated_normal stateless_uniform=uniform""",
        "headwater.tf2.at_once": "set_seed",
        "headwater.tf2.generators": "Generator get_global_generator set_global_generator",
    },
    "random.experimental": {
        "headwater.tf1.functional.stateless": """
            Algorithm create_rng_state stateless_fold_in=fold_in stateless_split=split""",
        "headwater.tf2.generators": "Generator get_global_generator set_global_generator",
    },
    "saved_model": {
        "headwater.tf2.loaded_model": "load",
        "headwater.tf2.options": "LoadOptions SaveOptions",
        "headwater.tf2.saved_model": "save",
    },
    "signal": {
        "headwater.tf1.functional.fourier": "fftnd ifftnd irfftnd rfftnd",
        "headwater.tf1.functional.signal": "kaiser_bessel_derived_window kaiser_window vorbis_window",
    },
    "sparse": {
        "headwater.tf2.composites": "SparseTensor",
        "headwater.tf1.functional.ragged_parts": "bincount=sparse_bincount map_values",
    },
    "strings": {"headwater.tf1.functional.ragged_parts": "split=split_text"},
    "summary": {
        "headwater.tf2.summaries": """
            SummaryWriter audio create_file_writer create_noop_writer experimental flush graph histogram image
            record_if scalar should_record_summaries text trace_export trace_off trace_on write"""
    },
    "train": {
        "headwater.tf2.checkpoints": "Checkpoint CheckpointManager",
        "headwater.tf2.options": "CheckpointOptions",
    },
}

#: Namespaces that are Keras's.
KERAS: Mapping[str, str] = {
    "initializers": "initializers",
    "losses": "losses",
    "metrics": "metrics",
    "optimizers": "optimizers",
}

#: Initializers, which return values in TensorFlow 2.
INITIALIZERS: Mapping[str, str] = {
    "constant_initializer": "Constant",
    "ones_initializer": "Ones",
    "random_normal_initializer": "RandomNormal",
    "random_uniform_initializer": "RandomUniform",
    "zeros_initializer": "Zeros",
}

#: Functions with fewer arguments than in TensorFlow 1, or in another order; for each its arguments.
ARGUMENTS: Mapping[str, str] = {
    "assert_equal": "x y message summarize name",
    "assert_greater": "x y message summarize name",
    "assert_less": "x y message summarize name",
    "assert_rank": "x rank message name",
    "batch_to_space": "input block_shape crops name",
    "boolean_mask": "tensor mask axis name",
    "cond": "pred true_fn false_fn name",
    "debugging.assert_all_finite": "x message name",
    "debugging.assert_equal": "x y message summarize name",
    "debugging.assert_greater": "x y message summarize name",
    "debugging.assert_greater_equal": "x y message summarize name",
    "debugging.assert_less": "x y message summarize name",
    "debugging.assert_less_equal": "x y message summarize name",
    "debugging.assert_near": "x y rtol atol message summarize name",
    "debugging.assert_negative": "x message summarize name",
    "debugging.assert_non_negative": "x message summarize name",
    "debugging.assert_non_positive": "x message summarize name",
    "debugging.assert_none_equal": "x y summarize message name",
    "debugging.assert_positive": "x message summarize name",
    "debugging.assert_rank": "x rank message name",
    "debugging.assert_rank_at_least": "x rank message name",
    "debugging.assert_rank_in": "x ranks message name",
    "debugging.assert_scalar": "tensor message name",
    "device": "device_name_or_function=device_name",
    "gather": "params indices validate_indices axis batch_dims name",
    "gather_nd": "params indices batch_dims name",
    "gradients": "ys xs grad_ys name gate_gradients aggregation_method stop_gradients unconnected_gradients",
    "hessians": "ys xs gate_gradients aggregation_method name",
    "image.crop_and_resize": "image boxes box_indices crop_size method extrapolation_value name",
    "image.draw_bounding_boxes": "images boxes colors name",
    "image.sample_distorted_bounding_box": """
        image_size bounding_boxes seed min_object_covered aspect_ratio_range area_range max_attempts
        use_image_if_no_bounding_boxes name""",
    "io.decode_csv": "records record_defaults field_delim use_quote_delim na_value select_cols name",
    "io.decode_raw": "input_bytes out_type little_endian name",
    "io.parse_example": "serialized features example_names name",
    "io.parse_single_example": "serialized features example_names name",
    "io.serialize_many_sparse": "sp_input out_type name",
    "io.serialize_sparse": "sp_input out_type name",
    "math.confusion_matrix": "labels predictions num_classes weights dtype name",
    "math.count_nonzero": "input_tensor=input axis keepdims dtype name",
    "math.in_top_k": "targets predictions k name",
    "math.log_softmax": "logits axis name",
    "math.softmax": "logits axis name",
    "nn.avg_pool": "value=input ksize strides padding data_format name",
    "nn.avg_pool2d": "value=input ksize strides padding data_format name",
    "nn.batch_norm_with_global_normalization": """
        input mean variance beta gamma variance_epsilon scale_after_normalization name""",
    "nn.conv1d": "input filters stride padding data_format dilations name",
    "nn.conv2d": "input filters strides padding data_format dilations name",
    "nn.conv2d_transpose": "input filters output_shape strides padding data_format dilations name",
    "nn.conv3d": "input filters strides padding data_format dilations name",
    "nn.conv3d_transpose": "value=input filters output_shape strides padding data_format dilations name",
    "nn.convolution": "input filter=filters strides padding data_format dilations name",
    "nn.crelu": "features axis name",
    "nn.ctc_loss": "labels logits label_length logit_length logits_time_major unique blank_index name",
    "nn.depth_to_space": "input block_size data_format name",
    "nn.depthwise_conv2d": "input filter strides padding data_format dilations name",
    "nn.dropout": "x rate noise_shape seed name",
    "nn.embedding_lookup": "params ids max_norm name",
    "nn.embedding_lookup_sparse": "params sp_ids sp_weights combiner max_norm name",
    "nn.fractional_avg_pool": "value pooling_ratio pseudo_random overlapping seed name",
    "nn.fractional_max_pool": "value pooling_ratio pseudo_random overlapping seed name",
    "nn.in_top_k": "targets predictions k name",
    "nn.log_softmax": "logits axis name",
    "nn.max_pool": "value=input ksize strides padding data_format name",
    "nn.max_pool_with_argmax": "input ksize strides padding data_format output_dtype include_batch_in_index name",
    "nn.moments": "x axes shift keep_dims=keepdims name",
    "nn.nce_loss": """
        weights biases labels inputs num_sampled num_classes num_true sampled_values remove_accidental_hits
        name""",
    "nn.pool": "input window_shape pooling_type strides padding data_format dilations name",
    "nn.safe_embedding_lookup_sparse": "embedding_weights sparse_ids sparse_weights combiner default_id max_norm name",
    "nn.sampled_softmax_loss": """
        weights biases labels inputs num_sampled num_classes num_true sampled_values remove_accidental_hits
        seed name""",
    "nn.separable_conv2d": "input depthwise_filter pointwise_filter strides padding data_format dilations name",
    "nn.sigmoid_cross_entropy_with_logits": "labels logits name",
    "nn.softmax": "logits axis name",
    "nn.softmax_cross_entropy_with_logits": "labels logits axis name",
    "nn.space_to_batch": "input block_shape paddings name",
    "nn.space_to_depth": "input block_size data_format name",
    "nn.sparse_softmax_cross_entropy_with_logits": "labels logits name",
    "nn.sufficient_statistics": "x axes shift keepdims name",
    "nn.weighted_moments": "x axes frequency_weights keepdims name",
    "norm": "tensor ord axis keepdims name",
    "ones_like": "tensor=input dtype name",
    "pad": "tensor paddings mode constant_values name",
    "random.poisson": "shape lam dtype seed name",
    "ragged.stack": "values axis name",
    "range": "start limit delta dtype name",
    "shape": "input out_type name",
    "size": "input out_type name",
    "space_to_batch": "input block_shape paddings name",
    "sparse.concat": "axis sp_inputs expand_nonconcat_dims name",
    "sparse.segment_mean": "data indices segment_ids num_segments name",
    "sparse.segment_sqrt_n": "data indices segment_ids num_segments name",
    "sparse.segment_sum": "data indices segment_ids num_segments name",
    "sparse.split": "sp_input num_split axis name",
    "strings.length": "input unit name",
    "strings.reduce_join": "inputs axis keepdims separator name",
    "strings.substr": "input pos len unit name",
    "strings.to_hash_bucket": "input num_buckets name",
    "strings.to_number": "input out_type name",
    "transpose": "a perm conjugate name",
    "tuple": "tensors control_inputs name",
    "where": "condition x y name",
    "while_loop": """
        cond body loop_vars shape_invariants parallel_iterations back_prop swap_memory maximum_iterations
        name""",
    "zeros_like": "tensor=input dtype name",
}
_BEHIND = {
    "nn.ctc_loss": "nn.ctc_loss_v2",
    "nn.softmax_cross_entropy_with_logits": "nn.softmax_cross_entropy_with_logits_v2",
    "where": "where_v2",
}

_FIXED: Mapping[str, Mapping[str, object]] = {
    "range": {"casts": True},
    "ragged.stack": {"keeps_rows": True},
    "while_loop": {"return_same_structure": True},
}
"""Arguments of TensorFlow 1 that TensorFlow 2 has removed, with the value that TensorFlow 2 implies."""

_TOP = """
    AggregationMethod Assert DType DeviceSpec GradientTape Graph IndexedSlices Module Operation OptionalSpec
    RaggedTensor RaggedTensorSpec RegisterGradient SparseTensor SparseTensorSpec Tensor TensorArray TensorArraySpec
    TensorShape TensorSpec TypeSpec UnconnectedGradients Variable VariableAggregation VariableSynchronization abs acos
    acosh add add_n argmax argmin argsort as_dtype as_string asin asinh assert_equal assert_greater assert_less
    assert_rank atan atan2 atanh audio autodiff autograph batch_to_space bfloat16 bitcast bitwise bool boolean_mask
    broadcast_dynamic_shape broadcast_static_shape broadcast_to case cast clip_by_global_norm clip_by_norm
    clip_by_value compat complex complex128 complex64 concat cond config constant constant_initializer
    control_dependencies convert_to_tensor cos cosh cumsum custom_gradient data debugging device distribute divide
    double dtypes dynamic_partition dynamic_stitch edit_distance eig eigvals einsum ensure_shape equal errors
    executing_eagerly exp expand_dims extract_volume_patches eye feature_column fftnd fill fingerprint float16 float32
    float64 floor foldl foldr function gather gather_nd get_current_name_scope get_logger get_static_value
    grad_pass_through gradients graph_util greater greater_equal group guarantee_const half hessians
    histogram_fixed_width histogram_fixed_width_bins identity identity_n ifftnd image import_graph_def init_scope
    initializers inside_function int16 int32 int64 int8 io irfftnd is_symbolic_tensor is_tensor keras less less_equal
    linalg linspace logical_and logical_not logical_or lookup losses make_ndarray make_tensor_proto map_fn math matmul
    matrix_square_root maximum meshgrid metrics minimum multiply name_scope negative nest newaxis nn no_op norm
    not_equal numpy_function one_hot ones ones_initializer ones_like optimizers pad parallel_stack pow print
    py_function qint16 qint32 qint8 quantization queue quint16 quint8 ragged random random_normal_initializer
    random_uniform_initializer range rank raw_ops realdiv recompute_grad reduce_all reduce_any reduce_logsumexp
    reduce_max reduce_mean reduce_min reduce_prod reduce_sum register_tensor_conversion_function repeat
    required_space_to_batch_paddings reshape resource reverse reverse_sequence rfftnd roll round saturate_cast
    saved_model scalar_mul scan scatter_nd searchsorted sequence_mask sets shape shape_n sigmoid sign signal sin sinh
    size slice sort space_to_batch space_to_batch_nd sparse split sqrt square squeeze stack stop_gradient strided_slice
    string strings subtract summary switch_case tan tanh tensor_scatter_nd_add tensor_scatter_nd_max
    tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tensordot test tile timestamp train transpose
    truediv truncatediv truncatemod tuple type_spec_from_value uint16 uint32 uint64 uint8 unique unique_with_counts
    unravel_index unstack variant vectorized_map version where while_loop xla zeros zeros_initializer zeros_like
"""
#: Names of TensorFlow 1 that TensorFlow 2 has in ``tf`` itself; the others are in ``tf.compat.v1``.
TOP = frozenset(_TOP.split())

VERSION = "2.16.0"


_EAGER = (
    "headwater.data.",
    "headwater.graph.runtime.",
    "headwater.graph.session.",
    "headwater.tf1.functional.autograph.",
    "headwater.tf2.",
    "keras.",
    "posixpath",
)
"""Beginnings of the names of modules whose functions are called without changes."""


class Namespace(ModuleType):
    """A namespace of TensorFlow 2.

    Args:
      path: its name within ``tf``; empty for ``tf`` itself.
      below: the namespace of TensorFlow 1 with the same name.
    """

    def __init__(self, path: str, below: object) -> None:
        super().__init__(f"{__name__}.{path}".rstrip("."), getattr(below, "__doc__", None))
        own: dict[str, tuple[str, str]] = {}
        for source, listed in NAMES.get(path, {}).items():
            for word in listed.split():
                name, _, there = word.partition("=")
                own[name] = (source, there or name)
        self.__dict__.update(_own=own, _path=path, _below=below, __path__=[])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._find(name)
        self.__dict__[name] = value
        return value

    def _find(self, name: str) -> Any:
        _adapt_libraries()
        path: str = self.__dict__["_path"]
        below = self.__dict__["_below"]
        own: Mapping[str, tuple[str, str]] = self.__dict__["_own"]
        inner = f"{path}.{name}".lstrip(".")
        if name in own:
            source, there = own[name]
            found = getattr(importlib.import_module(source), there)
            return found if source.startswith(_EAGER) else _eager(found, source, there, inner)
        if not path:
            if name in KERAS:
                return getattr(graphs.keras, KERAS[name])
            if name in INITIALIZERS:
                return getattr(graphs.keras.initializers, INITIALIZERS[name])
            if name == "compat":
                return _compat
            if name == "keras":
                from headwater.keras.namespace import keras_of_2  # noqa: PLC0415  imports Keras: only if needed

                return keras_of_2()
            if name in ("errors", "dtypes", "test"):
                return getattr(below, name)
            if name not in TOP:
                raise missing_attribute("tensorflow", name)
        if inner in ARGUMENTS:
            behind: Any = graphs
            for part in _BEHIND.get(inner, inner).split("."):
                behind = getattr(behind, part)
            return _at_once(with_arguments(behind, ARGUMENTS[inner], name, _FIXED.get(inner)), inner)
        value = getattr(below, name, None) if inner in NAMES else getattr(below, name)
        if isinstance(value, ModuleType) or inner in NAMES:
            return Namespace(inner, value)
        return _at_once(value, inner) if inspect.isfunction(value) else value

    def __dir__(self) -> list[str]:
        if not self.__dict__["_path"]:
            return sorted(TOP)
        return sorted({*dir(self.__dict__["_below"]), *self.__dict__["_own"]})


def with_arguments(
    function: Callable[..., object], listed: str, name: str, fixed: Mapping[str, object] | None = None
) -> Callable[..., object]:
    """Wraps ``function`` to accept TensorFlow 2's arguments.

    Args:
      listed: their names in order; ``its=name`` if the function has another name for the argument.
      name: for messages.
      fixed: further arguments for the function.
    """
    names: dict[str, str] = {}
    for word in listed.split():
        its, _, new = word.partition("=")
        names[new or its] = its

    def call(*args: object, **kwargs: object) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{name}() takes {len(names)} positional arguments but {len(args)} were given")
        given = dict(zip(names, args, strict=False))
        for key, value in kwargs.items():
            if key not in names or key in given:
                reason = "an unexpected keyword argument" if key not in names else "multiple values for argument"
                raise TypeError(f"{name}() got {reason} {key!r}")
            given[key] = value
        return function(**{names[key]: value for key, value in given.items()}, **(fixed or {}))

    call.__name__, call.__doc__ = name, function.__doc__
    call.__dict__["__wrapped__"] = function
    return call


def _eager(found: object, source: str, there: str, path: str) -> object:
    """Returns an object of TensorFlow 1's modules for TensorFlow 2: a function takes ragged tensors, and is eager."""
    if not callable(found) or inspect.isclass(found):
        return found
    return _at_once(dispatching(found, source, there), path)


def _at_once(function: Callable[..., Structure], path: str) -> object:
    from headwater.tf2.at_once import at_once  # noqa: PLC0415  imports Keras and JAX

    return at_once(function, path)


def _adapt_libraries() -> None:
    """Adapts Keras's optimizers and JAX's arrays to programs of TensorFlow 2."""
    from headwater.tf2.programs import adapt_libraries  # noqa: PLC0415  imports Keras and JAX

    adapt_libraries()


_compat = ModuleType(f"{__name__}.compat", "``tf.compat``.")
_top = Namespace("", graphs)
_compat.__dict__.update({name: getattr(graphs.compat, name) for name in dir(graphs.compat) if not name.startswith("_")})
_compat.__dict__.update(v1=graphs, v2=_top)
_top.__dict__.update(__version__=VERSION, VERSION=VERSION, __git_version__=f"v{VERSION}-headwater")
tf = sys.modules[f"{__name__}.tf"] = _top
