"""How macros call the Python side: `adapter.exactly_once`.

Jinja cannot catch an error of Spark, so a macro calls a method here for whatever may fail or takes
more than one statement. Each method calls the module that does the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from dbt.flags import get_flags
from dbt_common.invocation import get_invocation_id

from dbt_exactly_once.adapter.engine import Engine
from dbt_exactly_once.adapter.lake_version import check_version
from dbt_exactly_once.adapter.seed_files import seed_as_written
from dbt_exactly_once.adapter.session_engine import engine_of
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.landing.landed_rows import LandedRows
from dbt_exactly_once.landing.landed_tables import SAME_IN
from dbt_exactly_once.resolvers.asking import ask_resolvers
from dbt_exactly_once.resolvers.hooks import load_hooks
from dbt_exactly_once.run import after_publication, begin, end, filters, seeds
from dbt_exactly_once.run.consumption import before_consumed, landed_rows, tag_of, what_fails
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.ensure_tables import ensure_tables
from dbt_exactly_once.run.guards import guard_ledger, guard_lock
from dbt_exactly_once.run.in_memory import is_in_memory, keep_in_memory
from dbt_exactly_once.run.operations import Operations
from dbt_exactly_once.run.project_files import code_version
from dbt_exactly_once.run.state import State
from dbt_exactly_once.run.variables import checked_variables

_making = threading.Lock()
_evaluating = threading.Lock()


class ExactlyOnce:
    """What macros call as `adapter.exactly_once`; one for each dbt command."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._described: State | None = None
        self._decision_rules: Sequence[Mapping[str, str]] = ()
        # the run of this command, from begin to end
        self.run: Run | None = None

    @classmethod
    def of_adapter(cls, adapter: Any) -> ExactlyOnce:
        """The object that belongs to an adapter, made at its first use."""
        with _making:
            if not hasattr(adapter, "_exactly_once"):
                adapter._exactly_once = cls(engine_of(adapter))
            return adapter._exactly_once

    def describe(self, graph: Mapping[str, Any]) -> None:
        """Read from dbt's graph which tables are ledgers and which are landed."""
        self._described = State.of_graph(self._engine, graph)

    @property
    def _state(self) -> State:
        if self._described is None:
            raise ExactlyOnceError("exactly_once: no run has begun in this command")
        return self._described

    @property
    def _run(self) -> Run:
        if self.run is None:
            raise ExactlyOnceError("exactly_once: no run has begun in this command")
        return self.run

    # ---------------------------------------------------------------- a run

    def checked_variables(self, value_of: Callable[[str], Any]) -> dict[str, Any]:
        """The variables of the project. See variables.checked_variables."""
        return checked_variables(value_of)

    def begin(
        self,
        graph: Mapping[str, Any],
        selected: Sequence[str],
        run_id: str,
        clock: datetime,
        variables: Mapping[str, Any],
    ) -> Run | None:
        """Start a run, if the command runs the transaction. See begin.begin."""
        self.run = None
        self.describe(graph)
        self.run = begin.begin(self._state, graph, selected, run_id, clock, variables)
        return self.run

    def landed_rows(self, name: str) -> LandedRows:
        """How this run reads a landed table."""
        return landed_rows(self._state, self._run, name)

    @property
    def consumed_tag(self) -> str:
        """The tag on each landed table that marks what these ledgers have consumed."""
        return tag_of(self._state)

    def before_consumed(self, name: str) -> str | None:
        """The parent of the snapshot up to which a landed table is consumed."""
        return before_consumed(self._state, self._run, name)

    def guard(self, ledger: str) -> None:
        """Refuse a write to a ledger outside of a run that holds lock and branch."""
        guard_ledger(self._state, self.run, ledger)

    def guard_view(self, name: str) -> None:
        """Refuse to recreate a view that another run may be reading."""
        guard_lock(self._state, self.run, name)

    def branch_snapshots(self) -> dict[str, str]:
        """The snapshot that each ledger publishes."""
        return self._state.publications.snapshots(self._run)

    def appended(self, relation: Any) -> str:
        """A relation of the rows that this run has appended to a ledger, once it is written."""
        return self._state.publications.appended(self._run, str(relation))

    def say_what_fails(self) -> None:
        """Report what of the user's may have stopped the run, see consumption.what_fails."""
        with suppress(Exception):
            self._run.messages += what_fails(self._state, self._run)

    def publish(self, has_news: bool, findings: Sequence[str]) -> None:
        """Publish the run's branch. See end.publish."""
        end.publish(self._state, self._run, has_news, findings)

    def end(self, variables: Mapping[str, Any]) -> Run | None:
        """Release the lock; returns the run that has ended. See end.end."""
        run, self.run = self.run, None
        if run is not None:
            end.end(self._state, run, variables)
        return run

    def keep_in_memory(self, model: str, relation: Any) -> None:
        """Let the models downstream of a table or view read its rows from memory, if few."""
        keep_in_memory(self._engine, self._run, model, str(relation))

    def empty(self, relation: Any, code: str) -> bool:
        """Empty a scratch table that this code has made, without SQL; returns whether it did."""
        made = {"made-of-code": code}
        return self._engine.commit_as_run(str(relation), self._run.run_id, made, empties=True)

    def keep_rows(self, relation: Any, code: str, source: str) -> bool:
        """Keep a scratch table that this code has made of the same source, as one of this run;
        returns whether it did."""
        made = {"made-of-code": code, "rows-follow-from": source}
        return self._engine.commit_as_run(str(relation), self._run.run_id, made, empties=False)

    # ---------------------------------------------------------------- after publication

    def serve(self, node: Mapping[str, Any], sql: str, work: Any, states: Any) -> str:
        """Run a service that is a model; returns its outcome, for the log."""
        return after_publication.serve(self._state, self.run, node, sql, work, states)

    def published_since(self, ledger: str, run_number: int | None) -> str:
        """A relation of what runs after run_number have published in a ledger."""
        return after_publication.published_since(self._state, self._run, ledger, run_number)

    def start_of(self, relation: Any) -> str:
        """The snapshot of main of a table that this run adds to after publication."""
        return after_publication.start_of(self._state, self._run, relation)

    def append_published(self, node: Mapping[str, Any], sql: str) -> None:
        """Append what a model selects to its table, after publication."""
        after_publication.append_published(self._state, self.run, node, sql)

    def same_in(self, table: str) -> Sequence[str]:
        """The columns in which rows of one id of a landed table agree if they are the same."""
        return SAME_IN.get(table, [])

    # ---------------------------------------------------------------- seeds, conditions, resolvers

    def seeds_read(self, graph: Mapping[str, Any]) -> set[str]:
        """The ids of the seeds that this package reads."""
        return seeds.seeds_read(graph)

    def seed_as_written(self, path: str, delimiter: str) -> Any:
        """The agate table of a CSV in which every cell is text."""
        return seed_as_written(path, delimiter)

    def decision_rules(self, path: str) -> Sequence[Mapping[str, str]]:
        """The rows of the CSV of rules, read once in a command; later calls need no path."""
        if path and not self._decision_rules:
            # agate would make a dictionary of a row each time that a column is asked for
            self._decision_rules = [dict(row) for row in seed_as_written(path, ",").rows]
        return self._decision_rules

    def check_seeds(
        self,
        graph: Mapping[str, Any],
        words: Mapping[str, Sequence[str]],
        defaults: Mapping[str, tuple[str, str | None]],
        previewed: Mapping[str, Mapping[str, Any]],
        model: str,
        relation: Any,
    ) -> None:
        """Stop a run before anything is decided, with a line for each wrong value in a seed.

        model, relation: those of trigger_settings, whose rows follow from the seeds.
        """
        state, run = self._state, self._run
        registered = seeds.registered_names(self.hook_names)
        read = seeds.freeze_seeds(state, run, graph)
        run.rows_follow_from[model] = seeds.source_of_settings(
            state, run, self.code_version, registered
        )
        # the rows that the session has in memory were checked before
        if previewed or not is_in_memory(self._engine, run, model, str(relation)):
            in_memory = run.in_memory
            seeds.check_seeds(state, in_memory, read, words, defaults, registered, previewed or {})

    def refuse_wrong_seeds(
        self,
        graph: Mapping[str, Any],
        words: Mapping[str, Sequence[str]],
        defaults: Mapping[str, tuple[str, str | None]],
    ) -> None:
        """Refuse what a run would refuse, for an operation that reads the settings: `dbt seed`
        checks nothing."""
        read = [seed for seed, _ in seeds.seeds_of_csv(self._state, graph).values()]
        registered = seeds.registered_names(self.hook_names)
        seeds.check_seeds(self._state, {}, read, words, defaults, registered, {})

    def check_seeds_stayed(self) -> None:
        """Refuse to go on if another command has loaded a seed since this run read it."""
        seeds.check_seeds_stayed(self._state, self._run)

    def filter_sql(self, text: str) -> str:
        """The Spark SQL of a filter or a key."""
        return filters.filter_sql(text)

    def expression_problem(self, text: str, relation: str, is_filter: bool) -> str | None:
        """Why Spark cannot use a filter or a key over a relation's columns; None if it can."""
        return filters.expression_problem(self._engine, text, relation, is_filter)

    def hook_names(self, kind: str) -> list[str]:
        """The names that the modules of python_udfs register under a kind."""
        return load_hooks(get_flags().PROJECT_DIR).names(kind)

    def ask_resolvers(self, relation: str, columns: str, sql: str | None, is_missing: bool) -> None:
        """Ask resolvers until there is nobody left to ask; keep the answers in `relation`.

        sql: selects the answers for those that have none yet; None if there is nobody to ask.
        is_missing: whether there is no such table yet.
        """
        if sql is not None or is_missing:
            ask_resolvers(self._engine, relation, columns, sql)

    # ---------------------------------------------------------------- tables

    def check_lake(self, graph: Mapping[str, Any]) -> None:
        """For a command that only reads: refuse a lake that has moved or has another version, and
        ledgers of which a half is published."""
        self.describe(graph)
        record = self._state.tables.record.relation
        check_version(self._engine, record)
        if self._engine.properties(record) is not None:
            self._state.publications.refuse_half()

    def ensure_tables(self, graph: Mapping[str, Any]) -> None:
        """Create the landed tables and the ledgers that do not exist yet, empty."""
        self.describe(graph)
        ensure_tables(self._state)

    def columns(self, relation: Any) -> list[str]:
        """The names of a table's columns, in the table's order."""
        return self._engine.columns(str(relation))

    def evaluated_once(self, view: str) -> str:
        """A relation of the rows that a view had when this command first asked for them; the view
        itself if the engine keeps nothing in memory. The caller knows that they are few."""
        # dbt runs tests at the same time
        with _evaluating:
            command = get_invocation_id().replace("-", "_")
            copy = self._engine.keep_version_in_memory(view, command)
            return copy.name if copy else view

    def view_properties(self, relation: Any) -> dict[str, str]:
        """The properties of a view that exists."""
        return self._engine.view_properties(str(relation))

    @cached_property
    def code_version(self) -> str:
        """A checksum of the project's code; tables made by the same code have the same columns."""
        return code_version(Path(get_flags().PROJECT_DIR))

    # ---------------------------------------------------------------- operations

    def abandon(self, graph: Mapping[str, Any], run_id: str) -> str:
        """Mark the lock of a run as given up, so that the next run takes it over."""
        self.describe(graph)
        self._state.lock.abandon(run_id)
        return f"run {run_id} is given up; the next run takes over"

    def operations(
        self, graph: Mapping[str, Any], run_id: str, value_of: Callable[[str], Any]
    ) -> Operations:
        """What changes the lake outside of a run, under the lock. See Operations."""
        self.describe(graph)
        return Operations(self._state, run_id, checked_variables(value_of))
