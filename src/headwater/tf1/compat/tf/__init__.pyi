# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
import builtins
from typing import Any
from headwater.dtypes import DTypeLike
from headwater.graph.types import Ints
from headwater.graph.operation import Operation
from headwater.graph.types import SparseLike
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.variables.variables import Variable
from headwater.cluster.devices import DeviceSpec as DeviceSpec
from headwater.data.io.tensor_proto import make_ndarray as make_ndarray
from headwater.data.io.tensor_proto import make_tensor_proto as make_tensor_proto
from headwater.data.spec import TensorSpec as TensorSpec
from headwater.dtypes import DType as DType
from headwater.dtypes import QUANTIZED_DTYPES as QUANTIZED_DTYPES
from headwater.dtypes import as_dtype as as_dtype
from headwater.dtypes import bfloat16 as bfloat16
from headwater.dtypes import bool_ as bool
from headwater.dtypes import complex128 as complex128
from headwater.dtypes import complex64 as complex64
from headwater.dtypes import double as double
from headwater.dtypes import float16 as float16
from headwater.dtypes import float32 as float32
from headwater.dtypes import float64 as float64
from headwater.dtypes import half as half
from headwater.dtypes import int16 as int16
from headwater.dtypes import int32 as int32
from headwater.dtypes import int64 as int64
from headwater.dtypes import int8 as int8
from headwater.dtypes import qint16 as qint16
from headwater.dtypes import qint32 as qint32
from headwater.dtypes import qint8 as qint8
from headwater.dtypes import quint16 as quint16
from headwater.dtypes import quint8 as quint8
from headwater.dtypes import resource as resource
from headwater.dtypes import string as string
from headwater.dtypes import uint16 as uint16
from headwater.dtypes import uint32 as uint32
from headwater.dtypes import uint64 as uint64
from headwater.dtypes import uint8 as uint8
from headwater.dtypes import variant as variant
from headwater.errors import OpError as OpError
from headwater.graph.collections import GraphKeys as GraphKeys
from headwater.graph.constants import get_static_value as get_static_value
from headwater.graph.context import get_default_graph as get_default_graph
from headwater.graph.context import get_default_session as get_default_session
from headwater.graph.context import reset_default_graph as reset_default_graph
from headwater.graph.convert import constant as constant
from headwater.graph.convert import convert_to_tensor as convert_to_tensor
from headwater.graph.convert import register_tensor_conversion_function as register_tensor_conversion_function
from headwater.graph.graph import Graph as Graph
from headwater.graph.importer import import_graph_def as import_graph_def
from headwater.graph.indexed_slices import IndexedSlices as IndexedSlices
from headwater.graph.operation import Operation as Operation
from headwater.graph.operation import Tensor as Tensor
from headwater.graph.session.session import InteractiveSession as InteractiveSession
from headwater.graph.session.session import Session as Session
from headwater.keras import namespace as keras
from headwater.shapes import Dimension as Dimension
from headwater.shapes import TensorShape as TensorShape
from headwater.shapes import dimension_at_index as dimension_at_index
from headwater.shapes import dimension_value as dimension_value
from headwater.tf1.compat import app as app
from headwater.tf1.compat import flags as flags
from headwater.tf1.compat import gfile as gfile
from headwater.tf1.compat import logging as logging
from headwater.tf1.compat import nest as nest
from headwater.tf1.compat import resource_loader as resource_loader
from headwater.tf1.compat.logging import get_logger as get_logger
from headwater.tf1.compat.old import arg_max as arg_max
from headwater.tf1.compat.old import arg_min as arg_min
from headwater.tf1.compat.old import batch_matmul as batch_matmul
from headwater.tf1.compat.old import concat as concat
from headwater.tf1.compat.old import inv as inv
from headwater.tf1.compat.old import listdiff as listdiff
from headwater.tf1.compat.old import pack as pack
from headwater.tf1.compat.old import reverse as reverse
from headwater.tf1.compat.old import split as split
from headwater.tf1.compat.old import unpack as unpack
from headwater.tf1.compat.old_summaries import audio_summary as audio_summary
from headwater.tf1.compat.old_summaries import histogram_summary as histogram_summary
from headwater.tf1.compat.old_summaries import image_summary as image_summary
from headwater.tf1.compat.old_summaries import merge_all_summaries as merge_all_summaries
from headwater.tf1.compat.old_summaries import merge_summary as merge_summary
from headwater.tf1.compat.old_summaries import scalar_summary as scalar_summary
from headwater.tf1.compat.switches import control_flow_v2_enabled as control_flow_v2_enabled
from headwater.tf1.compat.switches import disable_control_flow_v2 as disable_control_flow_v2
from headwater.tf1.compat.switches import disable_eager_execution as disable_eager_execution
from headwater.tf1.compat.switches import disable_resource_variables as disable_resource_variables
from headwater.tf1.compat.switches import disable_tensor_equality as disable_tensor_equality
from headwater.tf1.compat.switches import disable_v2_behavior as disable_v2_behavior
from headwater.tf1.compat.switches import disable_v2_tensorshape as disable_v2_tensorshape
from headwater.tf1.compat.switches import enable_control_flow_v2 as enable_control_flow_v2
from headwater.tf1.compat.switches import enable_eager_execution as enable_eager_execution
from headwater.tf1.compat.switches import enable_resource_variables as enable_resource_variables
from headwater.tf1.compat.switches import enable_tensor_equality as enable_tensor_equality
from headwater.tf1.compat.switches import enable_v2_behavior as enable_v2_behavior
from headwater.tf1.compat.switches import enable_v2_tensorshape as enable_v2_tensorshape
from headwater.tf1.compat.switches import executing_eagerly as executing_eagerly
from headwater.tf1.compat.switches import resource_variables_enabled as resource_variables_enabled
from headwater.tf1.compat.tf import audio as audio
from headwater.tf1.compat.tf import autograph as autograph
from headwater.tf1.compat.tf import bitwise as bitwise
from headwater.tf1.compat.tf import compat as compat
from headwater.tf1.compat.tf import config as config
from headwater.tf1.compat.tf import contrib as contrib
from headwater.tf1.compat.tf import data as data
from headwater.tf1.compat.tf import debugging as debugging
from headwater.tf1.compat.tf import distribute as distribute
from headwater.tf1.compat.tf import distributions as distributions
from headwater.tf1.compat.tf import dtypes as dtypes
from headwater.tf1.compat.tf import errors as errors
from headwater.tf1.compat.tf import estimator as estimator
from headwater.tf1.compat.tf import examples as examples
from headwater.tf1.compat.tf import experimental as experimental
from headwater.tf1.compat.tf import feature_column as feature_column
from headwater.tf1.compat.tf import graph_util as graph_util
from headwater.tf1.compat.tf import image as image
from headwater.tf1.compat.tf import initializers as initializers
from headwater.tf1.compat.tf import io as io
from headwater.tf1.compat.tf import layers as layers
from headwater.tf1.compat.tf import linalg as linalg
from headwater.tf1.compat.tf import lookup as lookup
from headwater.tf1.compat.tf import losses as losses
from headwater.tf1.compat.tf import manip as manip
from headwater.tf1.compat.tf import math as math
from headwater.tf1.compat.tf import metrics as metrics
from headwater.tf1.compat.tf import nn as nn
from headwater.tf1.compat.tf import profiler as profiler
from headwater.tf1.compat.tf import python_io as python_io
from headwater.tf1.compat.tf import quantization as quantization
from headwater.tf1.compat.tf import queue as queue
from headwater.tf1.compat.tf import ragged as ragged
from headwater.tf1.compat.tf import random as random
from headwater.tf1.compat.tf import saved_model as saved_model
from headwater.tf1.compat.tf import sets as sets
from headwater.tf1.compat.tf import signal as signal
from headwater.tf1.compat.tf import sparse as sparse
from headwater.tf1.compat.tf import spectral as spectral
from headwater.tf1.compat.tf import strings as strings
from headwater.tf1.compat.tf import summary as summary
from headwater.tf1.compat.tf import sysconfig as sysconfig
from headwater.tf1.compat.tf import test as test
from headwater.tf1.compat.tf import tpu as tpu
from headwater.tf1.compat.tf import train as train
from headwater.tf1.compat.tf import user_ops as user_ops
from headwater.tf1.compat.tf import version as version
from headwater.tf1.compat.tf import xla as xla
from headwater.tf1.functional import raw_ops as raw_ops
from headwater.tf1.functional.accumulators import ConditionalAccumulator as ConditionalAccumulator
from headwater.tf1.functional.accumulators import ConditionalAccumulatorBase as ConditionalAccumulatorBase
from headwater.tf1.functional.accumulators import SparseConditionalAccumulator as SparseConditionalAccumulator
from headwater.tf1.functional.arrays import broadcast_dynamic_shape as broadcast_dynamic_shape
from headwater.tf1.functional.arrays import broadcast_static_shape as broadcast_static_shape
from headwater.tf1.functional.arrays import broadcast_to as broadcast_to
from headwater.tf1.functional.arrays import concat as concat_v2
from headwater.tf1.functional.arrays import ensure_shape as ensure_shape
from headwater.tf1.functional.arrays import expand_dims as expand_dims
from headwater.tf1.functional.arrays import fill as fill
from headwater.tf1.functional.arrays import guarantee_const as guarantee_const
from headwater.tf1.functional.arrays import identity as identity
from headwater.tf1.functional.arrays import identity_n as identity_n
from headwater.tf1.functional.arrays import matrix_transpose as batch_matrix_transpose
from headwater.tf1.functional.arrays import matrix_transpose as matrix_transpose
from headwater.tf1.functional.arrays import ones as ones
from headwater.tf1.functional.arrays import ones_like as ones_like
from headwater.tf1.functional.arrays import pad as pad
from headwater.tf1.functional.arrays import parallel_stack as parallel_stack
from headwater.tf1.functional.arrays import placeholder as placeholder
from headwater.tf1.functional.arrays import placeholder_with_default as placeholder_with_default
from headwater.tf1.functional.arrays import range as range
from headwater.tf1.functional.arrays import rank as rank
from headwater.tf1.functional.arrays import reshape as reshape
from headwater.tf1.functional.arrays import reverse as reverse_v2
from headwater.tf1.functional.arrays import roll as roll
from headwater.tf1.functional.arrays import shape as shape
from headwater.tf1.functional.arrays import shape_n as shape_n
from headwater.tf1.functional.arrays import size as size
from headwater.tf1.functional.arrays import squeeze as squeeze
from headwater.tf1.functional.arrays import stack as stack
from headwater.tf1.functional.arrays import stop_gradient as stop_gradient
from headwater.tf1.functional.arrays import tile as tile
from headwater.tf1.functional.arrays import transpose as transpose
from headwater.tf1.functional.arrays import unstack as unstack
from headwater.tf1.functional.arrays import zeros as zeros
from headwater.tf1.functional.arrays import zeros_like as zeros_like
from headwater.tf1.functional.checks import Assert as Assert
from headwater.tf1.functional.checks import add_check_numerics_ops as add_check_numerics_ops
from headwater.tf1.functional.checks import assert_integer as assert_integer
from headwater.tf1.functional.checks import assert_near as assert_near
from headwater.tf1.functional.checks import assert_proper_iterable as assert_proper_iterable
from headwater.tf1.functional.checks import assert_rank as assert_rank
from headwater.tf1.functional.checks import assert_rank_at_least as assert_rank_at_least
from headwater.tf1.functional.checks import assert_rank_in as assert_rank_in
from headwater.tf1.functional.checks import assert_same_float_dtype as assert_same_float_dtype
from headwater.tf1.functional.checks import assert_scalar as assert_scalar
from headwater.tf1.functional.checks import assert_type as assert_type
from headwater.tf1.functional.checks import check_numerics as check_numerics
from headwater.tf1.functional.checks import verify_tensor_all_finite as verify_tensor_all_finite
from headwater.tf1.functional.clip import clip_by_average_norm as clip_by_average_norm
from headwater.tf1.functional.clip import clip_by_global_norm as clip_by_global_norm
from headwater.tf1.functional.clip import clip_by_norm as clip_by_norm
from headwater.tf1.functional.clip import clip_by_value as clip_by_value
from headwater.tf1.functional.clip import global_norm as global_norm
from headwater.tf1.functional.conditions import case as case
from headwater.tf1.functional.conditions import cond as cond
from headwater.tf1.functional.conditions import switch_case as switch_case
from headwater.tf1.functional.control_flow import group as group
from headwater.tf1.functional.control_flow import no_op as no_op
from headwater.tf1.functional.control_flow import tables_initializer as initialize_all_tables
from headwater.tf1.functional.control_flow import tables_initializer as tables_initializer
from headwater.tf1.functional.control_flow import tuple as tuple
from headwater.tf1.functional.critical_section import CriticalSection as CriticalSection
from headwater.tf1.functional.default_graph import add_to_collection as add_to_collection
from headwater.tf1.functional.default_graph import add_to_collections as add_to_collections
from headwater.tf1.functional.default_graph import colocate_with as colocate_with
from headwater.tf1.functional.default_graph import container as container
from headwater.tf1.functional.default_graph import control_dependencies as control_dependencies
from headwater.tf1.functional.default_graph import convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices
from headwater.tf1.functional.default_graph import device as device
from headwater.tf1.functional.default_graph import get_collection as get_collection
from headwater.tf1.functional.default_graph import get_collection_ref as get_collection_ref
from headwater.tf1.functional.default_graph import is_tensor as is_tensor
from headwater.tf1.functional.default_graph import name_scope as name_scope
from headwater.tf1.functional.default_graph import op_scope as op_scope
from headwater.tf1.functional.factorisations import cholesky as batch_cholesky
from headwater.tf1.functional.factorisations import cholesky as cholesky
from headwater.tf1.functional.factorisations import cholesky_solve as batch_cholesky_solve
from headwater.tf1.functional.factorisations import cholesky_solve as cholesky_solve
from headwater.tf1.functional.factorisations import matrix_determinant as batch_matrix_determinant
from headwater.tf1.functional.factorisations import matrix_determinant as matrix_determinant
from headwater.tf1.functional.factorisations import matrix_inverse as batch_matrix_inverse
from headwater.tf1.functional.factorisations import matrix_inverse as matrix_inverse
from headwater.tf1.functional.factorisations import matrix_solve as batch_matrix_solve
from headwater.tf1.functional.factorisations import matrix_solve as matrix_solve
from headwater.tf1.functional.factorisations import matrix_square_root as matrix_square_root
from headwater.tf1.functional.factorisations import matrix_triangular_solve as batch_matrix_triangular_solve
from headwater.tf1.functional.factorisations import matrix_triangular_solve as matrix_triangular_solve
from headwater.tf1.functional.factorisations import qr as qr
from headwater.tf1.functional.factorisations import self_adjoint_eig as batch_self_adjoint_eig
from headwater.tf1.functional.factorisations import self_adjoint_eig as self_adjoint_eig
from headwater.tf1.functional.factorisations import self_adjoint_eigvals as batch_self_adjoint_eigvals
from headwater.tf1.functional.factorisations import self_adjoint_eigvals as self_adjoint_eigvals
from headwater.tf1.functional.factorisations import svd as batch_svd
from headwater.tf1.functional.factorisations import svd as svd
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from headwater.tf1.functional.gradient_tape import GradientTape as GradientTape
from headwater.tf1.functional.gradients import AggregationMethod as AggregationMethod
from headwater.tf1.functional.gradients import NoGradient as NoGradient
from headwater.tf1.functional.gradients import NotDifferentiable as NotDifferentiable
from headwater.tf1.functional.gradients import NotDifferentiable as no_gradient
from headwater.tf1.functional.gradients import RegisterGradient as RegisterGradient
from headwater.tf1.functional.gradients import UnconnectedGradients as UnconnectedGradients
from headwater.tf1.functional.gradients import custom_gradient as custom_gradient
from headwater.tf1.functional.gradients import grad_pass_through as grad_pass_through
from headwater.tf1.functional.gradients import gradients as gradients
from headwater.tf1.functional.gradients import hessians as hessians
from headwater.tf1.functional.gradients import recompute_grad as recompute_grad
from headwater.tf1.functional.graph_functions import function as function
from headwater.tf1.functional.grids import invert_permutation as invert_permutation
from headwater.tf1.functional.grids import lin_space as lin_space
from headwater.tf1.functional.grids import lin_space as linspace
from headwater.tf1.functional.grids import meshgrid as meshgrid
from headwater.tf1.functional.grids import repeat as repeat
from headwater.tf1.functional.higher_order import foldl as foldl
from headwater.tf1.functional.higher_order import foldr as foldr
from headwater.tf1.functional.higher_order import map_fn as map_fn
from headwater.tf1.functional.higher_order import scan as scan
from headwater.tf1.functional.indexing import batch_gather as batch_gather
from headwater.tf1.functional.indexing import boolean_mask as boolean_mask
from headwater.tf1.functional.indexing import dynamic_partition as dynamic_partition
from headwater.tf1.functional.indexing import dynamic_stitch as dynamic_stitch
from headwater.tf1.functional.indexing import gather as gather
from headwater.tf1.functional.indexing import gather_nd as gather_nd
from headwater.tf1.functional.indexing import newaxis as newaxis
from headwater.tf1.functional.indexing import one_hot as one_hot
from headwater.tf1.functional.indexing import reverse_sequence as reverse_sequence
from headwater.tf1.functional.indexing import scatter_nd as scatter_nd
from headwater.tf1.functional.indexing import select as select
from headwater.tf1.functional.indexing import sequence_mask as sequence_mask
from headwater.tf1.functional.indexing import slice as slice
from headwater.tf1.functional.indexing import sparse_to_dense as sparse_to_dense
from headwater.tf1.functional.indexing import strided_slice as strided_slice
from headwater.tf1.functional.indexing import tensor_scatter_add as tensor_scatter_add
from headwater.tf1.functional.indexing import tensor_scatter_add as tensor_scatter_nd_add
from headwater.tf1.functional.indexing import tensor_scatter_sub as tensor_scatter_nd_sub
from headwater.tf1.functional.indexing import tensor_scatter_sub as tensor_scatter_sub
from headwater.tf1.functional.indexing import tensor_scatter_update as tensor_scatter_nd_update
from headwater.tf1.functional.indexing import tensor_scatter_update as tensor_scatter_update
from headwater.tf1.functional.indexing import where as where
from headwater.tf1.functional.indexing import where_v2 as where_v2
from headwater.tf1.functional.linalg import cross as cross
from headwater.tf1.functional.linalg import diag as diag
from headwater.tf1.functional.linalg import diag_part as diag_part
from headwater.tf1.functional.linalg import einsum as einsum
from headwater.tf1.functional.linalg import eye as eye
from headwater.tf1.functional.linalg import matmul as matmul
from headwater.tf1.functional.linalg import matrix_band_part as batch_matrix_band_part
from headwater.tf1.functional.linalg import matrix_band_part as matrix_band_part
from headwater.tf1.functional.linalg import matrix_diag as batch_matrix_diag
from headwater.tf1.functional.linalg import matrix_diag as matrix_diag
from headwater.tf1.functional.linalg import matrix_diag_part as batch_matrix_diag_part
from headwater.tf1.functional.linalg import matrix_diag_part as matrix_diag_part
from headwater.tf1.functional.linalg import matrix_set_diag as batch_matrix_set_diag
from headwater.tf1.functional.linalg import matrix_set_diag as matrix_set_diag
from headwater.tf1.functional.linalg import norm as norm
from headwater.tf1.functional.linalg import sparse_matmul as sparse_matmul
from headwater.tf1.functional.linalg import tensordot as tensordot
from headwater.tf1.functional.linalg import trace as trace
from headwater.tf1.functional.loops import while_loop as while_loop
from headwater.tf1.functional.losses import confusion_matrix as confusion_matrix
from headwater.tf1.functional.math import abs as abs
from headwater.tf1.functional.math import abs as complex_abs
from headwater.tf1.functional.math import accumulate_n as accumulate_n
from headwater.tf1.functional.math import add_n as add_n
from headwater.tf1.functional.math import angle as angle
from headwater.tf1.functional.math import atan2 as atan2
from headwater.tf1.functional.math import bitcast as bitcast
from headwater.tf1.functional.math import cast as cast
from headwater.tf1.functional.math import complex as complex
from headwater.tf1.functional.math import conj as conj
from headwater.tf1.functional.math import div as div
from headwater.tf1.functional.math import div_no_nan as div_no_nan
from headwater.tf1.functional.math import divide as divide
from headwater.tf1.functional.math import floordiv as floordiv
from headwater.tf1.functional.math import imag as imag
from headwater.tf1.functional.math import is_non_decreasing as is_non_decreasing
from headwater.tf1.functional.math import is_numeric_tensor as is_numeric_tensor
from headwater.tf1.functional.math import is_strictly_increasing as is_strictly_increasing
from headwater.tf1.functional.math import log_sigmoid as log_sigmoid
from headwater.tf1.functional.math import logical_xor as logical_xor
from headwater.tf1.functional.math import pow as pow
from headwater.tf1.functional.math import real as real
from headwater.tf1.functional.math import round as round
from headwater.tf1.functional.math import saturate_cast as saturate_cast
from headwater.tf1.functional.math import scalar_mul as scalar_mul
from headwater.tf1.functional.math import truediv as truediv
from headwater.tf1.functional.matrices import matrix_solve_ls as batch_matrix_solve_ls
from headwater.tf1.functional.matrices import matrix_solve_ls as matrix_solve_ls
from headwater.tf1.functional.py_functions import py_function as py_function
from headwater.tf1.functional.quantized import dequantize as dequantize
from headwater.tf1.functional.quantized import quantize as quantize
from headwater.tf1.functional.quantized import quantize_v2 as quantize_v2
from headwater.tf1.functional.quantized import quantized_concat as quantized_concat
from headwater.tf1.functional.ragged_parts import string_split as string_split
from headwater.tf1.functional.ragged_tensor import RaggedTensor as RaggedTensor
from headwater.tf1.functional.random import get_seed as get_seed
from headwater.tf1.functional.random import multinomial as multinomial
from headwater.tf1.functional.random import random_crop as random_crop
from headwater.tf1.functional.random import random_gamma as random_gamma
from headwater.tf1.functional.random import random_normal as random_normal
from headwater.tf1.functional.random import random_poisson as random_poisson
from headwater.tf1.functional.random import random_shuffle as random_shuffle
from headwater.tf1.functional.random import random_uniform as random_uniform
from headwater.tf1.functional.random import set_random_seed as set_random_seed
from headwater.tf1.functional.random import truncated_normal as truncated_normal
from headwater.tf1.functional.reductions import bincount as bincount
from headwater.tf1.functional.reductions import count_nonzero as count_nonzero
from headwater.tf1.functional.reductions import cumprod as cumprod
from headwater.tf1.functional.reductions import cumsum as cumsum
from headwater.tf1.functional.reductions import histogram_fixed_width as histogram_fixed_width
from headwater.tf1.functional.reductions import histogram_fixed_width_bins as histogram_fixed_width_bins
from headwater.tf1.functional.reductions import reduce_logsumexp as reduce_logsumexp
from headwater.tf1.functional.reductions import unsorted_segment_mean as unsorted_segment_mean
from headwater.tf1.functional.reductions import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from headwater.tf1.functional.script import Print as Print
from headwater.tf1.functional.script import numpy_function as numpy_function
from headwater.tf1.functional.script import print_ as print
from headwater.tf1.functional.script import py_func as py_func
from headwater.tf1.functional.script import timestamp as timestamp
from headwater.tf1.functional.searching import argsort as argsort
from headwater.tf1.functional.searching import searchsorted as searchsorted
from headwater.tf1.functional.searching import setdiff1d as setdiff1d
from headwater.tf1.functional.searching import sort as sort
from headwater.tf1.functional.searching import unique as unique
from headwater.tf1.functional.searching import unique_with_counts as unique_with_counts
from headwater.tf1.functional.searching import unravel_index as unravel_index
from headwater.tf1.functional.session_tensors import delete_session_tensor as delete_session_tensor
from headwater.tf1.functional.session_tensors import get_session_handle as get_session_handle
from headwater.tf1.functional.session_tensors import get_session_tensor as get_session_tensor
from headwater.tf1.functional.sets import edit_distance as edit_distance
from headwater.tf1.functional.small_functions import decode_json_example as decode_json_example
from headwater.tf1.functional.small_functions import extract_volume_patches as extract_volume_patches
from headwater.tf1.functional.small_functions import vectorized_map as vectorized_map
from headwater.tf1.functional.space_to_batch import batch_to_space as batch_to_space
from headwater.tf1.functional.space_to_batch import batch_to_space_nd as batch_to_space_nd
from headwater.tf1.functional.space_to_batch import depth_to_space as depth_to_space
from headwater.tf1.functional.space_to_batch import extract_image_patches as extract_image_patches
from headwater.tf1.functional.space_to_batch import required_space_to_batch_paddings as required_space_to_batch_paddings
from headwater.tf1.functional.space_to_batch import space_to_batch as space_to_batch
from headwater.tf1.functional.space_to_batch import space_to_batch_nd as space_to_batch_nd
from headwater.tf1.functional.space_to_batch import space_to_depth as space_to_depth
from headwater.tf1.functional.sparse import SparseTensor as SparseTensor
from headwater.tf1.functional.sparse import SparseTensorValue as SparseTensorValue
from headwater.tf1.functional.sparse import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor
from headwater.tf1.functional.sparse import sparse_placeholder as sparse_placeholder
from headwater.tf1.functional.sparse import sparse_tensor_dense_matmul as sparse_tensor_dense_matmul
from headwater.tf1.functional.sparse import sparse_tensor_to_dense as sparse_tensor_to_dense
from headwater.tf1.functional.sparse_changes import sparse_concat as sparse_concat
from headwater.tf1.functional.sparse_changes import sparse_fill_empty_rows as sparse_fill_empty_rows
from headwater.tf1.functional.sparse_changes import sparse_reduce_max as sparse_reduce_max
from headwater.tf1.functional.sparse_changes import sparse_reduce_max_sparse as sparse_reduce_max_sparse
from headwater.tf1.functional.sparse_changes import sparse_reduce_sum as sparse_reduce_sum
from headwater.tf1.functional.sparse_changes import sparse_reduce_sum_sparse as sparse_reduce_sum_sparse
from headwater.tf1.functional.sparse_changes import sparse_reorder as sparse_reorder
from headwater.tf1.functional.sparse_changes import sparse_reshape as sparse_reshape
from headwater.tf1.functional.sparse_changes import sparse_retain as sparse_retain
from headwater.tf1.functional.sparse_changes import sparse_to_indicator as sparse_to_indicator
from headwater.tf1.functional.sparse_changes import sparse_transpose as sparse_transpose
from headwater.tf1.functional.sparse_pairs import sparse_add as sparse_add
from headwater.tf1.functional.sparse_pairs import sparse_maximum as sparse_maximum
from headwater.tf1.functional.sparse_pairs import sparse_merge as sparse_merge
from headwater.tf1.functional.sparse_pairs import sparse_minimum as sparse_minimum
from headwater.tf1.functional.sparse_pairs import sparse_reset_shape as sparse_reset_shape
from headwater.tf1.functional.sparse_pairs import sparse_softmax as sparse_softmax
from headwater.tf1.functional.sparse_pairs import sparse_split as sparse_split
from headwater.tf1.functional.sparse_parts import sparse_mask as sparse_mask
from headwater.tf1.functional.sparse_parts import sparse_slice as sparse_slice
from headwater.tf1.functional.special import betainc as betainc
from headwater.tf1.functional.special import igamma as igamma
from headwater.tf1.functional.special import igammac as igammac
from headwater.tf1.functional.special import lbeta as lbeta
from headwater.tf1.functional.special import polygamma as polygamma
from headwater.tf1.functional.special import zeta as zeta
from headwater.tf1.functional.strings import as_string as as_string
from headwater.tf1.functional.strings import decode_raw as decode_raw
from headwater.tf1.functional.strings import encode_base64 as encode_base64
from headwater.tf1.functional.strings import fingerprint as fingerprint
from headwater.tf1.functional.strings import reduce_join as reduce_join
from headwater.tf1.functional.strings import regex_replace as regex_replace
from headwater.tf1.functional.strings import string_join as string_join
from headwater.tf1.functional.strings import string_to_number as string_to_number
from headwater.tf1.functional.strings import substr as substr
from headwater.tf1.functional.tables import string_to_hash_bucket as string_to_hash_bucket
from headwater.tf1.functional.tables import string_to_hash_bucket_fast as string_to_hash_bucket_fast
from headwater.tf1.functional.tables import string_to_hash_bucket_strong as string_to_hash_bucket_strong
from headwater.tf1.functional.tensor_arrays import TensorArray as TensorArray
from headwater.tf1.input.optionals import OptionalSpec as OptionalSpec
from headwater.tf1.input.parsing import FixedLenFeature as FixedLenFeature
from headwater.tf1.input.parsing import FixedLenSequenceFeature as FixedLenSequenceFeature
from headwater.tf1.input.parsing import SparseFeature as SparseFeature
from headwater.tf1.input.parsing import VarLenFeature as VarLenFeature
from headwater.tf1.input.parsing import decode_compressed as decode_compressed
from headwater.tf1.input.parsing import decode_csv as decode_csv
from headwater.tf1.input.parsing import parse_example as parse_example
from headwater.tf1.input.parsing import parse_single_example as parse_single_example
from headwater.tf1.input.parsing import parse_tensor as parse_tensor
from headwater.tf1.input.parsing import serialize_tensor as serialize_tensor
from headwater.tf1.input.queues import FIFOQueue as FIFOQueue
from headwater.tf1.input.queues import PaddingFIFOQueue as PaddingFIFOQueue
from headwater.tf1.input.queues import PriorityQueue as PriorityQueue
from headwater.tf1.input.queues import QueueBase as QueueBase
from headwater.tf1.input.queues import RandomShuffleQueue as RandomShuffleQueue
from headwater.tf1.input.readers import FixedLengthRecordReader as FixedLengthRecordReader
from headwater.tf1.input.readers import IdentityReader as IdentityReader
from headwater.tf1.input.readers import LMDBReader as LMDBReader
from headwater.tf1.input.readers import ReaderBase as ReaderBase
from headwater.tf1.input.readers import TFRecordReader as TFRecordReader
from headwater.tf1.input.readers import TextLineReader as TextLineReader
from headwater.tf1.input.readers import WholeFileReader as WholeFileReader
from headwater.tf1.input.readers import matching_files as matching_files
from headwater.tf1.input.readers import read_file as read_file
from headwater.tf1.input.readers import write_file as write_file
from headwater.tf1.input.sequences import deserialize_many_sparse as deserialize_many_sparse
from headwater.tf1.input.sequences import parse_single_sequence_example as parse_single_sequence_example
from headwater.tf1.input.sequences import serialize_many_sparse as serialize_many_sparse
from headwater.tf1.input.sequences import serialize_sparse as serialize_sparse
from headwater.tf1.input.specs import IndexedSlicesSpec as IndexedSlicesSpec
from headwater.tf1.input.specs import RaggedTensorSpec as RaggedTensorSpec
from headwater.tf1.input.specs import SparseTensorSpec as SparseTensorSpec
from headwater.tf1.input.specs import TensorArraySpec as TensorArraySpec
from headwater.tf1.input.specs import TypeSpec as TypeSpec
from headwater.tf1.variables.creators import variable_creator_scope as variable_creator_scope
from headwater.tf1.variables.initializers import Constant as constant_initializer
from headwater.tf1.variables.initializers import GlorotNormal as glorot_normal_initializer
from headwater.tf1.variables.initializers import GlorotUniform as glorot_uniform_initializer
from headwater.tf1.variables.initializers import Ones as ones_initializer
from headwater.tf1.variables.initializers import Orthogonal as orthogonal_initializer
from headwater.tf1.variables.initializers import RandomNormal as random_normal_initializer
from headwater.tf1.variables.initializers import RandomUniform as random_uniform_initializer
from headwater.tf1.variables.initializers import TruncatedNormal as truncated_normal_initializer
from headwater.tf1.variables.initializers import UniformUnitScaling as uniform_unit_scaling_initializer
from headwater.tf1.variables.initializers import VarianceScaling as variance_scaling_initializer
from headwater.tf1.variables.initializers import Zeros as zeros_initializer
from headwater.tf1.variables.module import Module as Module
from headwater.tf1.variables.old_partitions import create_partitioned_variables as create_partitioned_variables
from headwater.tf1.variables.partitioned import fixed_size_partitioner as fixed_size_partitioner
from headwater.tf1.variables.partitioned import min_max_variable_partitioner as min_max_variable_partitioner
from headwater.tf1.variables.partitioned import variable_axis_size_partitioner as variable_axis_size_partitioner
from headwater.tf1.variables.scope_settings import AUTO_REUSE as AUTO_REUSE
from headwater.tf1.variables.scope_settings import VariableScope as VariableScope
from headwater.tf1.variables.scope_settings import no_regularizer as no_regularizer
from headwater.tf1.variables.state import assign as assign
from headwater.tf1.variables.state import assign_add as assign_add
from headwater.tf1.variables.state import assign_sub as assign_sub
from headwater.tf1.variables.state import batch_scatter_update as batch_scatter_update
from headwater.tf1.variables.state import count_up_to as count_up_to
from headwater.tf1.variables.state import is_variable_initialized as is_variable_initialized
from headwater.tf1.variables.template import make_template as make_template
from headwater.tf1.variables.variable_lists import all_variables as all_variables
from headwater.tf1.variables.variable_lists import assert_variables_initialized as assert_variables_initialized
from headwater.tf1.variables.variable_lists import global_variables as global_variables
from headwater.tf1.variables.variable_lists import global_variables_initializer as global_variables_initializer
from headwater.tf1.variables.variable_lists import initialize_all_variables as initialize_all_variables
from headwater.tf1.variables.variable_lists import initialize_local_variables as initialize_local_variables
from headwater.tf1.variables.variable_lists import initialize_variables as initialize_variables
from headwater.tf1.variables.variable_lists import local_variables as local_variables
from headwater.tf1.variables.variable_lists import local_variables_initializer as local_variables_initializer
from headwater.tf1.variables.variable_lists import model_variables as model_variables
from headwater.tf1.variables.variable_lists import moving_average_variables as moving_average_variables
from headwater.tf1.variables.variable_lists import report_uninitialized_variables as report_uninitialized_variables
from headwater.tf1.variables.variable_lists import trainable_variables as trainable_variables
from headwater.tf1.variables.variable_lists import variables_initializer as variables_initializer
from headwater.tf1.variables.variable_scope import get_local_variable as get_local_variable
from headwater.tf1.variables.variable_scope import get_variable as get_variable
from headwater.tf1.variables.variable_scope import get_variable_scope as get_variable_scope
from headwater.tf1.variables.variable_scope import variable_op_scope as variable_op_scope
from headwater.tf1.variables.variable_scope import variable_scope as variable_scope
from headwater.tf1.variables.variables import Variable as Variable
from headwater.tf1.variables.variables import VariableAggregation as VariableAggregation
from headwater.tf1.variables.variables import VariableSynchronization as VariableSynchronization
from headwater.tf1.variables.variables import init_scope as init_scope
from tensorboard.compat.proto.attr_value_pb2 import AttrValue as AttrValue
from tensorboard.compat.proto.attr_value_pb2 import NameAttrList as NameAttrList
from tensorboard.compat.proto.config_pb2 import ConfigProto as ConfigProto
from tensorboard.compat.proto.config_pb2 import GPUOptions as GPUOptions
from tensorboard.compat.proto.config_pb2 import GraphOptions as GraphOptions
from tensorboard.compat.proto.config_pb2 import OptimizerOptions as OptimizerOptions
from tensorboard.compat.proto.config_pb2 import RunMetadata as RunMetadata
from tensorboard.compat.proto.config_pb2 import RunOptions as RunOptions
from tensorboard.compat.proto.event_pb2 import Event as Event
from tensorboard.compat.proto.event_pb2 import LogMessage as LogMessage
from tensorboard.compat.proto.event_pb2 import SessionLog as SessionLog
from tensorboard.compat.proto.graph_pb2 import GraphDef as GraphDef
from tensorboard.compat.proto.meta_graph_pb2 import MetaGraphDef as MetaGraphDef
from tensorboard.compat.proto.meta_graph_pb2 import TensorInfo as TensorInfo
from tensorboard.compat.proto.node_def_pb2 import NodeDef as NodeDef
from tensorboard.compat.proto.summary_pb2 import HistogramProto as HistogramProto
from tensorboard.compat.proto.summary_pb2 import Summary as Summary
from tensorboard.compat.proto.summary_pb2 import SummaryMetadata as SummaryMetadata

def acos(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse cosine of every element."""
def acosh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic cosine of every element."""
def add(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x + y, element by element."""
def argmax(input: TensorLike, axis: TensorLike | None = ..., name: str | None = ..., dimension: object = ..., output_type: DTypeLike = ...) -> Tensor:
    """Index of the largest element along a dimension (default: the first); of equal elements, the first."""
def argmin(input: TensorLike, axis: TensorLike | None = ..., name: str | None = ..., dimension: object = ..., output_type: DTypeLike = ...) -> Tensor:
    """Index of the smallest element along a dimension (default: the first); of equal elements, the first."""
def asin(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse sine of every element."""
def asinh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic sine of every element."""
def assert_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x == y, element by element; fails immediately if the values are known."""
def assert_greater(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x > y, element by element; fails immediately if the values are known."""
def assert_greater_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x >= y, element by element; fails immediately if the values are known."""
def assert_less(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x < y, element by element; fails immediately if the values are known."""
def assert_less_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x <= y, element by element; fails immediately if the values are known."""
def assert_negative(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are below 0."""
def assert_non_negative(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are at least 0."""
def assert_non_positive(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are at most 0."""
def assert_none_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x != y, element by element; fails immediately if the values are known."""
def assert_positive(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are above 0."""
def atan(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse tangent of every element."""
def atanh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic tangent of every element."""
def batch_fft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last dimension."""
def batch_fft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last two dimensions."""
def batch_fft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last three dimensions."""
def batch_ifft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft`."""
def batch_ifft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft2d`."""
def batch_ifft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft3d`."""
def ceil(x: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest integer not below of every element."""
def cos(x: TensorLike, name: str | None = ...) -> Tensor:
    """The cosine of every element."""
def cosh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The hyperbolic cosine of every element."""
def decode_base64(input: TensorLike, name: str | None = ...) -> Tensor:
    """Decodes web-safe Base64 text."""
def digamma(x: TensorLike, name: str | None = ...) -> Tensor:
    """The derivative of log Γ(x) of every element."""
def equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x = y, element by element."""
def erf(x: SparseLike, name: str | None = ...) -> Any:
    """The error function of every element."""
def erfc(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 - erf(x) of every element."""
def exp(x: TensorLike, name: str | None = ...) -> Tensor:
    """eˣ of every element."""
def expm1(x: TensorLike, name: str | None = ...) -> Tensor:
    """eˣ - 1 of every element."""
def fft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last dimension."""
def fft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last two dimensions."""
def fft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The discrete Fourier transform along the last three dimensions."""
def floor(x: TensorLike, name: str | None = ...) -> Tensor:
    """The largest integer not above of every element."""
def floor_div(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """floor(x / y), element by element."""
def floormod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y floor(x / y), element by element."""
def greater(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x > y, element by element."""
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≥ y, element by element."""
def ifft(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft`."""
def ifft2d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft2d`."""
def ifft3d(input: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse of `fft3d`."""
def is_finite(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is neither infinite nor NaN, of every element."""
def is_inf(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is infinite, of every element."""
def is_nan(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is not a number, of every element."""
def less(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x < y, element by element."""
def less_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≤ y, element by element."""
def lgamma(x: TensorLike, name: str | None = ...) -> Tensor:
    """log |Γ(x)| of every element."""
def log(x: TensorLike, name: str | None = ...) -> Tensor:
    """The natural logarithm of every element."""
def log1p(x: TensorLike, name: str | None = ...) -> Tensor:
    """log(1 + x) of every element."""
def logical_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x and y, element by element."""
def logical_not(x: TensorLike, name: str | None = ...) -> Tensor:
    """The negation of every element."""
def logical_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x or y, element by element."""
def maximum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The larger of x and y, element by element."""
def minimum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The smaller of x and y, element by element."""
def mod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y floor(x / y), element by element."""
def mul(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x y, element by element."""
def multiply(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x y, element by element."""
def neg(x: SparseLike, name: str | None = ...) -> Any:
    """The negative of every element."""
def negative(x: SparseLike, name: str | None = ...) -> Any:
    """The negative of every element."""
def not_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≠ y, element by element."""
def realdiv(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x / y, element by element."""
def reciprocal(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / x of every element."""
def reduce_all(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """Whether all are true."""
def reduce_any(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """Whether any is true."""
def reduce_max(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """The largest."""
def reduce_mean(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """The mean; of integers without its fraction."""
def reduce_min(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """The smallest."""
def reduce_prod(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """The product."""
def reduce_sum(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: builtins.bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: builtins.bool | None = ...) -> Tensor:
    """The sum."""
def rint(x: TensorLike, name: str | None = ...) -> Tensor:
    """The nearest integer (the even one if two are equally near) of every element."""
def rsqrt(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / √x of every element."""
def scatter_add(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Adds ``updates`` to the rows ``ref[indices]``; see `scatter_update`. Equal indices add up."""
def scatter_div(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Divides the rows ``ref[indices]`` by ``updates``; see `scatter_update`."""
def scatter_max(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Replaces the rows ``ref[indices]`` by the elementwise maximum with ``updates``; see `scatter_update`."""
def scatter_min(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Replaces the rows ``ref[indices]`` by the elementwise minimum with ``updates``; see `scatter_update`."""
def scatter_mul(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Multiplies the rows ``ref[indices]`` by ``updates``; see `scatter_update`."""
def scatter_nd_add(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Adds ``updates`` to slices of ``ref``; see `scatter_nd_update`."""
def scatter_nd_sub(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Subtracts ``updates`` from slices of ``ref``; see `scatter_nd_update`."""
def scatter_nd_update(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Replaces slices of ``ref`` by ``updates``.

Args:
  indices: integers whose last dimension holds positions in the first ``K`` dimensions of ``ref``.
  updates: values of shape ``indices.shape[:-1] + ref.shape[K:]``."""
def scatter_sub(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Subtracts ``updates`` from the rows ``ref[indices]``; see `scatter_update`. Equal indices add up."""
def scatter_update(ref: Variable | Tensor, indices: TensorLike, updates: TensorLike, use_locking: builtins.bool = ..., name: str | None = ...) -> Tensor:
    """Replaces the rows ``ref[indices]`` by ``updates``.

Args:
  indices: integers of any shape, which index the first dimension.
  updates: values of shape ``indices.shape + ref.shape[1:]``, or a scalar."""
def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The largest of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The mean of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The product of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids, which must ascend; 0 for an id without rows."""
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / (1 + e⁻ˣ) of every element."""
def sign(x: SparseLike, name: str | None = ...) -> Any:
    """-1, 0 or 1, the sign of every element."""
def sin(x: TensorLike, name: str | None = ...) -> Tensor:
    """The sine of every element."""
def sinh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The hyperbolic sine of every element."""
def sparse_segment_mean(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The mean of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
def sparse_segment_sqrt_n(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The sum, divided by the root of their number, of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
def sparse_segment_sum(data: TensorLike, indices: TensorLike, segment_ids: TensorLike, name: str | None = ..., num_segments: TensorLike | None = ...) -> Tensor:
    """The sum of the rows that ``indices`` lists, with equal segment ids, which must ascend."""
def sqrt(x: SparseLike, name: str | None = ...) -> Any:
    """The square root of every element."""
def square(x: SparseLike, name: str | None = ...) -> Any:
    """The square of every element."""
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """(x - y)², element by element."""
def string_strip(input: TensorLike, name: str | None = ...) -> Tensor:
    """Without blanks at both ends."""
def sub(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y, element by element."""
def subtract(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y, element by element."""
def tan(x: TensorLike, name: str | None = ...) -> Tensor:
    """The tangent of every element."""
def tanh(x: SparseLike, name: str | None = ...) -> Any:
    """The hyperbolic tangent of every element."""
def to_bfloat16(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as bfloat16."""
def to_complex128(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as complex128."""
def to_complex64(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as complex64."""
def to_double(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as float64."""
def to_float(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as float32."""
def to_int32(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as int32."""
def to_int64(x: TensorLike, name: str = ...) -> Tensor:
    """``x`` as int64."""
def truncatediv(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x / y without its fraction, element by element."""
def truncatemod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The remainder of x / y rounded towards zero, element by element."""
def unsorted_segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The largest of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The product of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids; negative ids are omitted."""
__all__ = [
    "AUTO_REUSE",
    "AggregationMethod",
    "Assert",
    "AttrValue",
    "ConditionalAccumulator",
    "ConditionalAccumulatorBase",
    "ConfigProto",
    "CriticalSection",
    "DType",
    "DeviceSpec",
    "Dimension",
    "Event",
    "FIFOQueue",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FixedLengthRecordReader",
    "GPUOptions",
    "GradientTape",
    "Graph",
    "GraphDef",
    "GraphKeys",
    "GraphOptions",
    "HistogramProto",
    "IdentityReader",
    "IndexedSlices",
    "IndexedSlicesSpec",
    "InteractiveSession",
    "LMDBReader",
    "LogMessage",
    "MetaGraphDef",
    "Module",
    "NameAttrList",
    "NoGradient",
    "NodeDef",
    "NotDifferentiable",
    "OpError",
    "Operation",
    "OptimizerOptions",
    "OptionalSpec",
    "PaddingFIFOQueue",
    "Print",
    "PriorityQueue",
    "QUANTIZED_DTYPES",
    "QueueBase",
    "RaggedTensor",
    "RaggedTensorSpec",
    "RandomShuffleQueue",
    "ReaderBase",
    "RegisterGradient",
    "RunMetadata",
    "RunOptions",
    "Session",
    "SessionLog",
    "SparseConditionalAccumulator",
    "SparseFeature",
    "SparseTensor",
    "SparseTensorSpec",
    "SparseTensorValue",
    "Summary",
    "SummaryMetadata",
    "TFRecordReader",
    "Tensor",
    "TensorArray",
    "TensorArraySpec",
    "TensorInfo",
    "TensorShape",
    "TensorSpec",
    "TextLineReader",
    "TypeSpec",
    "UnconnectedGradients",
    "VarLenFeature",
    "Variable",
    "VariableAggregation",
    "VariableScope",
    "VariableSynchronization",
    "WholeFileReader",
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_check_numerics_ops",
    "add_n",
    "add_to_collection",
    "add_to_collections",
    "all_variables",
    "angle",
    "app",
    "arg_max",
    "arg_min",
    "argmax",
    "argmin",
    "argsort",
    "as_dtype",
    "as_string",
    "asin",
    "asinh",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "assert_variables_initialized",
    "assign",
    "assign_add",
    "assign_sub",
    "atan",
    "atan2",
    "atanh",
    "audio",
    "audio_summary",
    "autograph",
    "batch_cholesky",
    "batch_cholesky_solve",
    "batch_fft",
    "batch_fft2d",
    "batch_fft3d",
    "batch_gather",
    "batch_ifft",
    "batch_ifft2d",
    "batch_ifft3d",
    "batch_matmul",
    "batch_matrix_band_part",
    "batch_matrix_determinant",
    "batch_matrix_diag",
    "batch_matrix_diag_part",
    "batch_matrix_inverse",
    "batch_matrix_set_diag",
    "batch_matrix_solve",
    "batch_matrix_solve_ls",
    "batch_matrix_transpose",
    "batch_matrix_triangular_solve",
    "batch_scatter_update",
    "batch_self_adjoint_eig",
    "batch_self_adjoint_eigvals",
    "batch_svd",
    "batch_to_space",
    "batch_to_space_nd",
    "betainc",
    "bfloat16",
    "bincount",
    "bitcast",
    "bitwise",
    "bool",
    "boolean_mask",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "case",
    "cast",
    "ceil",
    "check_numerics",
    "cholesky",
    "cholesky_solve",
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "colocate_with",
    "compat",
    "complex",
    "complex128",
    "complex64",
    "complex_abs",
    "concat",
    "concat_v2",
    "cond",
    "config",
    "confusion_matrix",
    "conj",
    "constant",
    "constant_initializer",
    "container",
    "contrib",
    "control_dependencies",
    "control_flow_v2_enabled",
    "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "cos",
    "cosh",
    "count_nonzero",
    "count_up_to",
    "create_partitioned_variables",
    "cross",
    "cumprod",
    "cumsum",
    "custom_gradient",
    "data",
    "debugging",
    "decode_base64",
    "decode_compressed",
    "decode_csv",
    "decode_json_example",
    "decode_raw",
    "delete_session_tensor",
    "depth_to_space",
    "dequantize",
    "deserialize_many_sparse",
    "device",
    "diag",
    "diag_part",
    "digamma",
    "dimension_at_index",
    "dimension_value",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "distribute",
    "distributions",
    "div",
    "div_no_nan",
    "divide",
    "double",
    "dtypes",
    "dynamic_partition",
    "dynamic_stitch",
    "edit_distance",
    "einsum",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "encode_base64",
    "ensure_shape",
    "equal",
    "erf",
    "erfc",
    "errors",
    "estimator",
    "examples",
    "executing_eagerly",
    "exp",
    "expand_dims",
    "experimental",
    "expm1",
    "extract_image_patches",
    "extract_volume_patches",
    "eye",
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "feature_column",
    "fft",
    "fft2d",
    "fft3d",
    "fill",
    "fingerprint",
    "fixed_size_partitioner",
    "flags",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_div",
    "floordiv",
    "floormod",
    "foldl",
    "foldr",
    "function",
    "gather",
    "gather_nd",
    "get_collection",
    "get_collection_ref",
    "get_default_graph",
    "get_default_session",
    "get_local_variable",
    "get_logger",
    "get_seed",
    "get_session_handle",
    "get_session_tensor",
    "get_static_value",
    "get_variable",
    "get_variable_scope",
    "gfile",
    "global_norm",
    "global_variables",
    "global_variables_initializer",
    "glorot_normal_initializer",
    "glorot_uniform_initializer",
    "grad_pass_through",
    "gradients",
    "graph_util",
    "greater",
    "greater_equal",
    "group",
    "guarantee_const",
    "half",
    "hessians",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "histogram_summary",
    "identity",
    "identity_n",
    "ifft",
    "ifft2d",
    "ifft3d",
    "igamma",
    "igammac",
    "imag",
    "image",
    "image_summary",
    "import_graph_def",
    "init_scope",
    "initialize_all_tables",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "initializers",
    "int16",
    "int32",
    "int64",
    "int8",
    "inv",
    "invert_permutation",
    "io",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "is_tensor",
    "is_variable_initialized",
    "keras",
    "layers",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "lin_space",
    "linalg",
    "linspace",
    "listdiff",
    "local_variables",
    "local_variables_initializer",
    "log",
    "log1p",
    "log_sigmoid",
    "logging",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lookup",
    "losses",
    "make_ndarray",
    "make_template",
    "make_tensor_proto",
    "manip",
    "map_fn",
    "matching_files",
    "math",
    "matmul",
    "matrix_band_part",
    "matrix_determinant",
    "matrix_diag",
    "matrix_diag_part",
    "matrix_inverse",
    "matrix_set_diag",
    "matrix_solve",
    "matrix_solve_ls",
    "matrix_square_root",
    "matrix_transpose",
    "matrix_triangular_solve",
    "maximum",
    "merge_all_summaries",
    "merge_summary",
    "meshgrid",
    "metrics",
    "min_max_variable_partitioner",
    "minimum",
    "mod",
    "model_variables",
    "moving_average_variables",
    "mul",
    "multinomial",
    "multiply",
    "name_scope",
    "neg",
    "negative",
    "nest",
    "newaxis",
    "nn",
    "no_gradient",
    "no_op",
    "no_regularizer",
    "norm",
    "not_equal",
    "numpy_function",
    "one_hot",
    "ones",
    "ones_initializer",
    "ones_like",
    "op_scope",
    "orthogonal_initializer",
    "pack",
    "pad",
    "parallel_stack",
    "parse_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "placeholder",
    "placeholder_with_default",
    "polygamma",
    "pow",
    "print",
    "profiler",
    "py_func",
    "py_function",
    "python_io",
    "qint16",
    "qint32",
    "qint8",
    "qr",
    "quantization",
    "quantize",
    "quantize_v2",
    "quantized_concat",
    "queue",
    "quint16",
    "quint8",
    "ragged",
    "random",
    "random_crop",
    "random_gamma",
    "random_normal",
    "random_normal_initializer",
    "random_poisson",
    "random_shuffle",
    "random_uniform",
    "random_uniform_initializer",
    "range",
    "rank",
    "raw_ops",
    "read_file",
    "real",
    "realdiv",
    "reciprocal",
    "recompute_grad",
    "reduce_all",
    "reduce_any",
    "reduce_join",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "regex_replace",
    "register_tensor_conversion_function",
    "repeat",
    "report_uninitialized_variables",
    "required_space_to_batch_paddings",
    "reset_default_graph",
    "reshape",
    "resource",
    "resource_loader",
    "resource_variables_enabled",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "rint",
    "roll",
    "round",
    "rsqrt",
    "saturate_cast",
    "saved_model",
    "scalar_mul",
    "scalar_summary",
    "scan",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_sub",
    "scatter_update",
    "searchsorted",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "select",
    "self_adjoint_eig",
    "self_adjoint_eigvals",
    "sequence_mask",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "set_random_seed",
    "setdiff1d",
    "sets",
    "shape",
    "shape_n",
    "sigmoid",
    "sign",
    "signal",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse",
    "sparse_add",
    "sparse_concat",
    "sparse_fill_empty_rows",
    "sparse_mask",
    "sparse_matmul",
    "sparse_maximum",
    "sparse_merge",
    "sparse_minimum",
    "sparse_placeholder",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_reorder",
    "sparse_reset_shape",
    "sparse_reshape",
    "sparse_retain",
    "sparse_segment_mean",
    "sparse_segment_sqrt_n",
    "sparse_segment_sum",
    "sparse_slice",
    "sparse_softmax",
    "sparse_split",
    "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
    "sparse_to_indicator",
    "sparse_transpose",
    "spectral",
    "split",
    "sqrt",
    "square",
    "squared_difference",
    "squeeze",
    "stack",
    "stop_gradient",
    "strided_slice",
    "string",
    "string_join",
    "string_split",
    "string_strip",
    "string_to_hash_bucket",
    "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
    "string_to_number",
    "strings",
    "sub",
    "substr",
    "subtract",
    "summary",
    "svd",
    "switch_case",
    "sysconfig",
    "tables_initializer",
    "tan",
    "tanh",
    "tensor_scatter_add",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "tensordot",
    "test",
    "tile",
    "timestamp",
    "to_bfloat16",
    "to_complex128",
    "to_complex64",
    "to_double",
    "to_float",
    "to_int32",
    "to_int64",
    "tpu",
    "trace",
    "train",
    "trainable_variables",
    "transpose",
    "truediv",
    "truncated_normal",
    "truncated_normal_initializer",
    "truncatediv",
    "truncatemod",
    "tuple",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uniform_unit_scaling_initializer",
    "unique",
    "unique_with_counts",
    "unpack",
    "unravel_index",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
    "unstack",
    "user_ops",
    "variable_axis_size_partitioner",
    "variable_creator_scope",
    "variable_op_scope",
    "variable_scope",
    "variables_initializer",
    "variance_scaling_initializer",
    "variant",
    "vectorized_map",
    "verify_tensor_all_finite",
    "version",
    "where",
    "where_v2",
    "while_loop",
    "write_file",
    "xla",
    "zeros",
    "zeros_initializer",
    "zeros_like",
    "zeta",
]

__version__: str
VERSION: str
__git_version__: str
GIT_VERSION: str
__compiler_version__: str
COMPILER_VERSION: str
__cxx11_abi_flag__: int
CXX11_ABI_FLAG: int
MONOLITHIC_BUILD: int
GRAPH_DEF_VERSION: int
GRAPH_DEF_VERSION_MIN_CONSUMER: int
GRAPH_DEF_VERSION_MIN_PRODUCER: int
