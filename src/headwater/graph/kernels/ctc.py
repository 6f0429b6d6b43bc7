"""Paths of connectionist temporal classification (Graves et al., 2006), over whole batches.

A path visits states: the labels of a sequence, with a blank before, between and after them. In each time step a path
stays, moves to the next state, or skips a blank between different labels. The forward probability α[t, s] is the total
probability of all prefixes of paths that are in state s at time t. The backward probability β[t, s] is the total
probability of all suffixes of paths that start in state s at time t. Both include the probability y[t, s] of emitting
the state's class at time t. The fraction of the total probability that belongs to paths through state s at time t is
α β / (y Σₛ α β / y).

Backward probabilities are forward probabilities of the sequence in reverse order, so one loop over time computes both.
The loop multiplies probabilities and scales them every few time steps. If their range is too large for float64, the
loop is repeated with logarithms, which takes five times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from headwater.graph.kernels.compiled_loops import compiled_loops_pay
from headwater.graph.registry import HostArray

_SCALED_EVERY: Final = 8
_STEP_NS: Final = 10_000
"""Time of a step without a compiled loop, in nanoseconds."""
#: Minimum of factors whose product is a normal number of float64, not a subnormal one or 0.
_MIN_FACTOR: Final = 1e-140


@dataclass(frozen=True, kw_only=True, slots=True)
class _States:
    """The states of a batch of sequences.

    Attributes:
      inside: whether a sequence has a state, ``[batch, states]``.
      skip: whether a path may enter the state from two states before it.
      stay: whether a path may stay in the state.
      counts: number of states of each sequence, ``[batch]``.
      lengths: number of time steps of each sequence, ``[batch]``.
    """

    inside: HostArray
    skip: HostArray
    stay: HostArray
    counts: HostArray
    lengths: HostArray

    @property
    def mirror(self) -> HostArray:
        """Returns the position of each state counted from the last one; 0 outside."""
        return np.where(self.inside, self.counts[:, np.newaxis] - 1 - np.arange(self.inside.shape[1]), 0)

    def reversed(self) -> _States:
        """The states of the sequences read from their ends."""
        rows, mirror = np.arange(len(self.counts))[:, np.newaxis], self.mirror
        behind = np.minimum(mirror + 2, self.inside.shape[1] - 1)
        skip = self.inside & (np.arange(self.inside.shape[1]) >= 2) & self.skip[rows, behind]
        stay = self.stay[rows, mirror]
        return _States(inside=self.inside, skip=skip, stay=stay, counts=self.counts, lengths=self.lengths)

    def first_times(self) -> HostArray:
        """The earliest time at which a path can be in each state."""
        first = np.zeros(self.inside.shape, np.int64)
        first[:, 3::2] = np.cumsum(np.where(self.skip[:, 3::2], 1, 2), axis=1)
        first[:, 2::2] = first[:, 1:-1:2] + 1
        return first


def paths(
    inputs: HostArray, path: HostArray, counts: HostArray, lengths: HostArray, merge_repeated: bool
) -> tuple[HostArray, HostArray]:
    """Loss and gradient of each sequence.

    Args:
      inputs: logits, float64 ``[time, batch, classes]``; the last class is the blank.
      path: the class of each state, ``[batch, states]``.
      counts: numbers of labels, ``[batch]``.
      lengths: number of time steps of each sequence, ``[batch]``; loss and gradient are 0 if it is 0.
      merge_repeated: whether a path may stay in a label.
    """
    time, batch, classes = inputs.shape
    loss, gradient = np.zeros(batch), np.zeros_like(inputs)
    if not inputs.size:
        return loss, gradient
    states = _states(path, counts, lengths, merge_repeated, classes - 1)
    shifted = inputs - inputs.max(-1, keepdims=True)
    probabilities = np.exp(shifted)
    total = probabilities.sum(-1, keepdims=True)
    probabilities /= total
    emitted = np.take_along_axis(shifted - np.log(total), np.broadcast_to(path, (time, *path.shape)), 2)
    likelihood, shares = _scaled(emitted, states) or _logarithmic(emitted, states)
    classes_of_states = (path[:, :, np.newaxis] == np.arange(classes)).astype(np.float64)
    np.subtract(probabilities, np.matmul(shares.transpose(1, 0, 2), classes_of_states).transpose(1, 0, 2), out=gradient)
    gradient[np.arange(time)[:, np.newaxis] >= lengths] = 0
    return np.where(lengths > 0, -likelihood, 0.0), gradient


def _states(path: HostArray, counts: HostArray, lengths: HostArray, merge_repeated: bool, blank: int) -> _States:
    inside = np.arange(path.shape[1]) < (2 * counts + 1)[:, np.newaxis]
    shifted = np.full_like(path, -1)
    shifted[:, 2:] = path[:, :-2]
    skip = (path != blank) & (shifted >= 0)
    if merge_repeated:
        skip &= path != shifted
    stay = np.full(path.shape, True) if merge_repeated else path == blank
    return _States(inside=inside, skip=skip & inside, stay=stay, counts=2 * counts + 1, lengths=lengths)


def _scaled(emitted: HostArray, states: _States) -> tuple[HostArray, HostArray] | None:
    """Returns the logarithms of the likelihoods, ``[batch]``, and the shares of paths, ``[time, batch, states]``, given
    the logarithms of the emissions; None if a probability is too small for float64."""
    time, batch, size = emitted.shape
    backwards, mirror = states.reversed(), states.mirror
    rows = np.arange(batch)[:, np.newaxis]
    left = states.lengths - 1 - np.arange(time)[:, np.newaxis]  # remaining time steps, [time, batch]
    possible = states.inside & (np.arange(time)[:, np.newaxis, np.newaxis] >= states.first_times())
    possible &= left[:, :, np.newaxis] >= backwards.first_times()[rows, mirror]
    high = np.max(emitted, axis=2, initial=-np.inf, where=possible)
    high[np.isneginf(high)] = 0
    y = np.exp(np.where(possible, emitted - high[:, :, np.newaxis], -np.inf))
    turned = (np.maximum(left, 0)[:, :, np.newaxis], rows, mirror)
    y_turned = np.where((left >= 0)[:, :, np.newaxis] & states.inside, y[turned], 0)
    found, scales = _forward(np.concatenate([y, y_turned], axis=1), (states, backwards))
    forward, backward = found[:, :batch], found[:, batch:][turned]
    if possible.any() and min(forward[possible].min(), backward[possible].min(), y[possible].min()) < _MIN_FACTOR:
        return None
    shares = np.divide(forward * backward, y, out=np.zeros_like(y), where=possible)
    total = shares.sum(2, keepdims=True)
    np.divide(shares, total, out=shares, where=total > 0)
    ends = (np.maximum(states.lengths - 1, 0), np.arange(batch))
    last = np.where(np.arange(size) >= states.counts[:, np.newaxis] - 2, forward[ends], 0).sum(1)
    before = np.where(left >= 0, high, 0).sum(0) + np.cumsum(scales[:, :batch], axis=0)[ends]
    with np.errstate(divide="ignore"):  # log(0) where there is no path
        return np.log(last) + before, shares


def _forward(y: HostArray, directions: tuple[_States, _States]) -> tuple[HostArray, HostArray]:
    """Returns forward probabilities, and the logarithms of their divisors at each moment, ``[time, sequences]``."""
    time, sequences, size = y.shape
    skip = np.concatenate([states.skip for states in directions]).astype(np.float64)
    stay = np.concatenate([states.stay for states in directions]).astype(np.float64)
    # Two columns of zeros represent the states before the first state.
    found = np.zeros((time, sequences, size + 2))
    found[0, :, 2:4] = y[0, :, :2]
    # Divisors are powers of two, so that both loops compute the same bits.
    exponents = np.zeros((time, sequences), np.int32)
    if compiled_loops_pay(_STEP_NS * time):
        from headwater.tables import ctc_loops  # noqa: PLC0415  loads numba, only if needed

        ctc_loops.forward(np.ascontiguousarray(y), skip, stay, _SCALED_EVERY, found, exponents)
    else:
        _advance(y, skip, stay, found, exponents)
    return found[:, :, 2:], exponents * math.log(2)


def _advance(y: HostArray, skip: HostArray, stay: HostArray, found: HostArray, exponents: HostArray) -> None:
    """Sets the probabilities ``found`` of all moments after the first."""
    spare = np.empty_like(skip)
    for step in range(1, len(y)):
        before, now = found[step - 1], found[step, :, 2:]
        np.multiply(before[:, 2:], stay, now)
        np.add(now, before[:, 1:-1], now)
        np.multiply(before[:, :-2], skip, spare)
        np.add(now, spare, now)
        np.multiply(now, y[step], now)
        if not step % _SCALED_EVERY:
            exponents[step] = np.frexp(now.max(1))[1]
            np.ldexp(now, -exponents[step, :, np.newaxis], now)


def _logarithmic(emitted: HostArray, states: _States) -> tuple[HostArray, HostArray]:
    """As `_scaled`, with logarithms of probabilities."""
    time, batch, size = emitted.shape
    inside, skip, stay, lengths = states.inside, states.skip, states.stay, states.lengths
    ends = (np.arange(size) >= states.counts[:, np.newaxis] - 2) & inside

    def allowed(values: HostArray, where: HostArray) -> HostArray:
        return np.where(where, values, -np.inf)

    def moved(values: HostArray, by: int) -> HostArray:
        result = np.full_like(values, -np.inf)
        if by > 0:
            result[:, by:] = values[:, :-by]
        else:
            result[:, :by] = values[:, -by:]
        return result

    alphas = np.full((time, batch, size), -np.inf)
    alphas[0, :, :2] = emitted[0, :, :2]
    alphas[0] = allowed(alphas[0], inside)
    for step in range(1, time):
        before = alphas[step - 1]
        total = np.logaddexp(allowed(before, stay), moved(before, 1))
        total = np.logaddexp(total, allowed(moved(before, 2), skip))
        alphas[step] = allowed(total + emitted[step], inside)
    last = alphas[np.maximum(lengths - 1, 0), np.arange(batch)]
    likelihood = np.logaddexp.reduce(allowed(last, ends), 1)
    shares = np.zeros_like(alphas)
    beta = np.full((batch, size), -np.inf)
    for step in range(time - 1, -1, -1):
        if step + 1 < time:
            after = beta + emitted[step + 1]
            beta = np.logaddexp(allowed(after, stay), moved(after, -1))
            beta = np.logaddexp(beta, moved(allowed(after, skip), -2))
        beta = np.where((lengths - 1 == step)[:, np.newaxis], allowed(np.zeros_like(beta), ends), beta)
        known = np.where(np.isfinite(likelihood), likelihood, 0.0)
        shares[step] = np.exp(alphas[step] + beta - known[:, np.newaxis])
    return likelihood, shares
