from __future__ import annotations

import pytest

from headwater.platform.backends.slurm_ends import Asked, SlurmState, seconds, verdict


def told(
    state: str,
    why: str = "None",
    *,
    result: int | None = None,
    asked: str | None = None,
    failure: str = "",
    limit_s: float | None = 5400.0,
) -> tuple[str, str]:
    return verdict(
        SlurmState(state=state, why=why, limit_s=limit_s),
        number="7",
        result=result,
        asked=None if asked is None else Asked.parse(asked),
        grace_s=30.0,
        failure=failure,
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2:00", 120.0),
        ("1:02:03", 3723.0),
        ("1-02:03:04", 93784.0),
        ("365-00:00:00", 31536000.0),
        ("UNLIMITED", None),
        ("INVALID", None),
        ("", None),
    ],
)
def test_times(text: str, found: float | None) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize(
    ("state", "phase", "reason"),
    [
        ("TIMEOUT", "failed", "it ran into its time limit of 90 min (Slurm: TIMEOUT)"),
        ("DEADLINE", "failed", "the deadline of its submission has passed (Slurm: DEADLINE)"),
        ("OUT_OF_MEMORY", "lost", "it exceeded the memory that it had requested (Slurm: OUT_OF_MEMORY)"),
        ("NODE_FAIL", "lost", "one of its nodes failed (Slurm: NODE_FAIL)"),
        ("BOOT_FAIL", "lost", "one of its nodes did not boot (Slurm: BOOT_FAIL)"),
        ("PREEMPTED", "preempted", "it was preempted (Slurm: PREEMPTED)"),
        ("CANCELLED", "cancelled", "it was cancelled (Slurm: CANCELLED)"),
        ("RUNNING", "running", ""),
        ("COMPLETING", "running", ""),
        ("COMPLETED", "succeeded", ""),
        ("", "lost", "Slurm knows no job 7"),
        ("NEWER", "lost", "its batch script ended early (Slurm: NEWER); see slurm.log in its folder"),
    ],
)
def test_slurm_states_are_translated(state: str, phase: str, reason: str) -> None:
    assert told(state) == (phase, reason)


def test_a_pending_job_has_a_reason() -> None:
    assert told("PENDING", "Resources") == ("waiting", "Slurm: Resources")


@pytest.mark.parametrize("state", ["COMPLETED", "RUNNING", "COMPLETING", "CANCELLED", "TIMEOUT", ""])
def test_success_is_final(state: str) -> None:
    assert told(state, result=0) == ("succeeded", "")


def test_a_failure_is_reported_once_slurm_has_said_whether_it_ended_the_job() -> None:
    failure = "worker 1 failed: exit code 7"
    assert told("COMPLETING", result=7, failure=failure) == ("running", "")
    assert told("FAILED", "NonZeroExitCode", result=7, failure=failure) == ("failed", failure)
    assert told("", result=7, failure=failure) == ("failed", failure)
    assert told("FAILED", "NonZeroExitCode", result=7)[1].startswith("the job failed with exit code 7")
    assert told("CANCELLED", result=143)[0] == "cancelled"
    assert told("NODE_FAIL", result=1, failure=failure) == (
        "lost",
        f"one of its nodes failed (Slurm: NODE_FAIL); {failure}",
    )


def test_out_of_memory_counts_for_good_once_the_restarts_are_used_up() -> None:
    phase, reason = told("OUT_OF_MEMORY", result=137, failure="worker 0 failed: killed by SIGKILL")
    assert phase == "failed"
    assert reason.endswith("(Slurm: OUT_OF_MEMORY); worker 0 failed: killed by SIGKILL")


@pytest.mark.parametrize(
    ("asked", "phase"),
    [
        ("1:30:00 1:29:30", "failed"),  # in time
        ("1:30:00 1:28:31", "failed"),  # a minute and a half too early: Slurm's next look would have been too late
        ("1:30:00 1:27:30", "preempted"),
        ("UNLIMITED 1:30:00", "preempted"),
        ("", "preempted"),  # Slurm did not answer the script
    ],
)
def test_reason_of_the_end_of_a_script(asked: str, phase: str) -> None:
    found, reason = told("FAILED", "NonZeroExitCode", asked=asked)
    assert found == phase
    assert ("time limit of 90 min" in reason) is (phase == "failed")


@pytest.mark.parametrize(
    ("why", "phase"), [("NonZeroExitCode", "failed"), ("RaisedSignal:9(Killed)", "lost"), ("JobLaunchFailure", "lost")]
)
def test_a_script_that_wrote_nothing_down(why: str, phase: str) -> None:
    assert told("FAILED", why) == (
        phase,
        f"its batch script ended early (Slurm: FAILED, {why}); see slurm.log in its folder",
    )
