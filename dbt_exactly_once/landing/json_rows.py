"""The rows of JSON: an object in each line, or the elements of an array."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from json.decoder import WHITESPACE, scanstring
from pathlib import Path
from typing import Any

from dbt_exactly_once.landing.file_bytes import (
    DOCUMENT,
    Row,
    head_of,
    lines_of,
    not_utf8,
    open_bytes,
    shown,
)
from dbt_exactly_once.landing.json_arrays import ArrayReader, is_array
from dbt_exactly_once.landing.values import Fault, excerpt

PIECE_BYTES = 1_048_576


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a value of JSON")


DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def json_rows(path: Path) -> Iterator[Row]:
    if is_array(head_of(path)):
        for value, text, number in ArrayReader(_texts(path), DECODER).elements():
            raw = text.encode("utf-8", "surrogateescape")
            yield _row(raw, number, "element", lambda _, value=value: value)
    else:
        for number, raw in enumerate(lines_of(path), 1):
            if raw.strip():
                yield _row(raw, number, "line", DECODER.decode)


def _row(raw: bytes, number: int, what: str, value_of: Callable[[str], Any]) -> Row:
    """The row of a line or an element; value_of: parses its text."""
    try:
        text = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        return None, number, shown(raw), not_utf8(error)
    try:
        row = value_of(text)
        if isinstance(row, dict):
            return with_document_as_text(row, text), number, text, None
        problem = f"a JSON object but {excerpt(row)}"
    except (ValueError, RecursionError) as error:
        problem = f"JSON: {error}"
    return None, number, text, Fault("NOT_JSON", f"the {what} is not {problem}")


def _texts(path: Path) -> Iterator[str]:
    """A file's text in pieces; bytes that are not UTF-8 stay in it as half surrogates."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with open_bytes(path) as file:
        piece = file.read(PIECE_BYTES).removeprefix(codecs.BOM_UTF8)
        while piece:
            yield decoder.decode(piece)
            piece = file.read(PIECE_BYTES)
        yield decoder.decode(b"", final=True)


def with_document_as_text(row: dict[str, Any], text: str) -> dict[str, Any]:
    """A row parsed from a text; a document that is an object or array keeps its text as written."""
    if isinstance(row.get(DOCUMENT), dict | list):
        row[DOCUMENT] = _member_text(text, DOCUMENT)
    return row


def _member_text(text: str, name: str) -> str:
    """The text of an object's member as written: serialising it again would change numbers."""

    def skip(position: int) -> int:
        return WHITESPACE.match(text, position).end()  # type: ignore[union-attr]

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
