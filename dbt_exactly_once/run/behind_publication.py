"""What a run writes once it has published: services that are models, rows that a model appends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    """Finish what the services of runs that were cut off have started; returns lines to say."""
    services = model_services(graph)
    schemas = {service.relation.rpartition(".")[0] for service in services}
    return _services(state, run_id).settle(services, state.tables.existing_in(schemas))


def serve(
    state: State, run: Run | None, node: Mapping[str, Any], sql: str, work: Any, states: Any
) -> str:
    """Run a service that is a model; returns what to say of it. See ModelServices.run."""
    run = guard_lock(state, run, node["name"])
    if not run.publishes:
        return f"{node['name']}: a preview processes nothing"
    service = ModelService.of_node(node)
    outcome = _services(state, run.run_id).run(
        service, sql, str(work), str(states), lambda: guard_lock(state, run, node["name"])
    )
    return f"{service.service}: {outcome}"


def start_of(state: State, run: Run, relation: Any) -> str:
    """Where main of a table stands that this run adds to, see append_published."""
    start = main_of(state.engine, str(relation))
    run.effect_starts[str(relation)] = start
    return start


def append_published(state: State, run: Run, node: Mapping[str, Any], sql: str) -> None:
    """Append what a model selects to its table, unless another run has added to it since the
    model has looked at it (start_of)."""
    table = Table(node["alias"], node["schema"], columns_of(node))
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
