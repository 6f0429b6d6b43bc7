from headwater.tf1.compat.tf.examples import *
