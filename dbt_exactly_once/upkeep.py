"""What keeps the ledgers in shape outside of a run's own transaction, always under its lock.

A run accepts a ledger only as the last run published it, or as upkeep has left it: Iceberg's own
rewriting makes snapshots of operation `replace`, which change no row; everything else is made on a
branch, noted in a property of the table and published from there, so that main is never at a
snapshot that is neither published nor noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from dbt_exactly_once.engine import Engine, ExactlyOnceError

if TYPE_CHECKING:
    from dbt_exactly_once.transaction import Table, Transactions

NOTE = "exactly-once.upkeep"
# a branch like that of a run: the next run drops it where it was left
UPKEEP_BRANCH = "run_upkeep"
HISTORY = "document_history"


class Upkeep:
    """The work of `maintain`, `rebuild_history` and the removal of expired history."""

    def __init__(self, transactions: Transactions, engine: Engine) -> None:
        self._transactions = transactions
        self._engine = engine

    def change(self, table: Table, published: str, statement: str) -> None:
        """Change a ledger so that the next run knows it was meant.

        published: the snapshot that the last run's record names for it; statement: SQL with {} in
        place of the table.
        """
        before = self._main(table)
        self._engine.drop_branch(table.relation, UPKEEP_BRANCH)
        self._engine.rows(f"alter table {table.relation} create branch {UPKEEP_BRANCH}")
        self._engine.rows(statement.format(f"{table.relation}.branch_{UPKEEP_BRANCH}"))
        after = self._engine.refs([table.relation])[table.relation][UPKEEP_BRANCH]
        self._note(table, published, before, after)
        self._engine.fast_forward(table.relation, UPKEEP_BRANCH)

    def _main(self, table: Table) -> str:
        return self._engine.refs([table.relation])[table.relation]["main"]

    def _note(self, table: Table, published: str, *mains: str) -> None:
        """Say at which snapshots main may be since that one was published."""
        self._engine.rows(
            f"alter table {table.relation} set tblproperties "
            f"('{NOTE}' = '{published}:{','.join(mains)}')"
        )

    def explains(self, table: Table, published: str, main: str | None) -> bool:
        """Whether upkeep has brought a ledger from its published snapshot to main."""
        noted_for, _, noted = (
            (self._engine.properties(table.relation) or {}).get(NOTE, "").partition(":")
        )
        accepted = {published, *(noted.split(",") if noted_for == published else ())}
        snapshots = {
            row[0]: (row[1], row[2])
            for row in self._engine.rows(
                "select cast(snapshot_id as string), cast(parent_id as string), operation "
                f"from {table.relation}.snapshots"
            )
        }
        while main not in accepted:
            parent, operation = snapshots.get(str(main), (None, None))
            if operation != "replace":
                return False
            main = parent
        return True

    def remove_expired(self, published: str, bound: str) -> int:
        """Remove the entries of history that expired before a partition border; returns how many.

        The trigger states that the run has published say so already: a kill in between leaves
        entries that are known as removed, never the other way round.
        """
        history = self._transactions.ledger(HISTORY)
        condition = f"expires_at < timestamp '{bound}'"
        counted = f"select count(*) from {history.relation} where {condition}"
        removed = int(self._engine.rows(counted)[0][0])
        if removed:
            self.change(history, published, f"delete from {{}} where {condition}")
        return removed

    # ---------------------------------------------------------------- rebuild

    def rebuild_history(self, published: Mapping[str, Any], entries: str) -> str:
        """Make document_history anew from a query of the other ledgers; returns what it did.

        published: the record of the last published run. Entries that expired before the bound up
        to which that run had history removed are left out.
        """
        history = self._transactions.ledger(HISTORY)
        columns = ", ".join(name for name, _, _ in history.columns)
        self.change(
            history,
            str(published["ledger_publishes"][HISTORY]),
            f"insert overwrite {{}} select {columns} from ({entries}) "
            f"where expires_at >= timestamp '{published['history_removed_before']}'",
        )
        kept, documents, since = self._engine.rows(
            "select count(*), count(distinct trigger_name, delivery_id), "
            f"cast(min(started_at) as string) from {history.relation}"
        )[0]
        reach = f"since {since} (UTC, event time)" if since else "none is kept"
        return (
            f"document_history has {kept} entries of {documents} documents again, {reach}; "
            f"those that expired before {published['history_removed_before']} stay removed"
        )

    # ---------------------------------------------------------------- maintain

    def maintain(self, published: Mapping[str, Any], variables: Mapping[str, Any]) -> list[str]:
        """Compact, forget old snapshots, delete files that nothing names; returns what it freed.

        variables: keep_snapshots_hours, and keep_statuses_days, keep_journal_days and
        keep_landed_days, None to keep all.
        """
        self._check_retention(variables)
        said = self._forget_old_rows(published, variables)
        for name, table in self._transactions.ledgers.items():
            said += self._compact(name, table)
            # of the way from the published snapshot to this one nothing is kept
            if name in published["ledger_publishes"]:
                self._note(table, published["ledger_publishes"][name], self._main(table))
        now = datetime.now(timezone.utc)
        kept = timedelta(hours=float(variables["keep_snapshots_hours"]))
        older_than = now - kept
        # Iceberg refuses less than a day, since a file may be of a write that goes on
        orphans_before = now - max(kept, timedelta(days=1, minutes=1))
        for table in (*self._transactions.ledgers.values(), *self._transactions.landed.values()):
            said += self._expire(table, older_than, orphans_before)
        for table in self._transactions.scratch():
            said += self._expire(table, now, orphans_before)
        return said or ["nothing to compact, to forget or to delete"]

    def _check_retention(self, variables: Mapping[str, Any]) -> None:
        for name, value in variables.items():
            if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                raise ExactlyOnceError(
                    f"exactly_once: variable {name} is {value!r}: use a number, 0 or more, or null"
                )

    def _forget_old_rows(
        self, published: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> list[str]:
        """Whole days of statuses, journal entries and landed rows that nothing needs any more."""
        event_time = published["event_time"]
        if event_time is None:
            return []
        said = []
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
            condition = f"{column} < timestamp '{bound}'"
            forgotten = int(
                self._engine.rows(f"select count(*) from {table.relation} where {condition}")[0][0]
            )
            if not forgotten:
                continue
            if name in self._transactions.ledgers:
                main = str(published["ledger_publishes"][name])
                self.change(table, main, f"delete from {{}} where {condition}")
            else:
                self._engine.rows(f"delete from {table.relation} where {condition}")
            said.append(f"{name}: {forgotten} rows from before {bound} forgotten")
        return said

    def _undecided(self) -> str:
        """What waits or is open still needs its landed row and its status."""
        ledger = self._transactions.ledger
        return (
            f"(select landed_received_at from {ledger('waiting_deliveries').relation} union all "
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
