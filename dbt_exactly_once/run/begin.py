"""The start of a run: refuse half a run, take the lock, finish a dead run's work, freeze inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from dbt.flags import get_flags

from dbt_exactly_once.adapter.engine import RUN_ID
from dbt_exactly_once.adapter.lake_version import RECORD
from dbt_exactly_once.adapter.shared_session import (
    BRANCH_SETTING,
    INLINE_SETTING,
    LOCK_SCHEMA_SETTING,
    leave_run,
)
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.after_publication import settle_services
from dbt_exactly_once.run.consumption import follow_event_time, keep_consumed, land_resubmitted
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.early_readers import KEEPS_NOTHING, early_readers
from dbt_exactly_once.run.ensure_tables import ensure_tables
from dbt_exactly_once.run.in_memory import keep_ledgers
from dbt_exactly_once.run.publication import mains_of
from dbt_exactly_once.run.state import State
from dbt_exactly_once.run.upkeep import BEFORE_ALL

RUN_ID_PROPERTY = f"spark.sql.iceberg.snapshot-property.{RUN_ID}"


def begin(
    state: State,
    graph: Mapping[str, Any],
    selected: Sequence[str],
    run_id: str,
    clock: datetime,
    variables: Mapping[str, Any],
) -> Run | None:
    """Take the lock, finish what a dead run has left, freeze what this run reads.

    Returns None if the command runs no model of the transaction. Raises ExactlyOnceError if only a
    part of the transaction was selected, if another run is at work, or if the ledgers do not fit
    together.
    """
    if not state.tables.transaction & set(selected):
        return None
    _refuse_part_of_a_run(state, selected)
    _refuse_early_readers(state, graph, selected)
    _refuse_flags()
    state.engine.make_schema(state.tables.schema)
    state.lock.take(run_id, float(variables["run_timeout"]))
    try:
        prepare_session(state, run_id)
        ensure_tables(state)
        publishes = bool(variables["publish"])
        # before _freeze, so that this run consumes the executions that it records
        messages = settle_services(state, run_id, graph) if publishes else []
        run = _freeze(state, run_id, clock)
        run.messages += messages + state.publications.messages
        follow_event_time(state, run)
        run.publishes = publishes
        if variables["preview_all_landed"]:
            _start_from_nothing(state, run)
        elif publishes and run.has_landed("resubmissions"):
            land_resubmitted(state, run, graph)
        keep_ledgers(
            state.engine, run, {name: t.relation for name, t in state.tables.ledgers.items()}
        )
        # the branch first: see leave_run
        state.engine.set(BRANCH_SETTING, run.branch)
        if _runs_own_sql_only(state, graph, selected):
            state.engine.set(INLINE_SETTING, "true")
    except BaseException:
        state.lock.release(run_id)
        raise
    return run


def prepare_session(state: State, run_id: str) -> None:
    """Set up the session for this run; under the lock, since other runs may share the session."""
    state.engine.set(LOCK_SCHEMA_SETTING, state.tables.schema)
    state.engine.set(RUN_ID_PROPERTY, run_id)
    leave_run(state.engine)


def _runs_own_sql_only(state: State, graph: Mapping[str, Any], selected: Sequence[str]) -> bool:
    """Whether no node of a command stores what a query of the user's selects.

    Such a query may have a CTE with a random function and read it twice: were the CTE put in its
    place, each would get numbers of its own.
    """
    all_tests_store = get_flags().STORE_FAILURES
    others = set(selected) & graph["nodes"].keys() - state.tables.transaction
    return all(
        config["materialized"] in (*KEEPS_NOTHING, "seed", "appended")
        or (config["materialized"] == "test" and not (all_tests_store or config["store_failures"]))
        for config in (graph["nodes"][name]["config"] for name in others)
    )


def _refuse_part_of_a_run(state: State, selected: Sequence[str]) -> None:
    missing = sorted(name.rsplit(".", 1)[-1] for name in state.tables.transaction - set(selected))
    if missing:
        raise ExactlyOnceError(
            "exactly_once: this command would run a part of the transaction only (without "
            f"{', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}) and publish half "
            "a run: use `dbt build`, `dbt run` or `dbt build --selector hot_path`"
        )


def _refuse_flags() -> None:
    flags = get_flags()
    if flags.FULL_REFRESH:
        raise ExactlyOnceError(
            "exactly_once: --full-refresh would recreate the ledgers and process every "
            "document again: leave it out, or start over with `dbt run-operation reset_state "
            "--args '{really: true}'` (`dbt seed --full-refresh` is harmless)"
        )
    for flag, option in (("EMPTY", "--empty"), ("SAMPLE", "--sample")):
        if getattr(flags, flag, None):
            raise ExactlyOnceError(
                f"exactly_once: {option} lets models read a part of what they need, so deliveries "
                "would be consumed and never decided: leave it out; to publish nothing add "
                "--vars 'publish: false'"
            )


def _refuse_early_readers(state: State, graph: Mapping[str, Any], selected: Sequence[str]) -> None:
    """Refuse models that would store rows that the run may never publish."""
    nodes = graph["nodes"]
    written = {
        name: node["name"]
        for name, node in nodes.items()
        if name in state.tables.transaction and node["config"]["materialized"] != "view"
    }
    record = next(name for name, model in written.items() if model == RECORD)
    found = early_readers(nodes, written.keys() - {record}, record, selected)
    if found:
        raise ExactlyOnceError(
            f"exactly_once: {', '.join(found)} would keep rows of ledgers before they are "
            "published, and of runs that fail: let it run after publication with the line "
            "`-- depends_on: {{ ref('published_runs') }}`, read a public view "
            "(decided_deliveries), or make it a view"
        )


def _freeze(state: State, run_id: str, clock: datetime) -> Run:
    last, starts = state.publications.as_published(run_id)
    last = last or BEFORE_ALL
    consumed = last["landed_snapshots"]
    refs = state.tables.refs(state.tables.landed)
    keep_consumed(state, consumed, refs)
    return Run(
        run_id=run_id,
        lock_id=run_id,
        clock=clock.replace(tzinfo=None),
        number=last["run_number"] + 1,
        publication_number=last["publication_number"] + 1,
        starts={name: str(snapshot) for name, snapshot in starts.items()},
        consumed={name: consumed.get(name) for name in state.tables.landed},
        landed=mains_of(refs),
        greatest_received_at=last["greatest_received_at"],
    )


def _start_from_nothing(state: State, run: Run) -> None:
    """Let a preview decide all that has landed, on a branch on which the ledgers are empty."""
    for table in state.tables.ledgers.values():
        state.engine.rows(f"alter table {table.relation} create branch {run.branch}")
        state.engine.rows(f"delete from {table.relation}.branch_{run.branch} where true")
    run.starts = state.publications.snapshots(run, with_record=True)
    run.consumed = dict.fromkeys(run.consumed)
    run.number = 1
    run.publication_number = 1
    run.greatest_received_at = None
