# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.functional.fake_quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from headwater.functional.fake_quantization import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from headwater.functional.fake_quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from headwater.functional.fake_quantization import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from headwater.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from headwater.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from headwater.functional.quantized import dequantize as dequantize
from headwater.functional.quantized import quantize as quantize
from headwater.functional.quantized import quantize_and_dequantize as quantize_and_dequantize
from headwater.functional.quantized import quantized_concat as quantized_concat

__all__ = [
    "dequantize",
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize",
    "quantize_and_dequantize",
    "quantized_concat",
]
