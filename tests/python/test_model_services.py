"""A service that is a dbt model has its effect once, whatever becomes of the run."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.dbt_commands import SILENT, dbt
from dbt_exactly_once.adapter.engine import Engine, run_in
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.services.effects import Effect
from dbt_exactly_once.services.executions import Executions
from dbt_exactly_once.services.model_services import ModelService, ModelServices, model_services

MODEL = """
{{ config(materialized='service', meta={'service': 'book_order'}) }}
select
    delivery_id,
    if(
        document like '%bad%',
        raise_error(concat('cannot book ', document)),
        get_json_object(document, '$.order')
    ) as order_number
from {{ work() }}
"""
NOW = datetime.now(timezone.utc)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    project = yaml.safe_load((tmp_path / "dbt_project.yml").read_text())
    project["model-paths"] = ["models", "services"]
    (tmp_path / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "booked_orders.sql").write_text(MODEL)
    found.forget_parsed()
    found.seed(
        "triggers",
        [
            {
                "trigger_name": "orders",
                "processing_mode": "concurrent",
                "detect_duplicates": True,
                "use_history": True,
                "max_retry_attempts": 1,
                "retry_interval_ms": 0,
                # over before a run is: what a killed one has left is known all the same
                "execution_timeout_ms": 1,
            }
        ],
    )
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "orders",
                "position": 1,
                "condition_name": "order",
                "document_type": "order",
                "service": "book_order",
            }
        ],
    )
    found.run("seed")
    return found


def land_serial(runs: DbtRuns, documents: dict[str, str]) -> None:
    with (runs.folder / "seeds" / "triggers.csv").open() as file:
        rows = list(csv.DictReader(file))
    runs.seed("triggers", [{**row, "processing_mode": "serial"} for row in rows])
    runs.run("seed")
    land(runs, documents)


def land(runs: DbtRuns, documents: dict[str, str]) -> None:
    runs.land(
        "deliveries",
        [
            {
                "delivery_id": name,
                "received_at": NOW - timedelta(minutes=5),
                "landed_at": NOW,
                "transport": "RABBITMQ",
                "document_type": "order",
                "guaranteed": True,
                "uuid": f"u-{name}",
                "redelivery_count": 0,
                "document": f'{{"order": "{document}"}}',
            }
            for name, document in documents.items()
        ],
    )


def whole_run(runs: DbtRuns) -> Any:
    return runs.dbt("run", "--selector", "hot_path")


def booked(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(runs.rows("select delivery_id, order_number from {schema}.booked_orders"))


def told(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(
        runs.rows(
            "select delivery_id, attempt, event, count(*) from {landing}.trigger_executions "
            "group by delivery_id, attempt, event"
        )
    )


def test_reports_are_told_apart_whatever_triggers_and_deliveries_are_named(runs: DbtRuns) -> None:
    """A name may have what stands between names."""
    folder = runs.folder / "seeds"
    for seed in ("triggers", "trigger_conditions"):
        with (folder / f"{seed}.csv").open() as file:
            (row,) = csv.DictReader(file)
        runs.seed(seed, [row, {**row, "trigger_name": "orders/eu"}])
    runs.run("seed")
    land(runs, {"eu/17": "1", "17": "2"})
    runs.rows(
        "update {landing}.deliveries set destination = "
        "if(delivery_id = '17', 'orders/eu', 'orders')"
    )
    assert whole_run(runs).success
    assert whole_run(runs).success
    assert booked(runs) == [("17", "2"), ("eu/17", "1")]
    assert runs.rows("select count(*) from {schema}.open_documents") == [(0,)]
    ends = "select delivery_id from {schema}.journal_entries where event = 'SUCCESS' order by 1"
    assert runs.rows(ends) == [("17",), ("eu/17",)]


@pytest.mark.parametrize(("name", "schema"), [("books", "shop"), ("booked_orders", "other")])
def test_two_models_are_not_one_service(name: str, schema: str) -> None:
    """A model of another dbt package may have the same name."""

    def node(name: str, schema: str) -> dict[str, Any]:
        config = {"materialized": "service", "meta": {"service": "book_order"}}
        return {
            "name": name,
            "alias": name,
            "schema": schema,
            "resource_type": "model",
            "config": config,
        }

    nodes = {"a": node("booked_orders", "shop"), "b": node(name, schema)}
    with pytest.raises(ExactlyOnceError) as error:
        model_services({"nodes": nodes})
    assert error.value.msg == (
        f"exactly_once: models shop.booked_orders and {schema}.{name} are both service "
        "book_order: give one of them another `service` in its meta"
    )


def test_one_bad_row_does_not_end_a_batch(runs: DbtRuns) -> None:
    land(runs, {"d1": "1", "d2": "bad", "d3": "3"})
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d3", "3")]
    assert told(runs) == [
        ("d1", 1, "STARTED", 1),
        ("d1", 1, "SUCCESS", 1),
        ("d2", 1, "STARTED", 1),
        ("d2", 1, "TRANSIENT_ERROR", 1),
        ("d3", 1, "STARTED", 1),
        ("d3", 1, "SUCCESS", 1),
    ]
    (message,) = runs.rows(
        "select message from {landing}.trigger_executions where event = 'TRANSIENT_ERROR'"
    )[0]
    assert 'cannot book {"order": "bad"}' in message

    # the retry is the last attempt; the others are completed
    assert whole_run(runs).success
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d3", "3")]
    assert sorted(
        runs.rows(
            "select delivery_id, event from {schema}.journal_entries "
            "where event in ('SUCCESS', 'RETRIES_EXHAUSTED')"
        )
    ) == [("d1", "SUCCESS"), ("d2", "RETRIES_EXHAUSTED"), ("d3", "SUCCESS")]
    assert runs.rows("select * from {schema}.open_documents") == []


def test_what_a_service_fails_on_is_heard_of(profiles_dir: Path, tmp_path: Path) -> None:
    """It warns; the loop says in its line what dbt says to people."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.sql").write_text(
        "{{ log('exactly_once: booked 3', info=true) }}{{ log('another line', info=true) }}"
        "{% do exceptions.warn('exactly_once: 1 TRANSIENT_ERROR') %} select 1"
    )
    (tmp_path / "dbt_project.yml").write_text("name: exactly_once\nprofile: exactly_once\n")
    place = [f"--project-dir={tmp_path}", f"--profiles-dir={profiles_dir}"]
    outcome = dbt(["parse", *SILENT, *place])
    assert outcome.result.success, outcome.failures
    assert outcome.messages == ["booked 3", "1 TRANSIENT_ERROR"]


def test_a_table_that_lacks_a_column_fails_the_model_and_no_document(runs: DbtRuns) -> None:
    land(runs, {"d1": "1"})
    assert whole_run(runs).success
    before = told(runs)
    model = runs.folder / "services" / "booked_orders.sql"
    model.write_text(MODEL.replace("from {{ work() }}", "    , 'x' as added\nfrom {{ work() }}"))
    runs.forget_parsed()
    land(runs, {"d2": "2", "d3": "3"})
    (message,) = failures(whole_run(runs))
    assert "booked_orders" in message
    assert "added" in message
    assert told(runs) == before

    runs.rows("alter table {schema}.booked_orders add column added string")
    assert whole_run(runs).success
    assert [name for name, _ in booked(runs)] == ["d1", "d2", "d3"]


def test_a_run_that_dies_behind_the_effect_is_a_success(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(runs, {"d1": "1"})
    die(monkeypatch, "_drop_list")
    assert "killed" in failures(whole_run(runs))[0]
    monkeypatch.undo()
    # nobody has heard the end
    runs.rows("delete from {landing}.trigger_executions where event = 'SUCCESS'")
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1")]
    assert runs.rows("select event from {schema}.journal_entries") == [("SUCCESS",)]


def test_a_run_that_dies_before_the_effect_is_made_again(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.11: what a hook of the model writes to its table is not taken for the effect."""
    runs.rows("create table {schema}.booked_orders (delivery_id string, order_number string)")
    hook = """pre_hook="insert into {{ this }} select 'hook', 'h'", meta="""
    model = runs.folder / "services" / "booked_orders.sql"
    model.write_text(MODEL.replace("meta=", hook))
    runs.forget_parsed()
    land(runs, {"d1": "1", "d2": "2"})
    die(monkeypatch, "_stage")
    assert "killed" in failures(whole_run(runs))[0]
    monkeypatch.undo()
    assert booked(runs) == [("hook", "h")]
    assert told(runs) == []
    land(runs, {"d3": "3"})
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d2", "2"), ("d3", "3"), ("hook", "h"), ("hook", "h")]


def test_a_serial_trigger_is_worked_through_in_one_batch_up_to_the_document_that_fails(
    runs: DbtRuns,
) -> None:
    """19.5: a model takes all documents of a serial trigger in their order; of those behind one
    that fails none is done, or started, before it."""
    land_serial(runs, {"d1": "1", "d2": "2", "d3": "bad", "d4": "4", "d5": "5"})
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d2", "2")]
    assert [row[:3] for row in told(runs)] == [
        ("d1", 1, "STARTED"),
        ("d1", 1, "SUCCESS"),
        ("d2", 1, "STARTED"),
        ("d2", 1, "SUCCESS"),
        ("d3", 1, "STARTED"),
        ("d3", 1, "TRANSIENT_ERROR"),
    ]
    # the second attempt is the last one, and the next run hears of it
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d2", "2")]
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d2", "2"), ("d4", "4"), ("d5", "5")]


class Runs:
    """Runs of the service outside of dbt, which can be made to cross each other."""

    def __init__(
        self, runs: DbtRuns, monkeypatch: pytest.MonkeyPatch, engine: Engine | None = None
    ) -> None:
        found: dict[str, Any] = {}

        def keep(
            self: ModelServices, service: ModelService, sql: str, work: str, states: str, _: Any
        ) -> str:
            found.update(service=service, sql=sql, work=work, states=states, run_id=self._run_id)
            raise RuntimeError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(ModelServices, "run", keep)
            assert "killed" in failures(whole_run(runs))[0]
        self._found = found
        self._runs = runs
        self._engine = engine or Engine(run_in(runs.spark))

    def services(self, run_id: str) -> ModelServices:
        executions = Executions(self._engine, f"{self._runs.landing}.trigger_executions")
        return ModelServices(self._engine, run_id, executions)

    def run(self, run_id: str, check: Any = lambda: None) -> str:
        found = self._found
        lists = [found["service"].work(name) for name in (found["run_id"], run_id)]
        return self.services(run_id).run(
            found["service"], found["sql"].replace(*lists), found["work"], found["states"], check
        )

    def settle(self, run_id: str) -> list[str]:
        schema = self._runs.schema
        tables = {f"{schema}.{row[1]}" for row in self._engine.rows(f"show tables in {schema}")}
        return self.services(run_id).settle([self._found["service"]], tables)


def test_a_run_that_was_taken_over_adds_nothing_to_the_effect(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.9: a run is taken over while its insert is at work, or between the start of its documents
    and the publication of the effect; each document has its effect once all the same."""
    land(runs, {"d1": "1", "d2": "2"})
    crossing = Runs(runs, monkeypatch)
    settled: list[str] = []

    def take_over() -> None:
        if not settled:
            settled.extend(crossing.settle("b"))
            settled.append(crossing.run("b"))
            raise ExactlyOnceError("run a has lost its lock")

    with pytest.raises(ExactlyOnceError, match="lost its lock"):
        crossing.run("a", check=take_over)
    assert settled == [
        "book_order: run a was cut off; it had started nothing, its work is done by this run",
        "2 SUCCESS",
    ]
    assert booked(runs) == [("d1", "1"), ("d2", "2")]
    assert [row[3] for row in told(runs)] == [1, 1, 1, 1]

    land(runs, {"d3": "3"})
    crossing = Runs(runs, monkeypatch)
    publish = Effect.publish

    def publish_late(effect: Effect) -> str:
        monkeypatch.setattr(Effect, "publish", publish)
        settled[:] = crossing.settle("d")
        # and somebody has written to the table meanwhile
        runs.rows("insert into {schema}.booked_orders select 'other', 'o'")
        assert publish(effect) == "", "it has happened"
        raise RuntimeError("killed")

    monkeypatch.setattr(Effect, "publish", publish_late)
    with pytest.raises(RuntimeError, match="killed"):
        crossing.run("c")
    assert settled == ["book_order: run c was cut off; its effect on 1 documents is published"]
    assert booked(runs) == [("d1", "1"), ("d2", "2"), ("d3", "3"), ("other", "o")]

    # the effect is ready and its documents are started when the run dies
    land(runs, {"d4": "4"})
    crossing = Runs(runs, monkeypatch)
    monkeypatch.setattr(Effect, "publish", lambda _: "killed")
    with pytest.raises(ExactlyOnceError, match="is not published yet"):
        crossing.run("e")
    monkeypatch.undo()
    runs.rows("insert into {schema}.booked_orders select 'other', 'p'")
    assert whole_run(runs).success
    assert booked(runs)[3:] == [("d4", "4"), ("other", "o"), ("other", "p")]
    assert ("d4", 1, "SUCCESS", 1) in told(runs)
    tables = [row[1] for row in runs.rows("show tables in {schema}")]
    assert not [name for name in tables if "__work_" in name]
    refs = runs.rows("select name from {schema}.booked_orders.refs")
    assert refs == [("main",)]


class LostAnswers(Engine):
    """A catalog that does what it is asked and then says that it does not know."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(run_in(spark))
        self.to_be_lost = [
            "branch_effect_ insert",
            "fast_forward trigger_executions",
            "fast_forward booked_orders",
        ]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        found = super().rows(sql)
        for kind in self.to_be_lost:
            if all(part in sql for part in kind.split()):
                self.to_be_lost.remove(kind)
                raise RuntimeError("CommitStateUnknownException: 504 Gateway Timeout")
        return found


def test_a_commit_whose_answer_is_lost_is_looked_up_and_not_made_again(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.10: neither the insert of a service nor its publication is repeated when the catalog does
    not say whether it has happened."""
    land(runs, {"d1": "1"})
    engine = LostAnswers(runs.spark)
    assert Runs(runs, monkeypatch, engine).run("a") == "1 SUCCESS"
    assert engine.to_be_lost == []
    assert booked(runs) == [("d1", "1")]
    assert told(runs) == [("d1", 1, "STARTED", 1), ("d1", 1, "SUCCESS", 1)]


def die(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(ModelServices, step, killed)
