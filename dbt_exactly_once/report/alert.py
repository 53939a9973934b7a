"""`exactly-once alert`: posts to a webhook what there is to do, once, and what is solved, once.

A file keeps what was posted last. It is written after the webhook has answered, so no message is
lost; if the process ends in between, a message is sent a second time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.report.page import Ask

SECONDS = 10
THINGS = """
    select kind, trigger_name, documents, what, what_to_do
    from {schema}.things_to_do
    order by kind, trigger_name, what
"""


@dataclass(frozen=True)
class Change:
    """What is new on the list of things to do, and what is no longer on it."""

    new: list[str]
    solved: list[str]
    left: int

    def text(self, schema: str) -> str:
        """The message."""
        lines = []
        for title, entries in (("To do", self.new), ("Solved", self.solved)):
            lines += [f"{title} in {schema}:", *(f"- {entry}" for entry in entries)] * bool(entries)
        if self.left:
            lines.append(f"Still to do: {self.left}")
        return "\n".join(lines)


def alert(ask: Ask, schema: str, webhook: str, memory: Path) -> Change | None:
    """Post what has changed since the last time; returns it, or None if nothing has.

    ask: runs a query and gives its rows; memory: the file that keeps what was posted.
    """
    sent = _read(memory)
    before = sent.get(schema, {})
    now = {_name(row): _line(row) for row in ask(THINGS.format(schema=schema))}
    change = Change(
        new=[line for name, line in now.items() if name not in before],
        solved=[line for name, line in before.items() if name not in now],
        left=sum(name in before for name in now),
    )
    if not change.new and not change.solved:
        return None
    _post(webhook, change.text(schema))
    _write(memory, {**sent, schema: {name: before.get(name, line) for name, line in now.items()}})
    return change


def _name(row: Mapping[str, Any]) -> str:
    """What identifies a thing to do; its number of documents may change."""
    return json.dumps([row["kind"], row["trigger_name"], row["what"]])


def _line(row: Mapping[str, Any]) -> str:
    trigger = f"{row['trigger_name']}: " if row["trigger_name"] else ""
    return f"{trigger}{row['documents']:,} {row['what']}. {row['what_to_do']}"


def _read(memory: Path) -> dict[str, dict[str, str]]:
    if not memory.exists():
        return {}
    try:
        sent = json.loads(memory.read_text(encoding="utf-8"))
        return {schema: {**lines} for schema, lines in sent.items()}
    except (ValueError, AttributeError, TypeError, OSError) as error:
        raise ExactlyOnceError(
            f"{memory}, which keeps what was posted, is not as this command has written it: remove "
            "it, and all is posted again"
        ) from error


def _write(memory: Path, sent: Mapping[str, Any]) -> None:
    """Replace the file as a whole."""
    memory.parent.mkdir(parents=True, exist_ok=True)
    written = memory.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(sent, indent=1), encoding="utf-8")
    written.replace(memory)


def _post(webhook: str, text: str) -> None:
    """Post a message in the format of Slack and of services that are compatible with it."""
    if not webhook.lower().startswith(("http://", "https://")):
        raise ExactlyOnceError("the URL of the webhook has to begin with https:// or http://")
    body = json.dumps({"text": text}).encode("utf-8")
    # the rest of the URL is a secret, and these errors have it in their text
    try:
        host = urlsplit(webhook).hostname
        request = Request(webhook, body, {"Content-Type": "application/json; charset=utf-8"})
        with urlopen(request, timeout=SECONDS):
            return
    except (InvalidURL, ValueError):
        raise ExactlyOnceError(
            "the URL of the webhook is none that can be posted to: look for a blank in it, or a "
            "letter that is not ASCII"
        ) from None
    except (OSError, HTTPException) as error:
        status = f"it answers {error.code}" if isinstance(error, HTTPError) else None
        if not isinstance(error, OSError):
            status = "its answer is not HTTP"
        cause = status or getattr(error, "reason", None) or error
        raise ExactlyOnceError(
            f"the webhook at {host} has not taken the message, the next alert sends it again: "
            f"{getattr(cause, 'strerror', None) or cause}"
        ) from error
