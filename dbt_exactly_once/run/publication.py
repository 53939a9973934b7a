"""How the ledgers move: by publications alone, each with a row of its own in published_runs.

A publication is a run or an upkeep. It writes to a branch, and its row names for each ledger the
snapshot it starts from and the one it publishes. `main` of published_runs moves to the branch
first: from then on the publication has happened, and whatever stops it is finished by the next
command that writes, from that row. `main` of a ledger is therefore where the last row has it, or
behind it by snapshots of operation `replace`, with which Iceberg's compaction changes no row.
Anything else was done by somebody else, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.lake_version import RECORD
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.lock import RunLock
from dbt_exactly_once.run.tables import Tables

HISTORY = "history_ledger"
BRANCH_PREFIX = "run_"
# a time before all others: up to it nothing has expired
NEVER = "0001-01-01 00:00:00"


@dataclass(kw_only=True)
class Publication:
    """A change of the ledgers that is published whole."""

    run_id: str
    # the command under whose lock it is made
    lock_id: str
    # where main of each ledger must still be when it is published
    starts: dict[str, str]
    published: bool = False

    @property
    def branch(self) -> str:
        """The branch it writes to; the id is part of it, so that no later one can use it."""
        return BRANCH_PREFIX + self.run_id.replace("-", "_")


class Publications:
    """The rows of published_runs, and the ledgers as these have them."""

    def __init__(self, engine: Engine, tables: Tables, lock: RunLock) -> None:
        self._engine = engine
        self._tables = tables
        self._ledgers = tables.ledgers
        self._lock = lock

    def refs(self) -> dict[str, dict[str, str]]:
        """Branches and tags of each ledger."""
        return self._tables.refs(self._ledgers)

    def last(self) -> dict[str, Any] | None:
        """The last row of published_runs, None where nothing is published yet."""
        record = self._tables.record.relation
        # Iceberg knows the greatest number from its statistics, and by it the one file to read
        number = self._engine.rows(f"select max(publication_number) from {record}")[0][0]
        if number is None:
            return None
        run_id, run_number, greatest, event_time, removed_before, landed, starts, publishes = (
            self._engine.rows(
                "select run_id, run_number, cast(greatest_received_at as string), "
                "cast(event_time as string), cast(history_removed_before as string), "
                "to_json(landed_snapshots), to_json(ledger_starts), to_json(ledger_publishes) "
                f"from {record} where publication_number = {number}"
            )[0]
        )
        return {
            "run_id": run_id,
            "run_number": int(run_number),
            "publication_number": int(number),
            "greatest_received_at": greatest,
            "event_time": event_time,
            "history_removed_before": removed_before,
            "landed_snapshots": json.loads(landed or "{}"),
            "ledger_starts": json.loads(starts or "{}"),
            "ledger_publishes": json.loads(publishes or "{}"),
        }

    def as_published(
        self, but: str | None = None
    ) -> tuple[dict[str, Any] | None, dict[str, str | None]]:
        """The last row of published_runs, and main of each ledger, which is as that row has it.

        What was published is finished first. but: the ledger that may be missing or changed.
        """
        last = self.last()
        mains = self._finish(last, but)
        self._check(last, mains, but)
        return last, mains

    def snapshots(self, publication: Publication, with_record: bool = False) -> dict[str, str]:
        """What each ledger publishes: the branch, or main where nothing was written to it."""
        refs = self.refs()
        return {
            name: refs[name].get(publication.branch, publication.starts[name])
            for name in self._ledgers
            if with_record or name != RECORD
        }

    # ---------------------------------------------------------------- publish

    def publish(self, publication: Publication) -> None:
        """Make a branch the truth, `published_runs` first.

        Raises ExactlyOnceError where the lock is lost, or a ledger has moved meanwhile.
        """
        refs = self.refs()
        mains = mains_of(refs)
        moved = [name for name, start in publication.starts.items() if mains[name] != start]
        if moved or self._lock.holder() != publication.lock_id:
            raise ExactlyOnceError(
                f"exactly_once: run {publication.run_id} lost its "
                f"{'ground in ' + ', '.join(moved) if moved else 'lock'} to another run and "
                "publishes nothing; start it again"
            )
        for name in self._record_first():
            if publication.branch in refs[name]:
                self._engine.fast_forward(self._ledgers[name].relation, publication.branch)
                publication.published = True

    def _record_first(self) -> list[str]:
        """The ledgers in the order in which they are published."""
        return sorted(self._ledgers, key=lambda name: name != RECORD)

    # ---------------------------------------------------------------- recover

    def _finish(self, last: dict[str, Any] | None, but: str | None = None) -> dict[str, str | None]:
        """Finish a publication that was cut short and drop the branches of dead runs.

        Moves the ledgers that are left behind, from the row alone. Returns where main of each
        ledger is then.
        """
        refs = self.refs()
        # made by a command that was killed before it gave them a first snapshot
        unwritten = [self._ledgers[name] for name, found in refs.items() if "main" not in found]
        for table in unwritten:
            self._engine.rows(table.no_rows(table.relation))
        refs = self.refs() if unwritten else refs
        mains = mains_of(refs)
        for name, published in (last["ledger_publishes"] if last else {}).items():
            start = last["ledger_starts"].get(name)
            if (
                name in mains
                and name != but
                and published not in (mains[name], start)
                and self._is_at(name, start, mains[name])
            ):
                self._engine.rows(
                    f"call {self._engine.catalog()}.system.set_current_snapshot("
                    f"'{self._tables.full_name(self._ledgers[name])}', {published})"
                )
                mains[name] = published
        for name in self._record_first():
            for branch in refs[name]:
                if branch.startswith(BRANCH_PREFIX):
                    self._engine.drop_branch(self._ledgers[name].relation, branch)
        return mains

    def _check(
        self,
        last: dict[str, Any] | None,
        mains: Mapping[str, str | None],
        but: str | None = None,
    ) -> None:
        """Refuse ledgers that are not as the last row of published_runs has them."""
        if last is None:
            filled = [
                table.name
                for table in self._ledgers.values()
                if self._engine.rows(f"select 1 from {table.relation} limit 1")
            ]
            if filled:
                raise ExactlyOnceError(
                    f"exactly_once: {filled[0]} has rows but published_runs has none: the record "
                    "of what was consumed is lost. Restore it, or start over with `dbt "
                    "run-operation reset_state --args '{really: true}'`"
                )
            return
        for name, published in last["ledger_publishes"].items():
            if name not in self._ledgers or name == but:
                continue
            relation = self._ledgers[name].relation
            if not self._is_at(name, published, mains[name]):
                raise ExactlyOnceError(
                    f"exactly_once: {relation} is not as run {last['run_id']} published it "
                    f"(snapshot {published}): somebody has changed or restored it. Bring it "
                    f"back with `call {self._engine.catalog()}.system.set_current_snapshot("
                    f"'{relation}', {published})`{or_rebuild(name)}, or start over with `dbt "
                    "run-operation reset_state --args '{really: true}'`"
                )

    def _is_at(self, name: str, snapshot: str | None, main: str | None) -> bool:
        """Whether main of a ledger holds the rows of a snapshot: is there, or was compacted."""
        if main == snapshot:
            return True
        snapshots = {
            row[0]: (row[1], row[2])
            for row in self._engine.rows(
                "select cast(snapshot_id as string), cast(parent_id as string), operation "
                f"from {self._ledgers[name].relation}.snapshots"
            )
        }
        while main != snapshot:
            main, operation = snapshots.get(str(main), (None, None))
            if operation != "replace":
                return False
        return True


def mains_of(refs: Mapping[str, Mapping[str, str]]) -> dict[str, str | None]:
    """Snapshot of main of each table, None where nothing was ever written."""
    return {name: found.get("main") for name, found in refs.items()}


def or_rebuild(*lost: str) -> str:
    """One more remedy, where history alone is lost."""
    return ", rebuild it with `dbt run-operation rebuild_history`" if lost == (HISTORY,) else ""
