"""The functions of ``tf.keras.backend`` of TensorFlow 1.15, on values and models of Keras 3."""
