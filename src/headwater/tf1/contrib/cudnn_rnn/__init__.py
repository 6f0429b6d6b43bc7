"""Recurrent networks with the parameters and computations of cuDNN (TensorFlow 1.15's ``tf.contrib.cudnn_rnn``).

A layer has one variable, cuDNN's buffer of parameters. Checkpoints also contain its parameters as variables of
platform-independent cells (`saveables`). The layers are computed by scans, on every device.
"""
