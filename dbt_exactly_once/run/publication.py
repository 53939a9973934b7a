"""Ledgers change only by publications, each with a row of its own in published_runs.

A publication is a run or an upkeep. It writes to a branch, and its row names for each ledger the
snapshot it starts from and the one it publishes. `main` of published_runs moves to the branch
first: from then on the publication has happened. If it is interrupted, the next command that writes
finishes it from that row. So `main` of a ledger is the snapshot in the last row, or is separated
from it only by later snapshots of operation `replace`: Iceberg's compaction, which changes no row.
Anything else was done by somebody else, and is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_exactly_once.adapter.engine import Engine, appended_between
from dbt_exactly_once.adapter.lake_version import RECORD
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.lock import RunLock
from dbt_exactly_once.run.tables import Tables

HISTORY = "history_ledger"
BRANCH_PREFIX = "run_"
# a time before all others: up to it nothing has expired
NEVER = "0001-01-01 00:00:00"
# by the relation of published_runs: a snapshot of it, and the last row that it has
_last_rows: dict[str, tuple[str, dict[str, Any]]] = {}


@dataclass(kw_only=True)
class Publication:
    """A change of the ledgers that is published as a whole."""

    run_id: str
    # the command under whose lock it is made
    lock_id: str
    # the snapshot that main of each ledger must still have when it is published
    starts: dict[str, str]
    # the ledgers that it has begun to write; each has its branch from then on
    written: set[str] = field(default_factory=set)
    published: bool = False
    # relations of the rows that it has appended to ledgers, as they were asked for
    appended: dict[str, str] = field(default_factory=dict)
    # its row in published_runs, if it has read it
    row: dict[str, Any] | None = None

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
        # lines for the log of the command that has recovered a publication
        self.messages: list[str] = []

    def refs(self) -> dict[str, dict[str, str]]:
        """Branches and tags of each ledger."""
        return self._tables.refs(self._ledgers)

    def last(self) -> dict[str, Any] | None:
        """The last row of published_runs, None if nothing is published yet.

        A process reads it once for each snapshot, and not at all if it has published it.
        """
        record = self._tables.record.relation
        main = self._record_refs().get("main")
        known, row = _last_rows.get(record, (None, None))
        if main is not None and main == known:
            return row
        # Iceberg has the greatest number in its statistics, which also name the one file to read
        number = self._engine.rows(f"select max(publication_number) from {record}")[0][0]
        return None if number is None else self.row(int(number))

    def row(self, number: int) -> dict[str, Any]:
        """The row of published_runs that has this number, on the branch that the session reads."""
        run_id, run_number, greatest, event_time, removed_before, *maps = self._engine.rows(
            "select run_id, run_number, cast(greatest_received_at as string), "
            "cast(event_time as string), cast(history_removed_before as string), "
            "to_json(landed_snapshots), to_json(ledger_starts), to_json(ledger_publishes), "
            "to_json(struct(taken, decided, waiting, unrouted, rejected, decided_by_trigger)) "
            f"from {self._tables.record.relation} where publication_number = {number}"
        )[0]
        landed, starts, publishes, counts = (json.loads(text or "{}") for text in maps)
        return {
            "run_id": run_id,
            "run_number": int(run_number),
            "publication_number": number,
            "greatest_received_at": greatest,
            "event_time": event_time,
            "history_removed_before": removed_before,
            "landed_snapshots": landed,
            "ledger_starts": starts,
            "ledger_publishes": publishes,
            "counts": counts,
        }

    def as_published(
        self, lock_id: str, but: str | None = None
    ) -> tuple[dict[str, Any] | None, dict[str, str | None]]:
        """The last row of published_runs, and main of each ledger, which is as that row has it.

        An interrupted publication is finished first. One that has not happened no longer can: a
        commit of a dead run that is still on its way to published_runs finds its branch gone.
        lock_id: the command that holds the lock; but: the ledger that may be missing or changed.
        """
        self._drop_branches(lock_id, {RECORD: self._record_refs()})
        last = self.last()
        refs = self._finish(last, but)
        self._drop_branches(lock_id, {name: refs[name] for name in refs if name != RECORD})
        mains = mains_of(refs)
        self._check(last, mains, but)
        return last, mains

    def snapshots(self, publication: Publication, with_record: bool = False) -> dict[str, str]:
        """The snapshot that each ledger publishes: the branch's, or main's if it has no branch."""
        refs = self.refs()
        return {
            name: refs[name].get(publication.branch, publication.starts[name])
            for name in self._ledgers
            if with_record or name != RECORD
        }

    def appended(self, publication: Publication, relation: str) -> str:
        """A relation of what a publication has appended to a ledger, once that is written.

        relation: that of the ledger; any other is returned as it is.
        """
        for name, ledger in self._ledgers.items():
            if ledger.relation == relation and relation not in publication.appended:
                start = publication.starts[name]
                end = self._tables.refs({name: ledger})[name].get(publication.branch, start)
                publication.appended[relation] = appended_between(relation, start, end)
        return publication.appended.get(relation, relation)

    # ---------------------------------------------------------------- publish

    def publish(self, publication: Publication) -> None:
        """Move main of each written ledger to its branch, `published_runs` first.

        Raises ExactlyOnceError if the lock is lost, or a ledger or its branch has moved meanwhile.
        """
        refs = self.refs()
        mains = mains_of(refs)
        lost = {name for name, start in publication.starts.items() if mains[name] != start}
        lost |= {name for name in publication.written if publication.branch not in refs[name]}
        if lost or self._lock.holder() != publication.lock_id:
            raise ExactlyOnceError(
                f"exactly_once: run {publication.run_id} lost its "
                f"{'ground in ' + ', '.join(sorted(lost)) if lost else 'lock'} to another run and "
                "publishes nothing; start it again"
            )
        for name in self._record_first():
            if publication.branch in refs[name]:
                self._move_main(name, publication.branch, refs[name][publication.branch])
                publication.published = True
        if publication.row is not None:
            snapshot = refs[RECORD][publication.branch]
            _last_rows[self._tables.record.relation] = snapshot, publication.row

    def forget(self, publication: Publication) -> bool:
        """Drop the branches of a publication that has not happened; returns False if it has.

        The branch of published_runs is dropped first: from then on no commit that is still on its
        way can publish. If one already has, the other branches stay for the next command.
        """
        record = self._record_refs()
        snapshot = record.get(publication.branch)
        self._engine.drop_branch(self._tables.record.relation, publication.branch)
        main = self._record_refs().get("main")
        if main != publication.starts[RECORD] and snapshot in (None, main):
            return False
        for name in self._ledgers:
            if name != RECORD:
                self._engine.drop_branch(self._ledgers[name].relation, publication.branch)
        return True

    def _move_main(self, name: str, branch: str, snapshot: str) -> None:
        """Move main of a ledger to a branch; an error is ignored if main has moved all the same."""
        try:
            self._engine.fast_forward(self._ledgers[name].relation, branch)
        except Exception:
            found = self._tables.refs({name: self._ledgers[name]})[name]
            if found.get("main") != snapshot:
                raise

    def _record_refs(self) -> dict[str, str]:
        return self._tables.refs({RECORD: self._tables.record})[RECORD]

    def _record_first(self) -> list[str]:
        """The ledgers in the order in which they are published."""
        return sorted(self._ledgers, key=lambda name: name != RECORD)

    # ---------------------------------------------------------------- recover

    def _finish(
        self, last: dict[str, Any] | None, but: str | None = None
    ) -> dict[str, dict[str, str]]:
        """Finish an interrupted publication.

        Moves the ledgers that have not moved yet, by the row alone. Returns branches and tags of
        each ledger afterwards.
        """
        refs = self.refs()
        # ledgers of a command that was killed before it gave them a first snapshot
        unwritten = [self._ledgers[name] for name, found in refs.items() if "main" not in found]
        for table in unwritten:
            self._engine.commit_no_rows(table.relation)
        refs = self.refs() if unwritten else refs
        behind = self._behind(last, refs, but) if last else {}
        for name, published in behind.items():
            self._engine.rows(
                f"call {self._engine.catalog()}.system.set_current_snapshot("
                f"'{self._tables.full_name(self._ledgers[name])}', {published})"
            )
            refs[name]["main"] = published
        if last and behind:
            self.messages.append(
                f"the publication of run {last['run_id']} had been cut off and is finished: "
                f"{', '.join(behind)}"
            )
        return refs

    def _behind(
        self, last: dict[str, Any], refs: Mapping[str, Mapping[str, str]], but: str | None = None
    ) -> dict[str, str]:
        """The ledgers that the last publication has not moved yet, with what it publishes."""
        return {
            name: published
            for name, published in last["ledger_publishes"].items()
            if name in refs
            and name != but
            and published not in (refs[name].get("main"), last["ledger_starts"].get(name))
            and self._is_at(name, last["ledger_starts"].get(name), refs[name].get("main"))
        }

    def refuse_half(self) -> None:
        """For a command that only reads: refuse ledgers of which a half is published."""
        last = self.last()
        there = {
            name: table
            for name, table in self._ledgers.items()
            if self._engine.properties(table.relation) is not None
        }
        behind = self._behind(last, self._tables.refs(there)) if last else {}
        if last and behind:
            raise ExactlyOnceError(
                f"exactly_once: run {last['run_id']} is being published, or was cut off in it: "
                f"{', '.join(sorted(behind))} have not moved yet. If no run is at work, start the "
                "next one, which moves them; then start this command again"
            )

    def _drop_branches(self, lock_id: str, refs: Mapping[str, Mapping[str, str]]) -> None:
        """Drop the branches of dead runs; raises if the lock is lost: another run may own them."""
        found = [(name, b) for name in refs for b in refs[name] if b.startswith(BRANCH_PREFIX)]
        if found and self._lock.holder() != lock_id:
            raise ExactlyOnceError(
                f"exactly_once: {lock_id} has lost its lock to another run before it finished what "
                "was published; start it again"
            )
        for name, branch in found:
            self._engine.drop_branch(self._ledgers[name].relation, branch)

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
        """Whether main of a ledger has the rows of a snapshot: is at it, or was compacted since."""
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
    """Snapshot of main of each table, None if nothing was ever written."""
    return {name: found.get("main") for name, found in refs.items()}


def or_rebuild(*lost: str) -> str:
    """One more remedy, if only history is lost."""
    return ", rebuild it with `dbt run-operation rebuild_history`" if lost == (HISTORY,) else ""
