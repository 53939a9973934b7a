"""The bytes of a file to land, packed or not, and what the readers of all formats share."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dbt_exactly_once.landing.values import Fault

# enough for the header of a CSV file
HEAD_BYTES = 65_536
# the one column whose value may be an object: its text is what lands
DOCUMENT = "document"

# of a row: its values, the line where it begins, its text, and what is wrong with it
Row = tuple[dict[str, Any] | None, int, str, Fault | None]


def open_bytes(path: Path) -> IO[bytes]:
    # the first bytes decide, not the name: a download may have been unpacked on its way
    file = path.open("rb")
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[return-value]


def head_of(path: Path) -> bytes:
    with open_bytes(path) as file:
        return file.read(HEAD_BYTES)


def lines_of(path: Path) -> Iterator[bytes]:
    with open_bytes(path) as file:
        for number, line in enumerate(file):
            yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line


def shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").rstrip("\r\n")


def not_utf8(error: UnicodeDecodeError) -> Fault:
    byte = error.object[error.start]
    return Fault("NOT_UTF8", f"byte {error.start + 1} of the row, 0x{byte:02x}, is not UTF-8")
