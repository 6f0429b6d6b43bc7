"""The check that tests can fail."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import check_tests

SUPPORT = """
def same(a, b):
    assert a == b
def twice(a):
    same(a, a)
"""
TESTS = """
def test_directly():
    assert compute() == 1
def test_by_a_helper_of_a_helper():
    twice(compute())
def test_by_an_error():
    with pytest.raises(ValueError):
        compute(-1)
def test_nothing():
    compute()
class TestMethods:
    def test_nothing_either(self):
        compute()
"""


def test_tests_without_a_check_are_named() -> None:
    found = check_tests.unchecked({"support.py": SUPPORT, "test_it.py": TESTS})
    assert found == ["test_it.py:9: test_nothing checks nothing", "test_it.py:12: test_nothing_either checks nothing"]
