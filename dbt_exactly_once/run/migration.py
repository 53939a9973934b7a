"""Brings a lake that an earlier version of the package has made to this version.

The columns that tables lack follow from the project's yml; any other change of a version is a step.
All of it may be repeated, and the version is noted last, so an interrupted migration is finished by
starting it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.adapter.lake_version import (
    LAKE_VERSION,
    RECORD,
    VERSION_PROPERTY,
    lacking_columns,
)
from dbt_exactly_once.adapter.tables import Table
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.publication import HISTORY
from dbt_exactly_once.services.executions import patiently

# the run-id in the snapshots of a migration begins with this
MIGRATION = "migrate-"
# where version 1 has noted the snapshots that upkeep has made since a run: "published:main,main"
UPKEEP_NOTE = "exactly-once.upkeep"


@dataclass(frozen=True)
class Step:
    """A change of a ledger's rows that a version needs; repeating it changes nothing."""

    version: int
    ledger: str
    # {} stands for the ledger
    statement: str
    purpose: str


# in the order in which they run; a step runs for lakes of an earlier version than its own
STEPS: tuple[Step, ...] = (
    Step(
        2,
        RECORD,
        "update {} set kind = 'run', publication_number = run_number where kind is null",
        "every row so far is a run",
    ),
    Step(
        2,
        "trigger_states",
        "update {} set suspensions = array(named_struct('since', suspended_since, 'cause', "
        "suspended_cause, 'caused_by', suspended_by, 'reason', suspended_reason)) "
        "where is_suspended and suspensions is null",
        "a suspension is one of several that a trigger may have",
    ),
)

# before this version, history was the ledger document_history, with a row for each entry
VERSION_OF_HISTORY = 3
HISTORY_OF_ENTRIES = "document_history"
COLUMNS_OF_ENTRIES = (
    ("trigger_name", "string", ""),
    ("document_key", "string", ""),
    ("processing_status", "string", ""),
    ("started_at", "timestamp", ""),
    ("expires_at", "timestamp", ""),
    ("delivery_id", "string", ""),
    ("run_id", "string", ""),
    ("key_hash", "bigint", ""),
    ("key_check", "bigint", ""),
)


def history_of_entries(engine: Engine, record: Table, version: int) -> Table | None:
    """The ledger document_history, if a lake still has it; record: published_runs."""
    table = Table(HISTORY_OF_ENTRIES, record.schema, COLUMNS_OF_ENTRIES)
    exists = version < VERSION_OF_HISTORY and engine.properties(table.relation) is not None
    return table if exists else None


def move_history(engine: Engine, old: Table, ledger: Table) -> str:
    """Fill history_ledger from the ledger document_history and drop the latter; returns a line.

    A row of the old ledger becomes a row with one entry. The next run makes a view of that name.
    """
    kept = ", ".join(name for name, _, _ in old.columns if name != "processing_status")
    engine.rows(
        f"insert overwrite {ledger.relation} ({kept}, has_processing, has_completed) "
        f"select {kept}, processing_status = 'processing', processing_status = 'completed' "
        f"from {old.relation}"
    )
    engine.rows(f"drop table {old.relation} purge")
    return f"{ledger.name}: holds the entries of {old.name}, which becomes a view"


def add_columns(engine: Engine, table: Table) -> list[str]:
    """Add the columns that a table lacks, null in all its rows; returns their names."""
    lacking = lacking_columns(engine, table.relation, table.columns)
    if lacking:
        listed = ", ".join(f"{name} {kind} comment {literal(text)}" for name, kind, text in lacking)
        # workers append to landed tables at any time
        patiently(engine.rows, f"alter table {table.relation} add columns ({listed})")
    return [name for name, _, _ in lacking]


def bring_up(engine: Engine, tables: Iterable[Table]) -> list[str]:
    """Give tables the columns they lack and a snapshot that has them; returns lines that name them.

    A snapshot is read with the columns that its table had when it was made.
    """
    messages = []
    for table in tables:
        messages += [f"{table.name}: column {name} added" for name in add_columns(engine, table)]
        engine.commit_no_rows(table.relation)
    return messages


class LedgerMigration:
    """The ledgers of a lake that has published runs, under its lock."""

    def __init__(self, engine: Engine, ledgers: Mapping[str, Table], version: int) -> None:
        """ledgers: those that exist."""
        self._engine = engine
        self._ledgers = ledgers
        self._version = version
        self._record = ledgers[RECORD].relation

    def change(self) -> list[str]:
        """Check that the ledgers are as published, and change them; returns lines about it."""
        self._finish_publication()
        if not {HISTORY, HISTORY_OF_ENTRIES} & self._ledgers.keys():
            raise ExactlyOnceError(
                f"exactly_once: ledger {HISTORY_OF_ENTRIES} is missing while documents were "
                "decided with it: restore it, or rebuild it with the package that has made the lake"
            )
        messages = bring_up(self._engine, self._ledgers.values())
        for step in STEPS:
            # a missing ledger is refused after these steps
            if step.version > self._version and step.ledger in self._ledgers:
                relation = self._ledgers[step.ledger].relation
                self._engine.rows(step.statement.format(relation))
                messages.append(f"{step.ledger}: {step.purpose}")
        return messages

    def note(self) -> None:
        """Write the ledgers' snapshots to the last row of published_runs; note the version."""
        run_id, _, _ = self._last()
        if run_id is not None:
            listed = ", ".join(
                f"'{name}', '{main}'" for name, main in self._mains().items() if name != RECORD
            )
            self._engine.rows(
                f"update {self._record} set ledger_publishes = map({listed}) "
                f"where run_id = {literal(run_id)}"
            )
        self._engine.rows(
            f"alter table {self._record} "
            f"set tblproperties ('{VERSION_PROPERTY}' = '{LAKE_VERSION}')"
        )

    def _last(self) -> tuple[str | None, dict[str, str], dict[str, str]]:
        """Run, starts and publishes of the last publication, from columns that version 1 has."""
        found = self._engine.rows(
            f"select run_id, to_json(ledger_starts), to_json(ledger_publishes) from {self._record} "
            "order by run_number desc, published_at desc limit 1"
        )
        run_id, starts, publishes = found[0] if found else (None, "{}", "{}")
        return run_id, json.loads(starts), json.loads(publishes)

    def _mains(self) -> dict[str, str]:
        refs = self._engine.refs([table.relation for table in self._ledgers.values()])
        return {name: refs[table.relation]["main"] for name, table in self._ledgers.items()}

    def _finish_publication(self) -> None:
        """Move the ledgers that a killed run has not moved; refuse what nobody has published."""
        run_id, starts, publishes = self._last()
        mains = self._mains()
        procedure = f"call {self._engine.catalog()}.system.set_current_snapshot("
        for name, published in publishes.items():
            if name not in mains:
                continue
            relation = f"{self._engine.catalog()}.{self._ledgers[name].relation}"
            bring_back = f"{procedure}'{relation}', {published})"
            if mains[name] == published:
                continue
            if mains[name] == starts.get(name):
                self._engine.rows(bring_back)
            elif not self._comes_from(self._ledgers[name].relation, published, mains[name]):
                raise ExactlyOnceError(
                    f"exactly_once: {relation} is not as run {run_id} published it: "
                    f"somebody has changed or restored it. Bring it back with `{bring_back}` and "
                    "start `exactly-once migrate` again"
                )

    def _comes_from(self, relation: str, published: str, main: str | None) -> bool:
        """Whether only upkeep or an interrupted migration lies between two snapshots."""
        note = (self._engine.properties(relation) or {}).get(UPKEEP_NOTE, "")
        noted_for, _, noted = note.partition(":")
        accepted = {published, *(noted.split(",") if noted_for == published else ())}
        snapshots = {
            row[0]: row[1:]
            for row in self._engine.rows(
                "select cast(snapshot_id as string), cast(parent_id as string), operation, "
                f"coalesce(summary['run-id'], '') from {relation}.snapshots"
            )
        }
        while main not in accepted:
            parent, operation, run_id = snapshots.get(str(main), (None, None, ""))
            if operation != "replace" and not run_id.startswith(MIGRATION):
                return False
            main = parent
        return True
