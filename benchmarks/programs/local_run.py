"""Session.run of a chain of operations in one process: what a session costs, and what each operation adds to it."""

import argparse
import time

from common import begin, report, tf

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--operations", type=int, default=1)
args = parser.parse_args()

x = tf.placeholder(tf.float32)
y = x
for _ in range(args.operations):
    y = tf.tanh(y)  # which no optimizer of graphs folds
with tf.Session() as session:
    for _ in range(200):
        session.run(y, {x: 1.0})
    times = []
    begin()
    deadline = time.perf_counter() + args.seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        session.run(y, {x: 1.0})
        times.append(time.perf_counter() - start)
    report(times)
