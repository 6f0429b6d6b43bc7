"""What the run says to its workers."""

from __future__ import annotations

import argparse
from pathlib import Path


def parsed() -> argparse.Namespace:
    """The arguments of a task: the cluster, its place there, the folder, and when to end, as `time.time` says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--job_name", required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--until", type=float, required=True)
    return parser.parse_args()
