"""Layers and models of ``tf.keras`` on tensors of graphs: values with the same weights, names, losses, updates."""

import numpy as np


def _run(tf, make):
    """Returns the names of all variables and of those that are not trained, and values with chosen weights."""
    numbers = np.random.RandomState(3)
    made = make()
    fetched = list(made) if isinstance(made, (list, tuple)) else [made]
    variables = tf.global_variables()
    trained = {variable.name for variable in tf.trainable_variables()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for variable in variables:
            shape = variable.shape.as_list()
            variable.load(numbers.uniform(0.1, 0.5, shape).astype(variable.dtype.as_numpy_dtype), session)
        values = session.run(fetched)
    return {
        "variables": [variable.name for variable in variables],
        "not trained": sorted(variable.name for variable in variables if variable.name not in trained),
        "values": [np.asarray(value, np.float64).round(4).tolist() for value in values],
        "collected": len(tf.get_collection("update_ops")) + len(tf.get_collection("regularization_losses")),
    }


def cases(tf):
    backend, layers = tf.keras.backend, tf.keras.layers
    regularizers = tf.keras.regularizers
    sigmoid = {"recurrent_activation": "sigmoid"}  # the default differs between Keras 2 and 3
    found = {}

    def x(*shape):
        numbers = np.random.RandomState(1).uniform(-1, 1, shape or (3, 4))
        return tf.placeholder_with_default(tf.constant(numbers, tf.float32), [None, *list(shape[1:] or (4,))])

    def case(make):
        found[make.__name__] = lambda tf: _run(tf, make)
        return make

    def one(name, make, *shape, **arguments):
        found[name] = lambda tf: _run(tf, lambda: make()(x(*shape), **arguments))

    @case
    def dense():
        layer = layers.Dense(3, activation="relu", kernel_regularizer=regularizers.l2(0.1))
        outputs, again = layer(x()), layer(x())
        assert len(layer.losses) == 1
        assert not layer.updates
        assert [each.name for each in layer.trainable_weights] == ["dense/kernel:0", "dense/bias:0"]
        slope = tf.gradients(outputs, layer.trainable_weights)[0]
        return [outputs, again, layer.losses[0], tf.matmul(x(), layer.kernel), slope]

    @case
    def within_scopes():
        with tf.variable_scope("a"):
            return layers.Dense(2)(layers.Dense(3)(x()))

    @case
    def dense_of_sequences():
        return layers.Dense(3, use_bias=False)(x(2, 3, 4))

    @case
    def dense_of_doubles():
        return layers.Dense(2)(tf.ones([2, 3], tf.float64))

    @case
    def activity():
        layer = layers.Dense(3, activity_regularizer=regularizers.l2(0.1))
        return [layer(x()), layer.losses[0]]

    def normalized(training):
        layer = layers.BatchNormalization()
        outputs = layer(x(), training=training)
        assert len(layer.updates) == 2
        with tf.control_dependencies([*layer.updates, outputs]):
            return [outputs] + [each.read_value() for each in layer.weights[2:]]

    found["normalization"] = lambda tf: _run(tf, lambda: normalized(True))
    found["normalization_by_tensor"] = lambda tf: _run(tf, lambda: normalized(tf.placeholder_with_default(True, [])))
    one("normalization_inference", layers.BatchNormalization, training=False)
    one("normalization_by_phase", layers.BatchNormalization)
    one("dropout", lambda: layers.Dropout(0.5))

    @case
    def embedding():
        layer = layers.Embedding(5, 3)
        outputs = layer(tf.constant([[1, 2], [4, 0]]))
        slope = tf.gradients(outputs, layer.weights)[0]
        assert isinstance(slope, tf.IndexedSlices)
        return [outputs, tf.convert_to_tensor(slope)]

    one("activation", lambda: layers.Activation("tanh"))
    one("leaky_relu", lambda: layers.LeakyReLU(0.1))
    one("prelu", layers.PReLU)
    one("softmax", layers.Softmax)
    one("flatten", layers.Flatten, 3, 2, 4)
    one("reshape", lambda: layers.Reshape((4, 2)), 3, 2, 4)
    one("permute", lambda: layers.Permute((2, 1)), 3, 2, 4)
    one("repeat_vector", lambda: layers.RepeatVector(2))
    one("lambda", lambda: layers.Lambda(lambda value: tf.reduce_sum(value, axis=1) * 2))
    one("convolution_1d", lambda: layers.Conv1D(2, 2), 3, 5, 4)
    one("convolution_2d", lambda: layers.Conv2D(2, 2, padding="same", strides=2), 2, 5, 5, 3)
    one("convolution_2d_transpose", lambda: layers.Conv2DTranspose(2, 2), 2, 4, 4, 3)
    one("convolution_separable", lambda: layers.SeparableConv1D(2, 2), 2, 5, 3)
    one("max_pooling", layers.MaxPooling2D, 2, 4, 4, 3)
    one("average_pooling", lambda: layers.AveragePooling1D(2), 2, 4, 3)
    one("global_pooling", layers.GlobalAveragePooling1D, 2, 4, 3)
    one("zero_padding", lambda: layers.ZeroPadding1D(1), 2, 4, 3)
    one("layer_normalization", layers.LayerNormalization, 3, 5, 4)
    for name in ["Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract"]:
        found["merge_" + name] = lambda tf, name=name: _run(tf, lambda: getattr(layers, name)()([x(), tf.abs(x())]))
    found["merge_Dot"] = lambda tf: _run(tf, lambda: layers.Dot(axes=1)([x(), tf.abs(x())]))

    one("lstm", lambda: layers.LSTM(4, return_sequences=True, return_state=True, **sigmoid), 3, 5, 2)
    one("gru", lambda: layers.GRU(4, reset_after=True, **sigmoid), 3, 5, 2)
    one("bidirectional", lambda: layers.Bidirectional(layers.LSTM(3, **sigmoid)), 3, 5, 2)
    one("time_distributed", lambda: layers.TimeDistributed(layers.Dense(3)), 3, 5, 2)
    one("rnn_of_cell", lambda: layers.RNN(layers.LSTMCell(3, **sigmoid)), 3, 5, 2)

    @case
    def masks():
        ids = tf.constant([[1, 2, 0], [4, 0, 0]])
        return layers.LSTM(3, **sigmoid)(layers.Embedding(5, 2, mask_zero=True)(ids))

    @case
    def gradients_of_lstm():
        layer, inputs = layers.LSTM(3, **sigmoid), x(3, 5, 2)
        return tf.gradients(layer(inputs), [inputs, *layer.trainable_weights])

    # Models and layers of a program -----------------------------------------------------------------------------

    @case
    def sequential():
        model = tf.keras.Sequential(
            [
                layers.Dense(3, kernel_regularizer="l2"),
                layers.BatchNormalization(),
                layers.Dropout(0.5),
                layers.Dense(2),
            ]
        )
        outputs = model(x(), training=False)
        assert len(model.losses) == 1
        assert len(model.trainable_variables) == 6
        return [outputs, model(x())]

    @case
    def sequential_of_known_shape():
        return tf.keras.Sequential([layers.InputLayer((4,)), layers.Dense(3), layers.Dense(2)])(x())

    @case
    def functional():
        inputs = tf.keras.Input((4,))
        model = tf.keras.Model(inputs, layers.Dense(2, name="b")(layers.Dense(3, activation="relu", name="a")(inputs)))
        outputs = model(x())
        assert len(model.trainable_weights) == 4
        return [outputs, tf.reduce_sum(model.get_layer("b").kernel)]

    class Model(tf.keras.Model):
        def __init__(self):
            super(Model, self).__init__()  # noqa: UP008 - also Python 3.7's TensorFlow
            self.inner = layers.Dense(3)
            self.normal = layers.BatchNormalization()
            self.outer = layers.Dense(2, name="outer")

        def call(self, inputs, training=None):
            return self.outer(tf.nn.relu(self.normal(self.inner(inputs), training=training)))

    @case
    def subclassed():
        model = Model()
        outputs = model(x(), training=True)
        assert len(model.updates) == 2
        assert len(model.weights) == 8
        return outputs

    class Affine(layers.Layer):
        def __init__(self, units, **options):
            self.units = units
            super(Affine, self).__init__(**options)  # noqa: UP008

        def build(self, shape):
            size = int(shape[-1])
            l2 = regularizers.l2(0.1)
            self.w = self.add_weight("w", shape=[size, self.units], initializer="zeros", regularizer=l2)
            self.b = self.add_weight(name="b", shape=(self.units,), initializer=tf.zeros_initializer())
            two = tf.keras.initializers.Constant(2.0)
            self.k = self.add_weight("k", [self.units], tf.float32, two, trainable=False)
            super(Affine, self).build(shape)  # noqa: UP008

        def call(self, inputs):
            return tf.nn.bias_add(tf.matmul(inputs, self.w), self.b) * self.k + backend.mean(inputs)

    @case
    def defined_layer():
        layer = Affine(3)
        outputs = layer(x())
        assert len(layer.losses) == 1
        assert len(layer.weights) == 3
        return [outputs, layer.losses[0]]

    class Interactions(layers.Layer):
        def build(self, shape):
            assert len(shape) == 3
            super(Interactions, self).build(shape)  # noqa: UP008

        def call(self, inputs, **unused):
            of_sum = tf.square(tf.reduce_sum(inputs, axis=1, keep_dims=True))
            of_squares = tf.reduce_sum(inputs * inputs, axis=1, keep_dims=True)
            return 0.5 * tf.reduce_sum(of_sum - of_squares, axis=2, keep_dims=False)

    one("defined_interactions", Interactions, 3, 2, 4)

    class Doubled(layers.Dense):
        def call(self, inputs):
            return super(Doubled, self).call(inputs) * 2  # noqa: UP008

    one("derived_layer", lambda: Doubled(3))

    # Sessions ---------------------------------------------------------------------------------------------------

    @case
    def inputs_of_tensors():
        return layers.Dense(2)(tf.keras.Input(tensor=x()))

    @case
    def weights_in_a_session():
        with tf.Session().as_default():
            layer = layers.Dense(2)
            outputs = layer(x())
            layer.set_weights([np.ones((4, 2)), np.zeros(2)])
            return [tf.constant(backend.eval(outputs)), tf.constant(layer.get_weights()[0])]

    @case
    def learning_phase():
        rate = backend.in_train_phase(tf.constant(2.0), tf.constant(1.0))
        session = backend.get_session()
        return [tf.constant(session.run(rate, {backend.learning_phase(): phase})) for phase in (False, True)]

    return found
