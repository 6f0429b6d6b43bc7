"""The check of commit subjects."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import check_commits


def test_good_subjects_pass() -> None:
    assert check_commits.problems(["state: promote only complete snapshots", "tf1, data: batch sparse elements"]) == []


def test_each_rule_is_named() -> None:
    subjects = ["ps: " + "x" * 70, "Who ends takes nothing over", "ps: what a worker has is kept"]
    found = check_commits.problems(subjects)
    assert [line.split("' ")[1].split()[0] for line in found] == ["has", "does", "begins"]
