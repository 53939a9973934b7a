"""Times are UTC wherever Python, Java and Spark think they are, and clocks may be wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.report.page import ask_spark, make_page

ELSEWHERE = "America/New_York"
# there the clocks went from 01:59 to 01:00, at 06:00 UTC
SUNDAY = "2025-11-02"
SESSION_ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def elsewhere(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """The shared session, and this process, in a zone that has summer time."""
    java = spark._jvm.java.util.TimeZone
    before, session_zone = java.getDefault(), spark.conf.get(SESSION_ZONE)
    monkeypatch.setenv("TZ", ELSEWHERE)
    time.tzset()
    java.setDefault(java.getTimeZone(ELSEWHERE))
    spark.conf.set(SESSION_ZONE, ELSEWHERE)
    yield spark
    spark.conf.set(SESSION_ZONE, session_zone)
    java.setDefault(before)
    monkeypatch.undo()
    time.tzset()


def test_an_hour_that_a_zone_has_twice_is_two_hours(
    elsewhere: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    runs = DbtRuns(elsewhere, profiles_dir, tmp_path)
    runs.seed(
        "triggers",
        [
            {
                "trigger_name": "hourly",
                "detect_duplicates": True,
                "use_history": True,
                "history_time_to_live_ms": 3_600_000,
            }
        ],
    )
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "hourly",
                "position": 1,
                "condition_name": "all",
                "document_type": "order",
            }
        ],
    )
    runs.run("seed")
    project = Project(runs.folder, {"landing_schema": runs.landing}, PROJECT_FOLDER)
    late = {"allowed_lateness_ms": 0}

    land_times(project, elsewhere, tmp_path, "04:50:00Z", "05:40:00", "06:10:00+00:00")
    runs.decide(variables=late)
    # 01:50 for the second time, with an offset; then a time before what has been removed by now
    land_times(project, elsewhere, tmp_path, "01:50:00-05:00", "09:00:00Z")
    runs.decide(variables=late)
    land_times(project, elsewhere, tmp_path, "06:59:00Z")
    runs.run("run", variables=late)

    assert runs.rows(
        "select delivery_id, status, rule_id, matched_delivery_id, "
        "unix_seconds(expires_at) - unix_seconds(received_at) "
        "from {schema}.document_status order by received_at"
    ) == [
        ("04:50:00Z", "NEW", "R07", None, 3600),
        ("05:40:00", "DUPLICATE", "R09", "04:50:00Z", None),
        ("06:10:00+00:00", "NEW", "R07", None, 3600),
        ("01:50:00-05:00", "DUPLICATE", "R09", "06:10:00+00:00", None),
        ("06:59:00Z", "IN_DOUBT", "R15", None, None),
        ("09:00:00Z", "NEW", "R07", None, 3600),
    ]
    ((removed, landed, decided, published),) = runs.rows(
        "select max(unix_seconds(history_removed_before)), "
        "max(unix_seconds(deliveries.landed_at)), "
        "max(unix_seconds(started_at)), max(unix_seconds(published_at)) "
        "from {schema}.published_runs, {landing}.deliveries"
    )
    assert datetime.fromtimestamp(removed, timezone.utc).isoformat() == f"{SUNDAY}T09:00:00+00:00"
    for known in (landed, decided, published):
        assert abs(known - time.time()) < 300

    ((behind,),) = runs.rows("select rows_behind from {schema}.doubts_by_cause")

    # what people read in a session that no run has set right
    elsewhere.conf.set(SESSION_ZONE, ELSEWHERE)
    assert [row["delivery_id"] for row in elsewhere.sql(str(behind)).collect()] == ["06:59:00Z"]
    ((told,),) = runs.rows(
        "select explanation from {schema}.explanations where delivery_id = '01:50:00-05:00'"
    )
    assert f"received {SUNDAY} 06:50:00.000 UTC" in str(told)
    page = make_page(ask_spark(elsewhere, runs.schema), runs.schema)
    for hour in ("04", "05", "06", "09"):
        assert f">{SUNDAY} {hour}:00</td>" in page


def test_a_clock_that_is_wrong_changes_no_decision(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    history = {"detect_duplicates": True, "use_history": True, "processing_mode": "concurrent"}
    runs.seed("triggers", [{"trigger_name": "ships", **history}])
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "ships",
                "position": 1,
                "condition_name": "all",
                "document_type": "order",
                "service": "ship",
            }
        ],
    )
    runs.run("seed")
    noon = datetime(2026, 5, 2, 12, tzinfo=timezone.utc)

    def decide(clock: datetime, *names: str) -> None:
        shared = {"transport": "RABBITMQ", "document_type": "order", "guaranteed": True}
        runs.land(
            "deliveries",
            [
                {
                    **shared,
                    "delivery_id": name,
                    "uuid": name[0],
                    "received_at": noon + timedelta(minutes=minute),
                    "landed_at": noon,
                }
                for minute, name in enumerate(names)
            ],
        )
        selected = ("tag:transaction", "execution_state", "dispatched_documents")
        runs.run("run", "--select", *selected, clock=clock, variables={"as_of": f"{noon:%Y-%m-%d}"})

    def tell(number: int, name: str, event: str, at: datetime) -> None:
        runs.land(
            "trigger_executions",
            [
                {
                    "execution_id": f"e{number}",
                    "delivery_id": name,
                    "trigger_name": "ships",
                    "service": "ship",
                    "attempt": 1,
                    "event": event,
                    "started_at": at,
                    "ended_at": None if event == "STARTED" else at,
                    "recorded_at": at,
                }
            ],
        )

    # a service whose clock is 16 hours behind has ended: nobody is to run it again
    decide(noon, "a1", "b1")
    early = noon - timedelta(hours=16)
    tell(1, "a1", "STARTED", early)
    tell(2, "a1", "SUCCESS", early + timedelta(minutes=1))
    assert runs.rows("select delivery_id, state from {schema}.execution_state order by 1") == [
        ("a1", "ENDED"),
        ("b1", "DISPATCHED"),
    ]
    # the clock of the runs goes back by a day, then forward by two
    decide(noon - timedelta(days=1), "a2", "c1")
    tell(3, "b1", "SUCCESS", noon)
    decide(noon + timedelta(days=1), "b2", "c2")
    assert runs.rows(
        "select delivery_id, status, rule_id from {schema}.document_status order by 1"
    ) == [
        ("a1", "NEW", "R07"),
        ("a2", "DUPLICATE", "R09"),
        ("b1", "NEW", "R07"),
        ("b2", "DUPLICATE", "R09"),
        ("c1", "NEW", "R07"),
    ]
    # of c1 nothing was told yet
    assert runs.rows("select delivery_id, reason from {schema}.waiting_deliveries") == [
        ("c2", "UNFINISHED_DOCUMENT")
    ]
    assert runs.rows("select run_number from {schema}.published_runs order by 1") == [
        (1,),
        (2,),
        (3,),
    ]


def land_times(project: Project, spark: SparkSession, folder: Path, *times: str) -> None:
    """Land a delivery of one document for each time of the Sunday, which is its id as well."""
    file = folder / "deliveries.jsonl"
    shared = {
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": "the same",
    }
    rows = [
        {**shared, "delivery_id": time_of_day, "received_at": f"{SUNDAY}T{time_of_day}"}
        for time_of_day in times
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    land(spark, project, [file], "deliveries")
