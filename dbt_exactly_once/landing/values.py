"""Converts values to the types of their columns; one that does not fit is a fault of its row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

ARROW_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
INTEGER_BITS = {"int": 31, "bigint": 63}
TYPE_WORDS = {
    "string": "text",
    "int": "a whole number of 32 bits",
    "bigint": "a whole number of 64 bits",
    "boolean": "true or false",
    "timestamp": "a time in ISO 8601",
}

TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?([Zz]|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
WHOLE_NUMBER = re.compile(r"[+-]?\d{1,19}(\.0+)?", re.ASCII)


@dataclass(frozen=True)
class Fault:
    """Why a row cannot be taken as it stands in the file."""

    reason: str
    message: str


class CsvText(str):
    """A field of a CSV file: text that may stand for a value of any type."""

    __slots__ = ()


class NotOfTypeError(ValueError):
    """A value that is not of its column's type."""


def typed_column(
    name: str, data_type: str, rows: Iterable[dict[str, Any] | None], faults: list[Fault | None]
) -> pa.Array:
    """A column's values in its type; a value of another type becomes null and its row's fault."""
    values = [None if row is None else row.get(name) for row in rows]
    arrow_type = ARROW_TYPES[data_type]
    if set(map(type, values)) <= PLAIN[data_type]:
        try:
            return pa.array(values, arrow_type)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):
            pass  # one of them does not fit: find out which
    taken: list[Any] = []
    for position, value in enumerate(values):
        try:
            taken.append(None if value is None else typed(data_type, value))
        except NotOfTypeError as error:
            taken.append(None)
            if faults[position] is None:
                faults[position] = type_fault(name, data_type, value, error)
    return pa.array(taken, arrow_type)


# types of values that Arrow may be given as they are
PLAIN: dict[str, set[type]] = {
    "string": {str, CsvText, type(None)},
    "int": {int, type(None)},
    "bigint": {int, type(None)},
    "boolean": {bool, type(None)},
    "timestamp": {type(None)},
}


def typed(data_type: str, value: Any) -> Any:
    """The value in its column's type."""
    if data_type == "string":
        if isinstance(value, str):
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise NotOfTypeError("half of a surrogate pair is no character") from None
            return str(value)
    elif data_type == "boolean":
        if isinstance(value, bool):
            return value
        if isinstance(value, CsvText) and value.lower() in ("true", "false"):
            return value.lower() == "true"
    elif data_type == "timestamp":
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        if isinstance(value, str):
            return parsed_time(value)
    elif not isinstance(value, bool):
        number = None
        if isinstance(value, int):
            number = value
        elif isinstance(value, float) and value.is_integer():
            number = int(value)
        elif isinstance(value, CsvText) and WHOLE_NUMBER.fullmatch(value):
            number = int(value.split(".")[0])
        limit = 1 << INTEGER_BITS[data_type]
        if number is not None and -limit <= number < limit:
            return number
    raise NotOfTypeError


def parsed_time(text: str) -> datetime:
    """A time in ISO 8601 as UTC; one without an offset is taken as UTC."""
    match = TIME.fullmatch(text)
    if match is None:
        raise NotOfTypeError
    *parts, fraction, zone = match.groups()
    micros = int((fraction or "")[:6].ljust(6, "0"))
    try:
        time = datetime(*(int(part or 0) for part in parts), micros, tzinfo=timezone.utc)
        if zone and zone not in "Zz":
            hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
            if minutes > 59:
                raise NotOfTypeError(f"there is no offset {zone}")
            # timezone() refuses an offset of a day or more
            offset = timezone(timedelta(hours=hours, minutes=minutes))
            ahead = offset.utcoffset(None)
            time = time - ahead if zone[0] == "+" else time + ahead
        return time
    except (ValueError, OverflowError) as error:
        raise NotOfTypeError(str(error)) from error


def type_fault(name: str, data_type: str, value: Any, error: NotOfTypeError) -> Fault:
    why = f" ({error})" if str(error) else ""
    message = f"{name}: {excerpt(value)} is not {TYPE_WORDS[data_type]}{why}"
    impossible = name == "received_at"
    return Fault("IMPOSSIBLE_RECEIVED_AT" if impossible else "WRONG_TYPE", message)


def excerpt(value: Any) -> str:
    """The beginning of a value, for a message."""
    try:
        text = json.dumps(value, default=str)
    except (RecursionError, ValueError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
