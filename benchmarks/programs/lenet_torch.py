"""The step of ``lenet.py`` with PyTorch, in one process."""

import torch
from timed import arguments, report_steps
from torch import nn

args = arguments(__doc__)
device = torch.device("cuda:0" if args.gpu else "cpu")
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
).to(device)
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
fed = torch.rand(args.batch, 1, 28, 28), torch.randint(0, 10, (args.batch,))


def step():
    images, labels = (value.to(device) for value in fed)
    if args.forward:
        with torch.no_grad():
            return float(loss_of(model(images), labels))
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    if args.gpu:
        torch.cuda.synchronize()


report_steps(step, args.seconds)
