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

from dbt_exactly_once.engine import ExactlyOnceError

if TYPE_CHECKING:
    from dbt_exactly_once.transaction import Table, Transactions

NOTE = "exactly-once.upkeep"
PUBLISHED_TAG = "exactly_once_published"
# a branch like that of a run: the next run drops it where it was left
UPKEEP_BRANCH = "run_upkeep"
HISTORY = "document_history"


class Upkeep:
    """The work of `maintain`, `rebuild_history` and the removal of expired history."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._rows = transactions.engine.rows

    def change(self, table: Table, published: str, statement: str) -> None:
        """Change a ledger so that the next run knows it was meant.

        published: the snapshot that the last run's record names for it; statement: SQL with {} in
        place of the table.
        """
        self._rows(f"alter table {table.relation} drop branch if exists {UPKEEP_BRANCH}")
        self._rows(f"alter table {table.relation} create branch {UPKEEP_BRANCH}")
        self._rows(statement.format(f"{table.relation}.branch_{UPKEEP_BRANCH}"))
        snapshot = self._rows(
            f"select cast(snapshot_id as string) from {table.relation}.refs "
            f"where name = '{UPKEEP_BRANCH}'"
        )[0][0]
        self._note(table, published, snapshot)
        self._rows(
            f"call {self._transactions.catalog}.system.fast_forward("
            f"'{self._transactions.full_name(table)}', 'main', '{UPKEEP_BRANCH}')"
        )
        self._rows(f"alter table {table.relation} drop branch {UPKEEP_BRANCH}")

    def _note(self, table: Table, published: str, snapshot: str) -> None:
        self._rows(
            f"alter table {table.relation} set tblproperties ('{NOTE}' = '{published}:{snapshot}')"
        )

    def explains(self, table: Table, published: str, main: str | None) -> bool:
        """Whether upkeep has brought a ledger from its published snapshot to main."""
        if self._transactions.property(table.relation, NOTE) == f"{published}:{main}":
            return True
        snapshots = {
            row[0]: (row[1], row[2])
            for row in self._rows(
                "select cast(snapshot_id as string), cast(parent_id as string), operation "
                f"from {table.relation}.snapshots"
            )
        }
        while main in snapshots and main != published:
            parent, operation = snapshots[main]
            if operation != "replace":
                return False
            main = parent
        return main == published

    # ---------------------------------------------------------------- rebuild

    def rebuild_history(self, published: Mapping[str, Any]) -> str:
        """Make document_history anew from the statuses and what is open; returns what it did.

        published: the record of the last published run. Entries that expired before the bound up
        to which that run had history removed are left out.
        """
        history = self._transactions.ledger(HISTORY)
        columns = ", ".join(name for name, _, _ in history.columns)
        self.change(
            history,
            str(published["ledger_publishes"][HISTORY]),
            f"insert overwrite {{}} select {columns} from ({self._entries()}) "
            f"where expires_at >= timestamp '{published['history_removed_before']}'",
        )
        entries, documents, since = self._rows(
            "select count(*), count(distinct trigger_name, delivery_id), "
            f"cast(min(started_at) as string) from {history.relation}"
        )[0]
        reach = f"since {since} (UTC, event time)" if since else "none is kept"
        return (
            f"document_history has {entries} entries of {documents} documents again, {reach}; "
            f"those that expired before {published['history_removed_before']} stay removed"
        )

    def _entries(self) -> str:
        """The entries of every document that has some, by what became of it."""
        ledger = self._transactions.ledger
        status, journal = ledger("document_status").relation, ledger("journal_entries").relation
        return f"""
            select
                base64(unhex(sha1(documents.trigger_name))) as trigger_id,
                documents.trigger_name,
                documents.document_key,
                processing_status,
                documents.started_at,
                documents.expires_at,
                documents.delivery_id,
                documents.run_id,
                documents.key_hash,
                documents.key_check
            from (
                select
                    documents.*,
                    ended.delivery_id is null as has_ended
                from {status} as documents
                left join (
                    select delivery_id, trigger_name
                    from {ledger("open_documents").relation}
                    union
                    select delivery_id, trigger_name from {journal} where event = 'LOST'
                    union
                    -- it was interrupted and has come back as the next recovery
                    select
                        if(
                            recoveries > 1,
                            concat(landed_delivery_id, '/recovery-', recoveries - 1),
                            landed_delivery_id
                        ),
                        trigger_name
                    from (
                        select
                            regexp_replace(delivery_id, '/recovery-[0-9]+$', '')
                                as landed_delivery_id,
                            cast(regexp_extract(delivery_id, '/recovery-([0-9]+)$') as int)
                                as recoveries,
                            trigger_name
                        from (
                            select delivery_id, trigger_name from {status}
                            union all
                            select delivery_id, trigger_name
                            from {ledger("waiting_deliveries").relation}
                        )
                        where delivery_id like '%/recovery-%'
                    )
                ) as ended
                    on
                        documents.delivery_id = ended.delivery_id
                        and documents.trigger_name = ended.trigger_name
                where documents.started_at is not null
            ) as documents
                lateral view explode(
                    if(has_ended, array('processing', 'completed'), array('processing'))
                ) as processing_status
        """

    # ---------------------------------------------------------------- maintain

    def maintain(
        self, published: Mapping[str, Any], variables: Mapping[str, Any], clock: datetime
    ) -> list[str]:
        """Compact, forget old snapshots, delete files that nothing names; returns what it freed.

        variables: keep_snapshots_hours, and keep_statuses_days, keep_journal_days and
        keep_landed_days, None to keep all.
        """
        self._check_retention(variables)
        said = self._forget_old_rows(published, variables)
        for name, table in self._transactions.ledgers.items():
            self._rows(
                f"alter table {table.relation} create or replace tag {PUBLISHED_TAG} "
                f"as of version {self._main(table)}"
            )
            said += self._compact(name, table)
        older_than = clock - timedelta(hours=float(variables["keep_snapshots_hours"]))
        orphans_before = clock - max(
            timedelta(hours=float(variables["keep_snapshots_hours"])), timedelta(days=1, minutes=1)
        )
        for table in (*self._transactions.ledgers.values(), *self._transactions.landed.values()):
            said += self._expire(table, older_than, orphans_before)
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
            bound = self._rows(
                f"select cast(date_trunc('day', least(timestamp '{event_time}' - make_dt_interval("
                f"{int(days)}), coalesce(min(received_at), timestamp '{event_time}'))) as string) "
                f"from (select landed_received_at as received_at from {self._undecided()})"
            )[0][0]
            condition = f"{column} < timestamp '{bound}'"
            forgotten = int(
                self._rows(f"select count(*) from {table.relation} where {condition}")[0][0]
            )
            if not forgotten:
                continue
            if name in self._transactions.ledgers:
                main = str(published["ledger_publishes"][name])
                self.change(table, main, f"delete from {{}} where {condition}")
            else:
                self._rows(f"delete from {table.relation} where {condition}")
            said.append(f"{name}: {forgotten} rows from before {bound} forgotten")
        return said

    def _undecided(self) -> str:
        """What waits or is open still needs its landed row and its status."""
        ledger = self._transactions.ledger
        return (
            f"(select landed_received_at from {ledger('waiting_deliveries').relation} union all "
            f"select landed_received_at from {ledger('open_documents').relation})"
        )

    def _main(self, table: Table) -> str:
        return str(
            self._rows(f"select snapshot_id from {table.relation}.refs where name = 'main'")[0][0]
        )

    def _compact(self, name: str, table: Table) -> list[str]:
        """Make few files of many; of history sorted, so that a lookup finds its key in few."""
        order = "strategy => 'sort', sort_order => 'key_hash', " if name == HISTORY else ""
        files, made = self._rows(
            f"call {self._transactions.catalog}.system.rewrite_data_files("
            f"table => '{self._transactions.full_name(table)}', {order}"
            "options => map('min-input-files', '2', 'delete-file-threshold', '1'))"
        )[0][:2]
        self._rows(
            f"call {self._transactions.catalog}.system.rewrite_manifests("
            f"'{self._transactions.full_name(table)}')"
        )
        return [f"{name}: {made} files made of {files}"] if files else []

    def _expire(self, table: Table, older_than: datetime, orphans_before: datetime) -> list[str]:
        """Forget snapshots that no tag names, and delete files that no snapshot names."""
        if not self._rows(f"select 1 from {table.relation}.refs where name = 'main'"):
            return []
        name = self._transactions.full_name(table)
        expired = self._rows(
            f"call {self._transactions.catalog}.system.expire_snapshots(table => '{name}', "
            f"older_than => timestamp '{_text(older_than)}', retain_last => 1)"
        )[0]
        deleted = sum(int(count or 0) for count in expired)
        orphans = len(
            self._rows(
                f"call {self._transactions.catalog}.system.remove_orphan_files("
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
    return time.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
