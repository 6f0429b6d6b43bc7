from headwater.compat.tf.examples.tutorials.mnist import *
