"""The work before the first step grows at most linearly with the number of variables."""

from __future__ import annotations

import sys

from headwater.tf1.compat import tf

FEW = 20


def build(variables: int) -> None:
    """Builds a model as TensorFlow 1.x programs do, with slots, and asks which variables are initialised."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("layers"):
            made = [tf.Variable(tf.fill([8], 1.0), name=f"v{index}") for index in range(variables)]
        loss = tf.add_n([tf.reduce_sum(tf.square(one)) for one in made])
        tf.train.AdagradOptimizer(0.01).minimize(loss)
        tf.global_variables_initializer()
        assert not any(session.run([tf.is_variable_initialized(one) for one in made]))


def calls(variables: int) -> int:
    """Returns the number of Python and C functions that `build` calls."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        build(variables)
    finally:
        sys.setprofile(before)
    return count


def test_calls_per_variable_do_not_depend_on_the_number_of_variables() -> None:
    build(1)
    few, more, most = (calls(times * FEW) for times in (1, 5, 9))
    assert most - more <= 1.005 * (more - few), "each variable takes more calls the more there are"
