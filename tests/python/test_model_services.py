"""A service that is a dbt model has its effect once, whatever becomes of the run."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.services import ModelServices

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
    return runs.dbt(
        "run",
        "--select",
        "tag:transaction",
        "execution_state",
        "dispatched_documents",
        "config.materialized:service",
    )


def booked(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(runs.rows("select delivery_id, order_number from {schema}.booked_orders"))


def told(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(
        runs.rows(
            "select delivery_id, attempt, event, count(*) from {landing}.trigger_executions "
            "group by delivery_id, attempt, event"
        )
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


def test_a_run_that_dies_behind_the_effect_is_a_success(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(runs, {"d1": "1"})
    die(monkeypatch, "_forget")
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
    land(runs, {"d1": "1", "d2": "2"})
    die(monkeypatch, "_make_effect")
    assert "killed" in failures(whole_run(runs))[0]
    monkeypatch.undo()
    assert booked(runs) == []
    land(runs, {"d3": "3"})
    assert whole_run(runs).success
    assert booked(runs) == [("d1", "1"), ("d2", "2"), ("d3", "3")]


def die(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(ModelServices, step, killed)
