"""The choice between kernels and an executable for a part of a plan: a function of counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headwater.graph.runtime.mode_choice import (
    Jit,
    Mode,
    ModeChooser,
    Work,
    explanation_of,
    jit_of,
    runs_until_compiled,
    switch_after,
    work_of,
)

_HEAVY = Work(operations=20, nbytes=1 << 24)


def _runs(ways: ModeChooser, key: object, count: int, work: Work = _HEAVY) -> list[bool]:
    """Whether each run uses an executable."""
    found: list[bool] = []
    for _ in range(count):
        found.append(ways.next_mode(key) is Mode.EXECUTABLE)
        weigh = None if found[-1] else ways.cost_recorder(key)
        if weigh is not None:
            weigh(work)
    return found


def _modes(chooser: ModeChooser, key: object, count: int, work: Work) -> list[Mode]:
    """The modes of the next runs with inputs of one shape."""
    modes: list[Mode] = []
    for _ in range(count):
        modes.append(chooser.next_mode(key))
        if modes[-1] is not Mode.EXECUTABLE and (record_cost := chooser.cost_recorder(key)) is not None:
            record_cost(work)
    return modes


def test_an_executable_takes_over_at_a_fixed_run_once_that_has_paid() -> None:
    until, switch = runs_until_compiled(_HEAVY), switch_after(_HEAVY)
    assert until is not None
    assert switch is not None
    assert switch.compiled == until < switch.used
    ways = ModeChooser()
    _runs(ways, "first", 1)
    assert _runs(ways, "a", switch.used + 3) == [False] * switch.used + [True] * 3
    assert (ways.distinct, ways.compiled) == (2, 1)


@pytest.mark.parametrize(("operations", "waiting"), [(50, 1), (500, 2), (1500, 7)])
def test_the_first_shape_of_a_heavy_part_is_compiled_from_its_second_run_on(operations: int, waiting: int) -> None:
    large = Work(operations, nbytes=1 << 28)
    assert waiting == math.ceil(large.price_ns() / (2 * 10**9 + large.kernels_ns())), "each run waits for 2 s at most"
    chooser = ModeChooser()
    assert _modes(chooser, "a", waiting + 2, large) == [
        *(Mode.KERNELS, Mode.KERNELS_AND_COMPILATION),
        *[Mode.KERNELS_AND_WAIT] * (waiting - 1),
        Mode.EXECUTABLE,
    ]
    assert chooser.longest_wait_s("a") == 2


def test_the_first_shape_of_a_part_is_compiled_early_if_it_repays_within_600_runs() -> None:
    saved = [Work(operations=200, nbytes=nbytes) for nbytes in range(10 << 20, 30 << 20, 1 << 18)]
    for work in saved:
        until, first, other = runs_until_compiled(work), switch_after(work, first=True), switch_after(work)
        assert until is not None
        assert first is not None
        assert other is not None
        assert first.compiled == (1 if until <= 600 else until)
        assert other.compiled == until
    assert len({switch_after(work, first=True) == switch_after(work) for work in saved}) == 2


def test_only_a_part_whose_first_runs_have_one_shape_is_compiled_early() -> None:
    large = Work(operations=50, nbytes=1 << 28)
    early, late = switch_after(large, first=True), switch_after(large)
    assert early is not None
    assert late is not None
    assert early.compiled == 1 < late.compiled
    ways = ModeChooser()
    _runs(ways, "a", 1, large)
    _runs(ways, "b", 1, large)
    assert _runs(ways, "a", late.used, large).index(True) == late.used - 1


def test_other_runs_wait_nine_times_as_long_as_they_take() -> None:
    switch = switch_after(_HEAVY)
    assert switch is not None
    assert switch.wait_ns == 9 * _HEAVY.kernels_ns()
    waiting = switch.used - switch.compiled
    assert waiting == math.ceil(_HEAVY.price_ns() / (10 * _HEAVY.kernels_ns()))
    chooser = ModeChooser()
    _runs(chooser, "first", 1)
    assert _modes(chooser, "a", switch.used + 1, _HEAVY) == [
        *[Mode.KERNELS] * switch.compiled,
        Mode.KERNELS_AND_COMPILATION,
        *[Mode.KERNELS_AND_WAIT] * (waiting - 1),
        Mode.EXECUTABLE,
    ]
    assert chooser.longest_wait_s("a") == switch.wait_ns / 1e9


def test_a_long_chain_takes_longer_to_compile_than_as_many_operations_between_convolutions() -> None:
    chain, convolutions = Work(operations=1000), Work(operations=1000, convolutions=50)
    assert chain.compilation_ns() > 1.5 * convolutions.compilation_ns()


def test_turns_of_loops_are_run_but_compiled_once() -> None:
    once, often = Work(operations=40), Work(operations=40, repeated=4000)
    assert often.compilation_ns() == once.compilation_ns()
    assert often.kernels_ns() > 50 * once.kernels_ns()


def test_two_runs_of_a_program_choose_alike() -> None:
    keys = np.random.default_rng(0).integers(0, 5, 2000)
    heavier = _HEAVY._replace(nbytes=1 << 26)
    first, second = ([_runs(ways, key, 1, heavier)[0] for key in keys] for ways in (ModeChooser(), ModeChooser()))
    assert first == second
    assert any(first)


def test_shapes_that_keep_changing_stay_on_kernels_in_bounded_memory() -> None:
    ways = ModeChooser()
    assert not any(_runs(ways, number, 1)[0] for number in range(10_000))
    assert ways.distinct == 10_000
    assert len(ways._shapes) <= 64


def test_a_handful_of_small_operations_is_never_compiled() -> None:
    assert runs_until_compiled(Work(operations=5, nbytes=200)) is None


def test_the_work_of_a_matrix_product_is_its_multiplications() -> None:
    a, b = np.zeros((3, 5), np.float32), np.zeros((5, 7), np.float32)
    assert work_of("MatMul", (a, b), (a @ b,)).products == 3 * 5 * 7


def test_a_convolution_is_compiled_earlier_than_a_matrix_product_of_as_many_multiplications() -> None:
    images, filters = np.zeros((8, 16, 16, 4), np.float32), np.zeros((3, 3, 4, 8), np.float32)
    convolution = work_of("Conv2D", (images, filters), (np.zeros((8, 16, 16, 8), np.float32),))
    assert convolution.window_products == 8 * 16 * 16 * filters.size
    times = [Work(20, 1 << 20, *products) for products in ((10**9, 0), (0, 10**9))]
    product, windows = (runs_until_compiled(work) for work in times)
    assert product is not None
    assert windows is not None
    assert windows < product


def test_a_gradient_of_images_and_filters_is_two_convolutions() -> None:
    images, filters = np.zeros((8, 16, 16, 4), np.float32), np.zeros((3, 3, 4, 8), np.float32)
    grad = np.zeros((8, 16, 16, 8), np.float32)
    one, both = (work_of("Conv2D", (images, filters, grad), found) for found in ((filters,), (images, filters)))
    assert both.window_products == 2 * one.window_products > 0
    assert (one.convolutions, both.convolutions) == (1, 2)


def test_a_convolution_of_volumes_multiplies_more_slowly() -> None:
    volumes, filters = np.zeros((8, 8, 16, 16, 8), np.float32), np.zeros((3, 3, 3, 8, 8), np.float32)
    work = work_of("Conv3D", (volumes, filters), (volumes,))
    assert (work.window_products, work.volume_products) == (0, 8 * 8 * 16 * 16 * filters.size)
    images = work._replace(window_products=work.volume_products, volume_products=0)
    assert work.kernels_ns() > images.kernels_ns()
    assert work.executable_ns() > images.executable_ns()


def test_an_executable_pays_for_each_updated_variable() -> None:
    variables = [np.zeros((4, 4), np.float32)] * 400
    work = work_of("ApplyGradientDescent", (*variables, np.float32(0.1)), ())
    assert work.updated == 400
    assert work.executable_ns() > 1_000_000


def test_a_depthwise_convolution_reads_the_images_for_each_place_of_the_window() -> None:
    images, filters = np.zeros((8, 16, 16, 64), np.float32), np.zeros((3, 3, 64, 1), np.float32)
    dense, depthwise = (work_of(kind, (images, filters), (images,)) for kind in ("Conv2D", "DepthwiseConv2dNative"))
    assert depthwise.nbytes == 9 * dense.nbytes
    assert depthwise.compilation_ns() > dense.compilation_ns()


def test_the_work_of_a_lookup_leaves_the_table_out() -> None:
    table, rows = np.zeros((1000, 4), np.float32), np.zeros((3, 4), np.float32)
    assert work_of("GatherV2", (table, np.zeros(3, np.int64)), (rows,)) == Work(rows=1, row_nbytes=3 * 8 + 3 * 16)


def test_operations_on_rows_are_never_compiled_for_their_own_sake() -> None:
    assert runs_until_compiled(Work(operations=5, rows=100, row_nbytes=1 << 30)) is None


def test_views_read_no_elements() -> None:
    array = np.zeros((1000, 4), np.float32)
    assert work_of("Reshape", (array, np.array([-1])), (array.reshape(-1),)) == Work(operations=1)


def test_reductions_along_short_axes_cost_more() -> None:
    short, long = np.zeros((1000, 4), np.float32), np.zeros((4, 1000), np.float32)
    costs = [work_of("Sum", (x, np.array(1)), (x.sum(1),)).kernels_ns() for x in (short, long)]
    assert costs[0] > costs[1]


def test_the_log_states_when_and_why_a_part_is_compiled() -> None:
    small = Work(operations=5, nbytes=200)
    assert explanation_of(small, switch_after(small)).startswith("stays on kernels: 0.01 ms on kernels")
    switch = switch_after(_HEAVY)
    assert switch is not None
    assert f"uses an executable after {switch.used} runs" in explanation_of(_HEAVY, switch)


def test_the_environment_prevails_over_the_session() -> None:
    assert [jit_of(level, "") for level in (-1, 0, 1, 2)] == [Jit.OFF, Jit.AUTO, Jit.ON, Jit.ON]
    assert jit_of(1, "off") is Jit.OFF
    with pytest.raises(ValueError, match="HEADWATER_JIT must be off, on or auto, not 'yes'"):
        jit_of(0, "yes")
