from __future__ import annotations

from pathlib import Path

import pytest

from headwater.platform.host.lines import MAX_LINE, stamp
from headwater.platform.logfiles import Follower, LogLine, all_lines, in_order, lines_of, plain, read_part, search


def write(path: Path, *lines: tuple[float, str]) -> Path:
    path.write_bytes(b"".join(stamp(at) + text.encode() + b"\n" for at, text in lines))
    return path


def test_lines_of_tasks_stand_in_the_order_of_time(tmp_path: Path) -> None:
    first = write(tmp_path / "a", (1.0, "one"), (4.0, "four"))
    second = write(tmp_path / "b", (2.0, "two"), (3.0, "three"), (2.5, "goes back"), (5.0, "five"))
    ordered = in_order({"a": all_lines(first), "b": all_lines(second)})
    assert [(name, line.text) for name, line in ordered] == [
        ("a", "one"),
        ("b", "two"),
        ("b", "three"),
        ("b", "goes back"),
        ("a", "four"),
        ("b", "five"),
    ]


def test_a_follower_gives_whole_lines_with_their_times(tmp_path: Path) -> None:
    path = tmp_path / "log"
    follower = Follower(path)
    assert follower.lines() == []
    path.write_bytes(stamp(1.0) + b"one\n" + stamp(2.0) + b"tw")
    assert follower.lines() == [LogLine("one", 1.0, 0)]
    with path.open("ab") as file:
        file.write(b"o\n" + stamp(3.0) + b"10%\r50%\r100%")
    assert [(line.text, line.at) for line in follower.lines()] == [("two", 2.0)]
    assert [(line.text, line.at) for line in follower.close()] == [("100%", 3.0)]
    assert follower.close() == []
    assert [line.text for line in Follower(path, tail=1).close()] == ["100%"]


def test_a_line_without_end_is_read_in_pieces() -> None:
    data = stamp(1.0) + b"x" * (MAX_LINE + 5) + b"\n"
    assert [len(line.text) for line in lines_of(data, 0)] == [MAX_LINE, 5]


def test_shown_lines_have_no_times(tmp_path: Path) -> None:
    path = write(tmp_path / "log", (1.0, "one"), (2.0, "two"))
    part = read_part(path, tail=1)
    assert plain(part.data) == "two\n"
    assert plain(part.data, times=True) == "1970-01-01T00:00:02.000000Z two\n"


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_search_resumes_at_its_last_position(tmp_path: Path, limit: int) -> None:
    path = write(
        tmp_path / "log", *((float(number), f"Line {number} ERROR" * (number % 3 == 0)) for number in range(10))
    )
    found: list[str] = []
    start: int | None = 0
    while start is not None:
        lines, start = search(path, "error", start=start, limit=limit, budget=1 << 20)
        assert len(lines) <= limit
        found += [line.text for line in lines]
    assert found == [f"Line {number} ERROR" for number in (0, 3, 6, 9)]


def test_a_search_looks_at_no_more_than_it_may(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes((b"x" * 99 + b"\n") * 30_000 + b"wanted\n")
    found, start = search(path, "wanted", limit=5, budget=1 << 20)
    assert (found, start) == ([], (1 << 20) // 100 * 100)
    (line,), start = search(path, "WANTED", start=start or 0, limit=5, budget=1 << 30)
    assert (line.offset, start) == (3_000_000, None)
