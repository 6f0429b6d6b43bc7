"""Distributions: what they give for values, and their moments. What is drawn differs by its seeds."""

import numpy as np

METHODS = (
    "mean mode stddev variance entropy covariance batch_shape_tensor event_shape_tensor is_scalar_batch is_scalar_event"
)
OF_VALUES = "prob log_prob cdf log_cdf survival_function log_survival_function"


def made(tf):
    D = tf.distributions
    return {
        "normal": lambda: (D.Normal([0.0, 1.0], 2.0), [0.5, -3.0]),
        "normal of one": lambda: (D.Normal(1.0, 0.5), 1.25),
        "laplace": lambda: (D.Laplace([0.0, 1.0], [2.0, 0.5]), [[0.5, -3.0], [1.0, 4.0]]),
        "uniform": lambda: (D.Uniform(-1.0, [2.0, 3.0]), [0.5, 3.0]),
        "student": lambda: (D.StudentT([3.0, 1.5], 1.0, 2.0), [0.5, 3.0]),
        "student of one": lambda: (D.StudentT(0.5, 1.0, 2.0), [0.5, 3.0]),
        "gamma": lambda: (D.Gamma([2.0, 0.5], 3.0), [0.5, 3.0]),
        "exponential": lambda: (D.Exponential([2.0, 0.5]), [0.5, 3.0]),
        "beta": lambda: (D.Beta([2.0, 0.5], 3.0), [0.5, 0.25]),
        "bernoulli": lambda: (D.Bernoulli(probs=[0.3, 0.8]), [1, 0]),
        "bernoulli of logits": lambda: (D.Bernoulli(logits=0.5, dtype=tf.float32), [1.0, 0.0]),
        "categorical": lambda: (D.Categorical(probs=[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]), [2, 0]),
        "categorical of logits": lambda: (D.Categorical(logits=[1.0, 2.0, 0.5]), [2, 0, 1]),
        "multinomial": lambda: (D.Multinomial([3.0, 4.0], probs=[0.2, 0.5, 0.3]), [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]),
        "dirichlet": lambda: (D.Dirichlet([1.5, 2.0, 3.0]), [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]),
        "dirichlet of multinomial": lambda: (
            D.DirichletMultinomial(4.0, [1.0, 2.0, 3.0]),
            [[1.0, 3.0, 0.0], [0.0, 1.0, 3.0]],
        ),
    }


NAMES = """normal|normal of one|laplace|uniform|student|student of one|gamma|exponential|beta|bernoulli|
bernoulli of logits|categorical|categorical of logits|multinomial|dirichlet|dirichlet of multinomial"""


def cases(tf):
    found = {name[5:]: case for name, case in globals().items() if name.startswith("case_")}
    for name in NAMES.replace("\n", "").split("|"):
        found["all of " + name] = lambda tf, name=name: everything(tf, *made(tf)[name]())
    return found


def computed(tf, calls):
    found, tensors = [], []
    for call in calls:
        try:
            tensors.append(call())
            found.append(str(tensors[-1].shape))
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    with tf.Session() as session:
        return [found, session.run(tensors)]


def everything(tf, d, value):
    calls = [getattr(d, name) for name in METHODS.split()]
    calls += [lambda name=name: getattr(d, name)(value) for name in OF_VALUES.split()]
    calls += [lambda: d.quantile([0.25, 0.75]), lambda: d.kl_divergence(d), lambda: d.cross_entropy(d)]
    facts = [
        str(d),
        repr(d),
        d.name,
        d.dtype.name,
        str(d.reparameterization_type),
        str(d.batch_shape),
        str(d.event_shape),
    ]
    facts += [sorted(d.parameters), d.allow_nan_stats, d.validate_args]
    facts += [
        str(d.sample().shape),
        str(d.sample(3).shape),
        str(d.sample([2, 1], seed=1).shape),
        str(d.copy().batch_shape),
    ]
    return facts + computed(tf, calls)


def case_means_of_samples(tf):
    found = []
    with tf.Session() as session:
        for name, make in sorted(made(tf).items()):
            d = make()[0]
            if not name.startswith("student"):
                mean = session.run([tf.reduce_mean(tf.cast(d.sample(20000, seed=3), tf.float32), 0)])[0]
                expected = session.run(d.mean()) if not name.startswith("categorical") else None
                found.append(
                    [name, list(np.shape(mean)), expected is None or bool(np.allclose(mean, expected, atol=0.12))]
                )
    return found


def case_divergences(tf):
    D = tf.distributions
    kl = tf.distributions.kl_divergence
    pairs = [
        (D.Normal(0.0, 1.0), D.Normal([1.0, 2.0], 3.0)),
        (D.Gamma(2.0, 3.0), D.Gamma(1.0, 0.5)),
        (D.Exponential(2.0), D.Gamma(1.0, 0.5)),
        (D.Beta(2.0, 3.0), D.Beta(1.0, 0.5)),
        (D.Bernoulli(probs=0.3), D.Bernoulli(probs=[0.1, 0.9])),
        (D.Categorical(probs=[0.2, 0.8]), D.Categorical(probs=[0.5, 0.5])),
        (D.Dirichlet([1.0, 2.0]), D.Dirichlet([3.0, 0.5])),
    ]
    calls = [lambda a=a, b=b: kl(a, b) for a, b in pairs] + [lambda a=a, b=b: a.cross_entropy(b) for a, b in pairs]
    return computed(
        tf, [*calls, lambda: kl(pairs[0][0], pairs[1][0]), lambda: kl(pairs[0][0], pairs[0][1], allow_nan_stats=False)]
    )


def case_kinds_of_ones_own(tf):
    class Mine(tf.distributions.Normal):
        pass

    @tf.distributions.RegisterKL(Mine, Mine)
    def divergence(a, b, name=None):
        return a.loc - b.loc

    found = computed(
        tf,
        [
            lambda: tf.distributions.kl_divergence(Mine(1.0, 1.0), Mine(3.0, 1.0)),
            lambda: tf.distributions.kl_divergence(Mine(1.0, 1.0), tf.distributions.Normal(3.0, 1.0)),
        ],
    )
    try:
        tf.distributions.RegisterKL(Mine, Mine)(divergence)
    except ValueError as error:
        found.append(type(error).__name__)
    return found


def case_arguments(tf):
    D = tf.distributions
    return [
        *computed(
            tf,
            [
                lambda: D.Beta(),
                lambda: D.Bernoulli(),
                lambda: D.Bernoulli(0.1, 0.2),
                lambda: D.Normal(tf.constant(1.0, tf.float64), tf.constant(1.0)),
                lambda: D.Normal.param_shapes([3])["scale"],
                lambda: D.Uniform(1.0, 2.0).range(),
                lambda: D.Beta(2.0, 3.0).total_concentration,
                lambda: D.Categorical(probs=[0.5, 0.5]).event_size,
                lambda: D.Categorical(0.5),
                lambda: D.Exponential(2.0).concentration,
                lambda: D.Normal(tf.constant(1.0, tf.float64), 2.0).sample() * 0,
                lambda: D.Normal(1.0, 2.0).copy(loc=5.0).mean(),
            ],
        ),
        str(D.Normal.param_static_shapes([3])["loc"]),
        repr(D.FULLY_REPARAMETERIZED),
        repr(D.NOT_REPARAMETERIZED),
        repr(D.ReparameterizationType("X")),
    ]


def case_checks(tf):
    D = tf.distributions
    checks = (
        lambda: D.Normal(0.0, -1.0, validate_args=True).mean() + D.Normal(0.0, -1.0, validate_args=True).stddev(),
        lambda: D.Uniform(2.0, 1.0, validate_args=True).mean(),
        lambda: D.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).mean(),
        lambda: D.Gamma(0.5, 1.0, allow_nan_stats=False).mode(),
        lambda: D.Gamma(-1.0, 1.0, validate_args=True).mean(),
        lambda: D.Dirichlet([0.5, 1.0], allow_nan_stats=False).mode(),
        lambda: D.Multinomial(3.0, probs=[0.5, 0.5], validate_args=True).prob([1.0, 1.0]),
    )
    return [attempt(tf, make) for make in checks]


def attempt(tf, make):
    with tf.Session() as session:
        try:
            return session.run(make())
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            return type(error).__name__


def case_gradients(tf):
    D = tf.distributions
    a = tf.constant(1.5)
    values = [
        D.Normal(a, a).log_prob(0.5),
        D.Gamma(a, 2.0 * a).log_prob(0.5),
        D.Beta(a, 2.0).entropy(),
        D.Normal(a, 1.0).sample(seed=1),
        D.StudentT(a, 0.0, a).log_prob(2.0),
        D.Bernoulli(logits=a).entropy(),
    ]
    with tf.Session() as session:
        return session.run([tf.gradients(v, a)[0] for v in values])
