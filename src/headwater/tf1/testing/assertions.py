"""Assertions about arrays, tensors and errors, by the names that ``tf.test.TestCase`` has for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from absl.testing import absltest
from google.protobuf import text_format

from headwater.cluster.devices import DeviceSpec, canonical_device_name
from headwater.dtypes import as_dtype
from headwater.errors import OpError
from headwater.graph.operation import Tensor
from headwater.graph.ragged_value import RaggedTensorValue
from headwater.tf1.functional.ragged_tensor import RaggedTensor

Array = npt.NDArray[Any]

# Its methods have no types.
_TestCase: Any = absltest.TestCase

_SHOWN: Final = 10
"""Maximum number of wrong elements that are listed."""


class Assertions(_TestCase):
    """Assertions; arguments that are arrays may be tensors, which are evaluated."""

    def evaluate(self, tensors: object) -> Any:
        """Evaluates tensors, in the same structure."""
        raise NotImplementedError

    # Values -------------------------------------------------------------------------------------------------------

    def assertNear(self, f1: Any, f2: Any, err: Any, msg: object = None) -> None:
        """Asserts that two numbers differ by at most ``err``."""
        if not (f1 == f2 or abs(f1 - f2) <= err):
            self.fail(_with(f"{f1} != {f2} +/- {err}", msg))

    def assertArrayNear(self, farray1: Any, farray2: Any, err: object, msg: object = None) -> None:
        """Asserts that two sequences have the same length and differ by at most ``err`` in each element."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1: object, ndarray2: object, err: Any, msg: object = None) -> None:
        """Asserts that the norm of the difference of two arrays is less than ``err``."""
        distance = float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2)))
        if not distance < err:
            self.fail(_with(f"the arrays are {distance} apart, not less than {err}", msg))

    def assertAllEqual(self, a: object, b: object, msg: object = None) -> None:
        """Asserts that two arrays, or ragged tensors, have the same shape and elements; two NaN are equal."""
        if self._is_ragged(a) or self._is_ragged(b):
            self.assertEqual(self._listed(a), self._listed(b), msg)
            return
        first, second = self._same_shape(a, b, msg)
        same = np.asarray(first == second)
        if _is_inexact(first) and _is_inexact(second):
            same |= np.isnan(first) & np.isnan(second)
        if not np.all(same):
            self.fail(_with(_differences("Not equal", first, second, np.logical_not(same)), msg))

    def assertNotAllEqual(self, a: object, b: object, msg: object = None) -> None:
        """Asserts that two arrays are not equal."""
        self._fails(lambda: self.assertAllEqual(a, b), _with("The two values are equal at all elements", msg))

    def assertAllClose(self, a: object, b: object, rtol: float = 1e-6, atol: float = 1e-6, msg: object = None) -> None:
        """Asserts that arrays, or structures of these, have the same shape and ``|a - b| <= atol + rtol |b|``.

        Args:
          a: an array, or a dict, named tuple, tuple or list of such structures.
          b: the same.
          rtol: relative tolerance.
          atol: absolute tolerance.
          msg: added to the failure's message.

        Raises:
          AssertionError: shapes differ, or elements are not close.
          ValueError: the structures differ.
        """
        self._all_close(a, b, rtol, atol, msg, "")

    def assertNotAllClose(self, a: object, b: object, **kwargs: Any) -> None:
        """Asserts that two structures are not close in the sense of `assertAllClose`, which has the same arguments."""
        self._fails(lambda: self.assertAllClose(a, b, **kwargs), "The two values are close at all elements")

    def assertAllCloseAccordingToType(
        self,
        a: object,
        b: object,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: object = None,
    ) -> None:
        """Asserts closeness as `assertAllClose`, with the largest tolerances of the types of the arrays."""
        first, second = self._array(a), self._array(b)
        types = {first.dtype, second.dtype}
        for members, relative, absolute in (
            ((np.float32, np.complex64), float_rtol, float_atol),
            ((np.float16,), half_rtol, half_atol),
            ((ml_dtypes.bfloat16,), bfloat16_rtol, bfloat16_atol),
        ):
            if types & {np.dtype(member) for member in members}:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(first, second, rtol, atol, msg)

    def assertAllGreater(self, a: object, comparison_target: object) -> None:
        """Asserts that every element is greater."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: object, comparison_target: object) -> None:
        """Asserts that every element is less."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: object, comparison_target: object) -> None:
        """Asserts that every element is greater or equal."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: object, comparison_target: object) -> None:
        """Asserts that every element is less or equal."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: object,
        lower_bound: object,
        upper_bound: object,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Asserts that every element is between the bounds, which are included by default.

        Raises:
          AssertionError: an element is outside the bounds or NaN, or the elements are not numbers.
        """
        array = self._array(target)
        if not np.issubdtype(array.dtype, np.number):
            self.fail(f"The elements are of type {array.dtype}, which has no order")
        below = array <= lower_bound if open_lower_bound else array < lower_bound
        above = array >= upper_bound if open_upper_bound else array > upper_bound
        wrong = np.asarray(below | above | (np.isnan(array) if _is_inexact(array) else False))
        if np.any(wrong):
            bounds = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}"
            bounds += ")" if open_upper_bound else "]"
            self.fail(f"{int(wrong.sum())} elements are not in {bounds}: {_listed(array, wrong)}")

    def assertAllInSet(self, target: object, expected_set: Any) -> None:
        """Asserts that every element is one of ``expected_set``."""
        array = self._array(target)
        others = sorted({item for item in array.ravel().tolist() if item not in set(expected_set)}, key=str)
        if others:
            self.fail(f"{others[:_SHOWN]} are not in {expected_set}")

    # Types and shapes ---------------------------------------------------------------------------------------------

    def assertDTypeEqual(self, target: object, expected_dtype: Any) -> None:
        """Asserts the type of a tensor or an array."""
        found = target.dtype if isinstance(target, Tensor) else self._array(target).dtype
        self.assertEqual(as_dtype(found).base_dtype, as_dtype(expected_dtype).base_dtype)

    def assertShapeEqual(self, np_array: object, tf_tensor: object, msg: object = None) -> None:
        """Asserts that a tensor has the static shape of an array; TypeError for arguments of other types."""
        if not isinstance(np_array, np.ndarray | np.generic):
            raise TypeError("np_array must be a Numpy ndarray or Numpy scalar")
        if not isinstance(tf_tensor, Tensor):
            raise TypeError("tf_tensor must be a Tensor")
        self.assertAllEqual(cast(Any, np_array).shape, tf_tensor.get_shape().as_list(), msg)

    def assertDeviceEqual(self, device1: object, device2: object, msg: object = None) -> None:
        """Asserts that two devices, by name or as ``DeviceSpec``, have the same canonical name."""
        one, other = _canonical(device1), _canonical(device2)
        self.assertEqual(one, other, _with(f"Devices {one} and {other} are not equal.", msg))

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: object = None) -> None:
        """Asserts that a text begins with ``expected_start``."""
        if not actual.startswith(expected_start):
            self.fail(_with(f"{actual!r} does not start with {expected_start!r}", msg))

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None) -> None:
        """Asserts that two messages are equal; the expected one may be in the text format."""
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = text_format.Parse(expected, type(message)())
        if type(expected) is not type(message):
            self.fail(_with(f"{type(expected).__name__} is compared with {type(message).__name__}", msg))
        one, other = (text_format.MessageToString(each) for each in (expected, message))
        self.assertMultiLineEqual(one, other, msg)

    # Errors -------------------------------------------------------------------------------------------------------

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[BaseException], expected_err_re_or_predicate: str | Callable[[Any], bool]
    ) -> Generator[None]:
        """Asserts that the block raises an error of this type that matches.

        Args:
          exception_type: the type of the error.
          expected_err_re_or_predicate: a regular expression that is found in the message (for an ``OpError`` also in
            the name of its operation), or a function that returns whether the error matches.
        """
        try:
            yield
        except exception_type as error:
            if not _fits(error, expected_err_re_or_predicate):
                raise AssertionError(
                    f"{type(error).__name__} is not as expected ({expected_err_re_or_predicate!r}): {error}"
                ) from error
        else:
            self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: str | Callable[[Any], bool]) -> Any:
        """Asserts that the block raises a matching ``OpError``; see `assertRaisesWithPredicateMatch`."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    assertRaisesRegexp = _TestCase.assertRaisesRegex
    assertItemsEqual = _TestCase.assertCountEqual

    # Helpers -----------------------------------------------------------------------------------------------

    def _array(self, value: object) -> Array:
        if hasattr(value, "graph") and hasattr(value, "dtype"):  # a tensor or a variable
            value = self.evaluate(value)
        return cast(Array, value) if isinstance(value, np.ndarray) else np.array(value)

    def _is_ragged(self, value: object) -> bool:
        return isinstance(value, RaggedTensor | RaggedTensorValue)

    def _listed(self, value: object) -> object:
        """Returns the elements of an array or a ragged tensor as nested lists."""
        value = self.evaluate(value) if isinstance(value, RaggedTensor | Tensor) else value
        if isinstance(value, list | tuple):
            return [self._listed(item) for item in cast("Sequence[object]", value)]
        return value.to_list() if isinstance(value, RaggedTensorValue) else np.asarray(value).tolist()

    def _same_shape(self, a: object, b: object, msg: object) -> tuple[Array, Array]:
        first, second = self._array(a), self._array(b)
        if first.shape != second.shape:
            self.fail(_with(f"Shape mismatch: expected {first.shape}, got {second.shape} with {second}", msg))
        return first, second

    def _fails(self, assertion: Callable[[], None], message: str) -> None:
        try:
            assertion()
        except AssertionError:
            return
        self.fail(message)

    def _all_close(self, a: Any, b: Any, rtol: float, atol: float, msg: object, path: str) -> None:
        if self._is_ragged(a) or self._is_ragged(b):
            a, b = self._listed(a), self._listed(b)
        a, b = (value._asdict() if hasattr(value, "_asdict") else value for value in (a, b))
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(_with(f"Can't compare dict to non-dict, a{path} vs b{path}.", msg))
        if isinstance(a, Mapping):
            ours, theirs = cast("Mapping[object, object]", a), cast("Mapping[object, object]", b)
            self.assertCountEqual(ours, theirs, _with(f"The keys of a{path} and b{path} differ", msg))
            for key, value in ours.items():
                self._all_close(value, theirs[key], rtol, atol, msg, f"{path}[{key}]")
        elif isinstance(a, list | tuple):
            members = cast("Sequence[object]", a)
            try:
                self._arrays_close(self._array(members), self._array(b), rtol, atol, msg, path)
            except (ValueError, TypeError):  # not convertible to one array: compare the items
                if len(members) != len(b):
                    raise ValueError(
                        _with(f"a{path} has {len(members)} items, but b{path} has {len(b)} items", msg)
                    ) from None
                for index, (one, other) in enumerate(zip(members, b, strict=True)):
                    self._all_close(one, other, rtol, atol, msg, f"{path}[{index}]")
        else:
            self._arrays_close(self._array(a), self._array(b), rtol, atol, msg, path)

    def _arrays_close(self, a: Array, b: Array, rtol: float, atol: float, msg: object, path: str) -> None:
        first, second = self._same_shape(a, b, msg)
        with np.errstate(invalid="ignore"):  # infinity minus itself
            close = np.isclose(first, second, rtol=rtol, atol=atol, equal_nan=True)
        if not np.all(close):
            what = f"a{path} is not close to b{path} (rtol {rtol}, atol {atol})"
            self.fail(_with(_differences(what, first, second, np.logical_not(close)), msg))


def _is_inexact(array: Array) -> bool:
    return array.dtype.kind in "fc" or array.dtype == ml_dtypes.bfloat16


def _differences(what: str, first: Array, second: Array, wrong: object) -> str:
    wrong = np.asarray(wrong)
    pairs = [
        f"{list(map(int, place))}: {first[tuple(place)]} and {second[tuple(place)]}"
        for place in np.argwhere(wrong)[:_SHOWN]
    ]
    more = f", and {int(wrong.sum()) - _SHOWN} more" if wrong.sum() > _SHOWN else ""
    return f"{what}, in {int(wrong.sum())} of {wrong.size} elements: {'; '.join(pairs)}{more}"


def _listed(array: Array, wrong: Array) -> str:
    places = np.argwhere(wrong)[:_SHOWN]
    return "; ".join(f"{list(map(int, place))}: {array[tuple(place)]}" for place in places)


def _canonical(device: object) -> str:
    return device.to_string() if isinstance(device, DeviceSpec) else canonical_device_name(device or "")


def _fits(error: object, expected: str | Callable[[object], bool]) -> bool:
    if callable(expected):
        return bool(expected(error))
    text = str(error)
    if isinstance(error, OpError):
        text = error.message if error.op is None else f"{error.message}\nCaused by op {error.op.name}"
    return re.search(expected, text) is not None


def _with(text: str, msg: object) -> str:
    return f"{text} : {msg}" if msg else text
