from headwater.compat.tf import *
