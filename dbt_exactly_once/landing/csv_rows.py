"""The rows of CSV, the first of which names the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from dbt_exactly_once.landing.file_bytes import Row, lines_of, not_utf8, shown
from dbt_exactly_once.landing.values import CsvText, Fault

# longer CSV fields are more likely an unclosed quote than a document
CSV_FIELD_LIMIT = 64 * 1024 * 1024


def csv_rows(path: Path) -> Iterator[Row]:
    # the lines of the current row as they are in the file; a row may have several
    taken: list[bytes] = []

    def lines() -> Iterator[str]:
        for raw in lines_of(path):
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
                fault = not_utf8(error)
            if fault is None and len(fields) != len(header):
                message = f"the row has {len(fields)} fields, the header {len(header)}"
                fault = Fault("NOT_CSV", message)
            row = (
                None if fault else {k: CsvText(v) for k, v in zip(header, fields, strict=True) if v}
            )
            yield row, first_line, shown(raw), fault
    finally:
        csv.field_size_limit(limit)
