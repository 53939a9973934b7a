"""The rows of JSON: an object in each line, or the elements of an array."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from json.decoder import scanstring
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
    return _element_rows(path) if is_array(head_of(path)) else _line_rows(path)


def _line_rows(path: Path) -> Iterator[Row]:
    for number, raw in enumerate(lines_of(path), 1):
        if not raw.strip():
            continue
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield None, number, shown(raw), not_utf8(error)
            continue
        try:
            row = _object_row(DECODER.decode(text), number, text, "line")
        except (ValueError, RecursionError) as error:
            row = None, number, text, Fault("NOT_JSON", f"the line is not JSON: {error}")
        yield row


def _element_rows(path: Path) -> Iterator[Row]:
    for value, text, number in ArrayReader(_texts(path), DECODER).elements():
        raw = text.encode("utf-8", "surrogateescape")
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            yield None, number, shown(raw), not_utf8(error)
            continue
        try:
            row = _object_row(value, number, text, "element")
        except RecursionError as error:
            row = None, number, text, Fault("NOT_JSON", f"the element is not JSON: {error}")
        yield row


def _texts(path: Path) -> Iterator[str]:
    """A file's text in pieces; bytes that are no UTF-8 stay in it as half surrogates."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with open_bytes(path) as file:
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
    """The text of an object's member as it stands there: writing it again would change numbers."""

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
