"""The rows of Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_exactly_once.landing.file_bytes import DOCUMENT, Row
from dbt_exactly_once.landing.values import Fault

BATCH_ROWS = 5_000


def parquet_rows(path: Path) -> Iterator[Row]:
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
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Python has no nanoseconds
        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        return [_decoded(value) for value in column.cast(pa.binary()).to_pylist()]
    except Exception:
        # a time beyond the years of Python, or in a time zone that it does not know
        return [_as_python(scalar) for scalar in column]


def _as_python(scalar: pa.Scalar) -> Any:
    """The value; a text if Python has none, which is a fault in a column of another type."""
    try:
        return scalar.as_py()
    except Exception:
        return f"{getattr(scalar, 'value', scalar)} ({scalar.type})"


def _decoded(value: bytes | None) -> Any:
    try:
        return value if value is None else value.decode("utf-8")
    except UnicodeDecodeError as error:
        return error
