"""Session.run of a trivial graph in one process: what a session costs."""

import argparse
import time

from common import report, tf

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=4)
args = parser.parse_args()

x = tf.placeholder(tf.float32)
y = x + 1.0
with tf.Session() as session:
    for _ in range(200):
        session.run(y, {x: 1.0})
    times = []
    deadline = time.perf_counter() + args.seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        session.run(y, {x: 1.0})
        times.append(time.perf_counter() - start)
    report(times)
