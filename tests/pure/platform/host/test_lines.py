from __future__ import annotations

from headwater.platform.host.lines import MAX_LINE, LineBuffer


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


def test_of_a_progress_bar_the_last_state_is_shown() -> None:
    assert LineBuffer().feed(b"10%\r50%\r100%\n") == ["100%"]


def test_a_line_without_end_is_cut() -> None:
    buffer = LineBuffer()
    assert [len(line) for line in buffer.feed(b"x" * (2 * MAX_LINE + 5))] == [MAX_LINE, MAX_LINE]
    assert buffer.close() == ["xxxxx"]
