# `import tensorflow` is Headwater in these programs: what editors and type checkers find in place of TensorFlow.

from headwater.tf1.compat.tf import *
from headwater.tf1.compat.tf import __version__ as __version__
