"""A client that cannot open any further file."""

from __future__ import annotations

import os
import resource
import sys

from headwater import tf

one = tf.constant(1)
session = tf.Session(sys.argv[1])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
spare = os.open(os.devnull, os.O_RDONLY)
resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, most))
print(session.run(one), flush=True)
