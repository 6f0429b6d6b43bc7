"""The step of ``lenet.py`` with PyTorch, in one process."""

import argparse
import json
import resource
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--forward", action="store_true", help="the loss alone, without gradients")
args = parser.parse_args()

model = nn.Sequential(
    nn.Conv2d(1, 32, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(7 * 7 * 64, 512),
    nn.ReLU(),
    nn.Linear(512, 10),
)
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images, labels = torch.rand(100, 1, 28, 28), torch.randint(0, 10, (100,))


def step():
    if args.forward:
        with torch.no_grad():
            return float(loss_of(model(images), labels))
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()


for _ in range(10):
    step()
times, before = [], resource.getrusage(resource.RUSAGE_SELF)
deadline = time.perf_counter() + args.seconds
while time.perf_counter() < deadline:
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
after = resource.getrusage(resource.RUSAGE_SELF)
found = {
    "rate": len(times) / sum(times),
    "user": (after.ru_utime - before.ru_utime) / len(times),
    "system": (after.ru_stime - before.ru_stime) / len(times),
}
print(json.dumps(found), flush=True)
