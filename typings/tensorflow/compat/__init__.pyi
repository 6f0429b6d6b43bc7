from headwater.compat.tf.compat import *
