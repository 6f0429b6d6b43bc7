"""Search for sample data sets: in a given folder, in local caches, on the network; and reading of IDX files.

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
    """Finds the file ``name`` of a data set.

    Searches ``$HEADWATER_DATA_DIR/<data set>``, ``folder``, and Keras's cache; otherwise downloads the file into
    ``folder``.

    Args:
      data_set: e.g. ``mnist``.
      name: name of the file.
      folder: a folder to search, and to save the downloaded file in.
      source_url: address of the folder with the file; None to download nothing.

    Raises:
      NotFoundError: the file is in none of these places; the message names them all.
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
        f"{name} of the data set {data_set} was not found: {'; '.join(tried)}. Put it into a folder {data_set}, and "
        f"set {DATA_VARIABLE} to the parent of that folder"
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
    """Reads the array in an IDX file of bytes, which may be compressed with gzip.

    Args:
      dims: required number of dimensions.

    Raises:
      DataLossError: the file has the wrong format, or is cut off.
    """
    with translated(path) as name, open(name, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataLossError(f"{path}: the compressed data is damaged ({error})") from error
    header = 4 + 4 * dims
    if len(data) < header or data[:4] != bytes((0, 0, _UINT8, dims)):
        raise DataLossError(f"{path}: no IDX file of bytes with {dims} dimensions")
    shape: Sequence[int] = struct.unpack(f">{dims}I", data[4:header])
    if len(data) - header != math.prod(shape):
        raise DataLossError(f"{path}: {len(data) - header} bytes follow the header, which announces {math.prod(shape)}")
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
