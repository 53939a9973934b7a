"""History of documents that something else has processed, added in pieces.

A piece has the documents of some days, the newest first, and is a publication of its own. A killed
import has added the pieces before the kill. Started again, it adds what is missing, since what
history knows already is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.run.publication import NEVER
from dbt_exactly_once.run.upkeep import Upkeep

# the most rows of a piece, unless a single day has more
ROWS_OF_A_PIECE = 10_000_000
LIVE = "LIVE"


def import_history(
    engine: Engine, upkeep: Upkeep, documents: str, entries: str, dry_run: bool
) -> list[str]:
    """Add what was processed elsewhere to history; returns what it found and did.

    documents: a query that gives each row its `import_outcome`, with {bound} in place of the time
    before which nothing is kept; entries: a query of what a piece adds, see macros/operations.
    """
    bound = upkeep.removed_before
    documents, entries = (text.replace("{bound}", bound) for text in (documents, entries))
    days = engine.rows(
        "select import_outcome, cast(to_date(started_at) as string) as day, count(*) as number "
        f"from ({documents}) group by import_outcome, day order by to_date(day) desc"
    )
    messages = [_counted(days, bound)]
    live = [(day, int(number)) for outcome, day, number in days if outcome == LIVE]
    if dry_run or not live:
        return [*messages, "nothing is imported"]
    added = sum(upkeep.add_history(entries, **piece) for piece in _pieces(live))
    known = sum(number for _, number in live) - added
    return [
        *messages,
        f"{added} documents were added to history; {known} rows repeat a key, or history knew them",
    ]


def _counted(days: Sequence[Sequence[Any]], bound: str) -> str:
    """How many rows there are of each outcome."""
    counts: Counter[str] = Counter()
    for outcome, _, number in days:
        counts[outcome] += int(number)
    words = {
        LIVE: "live",
        # before a run has taken a delivery, nothing has expired
        "EXPIRED": "expired" if bound == NEVER else f"expired before {bound}",
        "WITHOUT_KEY": "without a key",
        "KEY_TOO_LONG": "with a key longer than 96 characters",
        "WITHOUT_TIME": "without a time",
    }
    listed = ", ".join(f"{counts[outcome]} {word}" for outcome, word in words.items())
    return f"{sum(counts.values())} rows: {listed}"


def _pieces(days: Sequence[tuple[str, int]]) -> Iterator[dict[str, str]]:
    """The first day and the condition of each piece, the newest first; days: live rows by day, the
    newest first."""
    until = ""
    rows = 0
    for place, (day, number) in enumerate(days):
        rows += number
        is_last = place == len(days) - 1
        if is_last or rows + days[place + 1][1] > ROWS_OF_A_PIECE:
            yield {"since": day, "piece": f"started_at >= timestamp '{day}'{until}"}
            until = f" and started_at < timestamp '{day}'"
            rows = 0
