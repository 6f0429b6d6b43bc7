"""Paths of connectionist temporal classification (Graves et al., 2006), over whole batches.

A path visits states: the labels of a sequence, with a blank before, between and after them. In each time step a path
stays, moves to the next state, or skips a blank between different labels. The forward probability α[t, s] is the total
probability of all prefixes of paths that are in state s at time t. The backward probability β[t, s] is the total
probability of all suffixes of paths that start in state s at time t. Both include the probability y[t, s] of emitting
the state's class at time t. The fraction of the total probability that belongs to paths through state s at time t is
α β / (y Σₛ α β / y).

A compiled loop multiplies probabilities. If their range is too large for float64, logarithms are added in NumPy, which
takes 30 times as long.
"""

from __future__ import annotations

import numpy as np

from headwater.graph.registry import HostArray
from headwater.tables import ctc_loops


def paths(
    inputs: HostArray, path: HostArray, counts: HostArray, lengths: HostArray, merge_repeated: bool
) -> tuple[HostArray, HostArray]:
    """Returns the loss and the gradient of each sequence.

    Args:
      inputs: logits, float64 ``[time, batch, classes]``; the last class is the blank.
      path: the class of each state, ``[batch, states]``.
      counts: numbers of labels, ``[batch]``.
      lengths: number of time steps of each sequence, ``[batch]``; loss and gradient are 0 if it is 0.
      merge_repeated: whether a path may stay in a label.
    """
    time, batch, classes = inputs.shape
    if not inputs.size:
        return np.zeros(batch), np.zeros_like(inputs)
    skip = np.zeros(path.shape, bool)
    skip[:, 3::2] = True if not merge_repeated else path[:, 3::2] != path[:, 1:-2:2]
    stay = path == classes - 1 if not merge_repeated else np.full(path.shape, True)
    shifted = inputs - inputs.max(-1, keepdims=True)
    probabilities = np.exp(shifted)
    total = probabilities.sum(-1, keepdims=True)
    probabilities /= total
    states = 2 * counts + 1
    log_likelihood, shares = np.zeros(batch), np.zeros_like(inputs)
    if not ctc_loops.paths(probabilities, path, states, lengths, skip, stay, log_likelihood, shares):
        emitted = np.take_along_axis(shifted - np.log(total), np.broadcast_to(path, (time, *path.shape)), 2)
        log_likelihood, shares_of_states = _logarithmic(emitted, states, lengths, skip, stay)
        classes_of_states = (path[:, :, np.newaxis] == np.arange(classes)).astype(np.float64)
        shares = np.matmul(shares_of_states.transpose(1, 0, 2), classes_of_states).transpose(1, 0, 2)
    gradient = np.where((np.arange(time)[:, np.newaxis] < lengths)[:, :, np.newaxis], probabilities - shares, 0)
    return np.where(lengths > 0, -log_likelihood, 0.0), gradient


def _logarithmic(
    emitted: HostArray, counts: HostArray, lengths: HostArray, skip: HostArray, stay: HostArray
) -> tuple[HostArray, HostArray]:
    """Returns the logarithms of the likelihoods, ``[batch]``, and the shares of paths, ``[time, batch, states]``, given
    the logarithms of the emission probabilities. ``counts`` are the numbers of states."""
    time, batch, size = emitted.shape
    inside = np.arange(size) < counts[:, np.newaxis]
    ends = (np.arange(size) >= counts[:, np.newaxis] - 2) & inside

    def allowed(values: HostArray, where: HostArray) -> HostArray:
        return np.where(where, values, -np.inf)

    def shift_states(values: HostArray, by: int) -> HostArray:
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
        total = np.logaddexp(allowed(before, stay), shift_states(before, 1))
        total = np.logaddexp(total, allowed(shift_states(before, 2), skip))
        alphas[step] = allowed(total + emitted[step], inside)
    last = alphas[np.maximum(lengths - 1, 0), np.arange(batch)]
    log_likelihood = np.logaddexp.reduce(allowed(last, ends), 1)
    shares = np.zeros_like(alphas)
    beta = np.full((batch, size), -np.inf)
    for step in range(time - 1, -1, -1):
        if step + 1 < time:
            after = beta + emitted[step + 1]
            beta = np.logaddexp(allowed(after, stay), shift_states(after, -1))
            beta = np.logaddexp(beta, shift_states(allowed(after, skip), -2))
        beta = np.where((lengths - 1 == step)[:, np.newaxis], allowed(np.zeros_like(beta), ends), beta)
        finite = np.where(np.isfinite(log_likelihood), log_likelihood, 0.0)
        shares[step] = np.exp(alphas[step] + beta - finite[:, np.newaxis])
    return log_likelihood, shares
