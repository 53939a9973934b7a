"""Changes of the ledgers outside of a run: always under the lock, and published as a run is.

Rows are removed, added or rebuilt on a branch, and each change has its own row in published_runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from dbt_exactly_once.adapter.engine import literal, time_literal
from dbt_exactly_once.run.publication import HISTORY, NEVER, RECORD, Publication, mains_of
from dbt_exactly_once.run.state import State

IMPORT = "import"
STATUS = "document_status"
# the number of entries in rows of history_ledger
ENTRIES = "count_if(has_processing) + count_if(has_completed)"
# before the first publication: nothing is consumed, no history is removed
BEFORE_ALL: dict[str, Any] = {
    "run_id": None,
    "run_number": 0,
    "publication_number": 0,
    "greatest_received_at": None,
    "event_time": None,
    "history_removed_before": NEVER,
    "landed_snapshots": {},
    "ledger_starts": {},
    "ledger_publishes": {},
}


class Upkeep:
    """Changes of the ledgers by a command that holds the lock."""

    def __init__(self, state: State, lock_id: str, last: dict[str, Any]) -> None:
        """lock_id: the command that holds the lock; last: the last row of published_runs."""
        self._tables = state.tables
        self._publications = state.publications
        self._engine = state.engine
        self._lock_id = lock_id
        self._last = last
        self._started = datetime.now(timezone.utc)

    @classmethod
    def of_last(cls, state: State, lock_id: str, but: str | None = None) -> Upkeep:
        """Upkeep after the last publication; it starts as a run does, see
        Publications.as_published."""
        last, _ = state.publications.as_published(lock_id, but)
        return cls(state, lock_id, last or BEFORE_ALL)

    @property
    def is_first(self) -> bool:
        """Whether nothing is published yet."""
        return not self._last["publication_number"]

    @property
    def consumed(self) -> Mapping[str, str]:
        """The snapshots of the landed tables that the last published run has consumed."""
        return self._last["landed_snapshots"]

    @property
    def event_time(self) -> str | None:
        """The event time of the last published run."""
        return self._last["event_time"]

    @property
    def removed_before(self) -> str:
        """The expiry up to which the last published run had history removed.

        Before any delivery nothing has expired, though earlier versions recorded another bound.
        """
        has_time = self._last["greatest_received_at"] is not None
        return self._last["history_removed_before"] if has_time else NEVER

    # ---------------------------------------------------------------- publish

    def publish(
        self,
        kind: str,
        changes: Mapping[str, str],
        before: Mapping[str, str] | None = None,
    ) -> None:
        """Change ledgers on a branch and publish them.

        changes: SQL for each ledger, with {table} in place of it; before: main of each ledger
        before the change, if that has been made on main already.
        """
        mains = self.mains()
        publication = Publication(
            run_id=self._next_id(kind),
            lock_id=self._lock_id,
            starts=mains,
            written={RECORD, *changes},
        )
        branch = publication.branch
        for name, statement in changes.items():
            relation = self._tables.ledgers[name].relation
            self._engine.rows(f"alter table {relation} create branch {branch}")
            self._engine.rows(statement.replace("{table}", f"{relation}.branch_{branch}"))
        refs = self._publications.refs()
        publishes = {name: refs[name].get(branch, main) for name, main in mains.items()}
        publishes.pop(RECORD)
        self._record(kind, publication, before or mains, publishes)
        self._publications.publish(publication)

    def was_done_today(self) -> bool:
        """Whether ledgers were compacted in the last 24 hours."""
        return bool(
            self._engine.rows(
                f"select 1 from {self._tables.record.relation} where kind = 'compaction' "
                "and published_at > current_timestamp() - interval 1 day limit 1"
            )
        )

    def record_compaction(self) -> None:
        """Record main of ledgers that were compacted since the last row of published_runs."""
        published = self._last["ledger_publishes"]
        mains = self.mains()
        before = {name: published.get(name, main) for name, main in mains.items()}
        if before != mains:
            self.publish("compaction", {}, before)

    def _next_id(self, kind: str) -> str:
        """The id of the next publication; a command may make several of a kind."""
        return f"{self._lock_id}-{kind}-{self._last['publication_number'] + 1}"

    def _record(
        self,
        kind: str,
        publication: Publication,
        starts: Mapping[str, str],
        publishes: Mapping[str, str],
    ) -> None:
        """Write the row of an upkeep: what it does not set is copied from the row before it."""
        number = self._last["publication_number"] + 1
        changed = {
            "run_id": literal(publication.run_id),
            "kind": literal(kind),
            "publication_number": str(number),
            "started_at": time_literal(self._started),
            "published_at": "current_timestamp()",
            **dict.fromkeys(("taken", "decided", "waiting", "unrouted", "rejected"), "0"),
            "decided_by_trigger": "filter(decided_by_trigger, one -> false)",
            "ledger_starts": _map(starts),
            "ledger_publishes": _map(publishes),
        }
        record = self._tables.record
        names = [name for name, _, _ in record.columns]
        before = f"{record.relation} where publication_number = {number - 1}"
        if self.is_first:
            before = f"(select 1) left join {record.relation} on false"
            changed["run_number"] = "0"
            changed["history_removed_before"] = f"timestamp '{NEVER}'"
            changed["landed_snapshots"] = "map()"
        self._engine.rows(f"alter table {record.relation} create branch {publication.branch}")
        self._engine.rows(
            f"insert into {record.relation}.branch_{publication.branch} ({', '.join(names)}) "
            f"select {', '.join(changed.get(name, name) for name in names)} "
            f"from {before}"
        )
        self._last = {
            **self._last,
            "run_id": publication.run_id,
            "publication_number": number,
            "ledger_starts": dict(starts),
            "ledger_publishes": dict(publishes),
        }

    def mains(self) -> dict[str, str]:
        """The snapshot of main of each ledger."""
        return {name: str(main) for name, main in mains_of(self._publications.refs()).items()}

    # ---------------------------------------------------------------- history

    def remove_expired(self, expired: str) -> str:
        """Remove what the last published run has let expire; returns what it did.

        A run does so itself; only entries that were added after a run can be left. expired: the
        condition for it, with {bound} in place of a time.
        """
        bound = self.removed_before
        condition = expired.replace("{bound}", bound)
        history = self._tables.ledgers[HISTORY].relation
        count = f"select {ENTRIES} from {history} where {condition}"
        removed = int(self._engine.rows(count)[0][0])
        if removed:
            self.publish("removal", {HISTORY: f"delete from {{table}} where {condition}"})
        return f"{removed} history entries removed that expired before {bound}"

    def rebuild_history(self, entries: str) -> str:
        """Rebuild history_ledger from a query of the other ledgers; returns what it did.

        Entries that expired before the bound up to which the last run had history removed are left
        out. Entries that no other ledger has are kept: those of imports, and of documents whose
        status was deleted.
        """
        history = self._tables.ledgers[HISTORY]
        columns = history.column_list
        bound = self.removed_before
        record = self._tables.record.relation
        imports = [
            literal(row[0])
            for row in self._engine.rows(f"select run_id from {record} where kind = '{IMPORT}'")
        ]
        imported = f"run_id in ({', '.join(imports) or 'null'})"
        rebuilt = (
            f"insert overwrite {{table}} select {columns} from (select {columns} from ({entries}) "
            f"union all select {columns} from {history.relation} as kept "
            f"left semi join {record} as runs on kept.run_id = runs.run_id "
            f"left anti join {self._tables.ledgers[STATUS].relation} as statuses "
            "on kept.delivery_id = statuses.delivery_id "
            "and kept.trigger_name = statuses.trigger_name) "
            f"where expires_at >= timestamp '{bound}'"
        )
        self.publish("rebuilding", {HISTORY: rebuilt})
        kept, documents, since, of_imports = self._engine.rows(
            f"select {ENTRIES}, count(distinct trigger_name, delivery_id), "
            f"cast(min(started_at) as string), count_if({imported}) from {history.relation}"
        )[0]
        reach = f"since {since} (UTC, event time)" if since else "none is kept"
        report = (
            f"document_history has {kept} entries of {documents} documents again, {reach}; "
            f"those that expired before {bound} stay removed"
        )
        if imports:
            report += (
                f"; {of_imports} of these documents were imported: what history had lost of those "
                "comes back with import_history alone, so call it again before the next run"
            )
        return report

    def add_history(self, entries: str, since: str, piece: str) -> int:
        """Publish a piece of an import; returns how many documents it has added.

        entries: the query that gives its rows, see macros/operations/import_history.sql; since:
        the first day of the piece; piece: the condition that chooses it.
        """
        history = self._tables.ledgers[HISTORY]
        columns = history.column_list
        values = {
            "since": since,
            "piece": piece,
            "history": history.relation,
            "run_id": self._next_id(IMPORT),
            "number": self._last["publication_number"] + 1,
        }
        for name, value in values.items():
            entries = entries.replace(f"{{{name}}}", str(value))
        added = f"insert into {{table}} ({columns}) select {columns} from ({entries})"
        self.publish(IMPORT, {HISTORY: added})
        rows = self._engine.rows(
            f"select coalesce(max(cast(summary['added-records'] as bigint)), 0) "
            f"from {history.relation}.snapshots "
            f"where snapshot_id = {self._last['ledger_publishes'][HISTORY]} "
            f"and snapshot_id != {self._last['ledger_starts'][HISTORY]}"
        )[0][0]
        return int(rows)


def _map(pairs: Mapping[str, str]) -> str:
    """A SQL expression for a map."""
    listed = ", ".join(f"{literal(key)}, {literal(value)}" for key, value in pairs.items())
    return f"map({listed})"
