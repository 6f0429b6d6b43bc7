"""The plans of a few training steps are the ones that were reviewed, in ``tests/data/plans``."""

from __future__ import annotations

import pytest

from tests.support import golden_plans


@pytest.mark.parametrize("ps_count", golden_plans.PS_COUNTS)
@pytest.mark.parametrize("program", golden_plans.PROGRAMS)
def test_plans_are_as_reviewed(program: str, ps_count: int) -> None:
    reviewed = golden_plans.path(program, ps_count).read_text()
    assert golden_plans.plans(program, ps_count) == reviewed, "if so meant: python -m tests.support.golden_plans"


@pytest.mark.parametrize("program", golden_plans.TOWERS)
def test_plans_of_towers_are_as_reviewed(program: str) -> None:
    reviewed = golden_plans.path_of_towers(program).read_text()
    assert golden_plans.plan_of_towers(program) == reviewed, "if so meant: python -m tests.support.golden_plans"
