"""The CPU implementations of convolutions have the values and gradients of XLA's operation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headwater.graph.ops import convolution, convolving

jax_: Any = jax

#: Sizes of images, window, strides, rates.
FLAT = [
    ((5, 6), (3, 3), (1, 1), (1, 1)),
    ((7, 6), (3, 2), (2, 2), (1, 1)),
    ((8, 7), (3, 3), (1, 1), (2, 3)),
    ((7, 8), (1, 1), (1, 1), (1, 1)),
    ((7, 8), (1, 1), (2, 3), (1, 1)),
    ((7, 9), (2, 2), (3, 3), (1, 1)),
    ((2, 2), (3, 3), (1, 1), (1, 1)),
    ((2, 1), (5, 4), (1, 1), (1, 1)),
    ((3, 2), (5, 5), (2, 2), (1, 1)),
    ((2, 3), (3, 3), (1, 1), (2, 2)),
]
DEEP = [
    ((4, 5, 6), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
    ((5, 4, 6), (2, 3, 2), (2, 2, 2), (1, 1, 1)),
    ((6, 5, 5), (3, 2, 2), (1, 1, 1), (2, 1, 2)),
    ((4, 5, 6), (1, 1, 1), (2, 1, 2), (1, 1, 1)),
    ((1, 2, 2), (3, 3, 3), (1, 1, 1), (1, 1, 1)),
]


def check(form: Any, plain: Any, *inputs: Any, twice: bool = True) -> None:
    """Compares values, gradients and, if ``twice``, second derivatives."""
    tolerance = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-10}[str(inputs[0].dtype)]

    def all_of(function: Any) -> Any:
        value, pull = jax.vjp(function, *inputs)
        slope = jnp.cos(jnp.arange(value.size, dtype=value.dtype)).reshape(value.shape)

        def products(*inputs: Any) -> Any:
            return sum((each * each).sum() for each in jax.vjp(function, *inputs)[1](slope))

        more = jax_.grad(products, argnums=range(len(inputs)))(*inputs) if twice else ()
        return value, pull(slope), more

    for found, wanted in zip(
        jax.tree.leaves(jax_.jit(lambda: all_of(form))()),
        jax.tree.leaves(jax_.jit(lambda: all_of(plain))()),
        strict=True,
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            np.asarray(found, np.float64), np.asarray(wanted, np.float64), rtol=tolerance, atol=tolerance
        )


def compare(op: Any, case: Any, padding: str, data_format: str, dtype: str, filter_shape: Any, **more: Any) -> None:
    sizes, _, strides, rates = case
    space = [i for i, letter in enumerate(data_format) if letter in "DHW"]
    steps, spread = [1] * len(data_format), [1] * len(data_format)
    shape = [2] * len(data_format)
    shape[data_format.index("C")] = 3
    for axis, size, stride, rate in zip(space, sizes, strides, rates, strict=True):
        shape[axis], steps[axis], spread[axis] = size, stride, rate
    random = np.random.default_rng(0)
    inputs = [jnp.asarray(random.uniform(-1, 1, each), dtype) for each in (shape, filter_shape)]
    attrs = {"strides": steps, "dilations": spread, "padding": padding, "data_format": data_format, **more}

    def plain(image: Any, filter: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolving, "_form", lambda *_: None)
            return op(image, filter, **attrs)

    try:
        wanted = plain(*inputs)
    except ValueError:
        return
    if 0 not in wanted.shape:
        twice = (padding, dtype, data_format[-1]) == ("SAME", "float32", "C")
        check(lambda image, filter: op(image, filter, **attrs), plain, *inputs, twice=twice)


@pytest.mark.parametrize(("padding", "data_format"), [("SAME", "NHWC"), ("VALID", "NHWC"), ("SAME", "NCHW")])
@pytest.mark.parametrize("case", FLAT, ids=str)
def test_convolutions_of_images(case: Any, padding: str, data_format: str) -> None:
    compare(convolution.conv2d, case, padding, data_format, "float32", (*case[1], 3, 4))


@pytest.mark.parametrize("case", [FLAT[1], FLAT[4], FLAT[8]], ids=str)
def test_explicit_paddings(case: Any) -> None:
    pads = [0, 0, 2, 1, 0, 3, 0, 0]
    compare(convolution.conv2d, case, "EXPLICIT", "NHWC", "float32", (*case[1], 3, 4), explicit_paddings=pads)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize(("padding", "data_format"), [("SAME", "NHWC"), ("VALID", "NCHW")])
@pytest.mark.parametrize("case", FLAT, ids=str)
def test_depthwise_convolutions(case: Any, padding: str, data_format: str, multiplier: int) -> None:
    compare(convolution.depthwise_conv2d, case, padding, data_format, "float32", (*case[1], 3, multiplier))


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("case", [FLAT[1], FLAT[4], FLAT[6]], ids=str)
def test_other_types(case: Any, dtype: str) -> None:
    with jax.enable_x64(True):
        compare(convolution.conv2d, case, "SAME", "NHWC", dtype, (*case[1], 3, 4))
        compare(convolution.depthwise_conv2d, case, "SAME", "NHWC", dtype, (*case[1], 3, 1))


@pytest.mark.parametrize(("padding", "data_format"), [("SAME", "NDHWC"), ("VALID", "NCDHW")])
@pytest.mark.parametrize("case", DEEP, ids=str)
def test_convolutions_of_volumes(case: Any, padding: str, data_format: str) -> None:
    compare(convolution.conv3d, case, padding, data_format, "float32", (*case[1], 3, 4))


@pytest.mark.parametrize(("case", "padding"), [(FLAT[1], "SAME"), (FLAT[2], "VALID"), (FLAT[4], "SAME")], ids=str)
@pytest.mark.parametrize("position", [0, 1])
def test_slopes_of_gradient_operations(case: Any, padding: str, position: int) -> None:
    sizes, window, strides, rates = case
    random = np.random.default_rng(0)
    shapes = (2, *sizes, 3), (*window, 3, 4)
    image, filter = (jnp.asarray(random.uniform(-1, 1, shape), jnp.float32) for shape in shapes)
    attrs: Any = {"strides": (1, *strides, 1), "dilations": (1, *rates, 1), "padding": padding}
    slope = jnp.sin(convolution.conv2d(image, filter, **attrs))
    shape = np.array(shapes[position])

    def found(other: Any, slope: Any) -> Any:
        if position:
            return convolution.conv2d_backprop_filter(other, shape, slope, **attrs)
        return convolution.conv2d_backprop_input(shape, other, slope, **attrs)

    def wanted(other: Any, slope: Any) -> Any:
        def forward(value: Any) -> Any:
            return convolution.conv2d(other, value, **attrs) if position else convolution.conv2d(value, other, **attrs)

        return jax.vjp(forward, jnp.zeros(shapes[position], other.dtype))[1](slope)[0]

    check(found, wanted, image if position else filter, slope)
