"""Tables of the functions of tensors that also accept ragged tensors, and their ragged implementations.

`dispatching` returns a function that looks for ragged tensors among its arguments. Namespaces wrap each function that
these tables list; the functions themselves handle tensors only.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from headwater.graph.ragged_value import RaggedTensorValue
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor

Function = Callable[..., Any]

_MODULE: Final = "headwater.tf1.functional."
_ELEMENTWISE_MODULE: Final = _MODULE + "ragged_operators"

#: Names of functions of each value, by module, in `headwater.tf1.functional` unless it is a whole name. Arguments may
#: be ragged.
UNARY_FUNCTIONS: Final[Mapping[str, str]] = {
    "arrays": "identity ones_like stop_gradient zeros_like",
    "checks": "check_numerics verify_tensor_all_finite",
    "clip": "clip_by_value",
    "image_quality": "adjust_gamma",
    "images": "adjust_brightness convert_image_dtype random_brightness",
    "headwater.tf1.compat.old": "sigmoid_cross_entropy_with_logits",
    "losses": "sigmoid_cross_entropy_with_logits",
    "math": """
        abs acos acosh angle asin asinh atan atanh bitcast cast ceil conj cos cosh exp expm1 floor imag invert
        is_finite is_inf is_nan log log1p log_sigmoid logical_not negative real reciprocal reciprocal_no_nan rint round
        rsqrt saturate_cast sigmoid sign sin sinh sqrt square tan tanh to_bfloat16 to_complex128 to_complex64 to_double
        to_float to_int32 to_int64""",
    "nn": "elu gelu leaky_relu log_softmax relu relu6 selu softplus softsign swish dropout",
    "special": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e digamma erf erfc erfcinv erfinv lgamma ndtri",
    "strings": """
        as_string decode_base64 encode_base64 regex_full_match regex_replace string_length string_lower string_strip
        string_to_number string_upper substr""",
    "tables": "string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong",
    "unicode": "unicode_script unicode_transcode",
    "headwater.tf1.input.parsing": "decode_compressed",
}

#: Functions of a list of values, as above: items of the list may be ragged.
LIST_FUNCTIONS: Final[Mapping[str, str]] = {"math": "add_n", "strings": "string_join"}

#: Functions of two values, as above: either of the first two arguments, or both, may be ragged.
BINARY_FUNCTIONS: Final[Mapping[str, str]] = {
    "math": """
        add atan2 bitwise_and bitwise_or bitwise_xor complex div div_no_nan divide equal floor_div floordiv floormod
        greater greater_equal left_shift less less_equal logical_and logical_or logical_xor maximum minimum multiply
        multiply_no_nan not_equal pow realdiv right_shift scalar_mul squared_difference subtract truediv truncatediv
        truncatemod xdivy xlogy""",
    "special": "nextafter xlog1py zeta",
}

#: Assertions about two values, either of which may be ragged.
CHECKS: Final[Mapping[str, str]] = {
    "checks": """
        assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near assert_none_equal"""
}

#: Functions with a separate implementation for ragged tensors: maps both modules to the names, as ``name``, or as
#: ``name=implementation`` if the names differ.
SEPARATE_FUNCTIONS: Final[Mapping[tuple[str, str], str]] = {
    (_MODULE + "arrays", _MODULE + "ragged_functions"): "concat expand_dims rank reverse size squeeze tile",
    (_MODULE + "arrays", _MODULE + "ragged"): "stack",
    (_MODULE + "arrays", _MODULE + "ragged_parts"): "reshape split",
    (_MODULE + "linalg", _MODULE + "ragged_parts"): "matmul",
    (_MODULE + "resizing", _MODULE + "ragged_parts"): "resize_images_v2=resize_images",
    (_MODULE + "strings", _MODULE + "ragged_parts"): "format",
    ("headwater.tf1.compat.old", _MODULE + "ragged_parts"): "split",
    ("headwater.tf1.compat.old", _MODULE + "ragged_functions"): "reverse",
    (_MODULE + "checks", _MODULE + "ragged_functions"): "assert_type",
    (_MODULE + "indexing", _MODULE + "ragged_functions"): """
        batch_gather dynamic_partition gather gather_nd one_hot where where_v2""",
    (_MODULE + "nn", _MODULE + "ragged_functions"): "softmax",
    (_MODULE + "reductions", _MODULE + "ragged_parts"): "bincount",
    (_MODULE + "reductions", _MODULE + "ragged_functions"): """
        cumsum unsorted_segment_max=segment_max unsorted_segment_mean=segment_mean
        unsorted_segment_min=segment_min unsorted_segment_prod=segment_prod unsorted_segment_sqrt_n=segment_sqrt_n
        unsorted_segment_sum=segment_sum""",
    (_MODULE + "reductions", _MODULE + "ragged_reductions"): """
        reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance""",
    (_MODULE + "strings", _MODULE + "ragged_reductions"): "reduce_join",
    ("headwater.tf1.variables.embedding", "headwater.tf1.variables.ragged_embedding"): """
        embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse""",
}


@functools.cache
def _table() -> dict[tuple[str, str], tuple[str, str]]:
    """Maps the module and name of each function to the module and name of its implementation for ragged tensors."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    kinds = (
        ("of_one", UNARY_FUNCTIONS),
        ("of_list", LIST_FUNCTIONS),
        ("of_two", BINARY_FUNCTIONS),
        ("of_check", CHECKS),
    )
    for kind, listed in kinds:
        for module, names in listed.items():
            whole = module if "." in module else _MODULE + module
            found.update(((whole, name), (_ELEMENTWISE_MODULE, kind)) for name in names.split())
    for (module, own), names in SEPARATE_FUNCTIONS.items():
        for word in names.split():
            name, _, there = word.partition("=")
            found[module, name] = own, there or name
    return found


def dispatching(function: object, module: str, name: str) -> Any:
    """Wraps ``function``, ``name`` of ``module``: ragged arguments select the implementation in the tables."""
    entry = _table().get((module, name))
    if entry is None or not callable(function):
        return function
    own, there = entry
    takes_list = own != _ELEMENTWISE_MODULE or there == "of_list"

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        if not _has_ragged(args, takes_list) and not _has_ragged(kwargs.values(), takes_list):
            return function(*args, **kwargs)
        instead = getattr(importlib.import_module(own), there)
        if own != _ELEMENTWISE_MODULE:
            return instead(*map(_tensor, args), **{key: _tensor(value) for key, value in kwargs.items()})
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        return instead(function, *bound.args, **bound.kwargs)

    return run


def _tensor(value: object) -> Any:
    return as_ragged_or_tensor(value) if isinstance(value, RaggedTensorValue) else value


def _has_ragged(values: Any, in_lists: bool) -> bool:
    for value in values:
        if isinstance(value, RaggedTensor | RaggedTensorValue):
            return True
        if in_lists and type(value) in (list, tuple) and _has_ragged(value, False):
            return True
    return False
