"""LSTM cells along time and frequency, for features of speech (Li et al., 2016; Sainath and Li, 2016)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headwater.graph.operation import Tensor
from headwater.tf1.contrib.rnn.base import SizedCell, known_columns, sharded_variable
from headwater.tf1.functional import arrays, linalg, math, nn
from headwater.tf1.rnn.lstm import clip_elements, lstm_step
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.variable_scope import get_variable, get_variable_scope, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.types import Structure
    from headwater.tf1.variables.types import InitializerLike
    from headwater.tf1.variables.variables import Variable


class _FrequencyCell(SizedCell):
    """Base of the cells, with their common arguments."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool,
        cell_clip: float | None,
        initializer: InitializerLike | None,
        num_unit_shards: int,
        forget_bias: float,
        feature_size: int | None,
        frequency_skip: int | None,
        reuse: bool | None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size = feature_size or 0
        self._frequency_skip = frequency_skip or 1

    def _clipped(self, c: Tensor) -> Tensor:
        return c if self._cell_clip is None else clip_elements(c, self._cell_clip)

    def _affine(self, names: tuple[str, str], rows: int, gates: int, dtype: DType) -> tuple[Tensor, Variable]:
        columns = gates * self._num_units
        kernel = sharded_variable(names[0], [rows, columns], dtype, self._num_unit_shards)
        return kernel, get_variable(names[1], shape=[columns], initializer=ZEROS, dtype=dtype)

    def _windows(self, inputs: Tensor, begin: int, size: int) -> list[Tensor]:
        """Overlapping windows of features."""
        count = (size - self._feature_size) // self._frequency_skip + 1
        starts = [begin + index * self._frequency_skip for index in range(count)]
        return [inputs[:, start : start + self._feature_size] for start in starts]


class TimeFreqLSTMCell(_FrequencyCell):
    """An LSTM along frequency within each step of time.

    Args:
      num_units: the size of each part of the state of one window.
      use_peepholes: the gates also see c, through diagonal weights.
      cell_clip: the largest size of c's elements.
      initializer: the initializer of the weights.
      num_unit_shards: number of parts of the kernel.
      forget_bias: added to the forget gate.
      feature_size: the size of a window of frequencies.
      frequency_skip: the distance of windows.
      reuse: see `Layer`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = 1,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_unit_shards, forget_bias, feature_size,
            frequency_skip, reuse,
        )  # fmt: skip
        self._state_size, self._output_size = 2 * num_units, num_units

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            return self._steps(inputs, state)

    def _steps(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        units, dtype = self._num_units, inputs.dtype.base_dtype
        windows = self._windows(inputs, 0, known_columns(inputs))
        kernel, bias = self._affine(("W", "B"), self._feature_size + 2 * units, 4, dtype)
        diagonals: list[Variable] = []
        if self._use_peepholes:
            diagonals = [get_variable(f"W_{gate}_diag", shape=[units], dtype=dtype) for gate in "FIO"]
        below = arrays.zeros([arrays.shape(inputs)[0], units], dtype)
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for index, window in enumerate(windows):
            c, h = arrays.split(state[:, 2 * index * units : 2 * (index + 1) * units], 2, 1)
            product = linalg.matmul(arrays.concat([window, h, below], 1), kernel)
            new_c, below = lstm_step(nn.bias_add(product, bias), c, self._forget_bias, diagonals, self._clipped)
            outputs.append(below)
            states += [new_c, below]
        return arrays.concat(outputs, 1), arrays.concat(states, 1)


class _Peepholes(NamedTuple):
    """Diagonal weights of one gate: of c along frequency, and of c along time."""

    frequency: Variable
    time: Variable

    def of(self, c_frequency: Tensor, c_time: Tensor) -> Tensor:
        return self.frequency * c_frequency + self.time * c_time


class _Direction(NamedTuple):
    """The weights for one of the two directions of a grid cell; peepholes by gate."""

    kernel: Tensor
    bias: Variable
    peepholes: dict[str, _Peepholes]


class GridLSTMCell(_FrequencyCell):
    """Two LSTMs, one along frequency and one along time, which see each other's states.

    Args:
      num_units: the size of each part of the state of one window.
      use_peepholes: the gates also see both c, through diagonal weights.
      share_time_frequency_weights: both LSTMs have the same weights.
      cell_clip: the largest size of c's elements.
      initializer: the initializer of the weights.
      num_unit_shards: number of parts of the kernels.
      forget_bias: added to the forget gates.
      feature_size, frequency_skip: see `TimeFreqLSTMCell`.
      num_frequency_blocks: for each block of frequencies its number of windows.
      start_freqindex_list, end_freqindex_list: for each block its first feature and the one after its last; one block
        of all features if None.
      couple_input_forget_gates: the forget gate is 1 minus the input gate.
      state_is_tuple: the state is a named tuple, not one tensor.
      reuse: see `Layer`.

    Raises:
      ValueError: the blocks are missing, or do not fit the inputs.

    Attributes:
      state_tuple_type: the class of the states: a named tuple; None if they are tensors.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_unit_shards, forget_bias, feature_size,
            frequency_skip, reuse,
        )  # fmt: skip
        if num_frequency_blocks is None:
            raise ValueError("Must specify num_frequency_blocks")
        self._share_weights = share_time_frequency_weights
        self._blocks = [int(count) for count in num_frequency_blocks]
        self._starts, self._ends = start_freqindex_list, end_freqindex_list
        self._coupled = couple_input_forget_gates
        self._state_is_tuple = state_is_tuple
        total = sum(self._blocks)
        self.state_tuple_type: Callable[..., Structure] | None = (
            self._named("GridLSTMStateTuple", ["state"]) if state_is_tuple else None
        )
        parts = [num_units] * (2 * total)
        self._state_size = self.state_tuple_type(*parts) if self.state_tuple_type else sum(parts)
        self._output_size = 2 * num_units * total

    def _named(self, name: str, prefixes: Sequence[str]) -> Callable[..., Structure]:
        fields = [
            f"{prefix}_f{index:02d}_b{block:02d}_{part}"
            for prefix in prefixes
            for block, count in enumerate(self._blocks)
            for index in range(count)
            for part in "cm"
        ]
        return namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple]  computed fields

    def call(self, inputs: Tensor, state: Structure) -> tuple[Tensor, Structure]:
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            outputs, states = self._along(self._features(inputs), state, "state")
        after = self.state_tuple_type(*states) if self.state_tuple_type else arrays.concat(states, 1)
        return arrays.concat(outputs, 1), after

    def _features(self, inputs: Tensor, offset: int = 0) -> list[list[Tensor]]:
        """The windows of each block, all moved by ``offset`` features."""
        columns = known_columns(inputs)
        if offset:
            inputs = arrays.pad(inputs, [[0, 0], [max(0, -offset), max(0, offset)]])
        starts, ends = self._starts or [0], self._ends or [columns]
        if not len(starts) == len(ends) == len(self._blocks):
            raise ValueError(
                "num_frequency_blocks, start_freqindex_list and end_freqindex_list differ in length: "
                f"{len(self._blocks)}, {len(starts)}, {len(ends)}"
            )
        found = [
            self._windows(inputs, start + max(0, offset), end - start) for start, end in zip(starts, ends, strict=True)
        ]
        if [len(block) for block in found] != self._blocks:
            raise ValueError(
                f"Invalid num_frequency_blocks {self._blocks}: inputs have {[len(block) for block in found]} windows"
            )
        return found

    def _along(self, blocks: list[list[Tensor]], state: Structure, prefix: str) -> tuple[list[Tensor], list[Tensor]]:
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for block, windows in enumerate(blocks):
            found = self._block(windows, block, state, prefix)
            outputs += found[0]
            states += found[1]
        return outputs, states

    def _weights(self, block: int, dtype: DType) -> tuple[_Direction, _Direction]:
        """The weights along frequency and along time."""
        rows, gates = self._feature_size + 2 * self._num_units, 3 if self._coupled else 4
        directions = "f" if self._share_weights else "ft"
        affine = [self._affine((f"W_{d}_{block}", f"B_{d}_{block}"), rows, gates, dtype) for d in directions]
        made: list[_Direction] = []
        for (kernel, bias), word in zip(affine, ("freq", "time"), strict=False):
            peepholes: dict[str, _Peepholes] = {}
            for gate in ("IO" if self._coupled else "FIO") if self._use_peepholes else "":
                names = (f"W_{gate}_diag_{word}{source}_{block}" for source in "ft")
                peepholes[gate] = _Peepholes(
                    *(get_variable(name, shape=[self._num_units], dtype=dtype) for name in names)
                )
            made.append(_Direction(kernel, bias, peepholes))
        return made[0], made[-1]

    def _gates(
        self, joined: Tensor, weights: _Direction, c_frequency: Tensor, c_time: Tensor, own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The next c of one direction, whose c is ``own``, and its output gate before peepholes."""
        product = nn.bias_add(linalg.matmul(joined, weights.kernel), weights.bias)
        i, j, *f, o = arrays.split(product, 3 if self._coupled else 4, 1)
        if weights.peepholes:
            i = i + weights.peepholes["I"].of(c_frequency, c_time)
        admitted = math.sigmoid(i)
        if self._coupled:
            kept = 1.0 - admitted
        else:
            seen = weights.peepholes["F"].of(c_frequency, c_time) if weights.peepholes else 0.0
            kept = math.sigmoid(f[0] + self._forget_bias + seen)
        return self._clipped(kept * own + admitted * math.tanh(j)), o

    def _block(
        self, windows: list[Tensor], block: int, state: Structure, prefix: str
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs and states of one block."""
        units, dtype = self._num_units, windows[0].dtype.base_dtype
        along = self._weights(block, dtype)
        c_frequency: Tensor = arrays.zeros([arrays.shape(windows[0])[0], units], dtype)
        m_frequency = c_frequency
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for index, window in enumerate(windows):
            if self._state_is_tuple:
                name = f"{prefix}_f{index:02d}_b{block:02d}"
                c_time, m_time = getattr(state, f"{name}_c"), getattr(state, f"{name}_m")
            else:
                c_time, m_time = arrays.split(state[:, 2 * index * units : 2 * (index + 1) * units], 2, 1)
            joined = arrays.concat([window, m_time, m_frequency], 1)
            next_frequency, gate = self._gates(joined, along[0], c_frequency, c_time, c_frequency)
            c_time, gate_time = self._gates(joined, along[1], c_frequency, c_time, c_time)
            c_frequency = next_frequency
            m_frequency = self._output(gate, along[0], c_frequency, c_frequency, c_time)
            m_time = self._output(gate_time, along[1], c_time, c_frequency, c_time)
            outputs += [m_time, m_frequency]
            states += [c_time, m_time]
        return outputs, states

    def _output(self, gate: Tensor, weights: _Direction, own: Tensor, c_frequency: Tensor, c_time: Tensor) -> Tensor:
        if weights.peepholes:
            gate = gate + weights.peepholes["O"].of(c_frequency, c_time)
        return math.sigmoid(gate) * math.tanh(own)


class BidirectionalGridLSTMCell(GridLSTMCell):
    """A `GridLSTMCell` up and one down along frequency, in the variable scopes ``fwd`` and ``bwd``.

    Args:
      backward_slice_offset: the number of features by which the second cell's windows are moved.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        share_time_frequency_weights: bool = False,
        cell_clip: float | None = None,
        initializer: InitializerLike | None = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int | None = None,
        num_frequency_blocks: Sequence[int] | None = None,
        start_freqindex_list: Sequence[int] | None = None,
        end_freqindex_list: Sequence[int] | None = None,
        couple_input_forget_gates: bool = False,
        backward_slice_offset: int = 0,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(
            num_units, use_peepholes, share_time_frequency_weights, cell_clip, initializer, num_unit_shards,
            forget_bias, feature_size, frequency_skip, num_frequency_blocks, start_freqindex_list, end_freqindex_list,
            couple_input_forget_gates, True, reuse,
        )  # fmt: skip
        self._offset = int(backward_slice_offset)
        self._both = self._named("BidirectionalGridLSTMStateTuple", ["fwd_state", "bwd_state"])
        self.state_tuple_type = self._both
        self._state_size = self._both(*[num_units] * (4 * sum(self._blocks)))
        self._output_size = 4 * num_units * sum(self._blocks)

    def call(self, inputs: Tensor, state: Structure) -> tuple[Tensor, Structure]:
        forwards = self._features(inputs)
        backwards = self._features(inputs, self._offset) if self._offset else forwards
        outputs: list[Tensor] = []
        states: list[Tensor] = []
        for word, blocks in (("fwd", forwards), ("bwd", [block[::-1] for block in backwards])):
            with variable_scope(word, initializer=self._initializer):
                found = self._along(blocks, state, f"{word}_state")
            outputs += found[0]
            states += found[1]
        return arrays.concat(outputs, 1), self._both(*states)
