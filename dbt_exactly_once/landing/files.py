"""Reading the files that people land: rows of typed values, in batches, whatever the format.

A value that is not of its column's type is a fault of its row, kept with the row and no reason to
stop. Nothing here holds more than one batch.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from json.decoder import scanstring
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.file_content import (
    CSV,
    JSON,
    PARQUET,
    Content,
    content_of,
    other_delimiter,
)
from dbt_exactly_once.landing.json_arrays import ArrayReader, BrokenArrayError, is_array
from dbt_exactly_once.landing.values import CsvText, Fault, excerpt

BATCH_ROWS = 5_000
BATCH_CHARACTERS = 8_000_000
# enough for the header of a CSV file
HEAD_BYTES = 65_536
PIECE_BYTES = 1_048_576
# longer CSV fields are more likely an unclosed quote than a document
CSV_FIELD_LIMIT = 64 * 1024 * 1024

# the one column that may hold an object where its text is meant
DOCUMENT = "document"


@dataclass
class Batch:
    """Some rows of one file. A row is none where its line could not be read as a row."""

    rows: list[dict[str, Any] | None] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    raw_texts: list[str] = field(default_factory=list)
    faults: list[Fault | None] = field(default_factory=list)
    characters: int = 0

    def add(
        self, row: dict[str, Any] | None, line: int, raw_text: str, fault: Fault | None = None
    ) -> None:
        self.rows.append(row)
        self.lines.append(line)
        self.raw_texts.append(raw_text)
        self.faults.append(fault)
        self.characters += len(raw_text)

    @property
    def full(self) -> bool:
        return len(self.rows) >= BATCH_ROWS or self.characters >= BATCH_CHARACTERS


def read_batches(path: Path) -> Iterator[Batch]:
    """The rows of a file, by the format that its name tells."""
    read = _reader(path)
    try:
        batch = Batch()
        for row, line, raw_text, fault in read(path):
            batch.add(row, line, raw_text, fault)
            if batch.full:
                yield batch
                batch = Batch()
        if batch.rows:
            yield batch
    except (OSError, EOFError, zlib.error, pa.ArrowException, BrokenArrayError) as error:
        raise unreadable(path, error) from error


def check_readable(file: str | Path, columns: Collection[str]) -> None:
    """Stop with one line if the file cannot be opened or is not of the format that its name tells.

    columns: those of the table it is meant for.
    """
    path = Path(file)
    try:
        head = _head(path)
        content = content_of(head, columns)
        read = _reader(path, content)
        if read is _csv_rows and content is None:
            content = Content(CSV, other_delimiter(head) or ",")
        if content is not None and READERS.get(content.format) is not read:
            raise ExactlyOnceError(
                f"{path} holds {content.format}, not what its name says, nothing was landed: "
                f"{content.remedy}"
            )
        if content is not None and content.delimiter != ",":
            raise ExactlyOnceError(
                f"{path} looks like CSV with {json.dumps(content.delimiter)} between its fields, "
                "nothing was landed: write it with commas"
            )
        if read is _parquet_rows:
            pq.ParquetFile(path).close()
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: BaseException) -> ExactlyOnceError:
    why = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return ExactlyOnceError(f"{path} cannot be read, nothing was landed: {why.splitlines()[0]}")


Row = tuple[dict[str, Any] | None, int, str, Fault | None]


def _reader(path: Path, content: Content | None = None) -> Callable[[Path], Iterator[Row]]:
    name = path.name.lower().removesuffix(".gz")
    for suffixes, read in (
        ((".jsonl", ".ndjson", ".json"), _json_rows),
        ((".csv",), _csv_rows),
        ((".parquet",), _parquet_rows),
    ):
        if name.endswith(suffixes):
            return read
    told = (
        f"it holds {content.format}, {content.remedy}"
        if content
        else "name it .jsonl, .ndjson, .json or .csv (or these with .gz), or .parquet"
    )
    raise ExactlyOnceError(
        f"{path}: the format cannot be told from the name, nothing was landed; {told}"
    )


def _open_bytes(path: Path) -> IO[bytes]:
    # by what the file is, not by its name: a download may have been unpacked on its way
    file = path.open("rb")
    packed = file.read(2) == b"\x1f\x8b"
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[return-value]


def _head(path: Path) -> bytes:
    with _open_bytes(path) as file:
        return file.read(HEAD_BYTES)


def _lines(path: Path) -> Iterator[bytes]:
    with _open_bytes(path) as file:
        for number, line in enumerate(file):
            yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").rstrip("\r\n")


def _not_utf8(error: UnicodeDecodeError) -> Fault:
    byte = error.object[error.start]
    return Fault("NOT_UTF8", f"byte {error.start + 1} of the row, 0x{byte:02x}, is not UTF-8")


# ---------- JSON


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a value of JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _json_rows(path: Path) -> Iterator[Row]:
    return _element_rows(path) if is_array(_head(path)) else _line_rows(path)


def _line_rows(path: Path) -> Iterator[Row]:
    for number, raw in enumerate(_lines(path), 1):
        if not raw.strip():
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield None, number, _shown(raw), _not_utf8(error)
            continue
        try:
            row = DECODER.decode(text)
        except (ValueError, RecursionError) as error:
            yield None, number, text, Fault("NOT_JSON", f"the line is not JSON: {error}")
            continue
        yield _object_row(row, number, text, "line")


def _element_rows(path: Path) -> Iterator[Row]:
    for value, text, number in ArrayReader(_texts(path), DECODER).elements():
        raw = text.encode("utf-8", "surrogateescape")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            yield None, number, _shown(raw), _not_utf8(error)
            continue
        yield _object_row(value, number, text, "element")


def _texts(path: Path) -> Iterator[str]:
    """A file's text in pieces; bytes that are no UTF-8 stay in it as half surrogates."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with _open_bytes(path) as file:
        piece = file.read(PIECE_BYTES).removeprefix(codecs.BOM_UTF8)
        while piece:
            yield decoder.decode(piece)
            piece = file.read(PIECE_BYTES)
        yield decoder.decode(b"", final=True)


def _object_row(row: Any, number: int, text: str, what: str) -> Row:
    if not isinstance(row, dict):
        message = f"the {what} is not a JSON object but {excerpt(row)}"
        return None, number, text, Fault("NOT_JSON", message)
    if isinstance(row.get(DOCUMENT), dict | list):
        row[DOCUMENT] = member_text(text, DOCUMENT)
    return row, number, text, None


WHITE_SPACE = re.compile(r"\s*")


def member_text(text: str, name: str) -> str:
    """The text of an object's member as it stands there: writing it anew would change numbers."""

    def skip(position: int) -> int:
        return WHITE_SPACE.match(text, position).end()  # type: ignore[union-attr]

    found = ""
    position = skip(skip(0) + 1)
    while text[position] == '"':
        key, position = scanstring(text, position + 1, True)
        start = skip(skip(position) + 1)
        _, end = DECODER.raw_decode(text, start)
        if key == name:
            found = text[start:end]
        position = skip(skip(end) + 1)
        if position >= len(text):
            break
    return found


# ---------- CSV


def _csv_rows(path: Path) -> Iterator[Row]:
    # the reader takes as many lines as a row has; kept here so that a row can be shown as it stands
    taken: list[bytes] = []

    def lines() -> Iterator[str]:
        for raw in _lines(path):
            taken.append(raw)
            yield raw.decode("utf-8", "surrogateescape")

    limit = csv.field_size_limit(CSV_FIELD_LIMIT)
    reader = csv.reader(lines(), strict=True)
    header: list[str] | None = None
    number = 1
    try:
        while True:
            fault = None
            fields: list[str] = []
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                fault = Fault("NOT_CSV", f"the row is not CSV: {error}")
            raw, first_line = b"".join(taken), number
            number += len(taken)
            taken.clear()
            if header is None:
                header = [name.strip() for name in fields]
                continue
            if not fields and fault is None:
                continue
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError as error:
                fault = _not_utf8(error)
            if fault is None and len(fields) != len(header):
                message = f"the row has {len(fields)} fields, the header {len(header)}"
                fault = Fault("NOT_CSV", message)
            row = (
                None if fault else {k: CsvText(v) for k, v in zip(header, fields, strict=True) if v}
            )
            yield row, first_line, _shown(raw), fault
    finally:
        csv.field_size_limit(limit)


# ---------- Parquet


def _parquet_rows(path: Path) -> Iterator[Row]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            names = batch.schema.names
            columns = [_parquet_values(column) for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                row = {k: v for k, v in zip(names, values, strict=True) if v is not None}
                broken = [k for k, v in row.items() if isinstance(v, UnicodeDecodeError)]
                fault = None
                if broken:
                    fault = Fault("NOT_UTF8", f"{broken[0]}: the text is not UTF-8")
                    row = {k: str(v) if k in broken else v for k, v in row.items()}
                raw_text = json.dumps(row, default=str, ensure_ascii=False)
                if isinstance(row.get(DOCUMENT), dict | list):
                    row[DOCUMENT] = json.dumps(row[DOCUMENT], default=str, ensure_ascii=False)
                yield row, number, raw_text, fault


def _parquet_values(column: pa.Array) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):
        # Python has no nanoseconds
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_decoded(value) for value in column.cast(pa.binary()).to_pylist()]


def _decoded(value: bytes | None) -> Any:
    try:
        return value if value is None else value.decode("utf-8")
    except UnicodeDecodeError as error:
        return error


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    JSON: _json_rows,
    CSV: _csv_rows,
    PARQUET: _parquet_rows,
}
