"""User programs' own tests, written with ``tf.test``, under ``headwater exec``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import tensorflow as tf
from tensorflow.python.framework import test_util
from tensorflow.python.platform import googletest

class SquareTest(tf.test.TestCase):

    def setUp(self):
        super(SquareTest, self).setUp()
        self.x = tf.constant([1., 2., 3.])

    def testSquare(self):
        with self.test_session() as sess:
            self.assertAllClose(sess.run(tf.square(self.x)), [1, 4, 9])

    @test_util.run_in_graph_and_eager_modes
    def testGradient(self):
        self.assertIsNotNone(tf.get_default_session())
        self.assertLess(tf.test.compute_gradient_error(self.x, [3], tf.square(self.x), [3]), 1e-2)

    def testFails(self):
        self.assertAllEqual([1], [2])

class OtherTest(test_util.TensorFlowTestCase):

    @test_util.run_deprecated_v1
    def testIt(self):
        self.assertEqual(self.evaluate(tf.constant(1) + 1), 2)

if __name__ == "__main__":
    googletest.main()
"""


@pytest.mark.slow
def test_tests_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "square_test.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "headwater", "exec", str(program)]
    everything = subprocess.run(command, capture_output=True, text=True, check=False)
    assert everything.returncode == 1
    assert "FAIL: testFails" in everything.stderr
    assert "Not equal, in 1 of 1 elements: [0]: 1 and 2" in everything.stderr
    assert "Ran 6 tests" in everything.stderr
    chosen = [*command, "SquareTest.testSquare", "SquareTest.testGradient", "OtherTest"]
    some = subprocess.run(chosen, capture_output=True, text=True, check=False)
    assert some.returncode == 0, some.stderr
    assert "OK" in some.stderr
