"""The decision of a chief whether to continue with the state of the parameter servers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.errors import InvalidArgumentError
from headwater.tf1.training.seals import Seal, SealDecision, always_restores, decide, together

SEAL = Seal(training="t", process="former", source="/logs")


def decided(*seals: Seal | None, own: str | None = None, source: str = "/logs", always: bool = False) -> SealDecision:
    found = {f"/job:ps/task:{index}": seal for index, seal in enumerate(seals)}
    return decide(found, process="this", own=own, source=source, always=always)


def test_a_seal_travels_as_text() -> None:
    assert Seal.decode(SEAL.encode()) == SEAL
    assert Seal.decode(b"") is None


def test_a_ps_may_go_back_by_itself_where_nothing_is_gathered() -> None:
    assert together({"VariableV2": "v", "GatherV2": "rows", "FIFOQueueV2": "queue", "HashTableV2": "words"}) == ""


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("GatherGradients", "all ps have to restore together"),
        ("StepBarrierWait", "synchronises workers"),
        ("MutableHashTableV2", "table"),
    ],
)
def test_resources_that_are_restored_together(kind: str, why: str) -> None:
    found = together({"VariableV2": "v", kind: "its/name"})
    assert why in found
    assert "'its/name'" in found


def test_fresh_parameter_servers_are_prepared_as_ever() -> None:
    assert decided() == decided(None, None) == SealDecision()


def test_state_present_on_all_ps_is_kept() -> None:
    assert decided(SEAL, SEAL).keep == "t"


def test_state_lost_by_one_ps_is_restored_on_all() -> None:
    assert decided(SEAL, None) == SealDecision(
        reason="/job:ps/task:1 has lost the state of the training, or has never had it"
    )


def test_states_of_different_trainings_are_not_combined() -> None:
    assert "different trainings" in decided(SEAL, replace(SEAL, training="u")).reason


def test_another_training_of_one_program_begins_at_the_beginning() -> None:
    here = replace(SEAL, process="this")
    assert decided(here, SEAL) == SealDecision()
    assert decided(here, here, own="t").keep == "t"  # unless it is this one, after a loss


def test_checkpoints_elsewhere_are_of_another_training() -> None:
    assert "'/logs'" in decided(SEAL, SEAL, source="/other").reason


def test_the_switch_restores_the_old_way() -> None:
    assert decided(SEAL, SEAL, own="t", always=True).keep is None
    assert always_restores({"HEADWATER_RESTORE": "always"})
    assert not always_restores({"HEADWATER_RESTORE": "lost"})
    assert not always_restores({})
    with pytest.raises(InvalidArgumentError, match="HEADWATER_RESTORE is 'never'"):
        always_restores({"HEADWATER_RESTORE": "never"})
