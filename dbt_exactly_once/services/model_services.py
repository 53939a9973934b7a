"""Services that are dbt models: they run after publication, on a frozen list of their work.

The rows that such a model selects are an effect (see effects.py), first written to a branch that
nobody reads. Then one append starts all its documents, in the same way as a worker starts them, and
the branch is published. So a document is started only when its effect is ready, and a killed run
leaves no doubt: the next run publishes the effect of the documents that it has started, and nothing
else has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_exactly_once.adapter.engine import Engine, literal
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.services.effects import Effect, UnknownCommitError
from dbt_exactly_once.services.executions import (
    LONGEST_MESSAGE,
    STARTED,
    SUCCESS,
    TRANSIENT_ERROR,
    Executions,
)

MATERIALIZATION = "service"
# marks in the SQL of `work()` the position of the condition that selects a part of the list
PART = "/* part */"
# how many parts of a list are tried before the rest is left to the next run
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

    def work(self, run_id: str) -> str:
        """The frozen list of a run; it is dropped once its outcome is recorded."""
        return self._lists + run_id.replace("-", "_")

    def cut_off(self, existing: Collection[str]) -> list[str]:
        """The interrupted runs: those whose lists still exist."""
        return [
            name.removeprefix(self._lists).replace("_", "-")
            for name in sorted(existing)
            if name.startswith(self._lists)
        ]

    @property
    def _lists(self) -> str:
        return f"{self.relation}__work_"


@dataclass
class Outcome:
    """What a model has made of its list."""

    listed: int
    done: list[tuple[int, int]] = field(default_factory=list)
    failed: list[tuple[int, str]] = field(default_factory=list)

    @property
    def is_done(self) -> str:
        """The condition for positions in the list."""
        return " or ".join(f"batch_position between {a} and {b}" for a, b in self.done) or "false"

    @property
    def documents(self) -> int:
        return sum(last - first + 1 for first, last in self.done)

    def __str__(self) -> str:
        text = f"{self.documents} {SUCCESS}"
        if self.failed:
            text += f", {len(self.failed)} {TRANSIENT_ERROR}: {self.failed[0][1]}"
        left = self.listed - self.documents - len(self.failed)
        return f"{text}; {left} are left to the next run" if left else text


class ModelServices:
    """Runs model services, and finishes what killed runs have started."""

    def __init__(self, engine: Engine, run_id: str, executions: Executions) -> None:
        self._engine = engine
        self._run_id = run_id
        self._executions = executions

    # ---------------------------------------------------------------- after a kill

    def settle(self, services: Iterable[ModelService], existing: Collection[str]) -> list[str]:
        """Finish what interrupted runs have started; returns lines that report it.

        existing: the tables that exist.
        """
        return [
            f"{service.service}: run {run_id} was cut off; "
            f"{self._settle(service, run_id, existing)}"
            for service in services
            for run_id in service.cut_off(existing)
        ]

    def _settle(self, service: ModelService, run_id: str, existing: Collection[str]) -> str:
        # if that run is still alive, a start that it is about to commit is refused
        self._executions.touch()
        begun = (
            "select delivery_id, trigger_name, service, attempt, min(started_at) as started_at "
            f"from {self._executions.relation} where service = {literal(service.service)} "
            f"and startswith(execution_id, {literal(f'{run_id}/')}) "
            "group by delivery_id, trigger_name, service, attempt "
            f"having count_if(event != '{STARTED}') = 0"
        )
        documents = self._engine.rows(f"select count(*) from ({begun})")[0][0]
        effect = Effect(self._engine, service.relation, run_id)
        settled = "it had started nothing, its work is done by this run"
        if documents:
            refused = effect.publish()
            if refused:
                settled = f"it is unknown whether {documents} documents are done ({refused})"
            else:
                self._executions.append(_rows_of(f"({begun})", run_id, SUCCESS))
                settled = f"its effect on {documents} documents is published"
        if service.relation in existing:
            effect.drop()
        self._drop_list(service, run_id)
        return settled

    # ---------------------------------------------------------------- one run

    def run(
        self, service: ModelService, sql: str, work: str, states: str, check: Callable[[], None]
    ) -> str:
        """Make the model's effect on the work there is; returns the outcome, for the log.

        work: the view service_work; states: the view execution_state; check: raises if the run
        has lost its lock. Raises if the model cannot be used at all; then nothing was started.
        """
        work_list = service.work(self._run_id)
        self._engine.rows(
            f"create or replace table {work_list} using iceberg as "
            f"select *, current_timestamp() as started_at from {work} "
            f"where service = {literal(service.service)}"
        )
        self._make_table(service, sql)
        found = self._engine.rows(
            "select min(batch_position), max(batch_position), is_serial "
            f"from {work_list} group by is_serial, trigger_name"
        )
        if not found:
            self._drop_list(service, self._run_id)
            return "no work"
        serial = [(int(first), int(last)) for first, last, is_serial in found if is_serial]
        effect = Effect(self._engine, service.relation, self._run_id)
        effect.begin()
        outcome = self._stage(effect, sql, max(int(last) for _, last, _ in found), serial)
        started = self._executions.start(
            lambda: self._still_to_be_done(work_list, states, outcome, check),
            lambda _: self._started(work_list, outcome),
        )
        if started and outcome.done:
            refused = effect.publish()
            if refused:
                raise ExactlyOnceError(
                    f"exactly_once: the effect of {service.service} on {outcome.documents} "
                    f"documents is not published yet: {refused}; the next run finishes it"
                )
            self._executions.append(
                _rows_of(work_list, self._run_id, SUCCESS, where=outcome.is_done)
            )
        effect.drop()
        self._drop_list(service, self._run_id)
        return str(outcome) if started else "others have begun its documents, nothing was done"

    def _make_table(self, service: ModelService, sql: str) -> None:
        described = self._engine.rows(f"describe query {sql}")
        columns = ", ".join(f"`{name}` {kind}" for name, kind, *_ in described)
        self._engine.rows(
            f"create table if not exists {service.relation} ({columns}) using iceberg"
        )

    def _stage(
        self, effect: Effect, sql: str, documents: int, serial: list[tuple[int, int]]
    ) -> Outcome:
        """Write the model's rows for its list, in its order, and find the documents it fails on.

        A part that fails is halved until the bad document is alone, so that it fails no others. If
        its trigger is serial, the later documents of that trigger are left to the next run.
        serial: the first and last position of each serial trigger.
        """
        outcome = Outcome(documents)
        parts = [(1, documents)]
        trials = 0
        while parts and trials < TRIALS:
            first, last = parts.pop()
            trials += 1
            try:
                effect.append(sql.replace(PART, f"and batch_position between {first} and {last}"))
            except UnknownCommitError:
                raise
            except Exception as error:
                if PART not in sql:
                    # it does not read work(), so to halve the list would change nothing
                    raise
                if trials == 1:
                    # raises if the model fails without documents too, as with a missing column
                    effect.append(sql.replace(PART, "and false"))
                if first < last:
                    middle = (first + last) // 2
                    parts += [(middle + 1, last), (first, middle)]
                    continue
                outcome.failed.append((first, one_line(error)))
                end = next((b for a, b in serial if a <= first <= b), first)
                parts = [(max(a, end + 1), b) for a, b in parts if b > end]
            else:
                outcome.done.append((first, last))
        return outcome

    def _still_to_be_done(
        self, work_list: str, states: str, outcome: Outcome, check: Callable[[], None]
    ) -> bool | None:
        """True if no event of the documents has landed since they were listed, else None."""
        check()
        reported = self._engine.rows(
            f"select 1 from {work_list} as work left join {states} as states "
            "on work.delivery_id = states.delivery_id and work.trigger_name = states.trigger_name "
            f"where {self._is_worked_on(outcome)} and (states.delivery_id is null "
            "or not states.last_event_at <=> work.last_event_at) limit 1"
        )
        return None if reported else True

    def _is_worked_on(self, outcome: Outcome) -> str:
        failed = "".join(f" or batch_position = {position}" for position, _ in outcome.failed)
        return f"({outcome.is_done}{failed})"

    def _started(self, work_list: str, outcome: Outcome) -> str:
        """The rows that start the documents, with a TRANSIENT_ERROR for those that fail."""
        rows = [_rows_of(work_list, self._run_id, STARTED, where=self._is_worked_on(outcome))]
        rows += [
            _rows_of(
                work_list, self._run_id, TRANSIENT_ERROR, message, f"batch_position = {position}"
            )
            for position, message in outcome.failed
        ]
        return " union all ".join(rows)

    def _drop_list(self, service: ModelService, run_id: str) -> None:
        self._engine.rows(f"drop table if exists {service.work(run_id)} purge")


def _rows_of(
    documents: str, run_id: str, event: str, message: str | None = None, where: str = "true"
) -> str:
    """A row of trigger_executions for each document. Its id is computed from its content, so that a
    repeated report counts once; names are in it as JSON, since they may contain a slash."""
    ended = "cast(null as timestamp)" if event == STARTED else "current_timestamp()"
    text = literal(message[:LONGEST_MESSAGE] if message else None)
    return (
        f"select concat_ws('/', {literal(run_id)}, to_json(array(trigger_name, delivery_id)), "
        f"'{event}'), "
        f"delivery_id, trigger_name, service, attempt, '{event}', started_at, {ended}, "
        f"cast({text} as string), cast(null as string), current_timestamp() "
        f"from {documents} where {where}"
    )


def model_services(graph: Mapping[str, Any]) -> list[ModelService]:
    """The services of dbt's graph that are models; raises if two models are the same service."""
    found: dict[str, ModelService] = {}
    for node in graph["nodes"].values():
        if node["resource_type"] != "model":
            continue
        if node["config"]["materialized"] != MATERIALIZATION:
            continue
        service = ModelService.of_node(node)
        other = found.setdefault(service.service, service)
        if other != service:
            # a model of another dbt package may have the same name
            raise ExactlyOnceError(
                f"exactly_once: models {other.relation} and {service.relation} are both service "
                f"{service.service}: give one of them another `service` in its meta"
            )
    return list(found.values())
