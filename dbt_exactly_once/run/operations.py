"""What changes the lake outside of a run, under the lock of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_exactly_once.adapter.lake_version import LAKE_VERSION, MOVED, RECORD, version_of
from dbt_exactly_once.adapter.session import PACKAGE
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


class Operations:
    """What changes the lake outside of a run, each under the lock.

    run_id: the holder of the lock; variables: those of the project. After `run_timeout` seconds the
    lock of another command counts as left behind.
    """

    def __init__(self, state: State, run_id: str, variables: Mapping[str, Any]) -> None:
        self._state = state
        self._run_id = run_id
        self._variables = variables

    def remove_expired_history(self, expired: str) -> str:
        """Remove what the last published run has let expire; returns what it did.

        expired: the condition for it, with {bound} in place of a time.
        """
        with self._upkeep() as upkeep:
            if upkeep.is_first:
                return "no run is published yet, so nothing has expired"
            return upkeep.remove_expired(expired)

    def maintain(self) -> list[str]:
        """Compact and forget; returns what was freed. See maintenance.maintain."""
        with self._upkeep() as upkeep:
            if upkeep.is_first:
                return ["no run is published yet, so there is nothing to keep up"]
            return maintenance.maintain(self._state, upkeep, self._variables, True)

    def rebuild_history(self, entries: str) -> str:
        """Rebuild history_ledger; returns how far back it reaches. See Upkeep.rebuild_history.

        entries: the query that gives its rows. Raises ExactlyOnceError if another ledger is not as
        it was published.
        """
        with self._upkeep(but=HISTORY) as upkeep:
            if upkeep.is_first:
                raise ExactlyOnceError(
                    "exactly_once: no run is published, so there is nothing to make history of"
                )
            return upkeep.rebuild_history(entries)

    def import_history(self, documents: str, entries: str, dry_run: bool) -> list[str]:
        """Add what was processed elsewhere to history; returns what it found and did.

        documents, entries: see history_import.import_history. No run needs to be published before.
        """
        with self._upkeep() as upkeep:
            engine = self._state.engine
            return history_import.import_history(engine, upkeep, documents, entries, dry_run)

    def reset_state(self, graph: Mapping[str, Any]) -> list[str]:
        """Drop the ledgers and the tables built from them, not what has landed; returns the names.

        Models with the tag `state` depend on the ledgers' run numbers. They are dropped first, so
        that a kill in between leaves none that is ahead of its ledgers.
        """
        with self._locked():
            tables = [
                node
                for node in graph["nodes"].values()
                if node["resource_type"] == "model"
                and node["package_name"] == PACKAGE
                and {"transaction", "state"} & set(node["tags"])
                and node["config"]["materialized"] not in ("view", "ephemeral")
            ]
            existing = self._state.tables.existing_in(node["schema"] for node in tables)
            tables = [node for node in tables if f"{node['schema']}.{node['alias']}" in existing]
            tables.sort(key=lambda node: ("state" not in node["tags"], node["alias"]))
            for node in tables:
                name = f"{node['schema']}.{node['alias']}"
                self._state.engine.rows(f"drop table if exists {name} purge")
            return [node["alias"] for node in tables]

    def migrate(self) -> list[str]:
        """Bring a lake of an earlier version to this one; returns lines that report it."""
        state, engine, tables = self._state, self._state.engine, self._state.tables
        with self._locked(MIGRATION):
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

    def moving(self) -> AbstractContextManager[Any]:
        """Hold the lock, with the tables as the last run published them, to move them."""
        # an interrupted move is continued, whose tables have other names by now
        tables = self._state.tables
        has_begun = RECORD + MOVED in tables.existing(tables.schema)
        return self._locked() if has_begun else self._upkeep()

    @contextmanager
    def _upkeep(self, but: str | None = None) -> Iterator[Upkeep]:
        """Hold the lock, with the ledgers as the last run published them.

        Yields what changes them. but: the ledger that may be missing or changed.
        """
        state = self._state
        with self._locked():
            ensure_tables(state, but)
            upkeep = Upkeep.of_last(state, self._run_id, but)
            keep_consumed(state, upkeep.consumed, state.tables.refs(state.tables.landed))
            yield upkeep

    @contextmanager
    def _locked(self, purpose: str = "") -> Iterator[None]:
        """Hold the lock as a run does; purpose: a prefix for the name of its holder."""
        state, holder = self._state, purpose + self._run_id
        state.engine.make_schema(state.tables.schema)
        state.lock.take(holder, float(self._variables["run_timeout"]))
        try:
            prepare_session(state, holder)
            yield
        finally:
            state.lock.release(holder)
            state.lock.drop_graves(holder)
