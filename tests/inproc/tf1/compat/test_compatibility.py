"""The table of TensorFlow's names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]
TOOLS = REPOSITORY / "tools"
LEAST_PUBLIC = 2595
LEAST_OTHER = 110

# In a process of its own, because there `import tensorflow` imports Headwater permanently.
_CLASSIFY = """
import json, sys
sys.path.insert(0, sys.argv[1])
import compatibility as c
print(json.dumps([c.classify(c.public_names()), c.classify(c.other_names())]))
"""


@pytest.fixture(scope="module")
def names() -> tuple[dict[str, bool], dict[str, bool]]:
    """Returns whether each of TensorFlow 1.15's public names exists, and each further name."""
    found = subprocess.run([sys.executable, "-c", _CLASSIFY, TOOLS], capture_output=True, text=True, check=True)
    public, others = json.loads(found.stdout)
    return public, others


@pytest.mark.slow
def test_number_of_public_names_does_not_decrease(names):
    public, others = names
    assert sum(public.values()) >= LEAST_PUBLIC
    assert sum(others.values()) >= LEAST_OTHER


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tf.add", "tf.nn.relu", "tf.train.Server", "tf.train.AdamOptimizer", "tf.ConfigProto"]
)
def test_names_of_the_api_exist(names, name):
    assert names[0][name]


@pytest.mark.slow
def test_each_name_occurs_once(names):
    public, others = names
    assert not public.keys() & others.keys()


@pytest.mark.slow
def test_every_name_that_programs_use_is_listed(names, shared):
    text = (shared / "SYMBOLS.md").read_text()
    used = re.findall(r"`([\w.]+)` \(\d+\)", text)
    listed = names[0].keys() | names[1].keys()
    assert used
    assert [name for name in used if not {f"tf.{name}", f"tensorflow.{name}"} & listed] == []
