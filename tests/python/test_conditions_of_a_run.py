"""The seeds, as people write them and while runs are at work, and the views that outlive a run."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.run.door import ExactlyOnce

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
# a resolver that is down suspends the trigger, where the setting is read as it is meant
DOWN = """
from python_udfs import TransientError, resolver

@resolver("shop.check")
def check(delivery):
    raise TransientError("the shop is down")
"""
TRIGGERS: list[dict[str, Any]] = [
    {"trigger_name": " ships ", "enabled": " TRUE", "use_history": "True ", "api": "msg"},
    {
        "trigger_name": "asks",
        "resolver": " shop.check",
        "resource_monitor": "None",
        "suspend_on_preprocessing_error": "TRUE",
        "on_retry_failure": " Throw",
    },
    *({"trigger_name": name} for name in ("null", "NULL", "true", "1", "007")),
]
NAMES = [str(trigger["trigger_name"]).strip() for trigger in TRIGGERS]


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def configure(runs: DbtRuns, service: str = "ship") -> None:
    shared = {"detect_duplicates": "tRUE", "processing_mode": " Concurrent"}
    runs.seed("triggers", [{**shared, **trigger} for trigger in TRIGGERS])
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": " 1",
                "condition_name": "all ",
                # null, true and 007 are types as well
                "document_type": f" {name}",
                "service": f" {service}" if name == "ships" else " ",
            }
            for name in NAMES
        ],
    )


def write_transports(runs: DbtRuns, *left_out: str) -> None:
    """The project's transports in capitals and blanks."""
    with (Path(__file__).parents[2] / "seeds" / "transports.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["transport"] not in left_out]
    for row in rows:
        row["api"] = f" {row['api'].lower()}"
        row["counts_deliveries"] = f"{row['counts_deliveries'].upper()} "
    runs.seed("transports", rows)


def delivery(name: str, kind: str, minutes: int, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": at(minutes),
        "landed_at": at(minutes),
        "transport": "RABBITMQ",
        "document_type": kind,
        "guaranteed": True,
        "uuid": name,
        "redelivery_count": 0,
        "document": "{}",
        **columns,
    }


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A lake for all tests here, one after the other, after a first run."""
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("conditions"))
    found.add_udfs("shop", DOWN)
    configure(found)
    write_transports(found)
    found.run("seed")
    found.land("deliveries", [delivery(f"of {name}", name, 0) for name in NAMES if name != "asks"])
    found.land("deliveries", [delivery("of asks", "asks", 0, redelivery_count=1)])
    found.run("run", clock=at(1))
    return found


def test_a_value_means_what_it_says_however_it_is_written(runs: DbtRuns) -> None:
    """18.24 and 18.23: blanks and capitals around a word of a seed mean nothing, and a trigger or
    document type that is named null, true or 1 is one of that name.
    """
    settings = "enabled, use_history, api, processing_mode, suspends_on_error, resource_monitor"
    assert runs.rows(
        f"select {settings} from {{schema}}.trigger_settings "
        "where trigger_name in ('ships', 'asks') order by trigger_name"
    ) == [
        (True, False, "MSG", "concurrent", True, None),
        (True, True, "MSG", "concurrent", False, None),
    ]
    assert runs.rows("select delivery_id, reason from {schema}.waiting_deliveries") == [
        ("of asks", "SUSPENDED")
    ]
    decided = runs.rows(
        "select trigger_name, delivery_id, rule_id, condition_name, service "
        "from {schema}.document_status order by 1"
    )
    assert decided == sorted(
        (name, f"of {name}", *(("R07", "all", "ship") if name == "ships" else ("R03", "all", None)))
        for name in NAMES
        if name != "asks"
    )


def test_a_transport_that_leaves_the_seed_hides_no_work(runs: DbtRuns) -> None:
    """18.20: what is open, and what waits, stays as it is when its transport is taken out."""
    work = "select delivery_id, transport, document from {schema}.dispatched_documents"
    assert runs.rows(work) == [("of ships", "RABBITMQ", "{}")]
    write_transports(runs, "RABBITMQ")
    runs.run("seed")
    (runs.folder / "python_udfs" / "shop.py").write_text(
        DOWN.replace('raise TransientError("the shop is down")', 'return "NEW"'), encoding="utf-8"
    )
    command = {"command_id": "c", "trigger_name": "asks", "command": "RESUME"}
    runs.land("trigger_commands", [{**command, "issued_at": at(2), "issued_by": "me"}])
    runs.run("run", clock=at(3))
    assert runs.rows(work) == [("of ships", "RABBITMQ", "{}")]
    assert runs.rows(
        "select status, rule_id, redelivery from {schema}.document_status "
        "where trigger_name = 'asks'"
    ) == [("NEW", "R06a", "UNDEFINED")]
    assert runs.rows(
        "select transport from {schema}.new_documents where delivery_id = 'of asks'"
    ) == [("RABBITMQ",)]
    write_transports(runs)
    runs.run("seed")


def test_seeds_that_are_loaded_while_a_run_is_at_work_are_refused(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18.19: a run whose seeds another command has loaded meanwhile publishes nothing."""
    published = "select max(run_number) from {schema}.published_runs"
    before = runs.rows(published)
    original = ExactlyOnce.check_seeds_stayed

    def load_before(exactly_once: ExactlyOnce) -> None:
        monkeypatch.setattr(ExactlyOnce, "check_seeds_stayed", original)
        # as `dbt seed` in another process leaves it
        runs.spark.sql(
            f"insert overwrite {runs.schema}.trigger_conditions "
            f"select * from {runs.schema}.trigger_conditions"
        )
        original(exactly_once)

    monkeypatch.setattr(ExactlyOnce, "check_seeds_stayed", load_before)
    runs.land("deliveries", [delivery("later", "ships", 4)])
    (told,) = failures(runs.dbt("run", "--select", "tag:transaction", clock=at(5)))[:1]
    assert f"{runs.schema}.trigger_conditions was loaded by `dbt seed` while this run" in told
    assert runs.rows(published) == before

    # a key with more deliveries than a chain may have
    runs.land("deliveries", [delivery("copy", "ships", 4, uuid="later")])
    few = {"max_deliveries_per_key": 1}
    (told,) = failures(runs.dbt("run", "--select", "tag:transaction", variables=few))[:1]
    assert "trigger ships has 2 deliveries of one key in its queue" in told
    assert "set queue_capacity of the trigger below that" in told
    assert runs.rows(published) == before


def test_views_that_outlive_a_run_name_no_snapshot_that_expires(runs: DbtRuns) -> None:
    """18.15: after upkeep each view is as before, and in the next run trigger_settings is too."""
    for minutes in (6, 7):
        runs.land("deliveries", [delivery(f"at {minutes}", "ships", minutes)])
        runs.run("run", clock=at(minutes))
    views = [
        name for _, name, is_temporary in runs.rows("show views in {schema}") if not is_temporary
    ]
    public = [name for name in views if not name.startswith("stg_")]
    before = {name: sorted(runs.table(name).collect(), key=str) for name in public}
    runs.run("run-operation", operation="maintain", variables={"keep_snapshots_hours": 0})
    assert {"trigger_settings", "execution_state", "things_to_do"} < before.keys()
    for name in public:
        assert sorted(runs.table(name).collect(), key=str) == before[name], name


def test_a_filter_or_key_that_fails_on_a_delivery_is_named_with_it(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark takes both as they stand, so that only a delivery shows it."""
    runs = DbtRuns(spark, profiles_dir, tmp_path)

    def configure_with(condition: str, key: str, document_type: str = "order") -> None:
        runs.seed("triggers", [{"trigger_name": "keyed", "key": key}, {"trigger_name": "filters"}])
        one = {"position": 1, "condition_name": "all", "document_type": document_type}
        filtering = {"trigger_name": "filters", "filter": condition}
        runs.seed("trigger_conditions", [{"trigger_name": "keyed", **one}, {**filtering, **one}])
        runs.run("seed")

    configure_with("document rlike uuid", "element_at(array('k'), redelivery_count)")
    uuids = {"a": "x", "b": "y", "c": "x[", "d": "z"}
    rows = [
        delivery(name, "order", minute, uuid=uuid, redelivery_count=int(name != "b"))
        for minute, (name, uuid) in enumerate(uuids.items())
    ]
    # not of this trigger: the key would fail on these too
    rows += [
        delivery("A", "letter", 0, uuid="x", redelivery_count=0),
        delivery("B", "order", 0, uuid="x", redelivery_count=0, guaranteed=None),
    ]
    runs.land("deliveries", rows)
    result = runs.dbt("run", "--select", "tag:transaction", clock=at(9), quiet=False)
    assert "trigger_queue" in failures(result)[0]
    said = capfd.readouterr().out
    assert (
        "condition 1 of trigger filters: the filter document rlike uuid fails on delivery c: "
    ) in said
    assert (
        "trigger keyed: the key element_at(array('k'), redelivery_count) fails on delivery b: "
        "[INVALID_INDEX_OF_ZERO]"
    ) in said

    # it fails on none of the documents of its trigger
    key = "if(redelivery_count = 0 and uuid = 'x', raise_error('a letter'), uuid)"
    configure_with("document = uuid", key)
    runs.decide(clock=at(10))
    decided = "select trigger_name, count(*) from {schema}.document_status group by 1 order by 1"
    assert runs.rows(decided) == [("filters", 4), ("keyed", 4)]

    # a delivery that waits is the trigger's, though it takes other types by now
    held = {"delivery_id": "e", "trigger_name": "keyed"}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    runs.land("deliveries", [delivery("e", "order", 11, redelivery_count=0)])
    runs.decide(clock=at(12))
    configure_with("document = uuid", "element_at(array('k'), redelivery_count)", "letter")
    capfd.readouterr()
    assert not runs.dbt("run", "--select", "tag:transaction", clock=at(13), quiet=False).success
    assert "redelivery_count) fails on delivery e: " in capfd.readouterr().out

    # a trigger that came later takes what other triggers have consumed
    keyed = {
        "trigger_name": "late",
        "start_from": at(0),
        "key": "element_at(array('k'), redelivery_count)",
    }
    runs.seed("triggers", [{"trigger_name": "filters"}, keyed])
    one = {"position": 1, "condition_name": "all", "document_type": "order"}
    runs.seed("trigger_conditions", [{"trigger_name": name, **one} for name in ("filters", "late")])
    runs.run("seed")
    assert not runs.dbt("run", "--select", "tag:transaction", clock=at(14), quiet=False).success
    assert (
        "trigger late: the key element_at(array('k'), redelivery_count) fails on delivery b: "
        in (capfd.readouterr().out)
    )
