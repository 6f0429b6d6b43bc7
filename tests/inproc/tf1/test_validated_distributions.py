"""``validate_args`` of distributions: the error, and when it is raised. All results are TensorFlow 1.15's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf

T: Any = tf.distributions
YES: Any = {"validate_args": True}


def _known_in_a_step(*values: float) -> Any:
    return tf.placeholder_with_default(np.array(values, np.float32), [len(values)])


def _outcome(make: Callable[[], Any], method: str, value: Any) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        stage = "class"
        try:
            made = make()
            stage = "method"
            found = getattr(made, method)(value) if method in ("prob", "cdf") else getattr(made, method)()
            stage = "step"
            session.run(found)
        except (tf.errors.InvalidArgumentError, TypeError, ValueError) as error:
            return f"{stage} {type(error).__name__}"
        return "none"


INVALID = "InvalidArgumentError"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: T.Categorical(probs=[0.5, 0.6], **YES), f"step {INVALID}"),
        (lambda: T.Categorical(probs=[-0.5, 1.5], **YES), f"class {INVALID}"),
        (lambda: T.Categorical(probs=_known_in_a_step(0.5, 0.6), **YES), f"step {INVALID}"),
        (lambda: T.Categorical(probs=[1.0], **YES), "class ValueError"),
        (lambda: T.Categorical(logits=[1.0], **YES), "class ValueError"),
        (lambda: T.Categorical(probs=0.5, **YES), "class ValueError"),
        (lambda: T.Categorical(probs=[1, 0]), "class TypeError"),
        (lambda: T.Categorical(probs=[0.5, 0.5], **YES), "none"),
        (lambda: T.Categorical(probs=[0.5, 0.6]), "none"),
        (lambda: T.Bernoulli(probs=1.5, **YES), f"class {INVALID}"),
        (lambda: T.Bernoulli(probs=-0.5, **YES), f"class {INVALID}"),
        (lambda: T.Bernoulli(probs=_known_in_a_step(1.5), **YES), f"step {INVALID}"),
        (lambda: T.Bernoulli(logits=1), "class TypeError"),
        (lambda: T.Multinomial(2.0, probs=[0.5, 0.6], **YES), f"step {INVALID}"),
        (lambda: T.Multinomial(2.5, probs=[0.5, 0.5], **YES), f"class {INVALID}"),
        (lambda: T.DirichletMultinomial(2.5, [1.0, 1.0], **YES), f"class {INVALID}"),
        (lambda: T.Normal(_known_in_a_step(0.0), _known_in_a_step(-1.0), **YES), f"step {INVALID}"),
        (lambda: T.Normal(0, 1), "class ValueError"),
        (lambda: T.Uniform(0, 1), "class ValueError"),
        (lambda: T.StudentT(1, 0, 1), "class ValueError"),
    ],
)
def test_parameters(make: Callable[[], Any], expected: str) -> None:
    assert _outcome(make, "sample", None) == expected


@pytest.mark.parametrize(
    ("make", "value", "expected"),
    [
        (lambda: T.Categorical(probs=[0.5, 0.5], **YES), 2, f"step {INVALID}"),
        (lambda: T.Categorical(probs=[0.5, 0.5], **YES), -1, f"method {INVALID}"),
        (lambda: T.Categorical(probs=[0.5, 0.5], **YES), 0.5, f"method {INVALID}"),
        (lambda: T.Categorical(probs=[0.5, 0.5], **YES), 1.0, "none"),
        (lambda: T.Categorical(probs=[0.5, 0.5]), 0.5, "none"),
        (lambda: T.Bernoulli(probs=0.5, **YES), 2, f"method {INVALID}"),
        (lambda: T.Bernoulli(probs=0.5, **YES), 0.5, f"method {INVALID}"),
        (lambda: T.Bernoulli(probs=0.5, **YES), 1.0, "none"),
        (lambda: T.Bernoulli(probs=0.5), 2, "none"),
        (lambda: T.Gamma(1.0, 1.0, **YES), -1.0, f"method {INVALID}"),
        (lambda: T.Gamma(0.5, 1.0, **YES), 0.0, f"method {INVALID}"),
        (lambda: T.Gamma(1.0, 1.0), -1.0, "none"),
        (lambda: T.Exponential(1.0, **YES), -1.0, f"method {INVALID}"),
        (lambda: T.Beta(2.0, 3.0, **YES), 1.0, f"method {INVALID}"),
        (lambda: T.Beta(2.0, 3.0, **YES), -0.5, f"method {INVALID}"),
        (lambda: T.Beta(2.0, 3.0, **YES), 0.5, "none"),
        (lambda: T.Dirichlet([1.0, 2.0], **YES), [0.5, 0.6], f"step {INVALID}"),
        (lambda: T.Dirichlet([1.0, 2.0], **YES), [-0.5, 1.5], f"method {INVALID}"),
        (lambda: T.Dirichlet([1.0, 2.0], **YES), [0.5, 0.5], "none"),
        (lambda: T.Multinomial(2.0, probs=[0.5, 0.5], **YES), [0.5, 1.5], f"method {INVALID}"),
        (lambda: T.Multinomial(2.0, probs=[0.5, 0.5], **YES), [-1.0, 3.0], f"method {INVALID}"),
        (lambda: T.Multinomial(2.0, probs=[0.5, 0.5], **YES), [1.0, 1.0], "none"),
        (lambda: T.DirichletMultinomial(2.0, [1.0, 1.0], **YES), [0.5, 1.5], f"method {INVALID}"),
    ],
)
def test_values(make: Callable[[], Any], value: Any, expected: str) -> None:
    assert _outcome(make, "prob", value) == expected


def test_values_of_distribution_functions() -> None:
    assert _outcome(lambda: T.Categorical(probs=[0.5, 0.5], **YES), "cdf", -1) == f"method {INVALID}"
    assert _outcome(lambda: T.Gamma(1.0, 1.0, **YES), "cdf", -1.0) == f"method {INVALID}"
    assert _outcome(lambda: T.Beta(2.0, 3.0, **YES), "cdf", 1.5) == "none"
