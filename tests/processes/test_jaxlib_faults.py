"""Computations that some versions of jaxlib get wrong on CPUs are right in every process that imports headwater."""

from __future__ import annotations

import os
import subprocess
import sys

import jaxlib
import pytest

from headwater.jaxlib_faults import AFFECTED, FLAG

pytestmark = pytest.mark.slow

SUM_OF_SEVEN_DIMENSIONS = """
import numpy as np
from headwater import tf

random = np.random.default_rng(0)
x, y = random.standard_normal((2, 3, 1, 2, 2, 8, 8, 8)).astype(np.float32)
a, b = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, y.shape)
with tf.Session() as session:
    found = session.run(tf.reduce_sum(a * b, axis=3), {a: x, b: y})
np.testing.assert_allclose(found, (x * y).sum(3), rtol=1e-5, atol=1e-5)
"""
SUMS_OF_PRODUCTS = """
import headwater
import jax, jax.numpy as jnp

rows = jnp.zeros((32_769, 3), jnp.float32).at[:, 0].set(jnp.arange(32_769))
matrix = jnp.eye(3, dtype=jnp.float32)
found = jax.jit(lambda rows: jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(rows))(rows)
assert found[-1] == 32_768.0**2, found[-1]
"""
PRODUCT_WITH_ONES = """
import numpy as np
import headwater
import jax, jax.numpy as jnp

x = np.arange(24, dtype=np.float32).reshape(3, 8)
for ones in (np.ones((8, 2), np.float32), np.full((8, 2), 2.0, np.float32)):
    np.testing.assert_allclose(jax.jit(lambda x: x @ ones)(x), x @ ones)
"""
JAX_FIRST = "import jax\nassert 'headwater' not in __import__('sys').modules\n"
ENVIRONMENT = """
import os
assert os.environ.get("XLA_FLAGS") == wanted, os.environ.get("XLA_FLAGS")
assert jax.device_count() == 2
"""


def run(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"} | environ
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("first", ["", JAX_FIRST], ids=["headwater first", "jax first"])
@pytest.mark.parametrize(
    "program",
    [SUM_OF_SEVEN_DIMENSIONS, SUMS_OF_PRODUCTS, PRODUCT_WITH_ONES],
    ids=["sum", "product", "product with ones"],
)
def test_sums_of_products_are_computed_correctly(program: str, first: str) -> None:
    done = run(first + program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", ["", JAX_FIRST], ids=["headwater first", "jax first"])
def test_flags_of_the_user_stay_as_they_are(first: str) -> None:
    flags = "--xla_force_host_platform_device_count=2"
    done = run(f"{first}wanted = {flags!r}\n{SUMS_OF_PRODUCTS}{ENVIRONMENT}", XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    # These settings can be changed until JAX starts its backend.
    late = f"import os\nwanted = os.environ['XLA_FLAGS'] = {flags!r}\n"
    done = run(f"{first}import headwater\nimport jax\n{late}{SUMS_OF_PRODUCTS}{ENVIRONMENT}")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(jaxlib.__version__ not in AFFECTED, reason=f"jaxlib {jaxlib.__version__} is sound")
def test_a_backend_that_runs_already_is_refused_or_disarmed_by_the_user() -> None:
    program = "import jax\njax.devices()\nimport headwater\n"
    refused = run(program)
    assert refused.returncode == 1
    assert "ImportError: jaxlib" in refused.stderr
    assert "Import headwater before" in refused.stderr
    allowed = run(program + SUMS_OF_PRODUCTS, XLA_FLAGS=f"{FLAG}=")
    assert allowed.returncode == 0, allowed.stderr


def test_a_backend_that_runs_and_is_sound_is_taken() -> None:
    if jaxlib.__version__ in AFFECTED:
        pytest.skip(f"jaxlib {jaxlib.__version__} is not sound")
    done = run("import jax\njax.devices()\n" + SUMS_OF_PRODUCTS)
    assert done.returncode == 0, done.stderr


CONVOLUTION = """
import headwater
import jax

shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 16, 16, 32), (3, 3, 32, 32))]
convolve = lambda x, y: jax.lax.conv_general_dilated(x, y, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
print(jax.jit(convolve).lower(*shapes).compile().as_text())
"""


def test_convolutions_are_left_to_xla() -> None:
    done = run(CONVOLUTION)
    assert done.returncode == 0, done.stderr
    assert "convolution(" in done.stdout
    assert "ynn" not in done.stdout
