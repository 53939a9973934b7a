"""Makes a feed of three days, the same on every machine, as JSON lines on standard output.

Documents arrive day and night; some are redelivered after minutes, hours or days, some land long
after they were received. So the time to live, the removal of history and late landings all matter,
which a feed of one burst does not show.

    python demo/three_day_feed.py > three_days.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

SEED = 20260301
START = datetime(2026, 3, 1, tzinfo=timezone.utc)
DAYS = 3
DOCUMENTS = 1500
TYPES = ("order.created", "order.cancelled", "invoice.issued", "shipment.dispatched")

# how often a document comes again, and after how many seconds at the least and at the most
REDELIVERIES = ((0.30, 5, 600), (0.10, 1800, 6 * 3600), (0.06, 20 * 3600, 60 * 3600))
# how often a delivery lands late, and by how many seconds
LATENESS = ((0.03, 3600, 10 * 3600), (0.02, 26 * 3600, 50 * 3600))


def three_day_feed(seed: int = SEED, documents: int = DOCUMENTS) -> list[dict[str, Any]]:
    """The deliveries in the order in which they land; keys are the columns of `deliveries`."""
    random = Random(seed)
    rows = [row for number in range(documents) for row in _document(random, number)]
    rows.sort(key=lambda row: (row["landed_at"], row["delivery_id"]))
    return rows


def landings(rows: list[dict[str, Any]], hours: int = 12) -> Iterator[list[dict[str, Any]]]:
    """The feed in pieces, each what has landed within so many hours."""
    until = START
    last = datetime.fromisoformat(rows[-1]["landed_at"])
    while until <= last:
        begin, until = until, until + timedelta(hours=hours)
        piece = [r for r in rows if begin <= datetime.fromisoformat(r["landed_at"]) < until]
        if piece:
            yield piece


def _document(random: Random, number: int) -> Iterator[dict[str, Any]]:
    sent = START + timedelta(seconds=random.uniform(0, DAYS * 86400))
    body = {"order": {"number": f"SO-{number:06d}", "total": round(random.uniform(5, 900), 2)}}
    document = {
        "transport": "RABBITMQ",
        "document_type": random.choice(TYPES),
        "destination": None,
        "guaranteed": random.random() > 0.02,
        "uuid": None if random.random() < 0.01 else f"doc-{number:06d}",
        "track_id": None,
        "event_id": None,
        "errors_to": None,
        "document": json.dumps(body),
    }
    times = [sent]
    for share, least, most in REDELIVERIES:
        if random.random() < share:
            times.append(sent + timedelta(seconds=random.uniform(least, most)))
    for count, received in enumerate(sorted(times)):
        yield {
            "delivery_id": f"three-{number:06d}-{count}",
            "received_at": received.isoformat(),
            "landed_at": (received + _lateness(random)).isoformat(),
            "redelivery_count": count,
            **document,
        }


def _lateness(random: Random) -> timedelta:
    for share, least, most in LATENESS:
        if random.random() < share:
            return timedelta(seconds=random.uniform(least, most))
    return timedelta(seconds=random.uniform(0, 30))


if __name__ == "__main__":
    for line in three_day_feed():
        sys.stdout.write(json.dumps(line) + "\n")
