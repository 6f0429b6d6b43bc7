# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from headwater.tf1.functional.fake_quantization import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from headwater.tf1.functional.quantized import dequantize as dequantize
from headwater.tf1.functional.quantized import quantize as quantize
from headwater.tf1.functional.quantized import quantize_and_dequantize as quantize_and_dequantize
from headwater.tf1.functional.quantized import quantized_concat as quantized_concat

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
