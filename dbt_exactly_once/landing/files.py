"""Reading the files that people land: rows of typed values, in batches, whatever the format.

If a value is not of its column's type, the fault is kept with its row and reading continues.
Nothing here holds more than one batch.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.csv_rows import csv_rows
from dbt_exactly_once.landing.file_bytes import Row, head_of
from dbt_exactly_once.landing.file_content import (
    CSV,
    JSON,
    PARQUET,
    Content,
    content_of,
    other_delimiter,
)
from dbt_exactly_once.landing.json_rows import json_rows
from dbt_exactly_once.landing.parquet_rows import BATCH_ROWS, parquet_rows
from dbt_exactly_once.landing.values import Fault

BATCH_CHARACTERS = 8_000_000
# errors of the machine or of a share, not of the file
PASSING = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)


class UnreadableFileError(ExactlyOnceError):
    """A file that cannot be landed as it is; its text is one line: what, where, what to do."""

    def __init__(self, path: Path, line: str) -> None:
        super().__init__(line)
        self.path = path

    @property
    def may_pass(self) -> bool:
        """Whether the machine is the cause, so that the file may be readable the next time."""
        cause = self.__cause__
        is_of_system = isinstance(cause, OSError) and cause.errno in PASSING
        return is_of_system or isinstance(cause, MemoryError)


class Batch(NamedTuple):
    """Some rows of one file. A row is None if its line could not be read as a row."""

    rows: list[dict[str, Any] | None]
    lines: list[int]
    raw_texts: list[str]
    faults: list[Fault | None]


def read_batches(path: Path) -> Iterator[Batch]:
    """The rows of a file, by the format of its name."""
    read = {JSON: json_rows, CSV: csv_rows, PARQUET: parquet_rows}[_format_of(path)]
    try:
        taken: list[Row] = []
        characters = 0
        for row in read(path):
            taken.append(row)
            characters += len(row[2])
            if len(taken) >= BATCH_ROWS or characters >= BATCH_CHARACTERS:
                yield _batch(taken)
                taken, characters = [], 0
        if taken:
            yield _batch(taken)
    except ExactlyOnceError:
        raise
    except Exception as error:
        # any other error of a reader concerns this file alone: it must not stop the other files
        raise unreadable(path, error) from error


def _batch(rows: list[Row]) -> Batch:
    return Batch(*map(list, zip(*rows, strict=True)))


def check_readable(file: str | Path, columns: Collection[str]) -> None:
    """Raise UnreadableFileError if the file cannot be opened or its content does not fit its name.

    columns: those of the table it is meant for.
    """
    path = Path(file)
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode("utf-8", "backslashreplace")
        raise UnreadableFileError(
            path,
            f"{shown}: the name is not UTF-8, nothing was landed: give the file another one",
        ) from None
    try:
        head = head_of(path)
        content = content_of(head, columns)
        named = _format_of(path, content)
        if named == CSV and content is None:
            content = Content(CSV, other_delimiter(head) or ",")
        if content is not None and content.format != named:
            raise UnreadableFileError(
                path,
                f"{path} holds {content.format}, not what its name says, nothing was landed: "
                f"{content.remedy}",
            )
        if content is not None and content.delimiter != ",":
            raise UnreadableFileError(
                path,
                f"{path} looks like CSV with {json.dumps(content.delimiter)} between its fields, "
                "nothing was landed: write it with commas",
            )
        if named == PARQUET:
            pq.ParquetFile(path).close()
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: BaseException) -> UnreadableFileError:
    why = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    line = f"{path} cannot be read, nothing was landed: {why.splitlines()[0]}"
    return UnreadableFileError(path, line)


def _format_of(path: Path, content: Content | None = None) -> str:
    """The format that a file's name stands for; content: what it holds, for the message."""
    name = path.name.lower().removesuffix(".gz")
    for suffixes, named in (
        ((".jsonl", ".ndjson", ".json"), JSON),
        ((".csv",), CSV),
        ((".parquet",), PARQUET),
    ):
        if name.endswith(suffixes):
            return named
    remedy = (
        f"it holds {content.format}, {content.remedy}"
        if content
        else "name it .jsonl, .ndjson, .json or .csv (or these with .gz), or .parquet"
    )
    line = f"{path}: the name has no known format, nothing was landed; {remedy}"
    raise UnreadableFileError(path, line)
