from headwater.compat.tf.examples import *
