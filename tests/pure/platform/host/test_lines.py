from __future__ import annotations

from headwater.platform.host.lines import MAX_LINE, STAMP_LENGTH, LineBuffer, Stamper, split_stamp, stamp


def test_lines_are_put_together_from_pieces() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"one\ntw") == ["one"]
    assert buffer.feed(b"o\r\n\nthree") == ["two", ""]
    assert buffer.close() == ["three"]
    assert buffer.close() == []


def test_a_character_may_be_cut_between_pieces() -> None:
    buffer = LineBuffer()
    assert buffer.feed("é".encode()[:1]) == []
    assert buffer.feed("é".encode()[1:] + b"\xff\n") == ["é\ufffd"]


def test_the_last_state_of_a_progress_bar_is_shown() -> None:
    assert LineBuffer().feed(b"10%\r50%\r100%\n") == ["100%"]


def test_a_line_without_end_is_cut() -> None:
    buffer = LineBuffer()
    assert [len(line) for line in buffer.feed(b"x" * (2 * MAX_LINE + 5))] == [MAX_LINE, MAX_LINE]
    assert buffer.close() == ["xxxxx"]


def test_each_line_gets_the_time_of_its_beginning() -> None:
    times = iter([1.0, 2.0, 3.5])
    stamper = Stamper(lambda: next(times))
    data = stamper.feed(b"one\ntw") + stamper.feed(b"o\n") + stamper.feed(b"") + stamper.feed(b"\nend")
    lines = data.split(b"\n")
    assert [split_stamp(line) for line in lines] == [(1.0, b"one"), (1.0, b"two"), (3.5, b""), (3.5, b"end")]
    assert stamper.finish() == b"\n"
    assert len(stamp(1e9)) == STAMP_LENGTH


def test_line_without_a_time_is_unchanged() -> None:
    assert split_stamp(b"Step: 1") == (None, b"Step: 1")
    assert split_stamp(b"9999-99-99T99:99:99.999999Z x") == (None, b"9999-99-99T99:99:99.999999Z x")
