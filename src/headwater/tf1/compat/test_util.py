"""``tensorflow.python.framework.test_util``: helpers for tests of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.tf1.compat.names import Area, namespace

_NAMES = {
    "headwater.tf1.testing.test_case": "TensorFlowTestCase=TestCase",
    "headwater.tf1.testing.devices": "IsGoogleCudaEnabled=is_built_with_cuda gpu_device_name is_gpu_available",
    "headwater.tf1.testing.running": "assert_equal_graph_def create_local_cluster",
    "headwater.tf1.testing.decorators": """
        deprecated_graph_mode_only run_all_in_graph_and_eager_modes run_deprecated_v1 run_in_graph_and_eager_modes
        run_v1_only""",
}

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = namespace(__name__, Area("Names that tests import from TensorFlow.", _NAMES))
