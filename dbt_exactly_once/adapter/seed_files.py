"""Seeds and other files of a project as they were written."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

from dbt_exactly_once.errors import ExactlyOnceError


def text_of_file(path: str) -> str:
    """The text of a file; raises ExactlyOnceError, with the line, if it is not UTF-8."""
    content = Path(path).read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ExactlyOnceError(
            f"exactly_once: {path} is not UTF-8 at line {line}: save it as UTF-8"
        ) from None


def seed_as_written(path: str, delimiter: str) -> Any:
    """The agate table of a CSV in which every cell is text, also one whose text is null, and names
    of columns are in small letters.

    Raises ExactlyOnceError if it is no CSV in UTF-8, if a row has more cells than its header, or if
    its header cannot be one of columns, or names one twice: agate would read the second under
    another name.
    """
    import agate

    text = text_of_file(path).removeprefix("\ufeff")
    # a quote that is not closed would make the rows below it part of a cell
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = [name.lower() for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ExactlyOnceError(
            f"exactly_once: {path} cannot be read at line {reader.line_num}: {error}: close each "
            'quote, and write "" for one in a quoted cell'
        ) from None
    problems = [
        f"has a column {name!r}: use letters, and a {delimiter} between columns"
        for name in header
        if name and not re.fullmatch("[a-z_][a-z_0-9]*", name)
    ]
    problems += [
        f"has column {name} more than once: keep one"
        for name, count in Counter(header).items()
        if name and count > 1
    ]
    if not header:
        problems.append("is empty: write a line with its columns")
    problems += [
        f"has {len(row)} cells in line {line}, and a header of {len(header)}: put a cell with a "
        f"{delimiter} in quotes"
        for line, row in rows
        if len(row) > len(header)
    ]
    if problems:
        raise ExactlyOnceError(f"exactly_once: {path} {problems[0]}")
    cells = [row for _, row in rows]
    return agate.Table(cells, header, agate.TypeTester(types=[agate.Text(cast_nulls=False)]))
