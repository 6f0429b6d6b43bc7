"""Names of ``tf.keras`` on numbers: activations, losses, metrics, layers, initial values, penalties, helpers of input.

Each line is an expression of the namespace; what it gives is evaluated with ``tf.keras.backend.eval``.
"""

# ruff: noqa: E501 - a line is an expression; Python 3.7 reads this

import numpy as np

X = np.array([[-1.5, 0.25, 2.0], [0.5, -0.75, 4.0]], "float32")
P = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], "float32")
Q = np.array([[0.3, 0.3, 0.4], [0.25, 0.5, 0.25]], "float32")
ONE = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], "float32")
SIGNS = np.array([[-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]], "float32")
ROWS = np.sin(np.arange(2 * 6 * 3)).reshape(2, 6, 3).astype("float32")
IMAGES = np.cos(np.arange(1 * 4 * 4 * 2)).reshape(1, 4, 4, 2).astype("float32")
VOLUMES = np.sin(np.arange(1 * 4 * 4 * 4 * 2)).reshape(1, 4, 4, 4, 2).astype("float32")
MOVIES = np.cos(np.arange(1 * 3 * 4 * 4 * 2)).reshape(1, 3, 4, 4, 2).astype("float32")

ACTIVATIONS = "elu exponential linear relu selu sigmoid softmax softplus softsign tanh"
LOSSES = """
    binary_crossentropy categorical_crossentropy categorical_hinge hinge squared_hinge poisson
    kullback_leibler_divergence kld KLD mean_absolute_error mae MAE mean_absolute_percentage_error mape MAPE
    mean_squared_error mse MSE mean_squared_logarithmic_error msle MSLE"""
LOSS_CLASSES = """
    CategoricalCrossentropy CategoricalHinge Hinge Huber KLDivergence LogCosh MeanAbsoluteError
    MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson SquaredHinge BinaryCrossentropy"""
METRIC_CLASSES = """
    Accuracy BinaryAccuracy BinaryCrossentropy CategoricalAccuracy CategoricalCrossentropy CategoricalHinge
    CosineSimilarity FalseNegatives FalsePositives Hinge KLDivergence LogCoshError MeanAbsoluteError
    MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson Precision Recall
    RootMeanSquaredError SquaredHinge TrueNegatives TruePositives"""
METRICS = """
    categorical_accuracy binary_crossentropy categorical_crossentropy hinge squared_hinge
    kullback_leibler_divergence mean_absolute_error mean_absolute_percentage_error mean_squared_error
    mean_squared_logarithmic_error poisson KLD MAE MAPE MSE MSLE kld mae mape mse msle"""
POOLS = """
    AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D
    MaxPooling1D MaxPooling2D MaxPooling3D MaxPool1D MaxPool2D MaxPool3D"""
GLOBAL_POOLS = """
    GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D
    GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D"""
SIZED = {"1": "c(ROWS)", "2": "c(IMAGES)", "3": "c(VOLUMES)"}

TABLES = {
    "elementwise layers": """
        tf.keras.layers.Activation('tanh')(c(X))
        tf.keras.layers.ELU(0.5)(c(X))
        tf.keras.layers.LeakyReLU(0.2)(c(X))
        tf.keras.layers.PReLU(ones)(c(X))
        tf.keras.layers.ReLU(1.0)(c(X))
        tf.keras.layers.Softmax()(c(X))
        tf.keras.layers.ActivityRegularization(0.5)(c(X))
        tf.keras.layers.AlphaDropout(0.5)(c(X))
        tf.keras.layers.GaussianDropout(0.5)(c(X))
        tf.keras.layers.GaussianNoise(0.5)(c(X))
        tf.keras.layers.SpatialDropout1D(0.5)(c(ROWS))
        tf.keras.layers.SpatialDropout2D(0.5)(c(IMAGES))
        tf.keras.layers.SpatialDropout3D(0.5)(c(VOLUMES))
        tf.keras.layers.LayerNormalization()(c(X))
        tf.keras.layers.Masking(0.0)(c(X))
    """,
    "layers of several": """
        tf.keras.layers.Average()([c(X), c(P)])
        tf.keras.layers.Maximum()([c(X), c(P)])
        tf.keras.layers.Minimum()([c(X), c(P)])
        tf.keras.layers.Multiply()([c(X), c(P)])
        tf.keras.layers.Subtract()([c(X), c(P)])
        tf.keras.layers.Dot(1)([c(X), c(P)])
        tf.keras.layers.Dot(1, normalize=True)([c(X), c(P)])
        tf.keras.layers.add([c(X), c(P)])
        tf.keras.layers.average([c(X), c(P)])
        tf.keras.layers.concatenate([c(X), c(P)])
        tf.keras.layers.concatenate([c(X), c(P)], 0)
        tf.keras.layers.dot([c(X), c(P)], 1)
        tf.keras.layers.maximum([c(X), c(P)])
        tf.keras.layers.minimum([c(X), c(P)])
        tf.keras.layers.multiply([c(X), c(P)])
        tf.keras.layers.subtract([c(X), c(P)])
        tf.keras.layers.Attention()([c(ROWS), c(ROWS * 2)])
        tf.keras.layers.AdditiveAttention(use_scale=False)([c(ROWS), c(ROWS * 2)])
    """,
    "layers of shape": """
        tf.keras.layers.Permute((2, 1))(c(ROWS))
        tf.keras.layers.RepeatVector(2)(c(X))
        tf.keras.layers.Cropping1D((1, 2))(c(ROWS))
        tf.keras.layers.Cropping2D(((1, 0), (0, 2)))(c(IMAGES))
        tf.keras.layers.Cropping3D(1)(c(VOLUMES))
        tf.keras.layers.UpSampling1D(2)(c(ROWS))
        tf.keras.layers.UpSampling2D((2, 1))(c(IMAGES))
        tf.keras.layers.UpSampling3D((1, 2, 1))(c(VOLUMES))
        tf.keras.layers.ZeroPadding1D((1, 2))(c(ROWS))
        tf.keras.layers.ZeroPadding2D(((1, 0), (0, 2)))(c(IMAGES))
        tf.keras.layers.ZeroPadding3D((0, 1, 0))(c(VOLUMES))
        [tf.keras.layers.InputSpec(ndim=2).ndim, tf.keras.layers.InputSpec(shape=(None, 3)).shape[1]]
    """,
    "convolutions": """
        tf.keras.layers.Conv1D(2, 2, kernel_initializer=rising)(c(ROWS))
        tf.keras.layers.Conv1D(2, 2, padding='causal', dilation_rate=2, kernel_initializer=rising)(c(ROWS))
        tf.keras.layers.Convolution1D(1, 3, 2, 'same', kernel_initializer=rising)(c(ROWS))
        tf.keras.layers.Conv2D(2, 2, (2, 1), kernel_initializer=rising)(c(IMAGES))
        tf.keras.layers.Convolution2D(2, 3, padding='same', activation='relu', kernel_initializer=rising)(c(IMAGES))
        tf.keras.layers.Conv2DTranspose(2, 2, 2, kernel_initializer=rising)(c(IMAGES))
        tf.keras.layers.Convolution2DTranspose(2, 3, padding='same', kernel_initializer=rising)(c(IMAGES))
        tf.keras.layers.Conv3D(1, 2, kernel_initializer=rising)(c(VOLUMES))
        tf.keras.layers.Convolution3D(1, 2, 2, 'same', kernel_initializer=rising)(c(VOLUMES))
        tf.keras.layers.Conv3DTranspose(1, 2, (1, 2, 1), kernel_initializer=rising)(c(VOLUMES))
        tf.keras.layers.Convolution3DTranspose(1, 2, kernel_initializer=rising)(c(VOLUMES))
        tf.keras.layers.DepthwiseConv2D(2, depth_multiplier=2, depthwise_initializer=rising)(c(IMAGES))
        tf.keras.layers.SeparableConv1D(2, 2, depthwise_initializer=rising, pointwise_initializer=rising)(c(ROWS))
        tf.keras.layers.SeparableConvolution1D(2, 2, depthwise_initializer=rising, pointwise_initializer=rising)(c(ROWS))
        tf.keras.layers.SeparableConv2D(2, 2, depthwise_initializer=rising, pointwise_initializer=rising)(c(IMAGES))
        tf.keras.layers.SeparableConvolution2D(2, 2, depthwise_initializer=rising, pointwise_initializer=rising)(c(IMAGES))
    """,
    "recurrent layers": """
        tf.keras.layers.SimpleRNN(2, kernel_initializer=rising, recurrent_initializer=rising)(c(ROWS))
        tf.keras.layers.GRU(2, kernel_initializer=rising, recurrent_initializer=rising, recurrent_activation='sigmoid', reset_after=False)(c(ROWS))
        tf.keras.layers.LSTM(2, kernel_initializer=rising, recurrent_initializer=rising, recurrent_activation='sigmoid', return_sequences=True)(c(ROWS))
        tf.keras.layers.RNN(tf.keras.layers.SimpleRNNCell(2, kernel_initializer=rising, recurrent_initializer=rising))(c(ROWS))
        tf.keras.layers.RNN(tf.keras.layers.GRUCell(2, kernel_initializer=rising, recurrent_initializer=rising, recurrent_activation='sigmoid', reset_after=False))(c(ROWS))
        tf.keras.layers.RNN(tf.keras.layers.LSTMCell(2, kernel_initializer=rising, recurrent_initializer=rising, recurrent_activation='sigmoid'))(c(ROWS))
        tf.keras.layers.TimeDistributed(tf.keras.layers.Dense(2, kernel_initializer=rising))(c(ROWS))
        tf.keras.layers.ConvLSTM2D(1, 2, kernel_initializer=rising, recurrent_initializer=rising, recurrent_activation='sigmoid')(c(MOVIES))
    """,
    "initial values": """
        tf.keras.initializers.Ones()([2, 3])
        tf.keras.initializers.ones()([2])
        tf.keras.initializers.Zeros()([2, 3])
        tf.keras.initializers.zeros()([2])
        tf.keras.initializers.VarianceScaling(seed=1)([4, 5]).shape == (4, 5)
        tf.keras.initializers.get('ones')([2])
        tf.keras.initializers.deserialize({'class_name': 'Ones', 'config': {}})([2])
        tf.keras.initializers.serialize(tf.keras.initializers.Ones())['class_name']
        isinstance(tf.keras.initializers.glorot_normal(1), tf.keras.initializers.Initializer)
        np.abs(e(tf.keras.initializers.he_uniform(1)([600, 4]))).max() <= 0.1
        np.abs(e(tf.keras.initializers.lecun_uniform(1)([300, 4]))).max() <= 0.1
        e(tf.keras.initializers.lecun_normal(1)([3, 4])).shape
    """,
    "penalties and bounds": """
        tf.keras.regularizers.l1(0.5)(c(X))
        tf.keras.regularizers.l1_l2(0.5, 0.25)(c(X))
        tf.keras.regularizers.L1L2(0.5, 0.25)(c(X))
        tf.keras.regularizers.get('l2')(c(X))
        isinstance(tf.keras.regularizers.l2(0.5), tf.keras.regularizers.Regularizer)
        tf.keras.regularizers.serialize(tf.keras.regularizers.L1L2(0.5, 0.25))['class_name']
        tf.keras.regularizers.deserialize({'class_name': 'L1L2', 'config': {'l1': 0.5, 'l2': 0.0}})(c(X))
        tf.keras.constraints.MaxNorm(1.0)(c(X))
        tf.keras.constraints.max_norm(0.5, 1)(c(X))
        tf.keras.constraints.MinMaxNorm(0.5, 1.0)(c(X))
        tf.keras.constraints.min_max_norm(0.5, 1.0, 0.5)(c(X))
        tf.keras.constraints.NonNeg()(c(X))
        tf.keras.constraints.non_neg()(c(X))
        tf.keras.constraints.UnitNorm()(c(X))
        tf.keras.constraints.unit_norm(1)(c(X))
        tf.keras.constraints.get('unit_norm')(c(X))
        tf.keras.constraints.deserialize({'class_name': 'NonNeg', 'config': {}})(c(X))
        isinstance(tf.keras.constraints.NonNeg(), tf.keras.constraints.Constraint)
        tf.keras.constraints.serialize(tf.keras.constraints.NonNeg())['class_name']
    """,
    "by name": """
        tf.keras.activations.get('relu')(c(X))
        tf.keras.activations.deserialize('tanh')(c(X))
        tf.keras.activations.serialize(tf.keras.activations.relu)
        tf.keras.losses.get('mse')(c(X), c(P))
        issubclass(tf.keras.losses.Huber, tf.keras.losses.Loss)
        tf.keras.losses.logcosh(c(X), c(P))
        issubclass(tf.keras.metrics.AUC, tf.keras.metrics.Metric)
        tf.keras.metrics.AUC(3)(c(ONE), c(P))
        tf.keras.metrics.Sum()(c(X))
        tf.keras.metrics.SensitivityAtSpecificity(0.5, 3)(c(ONE), c(P))
        tf.keras.metrics.SpecificityAtSensitivity(0.5, 3)(c(ONE), c(P))
        tf.keras.metrics.SparseCategoricalCrossentropy()(c([1.0, 0.0]), c(P))
        tf.keras.metrics.TopKCategoricalAccuracy(2)(c(ONE), c(P))
        tf.keras.metrics.sparse_categorical_accuracy(c([1.0, 2.0]), c(P))
        tf.keras.metrics.sparse_top_k_categorical_accuracy(c([1.0, 0.0]), c(P), 1)
        tf.keras.metrics.top_k_categorical_accuracy(c(ONE), c(P), 2)
        tf.keras.metrics.sparse_categorical_crossentropy(c([1.0, 0.0]), c(P))
        tf.keras.metrics.serialize(tf.keras.metrics.Sum())['class_name']
        tf.keras.layers.serialize(tf.keras.layers.Softmax())['class_name']
        isinstance(tf.keras.optimizers.get('adadelta'), tf.keras.optimizers.Adadelta)
        issubclass(tf.keras.optimizers.Adamax, tf.keras.optimizers.Optimizer)
        tf.keras.optimizers.schedules.InverseTimeDecay(0.5, 2, 0.25)(3)
        tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [1.0, 0.5, 0.25])(c(3.0))
        tf.keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.1, 2.0)(3)
        tf.keras.optimizers.schedules.serialize(tf.keras.optimizers.schedules.PolynomialDecay(0.5, 10))['class_name']
        tf.keras.experimental.CosineDecayRestarts(0.5, 4)(6)
        issubclass(tf.keras.optimizers.schedules.InverseTimeDecay, tf.keras.optimizers.schedules.LearningRateSchedule)
    """,
    "helpers": """
        tf.keras.utils.to_categorical([0, 2, 1])
        tf.keras.utils.to_categorical([0, 1], 4)
        tf.keras.utils.normalize(X)
        tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3, 4]], 2)
        tf.keras.preprocessing.sequence.pad_sequences([[1], [2, 3]], 3, padding='post', value=9)
        tf.keras.preprocessing.sequence.make_sampling_table(6)
        tf.keras.preprocessing.sequence.skipgrams([1, 2, 3], 4, 1, 0.0, shuffle=False)
        tf.keras.preprocessing.sequence.TimeseriesGenerator(np.arange(6), np.arange(6), 2, batch_size=2)[0]
        tf.keras.preprocessing.text.text_to_word_sequence('The cat, the DOG!')
        tf.keras.preprocessing.text.one_hot('a b a', 50)[0] == tf.keras.preprocessing.text.one_hot('a', 50)[0]
        tf.keras.preprocessing.text.hashing_trick('the cat the dog', 20, 'md5')
        (lambda t: [t.fit_on_texts(['a b a', 'c a']), t.texts_to_sequences(['c b a'])])(tf.keras.preprocessing.text.Tokenizer())
        tf.keras.preprocessing.image.apply_channel_shift(X[:, :, None] * 40, 20.0)
        tf.keras.applications.imagenet_utils.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99, mode='tf')
        tf.keras.applications.densenet.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.inception_resnet_v2.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.inception_v3.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.mobilenet.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.mobilenet_v2.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.nasnet.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.resnet.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.resnet50.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.resnet_v2.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.vgg16.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.vgg19.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        tf.keras.applications.xception.preprocess_input(np.ones([1, 2, 2, 3], 'float32') * 99)
        [tf.keras.backend.floatx(), tf.keras.backend.epsilon(), tf.keras.backend.image_data_format()]
    """,
}


def cases(tf):
    found = {}
    for name, lines in TABLES.items():
        found[name] = [line.strip() for line in lines.split("\n") if line.strip()]
    keras = tf.keras
    for title, area, names, called in (
        ("activations", keras.activations, ACTIVATIONS, "(c(X))"),
        ("losses", keras.losses, LOSSES, "(c(Q), c(P))"),
        ("classes of losses", keras.losses, LOSS_CLASSES, "()(c(Q), c(P))"),
        ("metrics", keras.metrics, METRICS, "(c(Q), c(P))"),
        ("classes of metrics", keras.metrics, METRIC_CLASSES, "()(c(ONE), c(P))"),
        ("pools", keras.layers, POOLS, "(2)({})"),
        ("global pools", keras.layers, GLOBAL_POOLS, "()({})"),
    ):
        found[title] = [
            "tf.keras.{}.{}{}".format(area.__name__.rpartition(".")[2], name, called.format(SIZED.get(name[-2])))
            for name in names.split()
        ]
    return {
        name: lambda tf, expressions=expressions: [valued(tf, expression) for expression in expressions]
        for name, expressions in found.items()
    }


def valued(tf, expression):
    """The expression's value, or the class of its error."""
    names = {
        "tf": tf,
        "c": lambda value: tf.keras.backend.constant(np.asarray(value, "float32")),
        "e": tf.keras.backend.eval,
        "ones": "ones",
        "rising": Rising(tf),
    }
    try:
        value = eval(expression, {**globals(), **names})
        return plain(tf, value)
    except Exception as error:  # noqa: BLE001 - the class of any error is an outcome
        return type(error).__name__


def plain(tf, value):
    """Numbers as lists; tensors evaluated."""
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray, np.generic)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(tf, each) for each in value]
    return np.asarray(tf.keras.backend.eval(value))


class Rising:
    """Values that follow from the shape only, for layers: waves of a small size."""

    def __init__(self, tf):
        self.tf = tf

    def __call__(self, shape, dtype=None, **_):
        shape = [int(each) for each in shape]
        values = np.sin(np.arange(int(np.prod(shape)))).reshape(shape) * 0.5
        return self.tf.keras.backend.constant(values.astype("float32"))
