"""A run: what it has frozen at its start, and what it has found out since."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from dbt_exactly_once.landing.landed_again import LandedAgain
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.run.publication import Publication


@dataclass(kw_only=True)
class Run(Publication):
    """What a run has frozen at its start."""

    clock: datetime
    number: int
    publication_number: int
    consumed: dict[str, str | None]
    landed: dict[str, str | None]
    greatest_received_at: str | None
    # what the SQL of its queue depends on, see the macro queue_facts
    queue_facts: dict[str, Any] = field(default_factory=dict)
    # False: a preview, which decides all and publishes nothing
    publishes: bool = True
    # the snapshots of the seeds that it reads, by their relations
    seeds: dict[str, str] = field(default_factory=dict)
    # the copies in memory: the relation as SQL names it, and the name of its copy
    in_memory: dict[str, str] = field(default_factory=dict)
    # by the name of a copy: what was found out about its rows, also by earlier runs that read it
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)
    # the names of the copies that this run alone reads
    copies: list[str] = field(default_factory=list)
    # the names of copies that later runs may read too, if nobody else had a hand in their tables
    unproven_copies: list[str] = field(default_factory=list)
    # the names of the copies that have no rows
    empty: set[str] = field(default_factory=set)
    # the models of scratch tables and ledgers that this run has no rows for
    without_rows: set[str] = field(default_factory=set)
    # by model: a checksum of all that its rows follow from. As long as it stays, so do the rows
    rows_follow_from: dict[str, str] = field(default_factory=dict)
    # what macros have found out since, by name; a name is missing until its value is known:
    # - queue: how many deliveries stay in it (`not_taken`), are `rejected`, or are `left_out`
    #   because no trigger takes them; the greatest received_at (`latest_in_queue`)
    # - deliveries that are looked up in history: their number (`looked_up`), their earliest
    #   received_at (`oldest_in_queue`), how many have a key that comes more than once
    #   (`in_chains`), and the hashes of these keys unless they are many (`hashes_of_chains`)
    # - deliveries whose trigger has a resolver: their triggers (`triggers_with_resolver`) and
    #   days (`days_with_resolver`)
    # - history: how many hashes of the queue are `known`, up to which expiry it is removed
    #   (`removal_bound`), how many of its entries have `expired`, and how many were `removed`
    # - decisions: how many deliveries are `decided` and `undecided`, how many of the undecided have
    #   status SUSPENDED (`suspended`), how many documents are `opened` and `added` to history
    # - the days of open work (`open_days`)
    # - the rows of the seed trigger_conditions (`conditions`)
    found: dict[str, Any] = field(default_factory=dict)
    # queue_counts and decision_counts as a list (`rows`) and as a relation, by the counted model
    counts: dict[str, dict[str, Any]] = field(default_factory=dict)
    # for each table that the run adds to after publication: the snapshot of its main before
    effect_starts: dict[str, str] = field(default_factory=dict)
    # how the landed tables are read; has those that were asked for so far
    landed_rows: dict[str, LandedRows] = field(default_factory=dict)
    # requests to land a rejected row again, with their outcomes
    landed_again: list[LandedAgain] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def moves_event_time(self, milliseconds: float) -> bool:
        """Whether this run's deliveries move event time by more than this, to the second."""
        latest = self.found.get("latest_in_queue")
        if not latest or not self.greatest_received_at:
            return bool(latest)
        before, now = (
            min(datetime.fromisoformat(time[:19]), self.clock)
            for time in (self.greatest_received_at, latest)
        )
        return now - before > timedelta(milliseconds=milliseconds) - timedelta(seconds=1)

    def landed_now(self) -> dict[str, str]:
        """The snapshots up to which this and earlier runs consume the landed tables.

        That of a table which was dropped and has no rows yet is the lost one: so the run that finds
        rows knows that some may be consumed.
        """
        found = {name: snapshot or self.consumed[name] for name, snapshot in self.landed.items()}
        return {name: snapshot for name, snapshot in found.items() if snapshot}

    @property
    def consumes_more(self) -> bool:
        """Whether any landed table has changed since the last published run."""
        return self.landed_now() != {k: v for k, v in self.consumed.items() if v}

    def has_landed(self, table: str) -> bool:
        """Whether anything was landed in a table since the last published run."""
        return self.landed[table] is not None and self.landed[table] != self.consumed[table]
