"""``tf.test``: test cases, checks of gradients, clusters for tests."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.testing.benchmark": "Benchmark benchmark_config",
    "headwater.testing.test_case": "TestCase get_temp_dir",
    "headwater.testing.gradient_checker": "compute_gradient compute_gradient_error",
    "headwater.testing.devices": """
        gpu_device_name is_built_with_cuda is_built_with_gpu_support is_built_with_rocm is_gpu_available""",
    "headwater.testing.running": "assert_equal_graph_def create_local_cluster main test_src_dir_path",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, {"mock": "unittest.mock"})
