"""A preview decides what a run would, says it, and leaves everything as it was."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import LEDGERS, DbtRuns, failures
from pyspark.sql import SparkSession

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
PREVIEW = {"publish": False}


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """One trigger that detects by count alone, and has nothing to run."""
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed("triggers", [{"trigger_name": "count_only", "detect_duplicates": True}])
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "count_only",
                "position": 1,
                "condition_name": "all",
                "document_type": "order.created",
            }
        ],
    )
    found.run("seed")
    return found


def delivery(number: int, key: str, count: int = 0) -> dict[str, Any]:
    return {
        "delivery_id": f"d{number}",
        "received_at": NOON + timedelta(seconds=number),
        "landed_at": NOON + timedelta(minutes=1),
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": key,
        "redelivery_count": count,
    }


def published(runs: DbtRuns) -> dict[str, Any]:
    """The snapshots of the ledgers, their branches, and what has gone to the services."""
    state: dict[str, Any] = {
        name: runs.rows(f"select name, snapshot_id from {{schema}}.{name}.refs") for name in LEDGERS
    }
    state["new_documents"] = runs.rows("select count(*) from {schema}.new_documents")
    state["trigger_settings"] = sorted(runs.rows("select * from {schema}.trigger_settings"))
    state["tags"] = runs.rows("select name, snapshot_id from {landing}.deliveries.refs")
    return state


def test_a_preview_publishes_nothing_and_says_what_it_would_have_decided(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    runs.land("deliveries", [delivery(1, "a"), delivery(2, "a", count=1), delivery(3, "b", 1)])
    runs.run("run")
    runs.land("deliveries", [delivery(4, "b", count=2), delivery(5, "c")])
    before = published(runs)

    # what has landed since the last run, with the settings as they are
    told = say(runs, capfd, PREVIEW)
    assert "preview, nothing is published: 2 taken, 2 decided, 0 waiting" in told
    assert "count_only: 1 IN_DOUBT, 1 NEW" in told
    assert "in doubt, count_only: 1 by rule R05, its transport delivered it before" in told
    assert published(runs) == before

    # with the settings as they are of a trigger that is named
    told = say(runs, capfd, {**PREVIEW, "preview_triggers": {"count_only": {}}})
    assert "count_only: 1 IN_DOUBT, 1 NEW" in told

    # with other settings
    other = {"preview_triggers": {"count_only": {"use_history": True}}}
    assert "count_only: 2 NEW" in say(runs, capfd, {**PREVIEW, **other})
    blank = {"preview_triggers": {"count_only": {"detect_duplicates": ""}}}
    assert "count_only: 2 NOT_CHECKED" in say(runs, capfd, {**PREVIEW, **blank})
    assert published(runs) == before

    # of all that has ever landed: of d2 and d3, which count leaves in doubt, history knows
    told = say(runs, capfd, {**PREVIEW, **other, "preview_all_landed": True})
    assert "preview, nothing is published: 5 taken, 5 decided" in told
    assert "count_only: 2 DUPLICATE, 3 NEW" in told
    assert "count_only: 1 IN_DOUBT would be DUPLICATE" in told
    assert "count_only: 1 IN_DOUBT would be NEW" in told
    assert published(runs) == before

    # the next run is as if no preview had been
    runs.run("run")
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status order by delivery_id"
    ) == [("d1", "NEW"), ("d2", "IN_DOUBT"), ("d3", "IN_DOUBT"), ("d4", "IN_DOUBT"), ("d5", "NEW")]
    assert runs.rows("select count(*) from {schema}.new_documents") == [(2,)]


def test_a_test_compares_no_preview_with_the_ledgers(runs: DbtRuns) -> None:
    compares, looks = "every_taken_delivery_has_exactly_one_fate", "a_delivery_is_decided_once"
    select = ("test", "--select", compares, looks)
    assert "no run was published yet" in "".join(failures(runs.dbt(*select)))
    runs.land("deliveries", [delivery(1, "a")])
    runs.run("run", variables=PREVIEW)
    assert "no run was published yet" in "".join(failures(runs.dbt(*select)))
    runs.run("run")
    runs.land("deliveries", [delivery(2, "b")])
    runs.run("run", variables=PREVIEW)
    [told] = failures(runs.dbt(*select))
    assert told.startswith(compares)
    assert "trigger_queue are of a run that was not published, a preview or one that has" in told
    runs.run("run")
    runs.run(*select)


def say(runs: DbtRuns, capfd: pytest.CaptureFixture[str], variables: dict[str, Any]) -> str:
    """What a run with these variables says at its end."""
    capfd.readouterr()
    runs.run("run", variables=variables, quiet=False)
    return capfd.readouterr().out


def test_a_wrong_preview_is_refused_in_one_line(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    def settings(trigger: str = "count_only", **changed: Any) -> dict[str, Any]:
        return {**PREVIEW, "preview_triggers": {trigger: changed}}

    for variables, told in (
        ({"publish": "no"}, "variable publish is 'no': use true or false"),
        (
            {**settings(use_history=True), "publish": True},
            "preview_triggers is for a preview: add publish: false",
        ),
        (
            settings("nobody", use_history=True),
            "no trigger is named nobody; seeds/triggers.csv has count_only",
        ),
        (
            settings(history=True),
            "preview_triggers, trigger count_only: history is no setting; they are enabled, api",
        ),
        (
            settings(history_time_to_live_ms="2 h"),
            "history_time_to_live_ms is 2 h: use a whole number, 0 to 10000000000000",
        ),
        (
            {**PREVIEW, "preview_triggers": {"count_only": None}},
            "trigger count_only: give settings, such as {use_history: true}",
        ),
        (
            settings(key="substring("),
            "preview_triggers, trigger count_only: the key substring( cannot be used",
        ),
    ):
        capfd.readouterr()
        result = runs.dbt("run", "--select", "tag:transaction", variables=variables)
        assert not result.success
        assert told in " ".join(capfd.readouterr().out.split())
