"""A call of a service, what it has returned, and the rows that record it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from uuid import uuid4

from dbt_exactly_once.adapter.engine import literal, time_literal
from dbt_exactly_once.errors import error_text
from dbt_exactly_once.services.executions import LONGEST_MESSAGE

# how often a service at work reports that it is, within one execution timeout
HEARTBEATS = 3
# what a service returns is not kept if it is longer than so many characters of JSON
LONGEST_RESULT = 10_000


@dataclass
class Call:
    """One call of a service, at work or ended."""

    work: Any
    timeout_seconds: float
    started_at: datetime
    # when to report next that the service is at work, by time.monotonic()
    beat_at: float = 0
    event: str | None = None
    message: str | None = None
    result: str | None = None
    ended_at: datetime | None = None
    # the row that records how it ended; every attempt to write it writes the same row
    outcome: str = ""

    @property
    def document(self) -> str:
        return f"{self.work.delivery_id} of {self.work.trigger_name}"

    def beat_after(self, seconds: float) -> None:
        """Set the next heartbeat: after so many seconds, or earlier for the execution timeout."""
        self.beat_at = time.monotonic() + min(seconds, self.timeout_seconds / HEARTBEATS)


def rows_of(calls: Iterable[Call], event: str) -> str:
    """The rows of trigger_executions that report an event of some calls."""
    recorded_at = time_literal(datetime.now(timezone.utc))
    rows = []
    for call in calls:
        values = [
            literal(uuid4()),
            literal(call.work.delivery_id),
            literal(call.work.trigger_name),
            literal(call.work.service),
            str(int(call.work.attempt)),
            literal(event),
            time_literal(call.started_at),
            time_literal(call.ended_at),
            literal(call.message[:LONGEST_MESSAGE] if call.message else None),
            literal(call.result),
            recorded_at,
        ]
        rows.append(f"({', '.join(values)})")
    return f"select * from values {', '.join(rows)}"


def safe_echo(echo: Callable[[str], None]) -> Callable[[str], None]:
    """An echo that ignores lines it cannot print (a closed pipe), so that no service ends."""

    def print_line(line: str) -> None:
        with suppress(OSError, ValueError):
            echo(line.encode("utf-8", "replace").decode("utf-8"))

    return print_line


def as_json(answer: Any) -> tuple[str | None, str | None]:
    """What a service has returned, as JSON, or why that is not kept; the service has succeeded."""
    if answer is None:
        return None, None
    try:
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str)
    except Exception as error:
        return (
            None,
            f"what it returned is not kept, it cannot be written as JSON: {error_text(error)}",
        )
    if len(text) > LONGEST_RESULT:
        return None, f"what it returned is not kept: {len(text)} characters of JSON are too many"
    return text, None
