"""The one way in which the Python side talks to Spark: SQL through dbt's adapter."""

from __future__ import annotations

import re
from typing import Any, Protocol

from dbt_common.exceptions import DbtRuntimeError


class ExactlyOnceError(DbtRuntimeError):
    """An error that a person can mend; its text is one line: what, where, what to do."""


class Engine(Protocol):
    """Runs SQL, whatever the connection."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        ...


class AdapterEngine:
    """SQL through the connection that dbt has open in this thread."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        _, table = self._adapter.execute(sql, auto_begin=False, fetch=True)
        return [tuple(row) for row in table.rows]


def one_line(error: BaseException) -> str:
    """The first telling line of an error; those of the JVM come as pages."""
    text = str(error)
    match = re.search(r"\[[A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*\][^\n]*", text)
    telling = (line for line in text.splitlines() if line.strip() not in ("", "Runtime Error"))
    line = match.group(0) if match else next(telling, text)
    return re.sub(r"\s+", " ", line).strip()[:400]


def literal(value: object) -> str:
    """A SQL literal of a text, or null."""
    if value is None:
        return "null"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
