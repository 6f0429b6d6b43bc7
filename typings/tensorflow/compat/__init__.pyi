from headwater.tf1.compat.tf.compat import *
