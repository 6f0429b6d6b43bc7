"""The step of ``lenet.py`` with JAX alone, in one process, on the device that JAX takes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from timed import arguments, report_steps

args = arguments(__doc__)
assert not args.gpu or jax.default_backend() == "gpu", jax.devices()
random = np.random.default_rng(0)
shapes = {"conv1": (5, 5, 1, 32), "conv2": (5, 5, 32, 64), "fc1": (7 * 7 * 64, 512), "fc2": (512, 10)}
params = {name: 0.1 * random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
params |= {f"{name}_bias": np.zeros(shape[-1], np.float32) for name, shape in shapes.items()}
images = random.random((args.batch, 28, 28, 1), np.float32)
labels = random.integers(0, 10, args.batch).astype(np.int32)


def convolution(net, params, name):
    net = jax.lax.conv_general_dilated(net, params[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    net = jax.nn.relu(net + params[f"{name}_bias"])
    return jax.lax.reduce_window(net, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def loss_of(params, images, labels):
    net = convolution(convolution(images, params, "conv1"), params, "conv2").reshape(len(images), -1)
    net = jax.nn.relu(net @ params["fc1"] + params["fc1_bias"])
    logits = net @ params["fc2"] + params["fc2_bias"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def update(params, images, labels):
    gradients = jax.grad(loss_of)(params, images, labels)
    return jax.tree.map(lambda value, gradient: value - 0.01 * gradient, params, gradients)


forward, train = jax.jit(loss_of), jax.jit(update, donate_argnums=0)
params = jax.device_put(params)


def step():
    global params
    if args.forward:
        return float(forward(params, images, labels))
    params = train(params, images, labels)
    jax.block_until_ready(params)


report_steps(step, args.seconds)
