"""Every pass gives well-formed output for random graphs over several tasks."""

from __future__ import annotations

from hypothesis import given, settings

from headwater.cluster.devices import parse_device
from headwater.graph.passes.partition import partition, verify_partition
from headwater.graph.passes.place import place, verify_placement
from headwater.graph.passes.plan import decode_plan, encode_plan
from headwater.graph.passes.prune import prune, verify_pruned
from headwater.graph.passes.schedule import schedule, verify_plans
from tests.support.random_graphs import TASKS, Program, build, programs

DEVICES = [parse_device(f"{task}/replica:0/device:CPU:0") for task in TASKS]


@settings(max_examples=150, deadline=None)
@given(programs)
def test_each_pass_is_well_formed(program: Program) -> None:
    pruned = prune(build(program, placed=True).request)
    verify_pruned(pruned)
    placement = place(pruned, DEVICES)
    verify_placement(placement)
    part = partition(placement)
    verify_partition(part)
    plans = schedule(part)
    verify_plans(plans)
    for plan in plans.values():
        assert decode_plan(encode_plan(plan)).describe() == plan.describe()
