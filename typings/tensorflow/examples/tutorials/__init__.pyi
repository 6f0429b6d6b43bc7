from headwater.compat.tf.examples.tutorials import *
