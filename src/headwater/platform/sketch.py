"""Small SVG images of curves, for places without a plotting library."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 260, 120, 8, 18, 20
_COLOURS = ("#2563eb", "#b45309", "#15803d", "#9333ea")
_MAX_POINTS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """One curve.

    Attributes:
      name: the name of its values.
      points: seconds and values, in order of time.
      steps: whether to draw a step function, in which each value is valid until the next point.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    steps: bool = False


def sketch(curves: Sequence[Curve]) -> str:
    """Draws the curves side by side, each with its last value, its range, and its duration; empty without points."""
    drawn = [curve for curve in curves if _finite(curve)]
    if not drawn:
        return ""
    parts = [_one(curve, number * _WIDTH, _COLOURS[number % len(_COLOURS)]) for number, curve in enumerate(drawn)]
    width = _WIDTH * len(drawn)
    names = html.escape(", ".join(curve.name for curve in drawn))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="Curves of {names}" width="{width}" '
        f'height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}" font-family="sans-serif" font-size="11">'
        f"{''.join(parts)}</svg>"
    )


def _one(curve: Curve, left: float, colour: str) -> str:
    points = _finite(curve)
    first, last = points[0][0], points[-1][0]
    lowest, highest = min(value for _, value in points), max(value for _, value in points)
    bottom = 0.0 if curve.steps else lowest
    across, up = (last - first) or 1.0, (highest - bottom) or 1.0

    def place(at: float, value: float) -> tuple[float, float]:
        x = left + _LEFT + (at - first) / across * (_WIDTH - 3 * _LEFT)
        return x, _HEIGHT - _BOTTOM - (value - bottom) / up * (_HEIGHT - _BOTTOM - _TOP)

    line: list[tuple[float, float]] = []
    for at, value in points[:: max(1, len(points) // _MAX_POINTS)]:
        if curve.steps and line:
            line.append((place(at, value)[0], line[-1][1]))
        line.append(place(at, value))
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
    label = f"{curve.name} {_number(points[-1][1])} ({_number(lowest)} to {_number(highest)})"
    return (
        f'<text x="{left + _LEFT}" y="13" fill="currentColor">{html.escape(label)}</text>'
        f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        f'<text x="{left + _LEFT}" y="{_HEIGHT - 4}" fill="currentColor">0 to {last - first:.0f} s</text>'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _finite(curve: Curve) -> list[tuple[float, float]]:
    return [(at, value) for at, value in curve.points if math.isfinite(value)]
