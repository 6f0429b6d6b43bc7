from headwater.tf1.compat.tf import *
