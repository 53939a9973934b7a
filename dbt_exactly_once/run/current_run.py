"""A run: what it has frozen at its start, and what it has found out since."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dbt_exactly_once.landing.landed_again import LandedAgain
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.run.publication import NEVER, Publication


@dataclass(kw_only=True)
class Run(Publication):
    """What a run has frozen at its start."""

    clock: datetime
    number: int
    publication_number: int
    consumed: dict[str, str | None]
    landed: dict[str, str | None]
    greatest_received_at: str | None
    removal_bound: str | None = None
    # what the SQL of its queue depends on, see the macro queue_facts
    queue_facts: dict[str, Any] = field(default_factory=dict)
    # what its queue was found to hold, known behind trigger_queue: the earliest received_at of the
    # deliveries that are looked up in history and their number, how many have a key that comes more
    # than once, the hashes of these keys unless they are many, and the greatest received_at
    knows_queue: bool = False
    oldest_in_queue: str | None = None
    looked_up: int | None = None
    in_chains: int = 1
    hashes_of_chains: list[int] | None = None
    latest_in_queue: str | None = None
    # of its deliveries whose trigger has a resolver: the triggers, and the days of received_at
    triggers_with_resolver: list[str] = field(default_factory=list)
    days_with_resolver: list[str] = field(default_factory=list)
    # False: a preview, which decides all and publishes nothing
    publishes: bool = True
    # the snapshots of the seeds that it reads, by their relations
    seeds: dict[str, str] = field(default_factory=dict)
    # what the session has in memory: how SQL names the relations, and the names of the copies
    in_memory: dict[str, str] = field(default_factory=dict)
    # the names of the copies that this run alone reads
    copies: list[str] = field(default_factory=list)
    # the names of the copies that have no rows
    empty: set[str] = field(default_factory=set)
    # the models of scratch tables and ledgers that this run has no rows for
    without_rows: set[str] = field(default_factory=set)
    # how many deliveries it has left in the queue (`not_taken`), `rejected`, and `left_out` because
    # no trigger takes them; how many it has `decided` and not, and how many of these suspend their
    # trigger (`suspended`); how many documents it has `opened`, and `added` to history; how many
    # hashes history knows (`known`), and how many of its entries have `expired`; the days of open
    # work (`open_days`). What is not known yet, or not at all, is left out
    found: dict[str, Any] = field(default_factory=dict)
    # the rows of queue_counts and decision_counts, as JSON
    counts: dict[str, str] = field(default_factory=dict)
    # entries of history that had expired
    removed: int = 0
    # where main of a table stands that it adds to behind publication
    effect_starts: dict[str, str] = field(default_factory=dict)
    # how the landed tables are read, by what was asked for so far
    landed_rows: dict[str, LandedRows] = field(default_factory=dict)
    # requests to take a rejected landing again, with their outcomes
    landed_again: list[LandedAgain] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def bind_removal(self, bound: str | None) -> None:
        """Freeze up to which expiry this run has history removed."""
        self.removal_bound = bound or NEVER

    def note_removed(self, entries: int) -> None:
        """Keep how many entries of history had expired."""
        self.removed = entries

    def bind_queue(
        self,
        oldest: str | None,
        looked_up: int,
        in_chains: int,
        hashes_of_chains: list[int] | None,
        latest: str | None,
        with_resolver: list[dict[str, str]],
    ) -> None:
        """Keep what the queue of this run was found to hold.

        with_resolver: the triggers and days of deliveries whose trigger has a resolver.
        """
        self.knows_queue = True
        self.oldest_in_queue = oldest
        self.looked_up = looked_up
        self.in_chains = int(in_chains)
        self.hashes_of_chains = hashes_of_chains
        self.latest_in_queue = latest
        self.triggers_with_resolver = sorted({found["trigger_name"] for found in with_resolver})
        self.days_with_resolver = sorted({found["day"] for found in with_resolver})

    def moves_event_time(self, milliseconds: float) -> bool:
        """Whether what this run takes moves event time further than so, to the second."""
        if not self.latest_in_queue or not self.greatest_received_at:
            return bool(self.latest_in_queue)
        before, now = (
            min(datetime.fromisoformat(time[:19]), self.clock)
            for time in (self.greatest_received_at, self.latest_in_queue)
        )
        return now - before > timedelta(milliseconds=milliseconds) - timedelta(seconds=1)

    def landed_now(self) -> dict[str, str]:
        """The snapshots that this run consumes, of the landed tables that have one."""
        return {name: snapshot for name, snapshot in self.landed.items() if snapshot}

    def has_no_rows_for(self, model: str) -> bool:
        """Whether a model has said that this run has no rows for it."""
        return model in self.without_rows

    def has_landed(self, table: str) -> bool:
        """Whether anything was landed in a table since the last published run."""
        return self.landed[table] is not None and self.landed[table] != self.consumed[table]
