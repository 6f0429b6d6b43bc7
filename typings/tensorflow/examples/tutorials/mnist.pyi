from headwater.tf1.compat.tf.examples.tutorials.mnist import *
