"""What changes the lake outside of a run, under the lock of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_exactly_once.adapter.lake_version import LAKE_VERSION, MOVED, RECORD, version_of
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run import history_import, maintenance
from dbt_exactly_once.run.begin import prepare_session
from dbt_exactly_once.run.consumption import keep_consumed
from dbt_exactly_once.run.ensure_tables import ensure_tables, make_schemas, refuse_lost_ledgers
from dbt_exactly_once.run.migration import (
    MIGRATION,
    LedgerMigration,
    bring_up,
    history_of_entries,
    move_history,
)
from dbt_exactly_once.run.publication import HISTORY
from dbt_exactly_once.run.state import State
from dbt_exactly_once.run.upkeep import Upkeep


def remove_expired_history(state: State, run_id: str, run_timeout: float, expired: str) -> str:
    """Remove what the last published run has let expire; returns what it did.

    expired: the condition for it, with {bound} in place of a time.
    """
    with _upkeep(state, run_id, run_timeout) as upkeep:
        if upkeep.is_first:
            return "no run is published yet, so nothing has expired"
        return upkeep.remove_expired(expired)


def maintain(
    state: State, run_id: str, run_timeout: float, retention: Mapping[str, Any]
) -> list[str]:
    """Compact and forget; returns what was freed. See maintenance.maintain."""
    with _upkeep(state, run_id, run_timeout) as upkeep:
        if upkeep.is_first:
            return ["no run is published yet, so there is nothing to keep up"]
        return maintenance.maintain(state, upkeep, retention)


def rebuild_history(state: State, run_id: str, run_timeout: float, entries: str) -> str:
    """Rebuild history_ledger; returns how far. See Upkeep.rebuild_history.

    entries: the query that gives its rows. Raises ExactlyOnceError where another ledger is not as
    it was published.
    """
    with _upkeep(state, run_id, run_timeout, but=HISTORY) as upkeep:
        if upkeep.is_first:
            raise ExactlyOnceError(
                "exactly_once: no run is published, so there is nothing to make history of"
            )
        return upkeep.rebuild_history(entries)


def import_history(
    state: State, run_id: str, run_timeout: float, documents: str, entries: str, dry_run: bool
) -> list[str]:
    """Add what was processed elsewhere to history; returns what it found and did.

    documents, entries: see history_import.import_history. No run need be published before.
    """
    with _upkeep(state, run_id, run_timeout) as upkeep:
        return history_import.import_history(state.engine, upkeep, documents, entries, dry_run)


def reset_state(
    state: State, graph: Mapping[str, Any], run_id: str, run_timeout: float
) -> list[str]:
    """Drop the ledgers and what was made of them, not what has landed; returns what it dropped.

    Models with the tag `state` stand on the ledgers' run numbers: they go first, so that a kill in
    between leaves none that is ahead of its ledgers.
    """
    with _locked(state, run_id, run_timeout):
        tables = [
            node
            for node in graph["nodes"].values()
            if node["resource_type"] == "model"
            and {"transaction", "state"} & set(node["tags"])
            and node["config"]["materialized"] not in ("view", "ephemeral")
        ]
        existing = state.tables.existing_in(node["schema"] for node in tables)
        tables = [node for node in tables if f"{node['schema']}.{node['alias']}" in existing]
        tables.sort(key=lambda node: ("state" not in node["tags"], node["alias"]))
        for node in tables:
            state.engine.rows(f"drop table if exists {node['schema']}.{node['alias']} purge")
        return [node["alias"] for node in tables]


def migrate(state: State, run_id: str, run_timeout: float) -> list[str]:
    """Bring a lake of an earlier version to this one; returns lines that report it."""
    engine, tables = state.engine, state.tables
    with _locked(state, MIGRATION + run_id, run_timeout):
        version = version_of(engine, tables.record.relation)
        if version == LAKE_VERSION:
            return [f"the lake is of version {version} already"]
        make_schemas(state)
        existing = tables.existing_tables()
        if version is None:
            refuse_lost_ledgers(state, [RECORD], tables.existing(tables.schema))
            messages = bring_up(engine, existing)
            ensure_tables(state, migrates=True)
        else:
            messages = bring_up(engine, [table for table in existing if not table.wap])
            there = {name: table for name, table in tables.ledgers.items() if table in existing}
            old_history = history_of_entries(engine, tables.record, version)
            if old_history:
                there[old_history.name] = old_history
            messages += LedgerMigration(engine, there, version).change()
            ensure_tables(state, migrates=True)
            if old_history:
                messages.append(move_history(engine, old_history, tables.ledgers[HISTORY]))
            LedgerMigration(engine, tables.ledgers, version).note()
        return [*messages, f"the lake is of version {LAKE_VERSION}"]


def moving(state: State, run_id: str, run_timeout: float) -> AbstractContextManager[Any]:
    """Hold the lock over tables as the last run published them, to move them."""
    # an interrupted move is continued
    has_begun = RECORD + MOVED in state.tables.existing(state.tables.schema)
    return (_locked if has_begun else _upkeep)(state, run_id, run_timeout)


@contextmanager
def _upkeep(
    state: State, run_id: str, run_timeout: float, but: str | None = None
) -> Iterator[Upkeep]:
    """Hold the lock over ledgers that are as the last run published them.

    Gives what changes them. but: the ledger that may be missing or changed.
    """
    with _locked(state, run_id, run_timeout):
        ensure_tables(state, but)
        upkeep = Upkeep.of_last(state, run_id, but)
        keep_consumed(state, upkeep.consumed, state.tables.refs(state.tables.landed))
        yield upkeep


@contextmanager
def _locked(state: State, run_id: str, run_timeout: float) -> Iterator[None]:
    """Hold the lock as a run does."""
    state.engine.rows(f"create namespace if not exists {state.tables.schema}")
    state.lock.take(run_id, run_timeout)
    try:
        prepare_session(state, run_id)
        yield
    finally:
        state.lock.release(run_id)
        state.lock.drop_graves(run_id)
