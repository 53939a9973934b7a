"""What SQL means is set by the project in each session, whatever a profile says."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.engine import SESSION_SETTINGS, Engine, run_in
from dbt_exactly_once.adapter.shared_session import INLINE_SETTING
from dbt_exactly_once.run.door import ExactlyOnce
from dbt_exactly_once.services.executions import Executions
from dbt_exactly_once.services.worker import Worker
from python_udfs import TransientError, Work

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
# what a profile may say that would change the meaning of the project's SQL
OTHERWISE = {
    OVERWRITE_MODE: "dynamic",
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "America/New_York",
}
# Spark would put the user's folder, a setting and the user's name in their place
HOSTILE = "${env:HOME} ${spark.app.name} ${system:user.name} \\' it\u2019s \\u0041"
NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """A trigger that history keeps for good, in a project whose profile says all of OTHERWISE."""
    found = DbtRuns(spark, profiles_dir, tmp_path)
    file = tmp_path / "profiles.yml"
    profile = yaml.safe_load(file.read_text())
    output = profile["exactly_once"]["outputs"][profile["exactly_once"]["target"]]
    output["server_side_parameters"] |= OTHERWISE
    file.write_text(yaml.safe_dump(profile))
    found.seed(
        "triggers", [{"trigger_name": "ships", "detect_duplicates": True, "use_history": True}]
    )
    condition = {"position": 1, "condition_name": "any", "document_type": "order"}
    found.seed("trigger_conditions", [{"trigger_name": "ships", "service": "ship", **condition}])
    found.run("seed")
    return found


def delivery(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": NOON,
        "landed_at": NOON,
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": name,
        "redelivery_count": 0,
        "document": "{}",
        **changes,
    }


def execution(name: str, event: str) -> dict[str, Any]:
    return {
        "execution_id": f"{name}/{event}",
        "delivery_id": name,
        "trigger_name": "ships",
        "service": "ship",
        "attempt": 1,
        "event": event,
        "started_at": NOON,
        "recorded_at": NOON + timedelta(minutes=event != "STARTED"),
    }


def test_the_last_open_document_leaves_whatever_overwriting_means_in_the_session(
    runs: DbtRuns,
) -> None:
    """18.4: with dynamic partition overwrite, in the profile or switched on by a model of the
    user's (dbt-spark does so for insert_overwrite), a ledger that is replaced by no rows is empty.
    """
    # as a model of the user's does in the middle of a run; it is the session of all threads
    project = yaml.safe_load((runs.folder / "dbt_project.yml").read_text())
    project["on-run-start"].append(f"set {OVERWRITE_MODE}=dynamic")
    (runs.folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    runs.forget_parsed()

    clock = NOON + timedelta(minutes=1)
    runs.land("deliveries", [delivery("a")])
    runs.decide(clock=clock)
    assert runs.rows("select delivery_id from {schema}.open_documents") == [("a",)]
    runs.land("trigger_executions", [execution("a", "STARTED"), execution("a", "SUCCESS")])
    runs.decide(clock=clock)
    assert runs.rows("select delivery_id from {schema}.open_documents") == []
    # an hour after the execution timeout, where a document that is still open would come back
    runs.decide(clock=NOON + timedelta(hours=2))
    assert runs.rows("select delivery_id, status from {schema}.document_status") == [("a", "NEW")]


def test_a_table_of_the_users_reads_a_cte_once(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run lets Spark put CTEs in their places, unless it stores what a query of the user's
    selects: in a random CTE that is read twice each would be another one.
    """
    begin, found = ExactlyOnce.begin, []

    def look(door: ExactlyOnce, *arguments: Any) -> Any:
        run = begin(door, *arguments)
        found.append(runs.spark.conf.get(INLINE_SETTING, None))
        return run

    monkeypatch.setattr(ExactlyOnce, "begin", look)
    runs.run("run", "--select", "tag:transaction", "new_documents")
    (runs.own("models") / "of_mine.sql").write_text(
        "{{ config(materialized='table') }} "
        "with one as (select uuid() as id) "
        "select count(distinct id) as ids from (select * from one union all select * from one)"
    )
    runs.run("run", "--select", "tag:transaction", "of_mine")
    assert runs.rows("select ids from {schema}.of_mine") == [(1,)]
    assert found == ["true", None]
    assert runs.spark.conf.get(INLINE_SETTING, None) is None


def test_no_text_from_outside_is_replaced_by_spark(runs: DbtRuns) -> None:
    """18.17: ${...} in a document, in what a service raises, in a rejected row that is taken again
    and in the arguments of an operation stays as it is.
    """
    # the session of a worker, a report or a landing has opened it before dbt has
    assert {name: runs.spark.conf.get(name) for name in SESSION_SETTINGS} == SESSION_SETTINGS
    rejected = {
        **delivery("r", document=HOSTILE, received_at="2026-05-01T12:00:00Z"),
        "landed_at": None,
        "guaranteed": None,
    }
    runs.land("deliveries", [delivery("a", document=HOSTILE)])
    runs.land(
        "rejected_landings",
        [
            {
                "rejection_id": "rejected",
                "table_name": "deliveries",
                "delivery_id": "r",
                "reason": "MISSING_GUARANTEED",
                "raw_text": json.dumps(rejected),
                "landed_at": NOON,
            }
        ],
    )
    runs.run(
        "run-operation",
        operation="resubmit",
        arguments_of_operation={
            "delivery_id": "rejected",
            "reason": HOSTILE,
            "document": json.dumps({**rejected, "guaranteed": True}),
        },
    )
    runs.run("run", "--select", "tag:transaction", "execution_state", "dispatched_documents")
    documents = "select delivery_id, document from {landing}.deliveries order by 1"
    assert runs.rows(documents) == [("a", HOSTILE), ("r", HOSTILE)]
    assert runs.rows("select reason from {landing}.resubmissions") == [(HOSTILE,)]

    def ship(work: Work) -> None:
        # half of a surrogate pair, which JSON allows
        raise ValueError(f"{work.document}\ud83d")

    engine = Engine(run_in(runs.spark))
    executions = Executions(engine, f"{runs.landing}.trigger_executions")
    ships = {"ship": ship}
    Worker(engine, runs.schema, executions, ships, Work, TransientError, echo=lambda _: None).run(
        once=True
    )
    told = f"ValueError: {HOSTILE}?"
    messages = "select message from {landing}.trigger_executions where event = 'ERROR'"
    assert runs.rows(messages) == [(told,), (told,)]
    runs.decide()
    journal = "select distinct message from {schema}.journal_entries where event = 'ERROR'"
    assert runs.rows(journal) == [(f"the service has ended in error: {told}",)]
