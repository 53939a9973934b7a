"""Services that are dbt models: they run behind publication, on a frozen list of their work.

What such a model selects is appended to its table in one commit that carries the run's id. So a run
that was killed leaves no doubt: the next one finds the commit and records SUCCESS, or finds none
and runs the same list again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.engine import Engine, ExactlyOnceError, literal, one_line
from dbt_exactly_once.executions import (
    LONGEST_MESSAGE,
    STARTED,
    SUCCESS,
    TRANSIENT_ERROR,
    Executions,
)

MATERIALIZATION = "service"
# parts of a failing list that are tried before the rest is left to the next attempt
TRIALS = 64


@dataclass(frozen=True)
class ModelService:
    """A model of materialization `service`, and its tables."""

    model: str
    service: str
    relation: str

    @classmethod
    def of_node(cls, node: Mapping[str, Any]) -> ModelService:
        meta = node["config"].get("meta") or {}
        return cls(
            node["name"],
            str(meta.get("service") or node["name"]),
            f"{node['schema']}.{node['alias']}",
        )

    @property
    def batch(self) -> str:
        """The frozen list; without rows once what became of it is recorded."""
        return f"{self.relation}__batch"

    @property
    def work(self) -> str:
        """The part of the list that the model sees."""
        return f"{self.relation}__work"

    @property
    def staged(self) -> str:
        return f"{self.relation}__staged"


class ModelServices:
    """Runs model services and settles what a killed run has left of them."""

    def __init__(self, engine: Engine, run_id: str, executions: Executions) -> None:
        self._engine = engine
        self._run_id = run_id
        self._executions = executions

    # ---------------------------------------------------------------- after a kill

    def settle(self, services: Iterable[ModelService], existing: Collection[str]) -> list[str]:
        """Record what became of lists that a killed run has left; returns lines to say.

        Where the effect did not happen, the documents are told to be at work still: this run makes
        the list again before it is taken for interrupted. existing: the tables that there are.
        """
        said = []
        for service in services:
            if service.batch not in existing:
                continue
            rows = self._engine.rows(
                f"select run_id, count(*) from {service.batch} group by run_id"
            )
            for run_id, documents in rows:
                if self._has_happened(service, run_id):
                    self._tell(service, SUCCESS)
                    self._forget(service)
                    became = "had its effect, SUCCESS is recorded"
                else:
                    self._tell(service, STARTED)
                    became = "had no effect, it is made again"
                said.append(
                    f"{service.service}: run {run_id} was cut off with {documents} documents; it "
                    f"{became}"
                )
        return said

    def _has_happened(self, service: ModelService, run_id: str) -> bool:
        return bool(
            self._engine.rows(
                f"select 1 from {service.relation}.snapshots "
                f"where summary['run-id'] = {literal(run_id)} limit 1"
            )
        )

    # ---------------------------------------------------------------- one run

    def run(
        self,
        service: ModelService,
        sql: str,
        dispatched: str,
        states: str,
        existing: Collection[str],
        check: Callable[[], None],
    ) -> str:
        """Make the model's effect on the work there is; returns what to say of it.

        dispatched, states: the views dispatched_documents and execution_state; check: refuses where
        the run has lost its lock. Raises where the model cannot be used at all; then nothing was
        started.
        """
        self._freeze(service, dispatched, states, known=service.batch in existing)
        self._show(service)
        self._make_table(service, sql)
        documents = self._executions.start(
            lambda: self._freeze_again(service, dispatched, states),
            lambda _: self._rows_of(service, STARTED),
        )
        if documents is None:
            return "no work"
        failed = self._make_effect(service, sql, documents, check)
        self._tell(service, SUCCESS)
        self._forget(service)
        if not failed:
            return f"{documents} {SUCCESS}"
        return f"{documents - len(failed)} {SUCCESS}, {len(failed)} {TRANSIENT_ERROR}: {failed[0]}"

    def _freeze_again(self, service: ModelService, dispatched: str, states: str) -> int | None:
        self._freeze(service, dispatched, states, known=True)
        return int(self._engine.rows(f"select count(*) from {service.batch}")[0][0]) or None

    def _freeze(self, service: ModelService, dispatched: str, states: str, known: bool) -> None:
        """Write down what is to be done: what is dispatched, and what a killed run has started."""
        columns = (
            "delivery_id, trigger_name, service, attempt, queue_number, document_type, "
            "document_key, document, transport, received_at, decided_at"
        )
        left = f"""
            union all
            select {", ".join(f"batch.{name.strip()}" for name in columns.split(","))}
            from {service.batch} as batch
            inner join {states} as states
                on batch.delivery_id = states.delivery_id
                and batch.trigger_name = states.trigger_name
                and batch.attempt = states.attempts
                and states.state in ('STARTED', 'INTERRUPTED')
        """
        self._engine.rows(
            f"""
            create or replace table {service.batch} using iceberg as
            select
                row_number() over (order by trigger_name, queue_number, delivery_id) as place,
                {literal(self._run_id)} as run_id,
                current_timestamp() as started_at,
                {columns}
            from (
                select {columns} from {dispatched} where service = {literal(service.service)}
                {left if known else ""}
            )
            """
        )

    def _show(self, service: ModelService, first: int = 1, last: int | None = None) -> None:
        """Let the model see a part of the list."""
        upto = "" if last is None else f" and place <= {last}"
        self._engine.rows(
            f"create or replace view {service.work} as "
            f"select * except (place, run_id, started_at) from {service.batch} "
            f"where place >= {first}{upto}"
        )

    def _make_table(self, service: ModelService, sql: str) -> None:
        """Make the model's table, without a commit: only its effect shall carry the run's id."""
        self._engine.rows(
            f"create table if not exists {service.relation} ({self._columns(sql)}) using iceberg"
        )

    def _columns(self, sql: str) -> str:
        described = self._engine.rows(f"describe query {sql}")
        return ", ".join(f"`{name}` {kind}" for name, kind, *_ in described)

    def _make_effect(
        self, service: ModelService, sql: str, documents: int, check: Callable[[], None]
    ) -> list[str]:
        """Append what the model selects; the messages of documents that it fails on."""
        check()
        try:
            self._append(service.relation, sql)
        except Exception as error:
            parts = self._stage_parts(service, sql, documents, one_line(error))
        else:
            return []
        failed = []
        for first, last, message in parts:
            place = f"place between {first} and {last}"
            self._tell(service, TRANSIENT_ERROR, message, place)
            self._engine.rows(f"delete from {service.batch} where {place}")
            failed += [message] * (last - first + 1)
        if len(failed) < documents:
            check()
            self._append(service.relation, f"select * from {service.staged}")
        self._engine.rows(f"drop table if exists {service.staged} purge")
        self._show(service)
        return failed

    def _stage_parts(
        self, service: ModelService, sql: str, documents: int, message: str
    ) -> list[tuple[int, int, str]]:
        """Halve a list that fails until the bad documents stand alone, and stage what the model
        makes of the others: one bad row does not end a batch. Returns the parts that fail.
        """
        self._engine.rows(
            f"create or replace table {service.staged} ({self._columns(sql)}) using iceberg"
        )
        failed = []
        to_try = [(1, documents, message)]
        trials = 0
        while to_try:
            first, last, message = to_try.pop()
            if first == last or trials >= TRIALS:
                failed.append((first, last, message))
                continue
            middle = (first + last) // 2
            for part in ((first, middle), (middle + 1, last)):
                trials += 1
                self._show(service, *part)
                try:
                    self._append(service.staged, sql)
                except Exception as error:
                    to_try.append((*part, one_line(error)))
        return failed

    def _append(self, relation: str, sql: str) -> None:
        self._engine.rows(f"insert into {relation} by name select * from (\n{sql}\n)")

    # ---------------------------------------------------------------- telling

    def _tell(
        self, service: ModelService, event: str, message: str | None = None, where: str = "true"
    ) -> None:
        self._executions.append(self._rows_of(service, event, message, where))

    def _rows_of(
        self, service: ModelService, event: str, message: str | None = None, where: str = "true"
    ) -> str:
        """A row for each document of the list; its id is made of what it says, so that telling
        twice tells once."""
        ended = "null" if event == STARTED else "current_timestamp()"
        text = literal(message[:LONGEST_MESSAGE] if message else None)
        return (
            f"select concat_ws('/', {literal(self._run_id)}, trigger_name, delivery_id, "
            f"'{event}'), delivery_id, trigger_name, service, attempt, '{event}', "
            f"started_at, {ended}, {text}, current_timestamp() from {service.batch} "
            f"where {where}"
        )

    def _forget(self, service: ModelService) -> None:
        self._engine.rows(f"delete from {service.batch} where true")


def model_services(graph: Mapping[str, Any]) -> list[ModelService]:
    """The services of dbt's graph that are models; raises where two models are one service."""
    found: dict[str, ModelService] = {}
    for node in graph["nodes"].values():
        if node["resource_type"] != "model":
            continue
        if node["config"]["materialized"] != MATERIALIZATION:
            continue
        service = ModelService.of_node(node)
        other = found.setdefault(service.service, service)
        if other.model != service.model:
            raise ExactlyOnceError(
                f"exactly_once: models {other.model} and {service.model} are both service "
                f"{service.service}: give one of them another `service` in its meta"
            )
    return list(found.values())
