"""Distributions of `tf.contrib`: values, moments, shapes, divergences and gradients. Samples differ by their seeds."""

import numpy as np

METHODS = "mean mode stddev variance entropy covariance batch_shape_tensor event_shape_tensor"
OF_VALUES = "prob log_prob cdf log_cdf survival_function log_survival_function"


def made(tf):
    D = tf.contrib.distributions
    lower = [[1.0, 0.0], [0.5, 2.0]]
    two = D.Normal([[0.0, 1.0]], [[1.0, 2.0]])
    rows = D.MultivariateNormalDiag([[0.0, 1.0], [3.0, 4.0]], [1.0, 2.0])
    relaxed = [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]
    return {
        "diagonal": lambda: (D.MultivariateNormalDiag([[0.0, 1.0], [3.0, 4.0]], [1.0, 2.0]), [0.5, -1.0]),
        "diagonal of ones": lambda: (D.MultivariateNormalDiag([1.0, 2.0]), [[0.5, -1.0], [1.0, 2.0]]),
        "diagonal with a multiplier": lambda: (
            D.MultivariateNormalDiag([1.0, 2.0], scale_identity_multiplier=[2.0, 3.0]),
            [[0.5, -1.0], [1.0, 0.0]],
        ),
        "diagonal and multiplier": lambda: (D.MultivariateNormalDiag(None, [1.0, 2.0], 0.5), [0.5, -1.0]),
        "softplus diagonal": lambda: (D.MultivariateNormalDiagWithSoftplusScale([0.0, 1.0], [1.0, -2.0]), [0.5, 1.0]),
        "triangular": lambda: (D.MultivariateNormalTriL([0.0, 1.0], lower), [[0.5, 1.0], [2.0, -1.0]]),
        "triangular of a mean": lambda: (D.MultivariateNormalTriL([[0.0, 1.0]]), [0.5, 1.0]),
        "triangular batch": lambda: (D.MultivariateNormalTriL([0.0, 1.0], [lower, lower]), [[0.5, 1.0], [2.0, 0.0]]),
        "full": lambda: (D.MultivariateNormalFullCovariance([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]), [0.5, 1.0]),
        "independent": lambda: (D.Independent(two, 1), [[0.5, 1.0], [2.0, -1.0]]),
        "independent by default": lambda: (D.Independent(two), [0.5, 1.0]),
        "independent bits": lambda: (D.Independent(D.Bernoulli(logits=[[0.5, -1.0]]), 2), [[1, 0]]),
        "softplus normal": lambda: (D.NormalWithSoftplusScale(0.0, [1.0, -2.0]), [0.5, 1.0]),
        "one hot": lambda: (D.OneHotCategorical(logits=[[1.0, 2.0, 0.5], [0.0, 0.1, 0.2]]), [[0, 1, 0], [1, 0, 0]]),
        "relaxed one hot": lambda: (D.RelaxedOneHotCategorical(0.5, logits=[1.0, 2.0, 0.5]), relaxed),
        "relaxed one hots": lambda: (D.RelaxedOneHotCategorical(0.5, probs=relaxed), relaxed),
        "log relaxed": lambda: (D.ExpRelaxedOneHotCategorical(0.5, logits=[1.0, 2.0, 0.5]), np.log(relaxed).tolist()),
        "relaxed bit": lambda: (D.RelaxedBernoulli(0.5, probs=[0.3, 0.8]), [0.25, 0.75]),
        "poisson": lambda: (D.Poisson([1.5, 4.0]), [0.0, 3.0]),
        "poisson of logarithms": lambda: (D.Poisson(log_rate=0.5), [0.0, 3.0]),
        "logistic": lambda: (D.Logistic([0.0, 1.0], 2.0), [0.5, -3.0]),
        "chi2": lambda: (D.Chi2([2.0, 5.0]), [0.5, 3.0]),
        "deterministic": lambda: (D.Deterministic([1.0, 2.0], rtol=0.1), [1.05, 1.5]),
        "mixture": lambda: (
            D.Mixture(D.Categorical(probs=[0.3, 0.7]), [D.Normal(0.0, 1.0), D.Normal(4.0, 2.0)]),
            [0.5, 3.0],
        ),
        "mixture of vectors": lambda: (
            D.Mixture(
                D.Categorical(probs=[[0.3, 0.7]]),
                [D.MultivariateNormalDiag([[0.0, 1.0]]), D.MultivariateNormalDiag([[1.0, 3.0]])],
            ),
            [[0.5, 3.0]],
        ),
        "mixture of a family": lambda: (
            D.MixtureSameFamily(D.Categorical(probs=[0.3, 0.7]), D.Normal([0.0, 4.0], [1.0, 2.0])),
            [0.5, 3.0],
        ),
        "mixture of a family of vectors": lambda: (
            D.MixtureSameFamily(D.Categorical(logits=[0.3, 0.7]), rows),
            [[0.5, 3.0], [1.0, 1.0]],
        ),
    }


NAMES = """diagonal|diagonal of ones|diagonal with a multiplier|diagonal and multiplier|softplus diagonal|triangular|
triangular of a mean|triangular batch|full|independent|independent by default|independent bits|softplus normal|one hot|
relaxed one hot|relaxed one hots|log relaxed|relaxed bit|poisson|poisson of logarithms|logistic|chi2|deterministic|
mixture|mixture of vectors|mixture of a family|mixture of a family of vectors"""


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
    calls += [lambda: d.kl_divergence(d)]
    facts = [d.name, d.dtype.name, str(d.reparameterization_type), str(d.batch_shape), str(d.event_shape)]
    facts += [str(d.sample().shape), str(d.sample(3).shape), str(d.sample([2, 1], seed=1).shape)]
    if "Relaxed" not in d.name and "Deterministic" not in d.name:  # TensorFlow's cannot be copied.
        facts.append(str(d.copy().batch_shape))
    return [*facts, computed(tf, calls)]


def case_means_of_samples(tf):
    found = []
    with tf.Session() as session:
        for name, make in sorted(made(tf).items()):
            d = make()[0]
            drawn = session.run(tf.cast(d.sample(20000, seed=3), tf.float32))
            try:
                mean, deviation = session.run([d.mean(), d.stddev()])
            except NotImplementedError:
                found.append([name, list(drawn.shape)])
                continue
            close = np.abs(drawn.mean(0) - mean) <= 6 * deviation / np.sqrt(20000) + 1e-6
            found.append([name, list(drawn.shape), bool(np.all(close))])
    return found


def case_samples_of_relaxed_classes(tf):
    D = tf.contrib.distributions
    cold = D.RelaxedOneHotCategorical(0.05, probs=[0.2, 0.5, 0.3]).sample(20000, seed=2)
    bits = D.RelaxedBernoulli(0.05, probs=0.3).sample(20000, seed=2)
    with tf.Session() as session:
        cold, bits = session.run([cold, bits])
    close = np.allclose(np.bincount(cold.argmax(1)) / 20000.0, [0.2, 0.5, 0.3], atol=0.02)
    return [close, bool(np.allclose(cold.sum(1), 1, atol=1e-4)), bool(abs((bits > 0.5).mean() - 0.3) < 0.02)]


def case_divergences(tf):
    D = tf.contrib.distributions
    lower = D.MultivariateNormalTriL([0.0, 1.0], [[1.0, 0.0], [0.5, 2.0]])
    diagonal = D.MultivariateNormalDiag([[0.5, 1.0], [1.0, 1.0]], [1.0, 0.5])
    full = D.MultivariateNormalFullCovariance([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
    normals = [D.Normal([[0.0, 1.0]], [[scale, 2.0]]) for scale in (1.0, 3.0)]
    pairs = [(lower, diagonal), (diagonal, lower), (diagonal, diagonal.copy(loc=[0.0, 2.0])), (full, lower)]
    pairs += [(D.Independent(normals[0], 1), D.Independent(normals[1], 1))]
    pairs += [(D.Independent(normals[0], 1), D.Independent(normals[1], 2))]
    pairs += [(D.OneHotCategorical(probs=[0.2, 0.8]), D.OneHotCategorical(probs=[0.5, 0.5]))]
    calls = [lambda a=a, b=b: D.kl_divergence(a, b) for a, b in pairs]
    return computed(tf, calls + [lambda a=a, b=b: a.cross_entropy(b) for a, b in pairs])


def case_gradients(tf):
    D = tf.contrib.distributions
    loc, scale, logits = tf.constant([0.5, -1.0]), tf.constant([1.0, 2.0]), tf.constant([0.1, 0.9, -0.5])
    lower = tf.constant([[1.0, 0.0], [0.5, 2.0]])
    diagonal, triangular = D.MultivariateNormalDiag(loc, scale), D.MultivariateNormalTriL(loc, lower)
    relaxed = D.RelaxedOneHotCategorical(0.7, logits)
    mixed = D.MixtureSameFamily(D.Categorical(logits=logits[:2]), D.Normal(loc, scale))
    return computed(
        tf,
        [
            lambda: tf.gradients(diagonal.log_prob([1.0, 1.0]), scale)[0],
            lambda: tf.gradients(diagonal.kl_divergence(D.MultivariateNormalDiag([0.0, 0.0])), loc)[0],
            lambda: tf.gradients(triangular.log_prob([1.0, 1.0]), lower)[0],
            lambda: tf.gradients(tf.reduce_sum(diagonal.sample(5)), loc)[0],
            lambda: tf.gradients(relaxed.log_prob([0.2, 0.5, 0.3]), logits)[0],
            lambda: tf.gradients(mixed.log_prob(1.5), logits)[0],
        ],
    )


def case_inverse_of_softplus(tf):
    with tf.Session() as session:
        return session.run(tf.contrib.distributions.softplus_inverse([1e-8, 0.1, 1.0, 30.0, 200.0]))


def case_refused(tf):
    D = tf.contrib.distributions
    calls = [
        D.MultivariateNormalDiag,
        D.MultivariateNormalTriL,
        lambda: D.Poisson(),
        lambda: D.Poisson(1.0, 2.0),
        lambda: D.OneHotCategorical(),
        lambda: D.Independent(D.Normal(0.0, 1.0), 1),
        lambda: D.Mixture(D.Normal(0.0, 1.0), [D.Normal(0.0, 1.0)]),
        lambda: D.Mixture(D.Categorical(probs=[0.5, 0.5]), [D.Normal(0.0, 1.0)]),
        lambda: D.Mixture(D.Categorical(probs=[0.5, 0.5]), []),
        lambda: D.MixtureSameFamily(D.Categorical(probs=[0.5, 0.5]), D.Normal([0.0, 1.0, 2.0], 1.0)),
    ]
    found = []
    for call in calls:
        try:
            found.append(type(call()).__name__)
        except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
            found.append(type(error).__name__)
    return found
