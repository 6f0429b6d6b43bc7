# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.testing.benchmark import Benchmark as Benchmark
from headwater.tf1.testing.benchmark import benchmark_config as benchmark_config
from headwater.tf1.testing.devices import gpu_device_name as gpu_device_name
from headwater.tf1.testing.devices import is_built_with_cuda as is_built_with_cuda
from headwater.tf1.testing.devices import is_built_with_gpu_support as is_built_with_gpu_support
from headwater.tf1.testing.devices import is_built_with_rocm as is_built_with_rocm
from headwater.tf1.testing.devices import is_gpu_available as is_gpu_available
from headwater.tf1.testing.gradient_checker import compute_gradient as compute_gradient
from headwater.tf1.testing.gradient_checker import compute_gradient_error as compute_gradient_error
from headwater.tf1.testing.running import assert_equal_graph_def as assert_equal_graph_def
from headwater.tf1.testing.running import create_local_cluster as create_local_cluster
from headwater.tf1.testing.running import main as main
from headwater.tf1.testing.running import test_src_dir_path as test_src_dir_path
from headwater.tf1.testing.stubs import StubOutForTesting as StubOutForTesting
from headwater.tf1.testing.test_case import TestCase as TestCase
from headwater.tf1.testing.test_case import get_temp_dir as get_temp_dir
from unittest import mock as mock

__all__ = [
    "Benchmark",
    "StubOutForTesting",
    "TestCase",
    "assert_equal_graph_def",
    "benchmark_config",
    "compute_gradient",
    "compute_gradient_error",
    "create_local_cluster",
    "get_temp_dir",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_rocm",
    "is_gpu_available",
    "main",
    "mock",
    "test_src_dir_path",
]
