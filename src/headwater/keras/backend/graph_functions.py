"""Functions of ``tf.keras.backend`` on tensors of graphs that Keras 3 has on arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.keras.internals import tree
from headwater.keras.types import Tree
from headwater.tf1.functional import arrays, ctc, higher_order, indexing, math, sparse

_keras: Tree = keras
_tree: Tree = tree


def rnn(
    step_function: Callable[..., Tree],
    inputs: Tree,
    initial_states: Sequence[Tree],
    go_backwards: bool,
    mask: Tree,
    constants: Sequence[Tree],
    time_major: bool,
    zero_output_for_mask: bool,
) -> tuple[Tree, Tree, list[Tree]]:
    """Runs a function for each time step, as `headwater.keras.backend.layers.rnn`.

    Raises:
      ValueError: there is a mask, but no state.
    """
    if mask is not None and not initial_states:
        raise ValueError("No initial states provided! A masked step keeps the states, so there must be some.")

    def swapped(tensor: Tree) -> Tree:
        rank = len(tensor.shape)
        return tensor if time_major else arrays.transpose(tensor, [1, 0, *range(2, rank)])

    def ordered(tensor: Tree) -> Tree:
        steps_first = swapped(convert_to_tensor(tensor))
        return arrays.reverse(steps_first, [0]) if go_backwards else steps_first

    inputs = _tree.map_structure(ordered, inputs)
    states = [convert_to_tensor(state) for state in initial_states]
    fixed = tuple(constants)
    first = _tree.map_structure(lambda each: each[0], inputs)
    like, _ = step_function(first, (*states, *fixed))
    zeros = _tree.map_structure(arrays.zeros_like, like)
    marks = () if mask is None else (ordered(math.cast(mask, "bool")),)

    def chosen(mark: Tensor, new: Tree, old: Tree) -> Tree:
        rank, flat = len(new.shape), len(mark.shape)
        spread = arrays.reshape(mark, arrays.concat([arrays.shape(mark), [1] * (rank - flat)], 0))
        return indexing.where_v2(spread, new, old)

    def step(before: Tree, at: Tree) -> Tree:
        output, new = step_function(at[0], (*before[1], *fixed))
        if marks:
            last_output = zeros if zero_output_for_mask else before[0]
            output = _tree.map_structure(lambda n, o: chosen(at[1], n, o), output, last_output)
            new = [chosen(at[1], n, o) for n, o in zip(new, before[1], strict=True)]
        return output, list(new)

    outputs, all_states = higher_order.scan(step, (inputs, *marks), (zeros, states))
    last, ends = _tree.map_structure(lambda each: each[-1], (outputs, all_states))
    return last, _tree.map_structure(swapped, outputs), list(ends)


def ctc_label_dense_to_sparse(labels: Tree, label_lengths: Tree) -> SparseTensor:
    """Returns each row's labels up to the row's length as a sparse tensor."""
    labels = convert_to_tensor(labels)
    within = indexing.sequence_mask(arrays.reshape(label_lengths, [-1]), arrays.shape(labels)[1])
    places = indexing.where(within)
    return SparseTensor(places, indexing.gather_nd(labels, places), arrays.shape(labels, out_type="int64"))


def ctc_logits(probabilities: Tree) -> Tensor:
    """Returns logarithms of probabilities, [batch, steps, classes], with the steps first."""
    return math.log(arrays.transpose(probabilities, [1, 0, 2]) + _keras.config.epsilon())


def ctc_batch_cost(y_true: Tree, y_pred: Tree, input_length: Tree, label_length: Tree) -> Tensor:
    """Returns the loss of each example, [batch, 1]."""
    lengths = math.cast(arrays.squeeze(input_length, [-1]), "int32")
    labels = math.cast(y_true, "int32")
    losses = ctc.ctc_loss(ctc_label_dense_to_sparse(labels, label_length), ctc_logits(y_pred), lengths)
    return arrays.expand_dims(losses, 1)


def ctc_decode(
    y_pred: Tree, input_length: Tree, greedy: bool, beam_width: int, top_paths: int
) -> tuple[list[Tensor], Tensor]:
    """Returns the most probable labels of each example, filled up with -1, and their scores."""
    logits, lengths = ctc_logits(y_pred), math.cast(input_length, "int32")
    if greedy:
        paths, scores = ctc.ctc_greedy_decoder(logits, lengths)
    else:
        paths, scores = ctc.ctc_beam_search_decoder(logits, lengths, beam_width, top_paths)
    return [sparse.sparse_tensor_to_dense(path, default_value=-1) for path in paths], scores
