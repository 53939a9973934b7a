"""`explain` says in plain words why: the whole text for every rule, and the stories around it."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
RULES = {
    row["rule_id"]: row
    for row in csv.DictReader((PROJECT_FOLDER / "seeds" / "decision_rules.csv").open())
}
LONG_KEY = "order-" + "0123456789" * 10


def is_true(value: str) -> bool:
    """A column of the rule table; what may be either is taken as false."""
    return value == "true"


def trigger_of(rule: dict[str, str]) -> dict[str, Any]:
    """The settings under which a rule is the one."""
    return {
        "trigger_name": f"trigger_{rule['rule_id']}",
        "detect_duplicates": rule["detect_duplicates"] != "false",
        "use_history": is_true(rule["use_history"]),
        "resolver": "ask_orders" if is_true(rule["has_resolver"]) else None,
        "suspend_on_preprocessing_error": is_true(rule["suspends_on_error"]),
    }


def key_state_of(rule: dict[str, str]) -> str:
    if "TOO_LONG" not in rule["key_state"]:
        return "USABLE"
    return "TOO_LONG" if rule["rule_id"][-1] in "cdef" else "MISSING"


def landed_row(rule: dict[str, str]) -> dict[str, Any]:
    """A delivery that the rule decides."""
    undefined = rule["redelivery"].startswith("UNDEFINED")
    count = None if undefined else 0 if rule["redelivery"] == "FIRST" else 2
    key = {"USABLE": f"order-{rule['rule_id']}", "TOO_LONG": LONG_KEY, "MISSING": None}
    return {
        "delivery_id": f"delivery-{rule['rule_id']}",
        "received_at": NOON,
        "landed_at": NOON + timedelta(seconds=5),
        "transport": "KAFKA" if undefined else "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": rule["eligible"] != "false",
        "uuid": key[key_state_of(rule)],
        "redelivery_count": count,
    }


def facts_of(rule: dict[str, str]) -> dict[str, Any]:
    """The row of document_status that a decision by the rule leaves."""
    landed = landed_row(rule)
    key_state = key_state_of(rule)
    state = rule["history_state"]
    answer = rule["resolver_result"]
    return {
        **landed,
        "trigger_name": f"trigger_{rule['rule_id']}",
        "document_key": landed["uuid"],
        "key_source": "UUID" if landed["uuid"] else None,
        "key_state": key_state,
        "status": rule["status"],
        "decided_by": rule["decided_by"],
        "rule_id": rule["rule_id"],
        "redelivery": "UNDEFINED"
        if landed["redelivery_count"] is None
        else "FIRST"
        if landed["redelivery_count"] == 0
        else "REDELIVERED",
        "history_state": "NONE" if state == "*" else state,
        "resolver_result": None if answer == "*" else answer,
        "message": None if answer == "*" else "order 7 looked up",
        "matched_delivery_id": "delivery-before"
        if state in ("PROCESSING", "COMPLETED", "BOTH")
        else None,
        "condition_name": "created",
        "decided_at": NOON + timedelta(minutes=1),
        "run_id": "run-1",
        "recoveries": 0,
        "landed_received_at": NOON,
    }


def waiting_of(rule: dict[str, str]) -> dict[str, Any]:
    """The row of waiting_deliveries of a delivery that has suspended its trigger."""
    landed = landed_row(rule)
    return {
        **landed,
        "trigger_name": f"trigger_{rule['rule_id']}",
        "reason": "SUSPENDED",
        "waiting_since": NOON + timedelta(minutes=1),
        "landed_delivery_id": landed["delivery_id"],
        "landed_received_at": NOON,
        "origin": "LANDED",
        "recoveries": 0,
        "examined": True,
    }


def state_of(rule: dict[str, str]) -> dict[str, Any]:
    """The row of trigger_states of a trigger that a rule has suspended."""
    suspension = {
        "since": NOON + timedelta(minutes=1),
        "cause": rule["decided_by"],
        "caused_by": f"delivery-{rule['rule_id']}",
        "reason": None if rule["decided_by"] == "HISTORY_ERROR" else "order 7 looked up",
    }
    return {
        "trigger_name": f"trigger_{rule['rule_id']}",
        "enabled": True,
        "is_suspended": True,
        "suspended_cause": suspension["cause"],
        "suspended_since": suspension["since"],
        "suspended_by": suspension["caused_by"],
        "suspended_reason": suspension["reason"],
        "suspensions": [suspension],
        "took_documents": True,
    }


def insert(runs: DbtRuns, ledger: str, rows: list[dict[str, Any]]) -> None:
    schema = runs.table(ledger).schema
    frame = runs.spark.createDataFrame(
        [tuple(row.get(name) for name in schema.names) for row in rows], schema
    )
    frame.coalesce(1).writeTo(f"{runs.schema}.{ledger}").append()


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A project whose ledgers hold one delivery for every rule, each in a trigger of its own."""
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("explain"))
    found.run("seed")
    found.run("run")
    found.seed("triggers", [trigger_of(rule) for rule in RULES.values()])
    found.run("seed", "--select", "triggers")
    suspended = [rule for rule in RULES.values() if rule["status"] == "SUSPENDED"]
    decided = [rule for rule in RULES.values() if rule["status"] != "SUSPENDED"]
    found.land("deliveries", [landed_row(rule) for rule in RULES.values()])
    insert(found, "document_status", [facts_of(rule) for rule in decided])
    insert(found, "waiting_deliveries", [waiting_of(rule) for rule in suspended])
    insert(found, "trigger_states", [state_of(rule) for rule in suspended])
    return found


def written_out() -> dict[str, str]:
    """The texts that explained_rules.txt has, by rule."""
    text = (Path(__file__).parent / "explained_rules.txt").read_text(encoding="utf-8")
    return {block.split("\n")[0]: block.split("\n", 1)[1] for block in text.strip().split("\n\n")}


def test_every_rule_is_explained(runs: DbtRuns) -> None:
    told = dict(runs.rows("select rule_id, explanation from {schema}.explanations"))
    texts = written_out()
    assert sorted(texts) == sorted(RULES)
    for rule, text in texts.items():
        assert told[rule] == text


def explain(runs: DbtRuns, capfd: pytest.CaptureFixture[str], **arguments: Any) -> str:
    """What the operation prints."""
    capfd.readouterr()
    runs.run("run-operation", operation="explain", arguments_of_operation=arguments)
    return capfd.readouterr().out


def test_the_operation_prints_the_explanation(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    told = explain(runs, capfd, delivery_id="delivery-R05", trigger_name="trigger_R05")
    assert told.strip() == written_out()["R05"]
    assert explain(runs, capfd, delivery_id="delivery-R05").strip() == written_out()["R05"]


def test_a_setting_that_was_changed_since_is_said(runs: DbtRuns) -> None:
    (now,) = runs.rows(
        """
        select other_settings from {schema}.explanations where rule_id = 'R05'
        """
    )
    assert "other settings by now" not in now[0]
    changed = [trigger_of(rule) for rule in RULES.values()]
    changed[[row["trigger_name"] for row in changed].index("trigger_R05")]["use_history"] = True
    runs.seed("triggers", changed)
    runs.run("seed", "--select", "triggers")
    (then,) = runs.rows("select other_settings from {schema}.explanations where rule_id = 'R05'")
    assert then[0].startswith("the trigger has other settings by now")


def test_what_nobody_knows_is_one_line(runs: DbtRuns, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, told in (
        ({"delivery_id": "nobody's"}, "nothing is known of delivery nobody's: no landed row"),
        ({"document_key": "none"}, "nothing is known of document key none: no landed row"),
        (
            {"delivery_id": "delivery-R05", "trigger_name": "no such"},
            "no trigger is named no such; seeds/triggers.csv has trigger_",
        ),
        ({}, "explain needs --args"),
    ):
        capfd.readouterr()
        result = runs.dbt("run-operation", operation="explain", arguments_of_operation=arguments)
        assert not result.success
        assert told in capfd.readouterr().out


@pytest.mark.parametrize(
    ("operation", "arguments", "told"),
    [
        ("explain", {"delivery_id": "a"}, ".explanations yet: start `dbt build` once"),
        ("resubmit", {"cause": "LOST"}, ".failed_documents yet: start `dbt build` once"),
        ("suspend_trigger", {"trigger_name": "a"}, ".triggers yet: start `dbt build` once"),
        ("hold_delivery", {}, "name the delivery_id and the trigger_name of a delivery that waits"),
    ],
)
def test_before_the_first_build_an_operation_says_what_is_needed(
    operation: str,
    arguments: dict[str, str],
    told: str,
    spark: SparkSession,
    profiles_dir: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    result = runs.dbt("run-operation", operation=operation, arguments_of_operation=arguments)
    assert not result.success
    assert told in capfd.readouterr().out


@pytest.fixture
def story(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """Two runs over a trigger with a service: told, interrupted, recovered, resubmitted."""
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed(
        "triggers",
        [
            {"trigger_name": "book", "detect_duplicates": True, "use_history": True},
            {"trigger_name": "other"},
        ],
    )
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": "book",
                "position": 1,
                "condition_name": "created",
                "document_type": "order.created",
                "service": "book_order",
            }
        ],
    )
    found.run("seed")
    return found


def landed(number: int, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": f"d{number}",
        "received_at": NOON + timedelta(seconds=number),
        "landed_at": NOON + timedelta(minutes=1),
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": f"u{number}",
        "redelivery_count": 0,
        **columns,
    }


def started(number: int) -> dict[str, Any]:
    return {
        "execution_id": f"e{number}",
        "delivery_id": f"d{number}",
        "trigger_name": "book",
        "service": "book_order",
        "attempt": 1,
        "event": "STARTED",
        "started_at": NOON + timedelta(minutes=6),
        "recorded_at": NOON + timedelta(minutes=6),
    }


def test_the_story_of_a_document(story: DbtRuns, capfd: pytest.CaptureFixture[str]) -> None:
    story.land(
        "deliveries",
        [
            landed(1),
            landed(2, document_type="nobody.takes.it"),
            landed(3, transport="PIGEON"),
            landed(4, uuid="u1"),
        ],
    )
    story.run("run", clock=NOON + timedelta(minutes=5))
    waiting = explain(story, capfd, delivery_id="d4", trigger_name="book")
    assert "WAITING, not decided yet" in waiting
    assert "a copy of it is not finished: d1" in waiting
    assert "was left out: UNROUTED, no trigger of api MSG subscribes to nobody.takes.it" in explain(
        story, capfd, delivery_id="d2"
    )
    assert "was rejected: UNKNOWN_TRANSPORT" in explain(story, capfd, delivery_id="d3")

    story.land("trigger_executions", [started(1)])
    # the service is silent for longer than execution_timeout_ms
    story.run("run", clock=NOON + timedelta(hours=2))
    story.run(
        "run-operation",
        operation="resubmit",
        arguments_of_operation={"delivery_id": "d1/recovery-1", "trigger_name": "book"},
    )
    story.run("run", clock=NOON + timedelta(hours=3))
    story.land("deliveries", [landed(5)])

    told = explain(story, capfd, delivery_id="d1", trigger_name="book")
    assert "delivery d1 in trigger book: NEW, to be processed" in told
    assert "its service reported: STARTED (attempt 1) 2026-05-01 12:06:00.000 UTC" in told, told
    assert "came again as d1/recovery-1: IN_DOUBT, d1/resubmission-1: NEW" in told
    recovered = explain(story, capfd, delivery_id="d1/recovery-1", trigger_name="book")
    assert "recovery 1 of delivery d1, since its service was interrupted" in recovered
    assert "came again as d1/resubmission-1: NEW" in recovered
    again = explain(story, capfd, delivery_id="d1/resubmission-1", trigger_name="book")
    assert "since an operator resubmitted it" in again
    assert "its service should have started long ago" in again

    whole = explain(story, capfd, document_key="u1")
    assert "document u1 in trigger book: 4 deliveries" in whole
    assert [line.split()[3] for line in whole.splitlines() if line.startswith("  2026")] == [
        "d1:",
        "d1/recovery-1:",
        "d4:",
        "d1/resubmission-1:",
    ]
    assert "has landed and no run has taken it yet" in explain(story, capfd, delivery_id="d5")
    assert "did not go to trigger other, but to book" in explain(
        story, capfd, delivery_id="d1", trigger_name="other"
    )
