"""What changes the ledgers outside of a run: always under the lock, and published as a run is.

Rows are removed or made anew on a branch, with a row of their own in published_runs. Compaction
changes no row: it works on main, and its row in published_runs names where that is then.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dbt_exactly_once.adapter.engine import Engine, ExactlyOnceError, literal
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.run.publication import HISTORY, RECORD, Publication, Publications, mains_of

if TYPE_CHECKING:
    from dbt_exactly_once.run.transaction import Table, Transactions

# of a table, before a partition border
REMOVAL = "delete from {} where expires_at < timestamp '{}'"
# what later runs and rebuild_history ask of old journal entries: requests and ids that were used,
# how documents ended that did not complete, and what services said before a decision
KEPT = {
    "journal_entries": (
        " and event not in ('RESUBMITTED', 'REFUSED', 'LOST', 'INTERRUPTED', 'EARLY')"
    ),
}


class Upkeep:
    """The work of `maintain`, `rebuild_history` and the removal of expired history."""

    def __init__(
        self,
        transactions: Transactions,
        publications: Publications,
        engine: Engine,
        lock_id: str,
        last: dict[str, Any],
    ) -> None:
        """lock_id: the command that holds the lock; last: the last row of published_runs."""
        self._transactions = transactions
        self._publications = publications
        self._engine = engine
        self._lock_id = lock_id
        self._last = last
        self._started = datetime.now(timezone.utc)

    @property
    def consumed(self) -> Mapping[str, str]:
        """The snapshots of the landed tables that the last published run has consumed."""
        return self._last["landed_snapshots"]

    # ---------------------------------------------------------------- publish

    def _publish(
        self,
        kind: str,
        changes: Mapping[str, str],
        before: Mapping[str, str] | None = None,
    ) -> None:
        """Change ledgers on a branch and publish them.

        changes: SQL for each ledger, with {} in place of the table; before: where main of each
        ledger was, where the change has been made there already.
        """
        mains = self._mains()
        publication = Publication(
            run_id=f"{self._lock_id}-{kind}", lock_id=self._lock_id, starts=mains
        )
        branch = publication.branch
        for name, statement in changes.items():
            relation = self._transactions.ledger(name).relation
            self._engine.rows(f"alter table {relation} create branch {branch}")
            self._engine.rows(statement.replace("{}", f"{relation}.branch_{branch}"))
        refs = self._publications.refs()
        publishes = {name: refs[name].get(branch, main) for name, main in mains.items()}
        publishes.pop(RECORD)
        self._record(kind, publication, before or mains, publishes)
        self._publications.publish(publication)

    def _record(
        self,
        kind: str,
        publication: Publication,
        starts: Mapping[str, str],
        publishes: Mapping[str, str],
    ) -> None:
        """Write the row of an upkeep: what is not its own is that of the row before it."""
        number = self._last["publication_number"] + 1
        changed = {
            "run_id": literal(publication.run_id),
            "kind": literal(kind),
            "publication_number": str(number),
            "started_at": f"timestamp '{_text(self._started)}'",
            "published_at": "current_timestamp()",
            **dict.fromkeys(("taken", "decided", "waiting", "unrouted", "rejected"), "0"),
            "decided_by_trigger": "filter(decided_by_trigger, one -> false)",
            "ledger_starts": _map(starts),
            "ledger_publishes": _map(publishes),
        }
        record = self._transactions.ledger(RECORD)
        names = [name for name, _, _ in record.columns]
        self._engine.rows(f"alter table {record.relation} create branch {publication.branch}")
        self._engine.rows(
            f"insert into {record.relation}.branch_{publication.branch} ({', '.join(names)}) "
            f"select {', '.join(changed.get(name, name) for name in names)} "
            f"from {record.relation} where publication_number = {number - 1}"
        )
        self._last = {
            **self._last,
            "run_id": publication.run_id,
            "publication_number": number,
            "ledger_starts": dict(starts),
            "ledger_publishes": dict(publishes),
        }

    def _mains(self) -> dict[str, str]:
        return {name: str(main) for name, main in mains_of(self._publications.refs()).items()}

    # ---------------------------------------------------------------- history

    def remove_expired(self) -> str:
        """Remove what the last published run has let expire; returns what it did.

        A run does so itself: there is something left where it was added behind a run.
        """
        bound = self._last["history_removed_before"]
        history = self._transactions.ledger(HISTORY).relation
        removed = count_expired(self._engine, history, bound)
        if removed:
            self._publish("removal", {HISTORY: REMOVAL.format("{}", bound)})
        return f"{removed} history entries removed that expired before {bound}"

    def rebuild_history(self, entries: str) -> str:
        """Make document_history anew from a query of the other ledgers; returns what it did.

        Entries that expired before the bound up to which the last run had history removed are left
        out.
        """
        history = self._transactions.ledger(HISTORY)
        columns = ", ".join(name for name, _, _ in history.columns)
        bound = self._last["history_removed_before"]
        rebuilt = (
            f"insert overwrite {{}} select {columns} from ({entries}) "
            f"where expires_at >= timestamp '{bound}'"
        )
        self._publish("rebuilding", {HISTORY: rebuilt})
        kept, documents, since = self._engine.rows(
            "select count(*), count(distinct trigger_name, delivery_id), "
            f"cast(min(started_at) as string) from {history.relation}"
        )[0]
        reach = f"since {since} (UTC, event time)" if since else "none is kept"
        return (
            f"document_history has {kept} entries of {documents} documents again, {reach}; "
            f"those that expired before {bound} stay removed"
        )

    # ---------------------------------------------------------------- maintain

    def maintain(self, variables: Mapping[str, Any]) -> list[str]:
        """Compact, forget old snapshots, delete files that nothing names; returns what it freed.

        variables: keep_snapshots_hours, and keep_statuses_days, keep_journal_days and
        keep_landed_days, None to keep all.
        """
        self._check_retention(variables)
        said = self._forget_old_rows(variables)
        before = self._mains()
        for name, table in self._transactions.ledgers.items():
            said += self._compact(name, table)
        # the snapshots between the published ones and these are forgotten below
        if any(main != before[name] for name, main in self._mains().items() if name != RECORD):
            self._publish("compaction", {}, before)
        now = datetime.now(timezone.utc)
        kept = timedelta(hours=float(variables["keep_snapshots_hours"]))
        older_than = now - kept
        # Iceberg refuses less than a day, since a file may be of a write that goes on
        orphans_before = now - max(kept, timedelta(days=1, minutes=1))
        for table in self._transactions.ledgers.values():
            said += self._expire(table, older_than, orphans_before)
        for name, table in self._transactions.landed.items():
            consumed = self._committed_at(table, self.consumed.get(name))
            said += self._expire(table, min(older_than, consumed or older_than), orphans_before)
        for table in self._transactions.scratch():
            said += self._expire(table, now, orphans_before)
        return said or ["nothing to compact, to forget or to delete"]

    def _check_retention(self, variables: Mapping[str, Any]) -> None:
        for name, value in variables.items():
            if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                raise ExactlyOnceError(
                    f"exactly_once: variable {name} is {value!r}: use a number, 0 or more, or null"
                )

    def _forget_old_rows(self, variables: Mapping[str, Any]) -> list[str]:
        """Whole days of statuses, journal entries and landed rows that nothing needs any more."""
        event_time = self._last["event_time"]
        if event_time is None:
            return []
        said = []
        statements = {}
        for name, column, days in (
            ("document_status", "received_at", variables["keep_statuses_days"]),
            ("journal_entries", "happened_at", variables["keep_journal_days"]),
            ("deliveries", "received_at", variables["keep_landed_days"]),
            ("trigger_executions", "recorded_at", variables["keep_landed_days"]),
        ):
            if days is None:
                continue
            table = self._transactions.ledgers.get(name) or self._transactions.landed[name]
            bound = self._engine.rows(
                f"select cast(date_trunc('day', least(timestamp '{event_time}' - make_dt_interval("
                f"{int(days)}), coalesce(min(received_at), timestamp '{event_time}'))) as string) "
                f"from (select landed_received_at as received_at from {self._undecided()})"
            )[0][0]
            condition = f"{column} < timestamp '{bound}'{KEPT.get(name, '')}"
            forgotten = int(
                self._engine.rows(f"select count(*) from {table.relation} where {condition}")[0][0]
            )
            if not forgotten:
                continue
            if name in self._transactions.landed and self._is_unread(table, condition):
                said.append(f"{name}: rows from before {bound} stay until a run has consumed them")
                continue
            statements[name] = f"delete from {{}} where {condition}"
            said.append(f"{name}: {forgotten} rows from before {bound} forgotten")
        changes = {n: sql for n, sql in statements.items() if n in self._transactions.ledgers}
        if changes:
            self._publish("retention", changes)
        for name, statement in statements.items():
            if name not in changes:
                relation = self._transactions.landed[name].relation
                self._engine.rows(statement.replace("{}", relation))
        return said

    def _is_unread(self, table: Table, condition: str) -> bool:
        """Whether no run has consumed some of the rows of a condition yet."""
        main = self._engine.refs([table.relation])[table.relation].get("main")
        rows = LandedRows.of(self._engine, table, self.consumed.get(table.name), main, {})
        return rows.way == "TOLD" or bool(
            self._engine.rows(f"select 1 from {rows.unconsumed()} where {condition} limit 1")
        )

    def _undecided(self) -> str:
        """What waits or is open still needs its landed row and its status, where it has a row."""
        ledger = self._transactions.ledger
        return (
            f"(select landed_received_at from {ledger('waiting_deliveries').relation} "
            "where reason != 'LANDED_ROW_GONE' union all "
            f"select landed_received_at from {ledger('open_documents').relation})"
        )

    def _compact(self, name: str, table: Table) -> list[str]:
        """Make few files of many; of history sorted, so that a lookup finds its key in few."""
        order = "strategy => 'sort', sort_order => 'key_hash', " if name == HISTORY else ""
        files, made = self._engine.rows(
            f"call {self._engine.catalog()}.system.rewrite_data_files("
            f"table => '{self._transactions.full_name(table)}', {order}"
            "options => map('min-input-files', '2', 'delete-file-threshold', '1'))"
        )[0][:2]
        self._engine.rows(
            f"call {self._engine.catalog()}.system.rewrite_manifests("
            f"'{self._transactions.full_name(table)}')"
        )
        return [f"{name}: {made} files made of {files}"] if files else []

    def _committed_at(self, table: Table, snapshot: str | None) -> datetime | None:
        """When a consumed snapshot was committed: what has landed since is read along the way of
        main from there, also by views, so none of it may expire."""
        found = self._engine.rows(
            f"select cast(unix_micros(committed_at) as string) from {table.relation}.snapshots "
            f"where snapshot_id = {snapshot or 0}"
        )
        return datetime.fromtimestamp(int(found[0][0]) / 1e6, timezone.utc) if found else None

    def _expire(self, table: Table, older_than: datetime, orphans_before: datetime) -> list[str]:
        """Forget snapshots that no tag names, and delete files that no snapshot names."""
        if "main" not in self._engine.refs([table.relation])[table.relation]:
            return []
        name = self._transactions.full_name(table)
        expired = self._engine.rows(
            f"call {self._engine.catalog()}.system.expire_snapshots(table => '{name}', "
            f"older_than => timestamp '{_text(older_than)}', retain_last => 1)"
        )[0]
        deleted = sum(int(count or 0) for count in expired)
        orphans = len(
            self._engine.rows(
                f"call {self._engine.catalog()}.system.remove_orphan_files("
                f"table => '{name}', older_than => timestamp '{_text(orphans_before)}')"
            )
        )
        said = []
        if deleted:
            said.append(f"{table.name}: {deleted} files of old snapshots deleted")
        if orphans:
            said.append(f"{table.name}: {orphans} files of killed runs deleted")
        return said


def _text(time: datetime) -> str:
    return time.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")


def _map(pairs: Mapping[str, str]) -> str:
    """A map of SQL."""
    listed = ", ".join(f"{literal(key)}, {literal(value)}" for key, value in pairs.items())
    return f"map({listed})"


def count_expired(engine: Engine, history: str, bound: str) -> int:
    """How many entries of history expired before a partition border."""
    count = f"select count(*) from {history} where expires_at < timestamp '{bound}'"
    return int(engine.rows(count)[0][0])
