"""Dimensions and shapes."""

EXPRESSIONS = """
D(7) % 3 | 7 % D(3) | 7 // D(2) | D(7) // 2 | D(7) / 2 | 7 / D(2) | D(None) // 2 | D(7) - None | 7 - D(3) | D(3) - 7
D(2) + 3 | 3 + D(2) | 2 * D(3) | D(3) * D(None) | D(3) + 'x' | D(3) + 2.5 | D(-1) | D(2.0) | D(2.5) | D(True)
D(D(3)) | D([1]) | D(3) == 'x' | D(3) != 'x' | D(3) == None | D(None) == None | D(None) != None | D(3) == 3.0
D(3) == D(3) | D(3) != 4 | D(3) < 4 | D(3) <= 3 | D(3) > 4 | D(3) >= D(3) | D(3) < None | D(None) > 1 | str(D(None))
repr(D(None)) | str(D(3)) | repr(D(3)) | int(D(3)) | int(D(None)) | bool(D(0)) | bool(D(None)) | list(range(D(3)))
'abc'[D(1)] | D(3).value | D(None).value | D(3).merge_with(4) | D(3).merge_with(None) | D(None).merge_with(3)
D(3).is_compatible_with(None) | D(3).is_compatible_with(4) | D(3).assert_is_compatible_with(4)
D(3).assert_is_compatible_with(3) | S([1, None]) | S(None) | S([]) | S(3) | S('34') | S([D(1), 2]) | S((1, 2))
S([-1]) | S([2.5]) | S([2.0]) | S(S([2, 3])) | list(S([1, None])) | list(S(None)) | iter(S(None)) | len(S([1, 2]))
len(S(None)) | bool(S([])) | bool(S(None)) | S(None)[0] | S(None)[1:] | S(None)[1:3] | S(None)[:3] | S(None)[3:1]
S(None)[-3:-1] | S(None)[:-1] | S([1, 2, 3])[1:] | S([1, 2, 3])[0] | S([1, 2, 3])[-1] | S([1, 2, 3])[5]
S([1, 2, 3])[::2] | S([1, None])[1] | S([1, 2]) == [1, 2] | S([1, 2]) == (1, 2) | S([1, 2]) != [1, 3]
S(None) == S(None) | S([None]) != S([1]) | S([2]) != S([1]) | S(None) == S([1]) | S([1]) == None | S(None) == None
S([1]) == 'x' | S([]) == [] | S([]) == None | str(S([None])) | repr(S([None, 2])) | str(S(None)) | repr(S(None))
str(S([])) | str(S([1, None])) | str(S([3])) | S([2]) + [3] | [2] + S([3]) | S([2]).concatenate(3)
S(None).concatenate([3]) | S([2]).concatenate(None) | S([1, 2]).with_rank(3) | S(None).with_rank(2)
S([1, 2]).with_rank(2) | S([1]).with_rank_at_least(2) | S([1, 3, 4]).with_rank_at_most(2)
S(None).with_rank_at_least(2) | S([1]).with_rank_at_most(1) | S([1, 3]).merge_with([1, 4])
S([1, 3]).merge_with([1]) | S([1, None]).merge_with([None, 2]) | S(None).merge_with([1]) | S([1]).merge_with(None)
S([1, 3]).assert_is_compatible_with([1, 4]) | S([1, 3]).assert_is_compatible_with([1, None])
S([1, 3]).assert_same_rank([1]) | S([1, 3]).assert_same_rank(None) | S([1, 3]).assert_has_rank(1)
S([1, 3]).assert_has_rank(2) | S([1, None]).assert_is_fully_defined() | S([1]).assert_is_fully_defined()
S([1, None]).is_fully_defined() | S([1, 2]).is_fully_defined() | S(None).is_fully_defined()
S([]).is_fully_defined() | S([1, None]).num_elements() | S([2, 3]).num_elements() | S([]).num_elements()
S(None).num_elements() | S([0, 3]).num_elements() | S([2, None]).most_specific_compatible_shape([2, 3])
S([2, None]).most_specific_compatible_shape([3, 3]) | S([2, None]).most_specific_compatible_shape([3])
S(None).most_specific_compatible_shape([3]) | S([2, None]).is_compatible_with([2, 3])
S([2, None]).is_compatible_with([3, 3]) | S([2, None]).is_compatible_with(None)
S([2, None]).is_compatible_with([2]) | S([2, None]).rank | S([2, None]).ndims | S(None).rank | S([2, None]).dims
S(None).dims | S([2, None]).as_list() | S(None).as_list() | S(S([2, None]).as_proto()) | S(S(None).as_proto())
S([None, 2]).as_proto() | S(None).as_proto() | S([]).as_proto()
"""


def cases(tf):
    found = [text.strip() for line in EXPRESSIONS.strip().splitlines() for text in line.split("|")]
    return {text: lambda tf, text=text: _value(tf, text) for text in found}


def _value(tf, text):
    value = eval(text, {"D": tf.Dimension, "S": tf.TensorShape})
    return value if value is None or isinstance(value, (bool, int)) else str(value)
