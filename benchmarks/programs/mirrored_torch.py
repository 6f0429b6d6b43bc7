"""The network of mirrored_keras.py with PyTorch's DistributedDataParallel over Gloo; prints steps/s."""

import os
import sys
import time

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCH = 32
STEPS = int(sys.argv[1])

rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
# As with Headwater, each process its own share of the cores: without it they are slower.
cores = sorted(os.sched_getaffinity(0))
if len(cores) >= workers:
    os.sched_setaffinity(0, cores[rank * len(cores) // workers : (rank + 1) * len(cores) // workers])
    torch.set_num_threads(max(1, len(cores) // workers))
torch.distributed.init_process_group("gloo")

net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
model = DistributedDataParallel(net)
optimizer = torch.optim.Adam(model.parameters())
loss_of = nn.CrossEntropyLoss()
x = torch.rand(BATCH * 50, 784)
y = torch.randint(0, 10, (len(x),))


def train(steps):
    total = right = 0.0
    for step in range(steps):
        at = step * BATCH % len(x)
        images, labels = x[at : at + BATCH], y[at : at + BATCH]
        optimizer.zero_grad()
        outputs = model(images)
        loss = loss_of(outputs, labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (outputs.argmax(1) == labels).sum().item()
    return total, right


train(STEPS)
began = time.perf_counter()
train(STEPS)
print(f"steps/s {STEPS / (time.perf_counter() - began):.1f}", flush=True)
torch.distributed.destroy_process_group()
