"""Where sample data sets are found: in a folder that is given, in local caches, on the network; and IDX files.

IDX: ``uint8 0, uint8 0, uint8 element type, uint8 dimensions``, the sizes as big-endian uint32, then the elements.
Source: http://yann.lecun.com/exdb/mnist/.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import urllib.parse
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from headwater.data.io.files import atomic_write, translated
from headwater.errors import DataLossError, NotFoundError

DATA_VARIABLE: Final = "HEADWATER_DATA_DIR"
"""Environment variable that names a folder with a subfolder for each data set."""
_TIMEOUT_S: Final = 30
_UINT8: Final = 8


def find_file(data_set: str, name: str, folder: str | None = None, source_url: str | None = None) -> Path:
    """The file ``name`` of a data set.

    Looked for in ``$HEADWATER_DATA_DIR/<data set>``, in ``folder``, and in Keras's cache; then taken from the network
    into ``folder``.

    Args:
      data_set: e.g. ``mnist``.
      name: of the file.
      folder: to look in and to save in.
      source_url: address of the folder with the file; no network when None.

    Raises:
      NotFoundError: none of these has it; the message names them all.
    """
    places = _folders(data_set, folder)
    for place in places:
        for candidate in (place / name, place / name.removesuffix(".gz")):
            if candidate.is_file():
                return candidate
    tried = [f"${DATA_VARIABLE} is not set"] if not os.environ.get(DATA_VARIABLE) else []
    tried += [f"{place} does not have it" for place in places]
    if source_url and folder:
        try:
            return _fetched(urllib.parse.urljoin(source_url, name), Path(folder), name)
        except (OSError, ValueError) as error:
            tried.append(f"{source_url} cannot be reached: {error}")
    raise NotFoundError(
        None,
        None,
        f"{name} of the data set {data_set} was not found: {'; '.join(tried)}. Put it into a folder {data_set} and "
        f"say in {DATA_VARIABLE} what that is in",
    )


def _folders(data_set: str, folder: str | None) -> list[Path]:
    given = os.environ.get(DATA_VARIABLE)
    cache = Path.home() / ".keras" / "datasets"
    places = [Path(given) / data_set] if given else []
    if folder:
        places.append(Path(folder))
    return [*places, cache / data_set, cache]


def _fetched(url: str, folder: Path, name: str) -> Path:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        data: bytes = answer.read()
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / name) as file:
        file.write(data)
    return folder / name


def read_idx(path: str | Path, dims: int) -> npt.NDArray[np.uint8]:
    """The array in an IDX file of bytes, which may be compressed with gzip.

    Args:
      path: the file.
      dims: how many dimensions it must have.

    Raises:
      DataLossError: no such file format, or the file is cut off.
    """
    with translated(path) as name, open(name, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataLossError(None, None, f"{path}: the compressed data is damaged ({error})") from error
    header = 4 + 4 * dims
    if len(data) < header or data[:4] != bytes((0, 0, _UINT8, dims)):
        raise DataLossError(None, None, f"{path}: no IDX file of bytes with {dims} dimensions")
    shape: Sequence[int] = struct.unpack(f">{dims}I", data[4:header])
    if len(data) - header != math.prod(shape):
        raise DataLossError(
            None, None, f"{path}: {len(data) - header} bytes follow the header, which announces {math.prod(shape)}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
