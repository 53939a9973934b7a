"""The tables that a run needs: created if they do not exist, refused if they do not fit."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dbt_exactly_once.adapter.lake_version import (
    MOVED,
    RECORD,
    check_columns,
    check_version,
    lacking_columns,
    moved_away,
)
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.publication import or_rebuild
from dbt_exactly_once.run.state import State


def ensure_tables(state: State, may_be_missing: str | None = None, migrates: bool = False) -> None:
    """Create the landed tables and the ledgers that do not exist yet, empty.

    Refuses a lake of another version, unless it is being migrated.
    """
    tables = state.tables
    make_schemas(state)
    existing = tables.existing(tables.schema)
    if RECORD + MOVED in existing:
        raise moved_away(tables.schema)
    if not migrates:
        _check_version(state, existing)
    missing = [name for name, table in tables.ledgers.items() if table.name not in existing]
    if missing and len(missing) < len(tables.ledgers):
        refuse_lost_ledgers(state, [n for n in missing if n != may_be_missing], existing)
    for name in missing:
        _make_ledger(state, name)
    for schema in sorted({table.schema for table in tables.landed.values()}):
        there = tables.existing(schema)
        for table in tables.landed.values():
            if table.schema == schema and table.name not in there:
                state.engine.rows(table.ddl())


def make_schemas(state: State) -> None:
    """Create the schemas of ledgers and landed tables."""
    tables = (*state.tables.ledgers.values(), *state.tables.landed.values())
    for schema in sorted({table.schema for table in tables}):
        state.engine.make_schema(schema)


def refuse_lost_ledgers(state: State, missing: Sequence[str], existing: Collection[str]) -> None:
    """Refuse if a ledger that was published is gone; one that a later version adds is accepted.

    The last row of published_runs lists the ledgers that were published. If published_runs itself
    is gone, the others were published if any of them has rows.
    """
    if RECORD not in missing:
        last = state.publications.last()
        lost = [name for name in missing if last and name in last["ledger_publishes"]]
    else:
        filled = (
            state.engine.rows(f"select 1 from {table.relation} limit 1")
            for table in state.tables.ledgers.values()
            if table.name in existing
        )
        lost = list(missing) if any(filled) else []
    if lost:
        raise ExactlyOnceError(
            f"exactly_once: ledger {', '.join(lost)} is missing in schema {state.tables.schema} "
            "while documents were decided with it: going on would decide them again. Restore "
            f"it{or_rebuild(*lost)}, or start over with `dbt run-operation reset_state --args "
            "'{really: true}'`"
        )


def _make_ledger(state: State, name: str) -> None:
    table = state.tables.ledgers[name]
    state.engine.rows(table.ddl())
    if table.sorted_by:
        state.engine.rows(
            f"alter table {table.relation} write distributed by partition "
            f"locally ordered by {table.sorted_by}"
        )
    # a table without a snapshot has no main that a branch could start from
    state.engine.commit_no_rows(table.relation)


def _check_version(state: State, existing: Collection[str]) -> None:
    """Refuse a lake of another version; without published_runs its columns tell."""
    check_version(state.engine, state.tables.record.relation)
    if state.tables.record.name not in existing:
        for table in state.tables.existing_tables():
            lacking = lacking_columns(state.engine, table.relation, table.columns)
            check_columns(table.relation, [name for name, _, _ in lacking])
