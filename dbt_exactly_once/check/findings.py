"""What a check has found."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(str, Enum):
    """What a finding means."""

    RIGHT = "ok"
    WRONG = "wrong"
    # what cannot be known without Spark
    LEFT = "left to a run"


class Finding(NamedTuple):
    """A line of `exactly-once check`."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind.value:14}{self.text}"


def right(text: str) -> Finding:
    return Finding(Kind.RIGHT, text)


def wrong(text: str) -> Finding:
    return Finding(Kind.WRONG, text.removeprefix("exactly_once: "))


def left(text: str) -> Finding:
    return Finding(Kind.LEFT, text)
