"""Chains from raw data to a served model: losses and predictions are as recorded with TensorFlow 1.15 (`record.py`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.chains.record import CHAINS, EXPECTED, outcome
from tests.conformance.compare import same

TOLERANCE = 1e-4
#: Its large steps of Adagrad amplify rounding errors; an error of a rule is far larger.
TOLERANCE_OF_CHAT = 1e-2
QUICKEST = "text_cnn"


@pytest.mark.slow
@pytest.mark.parametrize(
    "chain", [pytest.param(chain, marks=[] if chain == QUICKEST else [pytest.mark.long]) for chain in CHAINS]
)
def test_as_tensorflow(chain: str) -> None:
    found = outcome(chain, Path(sys.executable).with_name("headwater"), "exec")
    same(found, json.loads(EXPECTED.read_text())[chain], tolerance=TOLERANCE_OF_CHAT if chain == "chat" else TOLERANCE)
