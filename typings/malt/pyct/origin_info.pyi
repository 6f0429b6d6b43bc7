from typing import NamedTuple

class LineLocation(NamedTuple):
    filename: str
    lineno: int
