"""What a run writes after publication: services that are models, rows that a model appends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_exactly_once.adapter.engine import appended_between, literal
from dbt_exactly_once.adapter.tables import Table, columns_of
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.current_run import Run
from dbt_exactly_once.run.guards import guard_lock
from dbt_exactly_once.run.migration import add_columns
from dbt_exactly_once.run.state import State
from dbt_exactly_once.services.effects import Effect
from dbt_exactly_once.services.executions import Executions, main_of, move_main
from dbt_exactly_once.services.model_services import ModelService, ModelServices, model_services


def settle_services(state: State, run_id: str, graph: Mapping[str, Any]) -> list[str]:
    """Finish what services of interrupted runs have started; returns lines about it."""
    services = model_services(graph)
    schemas = {service.relation.rpartition(".")[0] for service in services}
    return _services(state, run_id).settle(services, state.tables.existing_in(schemas))


def serve(
    state: State, run: Run | None, node: Mapping[str, Any], sql: str, work: Any, states: Any
) -> str:
    """Run a service that is a model; returns its outcome, for the log. See ModelServices.run."""
    run = guard_lock(state, run, node["name"])
    if not run.publishes:
        return f"{node['name']}: a preview processes nothing"
    service = ModelService.of_node(node)
    outcome = _services(state, run.run_id).run(
        service, sql, str(work), str(states), lambda: guard_lock(state, run, node["name"])
    )
    return f"{service.service}: {outcome}"


def published_since(state: State, run: Run, ledger: str, run_number: int | None) -> str:
    """A relation of the rows that runs after run_number have published in an append-only ledger.

    All rows if run_number is None. Reads the files appended since that run. If its snapshot has
    expired, it filters by run_id instead, which costs a scan and loses nothing.
    """
    relation = state.tables.ledgers[ledger].relation
    nothing = f"(select * from {relation} where false)"
    if not run.publishes:
        # a preview does nothing after publication
        return nothing
    if run_number is None:
        return f"(select * from {relation})"
    record = state.tables.record.relation
    if run.published and run_number == run.number - 1:
        start = run.starts[ledger]
    else:
        published = state.engine.rows(
            f"select ledger_publishes[{literal(ledger)}] from {record} "
            f"where kind = 'run' and run_number = {run_number}"
        )
        if not published:
            raise ExactlyOnceError(
                f"exactly_once: run {run_number} is not in {record} although a later model has "
                "its rows: the ledgers were started over without it. Start over with `dbt "
                "run-operation reset_state --args '{really: true}'`"
            )
        start = published[0][0]
    end = state.engine.refs([relation])[relation].get("main")
    if start == end:
        return nothing
    if start and end and state.engine.commits_between(relation, start, end) is not None:
        return appended_between(relation, start, end)
    return (
        f"(select * from {relation} where run_id in "
        f"(select run_id from {record} where run_number > {run_number}))"
    )


def start_of(state: State, run: Run, relation: Any) -> str:
    """The snapshot of main of a table that this run adds to, see append_published."""
    start = main_of(state.engine, str(relation))
    run.effect_starts[str(relation)] = start
    return start


def append_published(state: State, run: Run | None, node: Mapping[str, Any], sql: str) -> None:
    """Append what a model selects to its table, unless another run has added to the table since
    the model read it (start_of)."""
    run = guard_lock(state, run, node["name"])
    table = Table(node["alias"], node["schema"], columns_of(node))
    if table.relation not in run.effect_starts:
        state.engine.rows(table.ddl())
    add_columns(state.engine, table)
    effect = Effect(state.engine, table.relation, run.run_id)
    effect.begin(run.effect_starts.get(table.relation))
    effect.append(sql)
    guard_lock(state, run, node["name"])
    refused = move_main(state.engine, table.relation, effect.branch)
    if refused:
        raise ExactlyOnceError(
            f"exactly_once: run {run.run_id} adds nothing to {table.relation}: {refused}; the "
            "next run adds what is missing"
        )


def _services(state: State, run_id: str) -> ModelServices:
    executions = Executions(state.engine, state.tables.landed["trigger_executions"].relation)
    return ModelServices(state.engine, run_id, executions)
