"""Training that restarts with a damaged state file continues, or ends with an error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater import errors, tf

LAST = 12


@pytest.fixture
def train() -> Iterator[Any]:
    """Adds one to the global step, in a graph of its own."""
    with tf.Graph().as_default():
        yield tf.assign_add(tf.train.get_or_create_global_step(), 1)


def session(folder: Path) -> Any:
    """Opens the monitored session of a program."""
    return tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(folder), save_checkpoint_steps=2, log_step_count_steps=0
    )


@pytest.fixture
def trained(tmp_path: Path, train: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with several checkpoints, the newest of step 12."""
    monkeypatch.chdir(tmp_path.parent)  # for short names, of few bytes
    tmp_path = Path(tmp_path.name)
    with session(tmp_path) as sess:
        for _ in range(LAST):
            sess.run(train)
    return tmp_path


def checkpoints(folder: Path) -> dict[str, str]:
    """Returns digests of the checkpoints of steps 6, 8 and 10; the checkpoint of step 12 is saved again if training
    continues from it.
    """
    wanted = (f"model.ckpt-{step}.*" for step in range(6, LAST))
    paths = sorted(path for each in wanted for path in folder.glob(each) if path.suffix != ".meta")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def first_step(folder: Path, train: Any) -> int:
    """Returns the first step of a restarted program."""
    with session(folder) as sess:
        return int(sess.run(train))


@pytest.mark.slow
def test_a_flipped_bit_in_every_seventh_byte(trained: Path, train: Any) -> None:
    before = checkpoints(trained)
    state = trained / "checkpoint"
    content = state.read_bytes()
    outcomes: list[str] = []
    for place in range(0, len(content), 7):
        state.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        try:
            assert first_step(trained, train) == LAST + 1
        except errors.DataLossError as error:
            outcomes.append(error.message)
        else:
            outcomes.append("")
        assert before.items() <= checkpoints(trained).items()
        for path in trained.glob("model.ckpt-13.*"):
            path.unlink()
    assert all(not each or str(state) in each for each in outcomes)
    assert outcomes.count("") > 0.9 * len(outcomes)


def test_the_state_is_lost(trained: Path, train: Any) -> None:
    before = checkpoints(trained)
    (trained / "checkpoint").unlink()
    assert first_step(trained, train) == LAST + 1
    assert before.items() <= checkpoints(trained).items()


def test_the_state_and_all_indices_are_lost(trained: Path, train: Any) -> None:
    for path in trained.glob("*.index"):
        path.unlink()
    with pytest.raises(errors.DataLossError, match=f"{trained}/checkpoint cannot be used"):
        first_step(trained, train)


def test_a_supervisor(trained: Path, train: Any) -> None:
    (trained / "checkpoint").write_text("?")
    supervisor = tf.train.Supervisor(logdir=str(trained), save_model_secs=0, summary_op=None)
    with supervisor.managed_session() as sess:
        assert sess.run(train) == LAST + 1
