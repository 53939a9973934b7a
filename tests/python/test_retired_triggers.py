"""A trigger that the seed no longer has is shown until its operator gives it up."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession
from reference_model import Delivery, Execution

NOON = datetime(2024, 3, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return DbtRuns(spark, profiles_dir, tmp_path)


def configure(runs: DbtRuns, *names: str) -> None:
    condition = {"position": 1, "condition_name": "all", "document_type": "orders:placed"}
    runs.seed("triggers", [{"trigger_name": name, "enabled": name != "off"} for name in names])
    runs.seed("trigger_conditions", [{"trigger_name": name, **condition} for name in names])
    runs.run("seed")


def retire(runs: DbtRuns, name: str) -> str:
    runs.dbt(
        "run-operation",
        operation="retire_trigger",
        arguments_of_operation={"trigger_name": name, "by": "me"},
    )
    return "\n".join(runs.errors)


def known(runs: DbtRuns) -> list[str]:
    return [
        row[0] for row in runs.rows("select trigger_name from {schema}.trigger_states order by 1")
    ]


def test_a_trigger_is_known_until_it_is_retired_with_nothing_left(runs: DbtRuns) -> None:
    configure(runs, "kept", "gone", "off")
    landed = Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")
    runs.land("deliveries", [landed])
    runs.decide(clock=NOON + timedelta(minutes=1))
    told = retire(runs, "gone")
    assert "gone stands in seeds/triggers.csv: take it out there first" in told

    configure(runs, "kept")
    runs.decide(clock=NOON + timedelta(minutes=2))
    assert known(runs) == ["gone", "kept", "off"]
    # what waits there can be held, released and asked for
    for operation in ("hold_delivery", "release_delivery", "resubmit"):
        named = {"delivery_id": "d1", "trigger_name": "off"}
        runs.run("run-operation", operation=operation, arguments_of_operation=named)
    told = retire(runs, "off")
    assert "1 deliveries of off wait and 0 of its documents are unfinished" in told
    told = retire(runs, "never")
    assert "never is no trigger that a run has known" in told
    assert retire(runs, "gone") == ""
    runs.decide(clock=NOON + timedelta(minutes=3))
    assert known(runs) == ["kept", "off"]
    assert runs.rows(
        "select event, trigger_name from {schema}.journal_entries where event = 'RETIRED'"
    ) == [("RETIRED", "gone")]


def test_two_changes_of_a_trigger_in_one_run_name_what_stops_it_now(runs: DbtRuns) -> None:
    """And commands that nobody can follow are named."""

    def command(name: str, command: str | None, minutes: int) -> dict[str, object]:
        issued_at = NOON + timedelta(minutes=minutes)
        identified = {"command_id": f"{name} {command} {minutes}", "trigger_name": name}
        return {**identified, "command": command, "issued_at": issued_at, "issued_by": "me"}

    def stopped(minutes: int, *, enabled: bool) -> list[tuple[str]]:
        runs.seed("triggers", [{"trigger_name": "kept", "enabled": enabled}])
        runs.run("seed")
        runs.decide(clock=NOON + timedelta(minutes=minutes))
        return runs.rows("select reason from {schema}.waiting_deliveries")

    configure(runs, "kept")
    landed = Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")
    runs.land("deliveries", [landed])
    assert stopped(1, enabled=False) == [("DISABLED",)]
    runs.land("trigger_commands", [command("kept", "SUSPEND", 2)])
    assert stopped(3, enabled=True) == [("SUSPENDED",)]
    runs.land(
        "trigger_commands",
        [
            command("kept", "RESUME", 4),
            command("kept", "suspend", 5),
            command("kept", None, 5),
            command("kept", "RETIRE", 5),
            command("nobody", "SUSPEND", 5),
        ],
    )
    assert stopped(6, enabled=False) == [("DISABLED",)]
    runs.land("trigger_commands", [command("kept", "SUSPEND", 7)])
    assert stopped(8, enabled=True) == [("SUSPENDED",)]
    # without other news
    assert stopped(9, enabled=False) == [("DISABLED",)]
    assert runs.rows(
        "select event, trigger_name, message from {schema}.journal_entries "
        "where event in ('RESUMED', 'IGNORED_COMMAND') order by 1, 2, 3"
    ) == [
        (
            "IGNORED_COMMAND",
            "kept",
            "RETIRE is not followed: take the trigger out of seeds/triggers.csv first",
        ),
        *(
            (
                "IGNORED_COMMAND",
                "kept",
                f"{word} is not followed: SUSPEND, RESUME, RETIRE and LOOKED_AT are known",
            )
            for word in ("no command", "suspend")
        ),
        ("IGNORED_COMMAND", "nobody", "SUSPEND is not followed: no trigger has this name"),
        ("RESUMED", "kept", "nothing suspends the trigger any more, but it is disabled"),
    ]


def test_a_retired_trigger_that_is_back_decides_nothing_twice(runs: DbtRuns) -> None:
    """With start_from it takes what had landed before; some of that it has decided itself."""

    def configure_gone(*gone: str) -> None:
        condition = {"position": 1, "condition_name": "all", "document_type": "orders:placed"}
        start = {"start_from": "2024-03-01 00:00:00"}
        runs.seed(
            "triggers", [{"trigger_name": "kept"}, *({"trigger_name": n, **start} for n in gone)]
        )
        runs.seed("trigger_conditions", [{"trigger_name": n, **condition} for n in ("kept", *gone)])
        runs.run("seed")

    landed = Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")
    configure_gone("gone")
    runs.land("deliveries", [landed])
    runs.decide(clock=NOON + timedelta(minutes=1))
    configure_gone()
    runs.decide(clock=NOON + timedelta(minutes=2))
    assert retire(runs, "gone") == ""
    # what names it in the run that retires it goes nowhere, and does not wait for ever
    late = {**vars(landed), "delivery_id": "d2", "uuid": "u2", "destination": "gone"}
    runs.land("deliveries", [late])
    runs.decide(clock=NOON + timedelta(minutes=3))
    assert known(runs) == ["kept"]
    assert runs.rows(
        "select event, delivery_id from {schema}.journal_entries where delivery_id = 'd2'"
    ) == [("UNKNOWN_DESTINATION", "d2")]

    configure_gone("gone")
    runs.decide(clock=NOON + timedelta(minutes=4))
    assert known(runs) == ["gone", "kept"]
    assert runs.rows(
        "select delivery_id, count(*) from {schema}.document_status "
        "where trigger_name = 'gone' group by delivery_id order by 1"
    ) == [("d1", 1), ("d2", 1)]


def test_a_trigger_added_later_takes_a_row_as_landed_when_it_was_consumed(runs: DbtRuns) -> None:
    """Where it has no landed_at: also one that nobody took, or that waits."""

    def configure_late(*late: str) -> None:
        triggers = [{"trigger_name": "kept"}, {"trigger_name": "off", "enabled": False}]
        conditions = [
            {"trigger_name": name, "position": 1, "condition_name": "all", "document_type": kind}
            for name, kind in (("kept", "taken"), ("off", "waits"))
        ]
        for name in late:
            triggers.append({"trigger_name": name, "start_from": "2024-03-01 00:00:00"})
            conditions += [
                {**conditions[0], "trigger_name": name, "document_type": kind, "position": place}
                | {"condition_name": kind}
                for place, kind in enumerate(("taken", "waits", "nobody's"), start=1)
            ]
        runs.seed("triggers", triggers)
        runs.seed("trigger_conditions", conditions)
        runs.run("seed")

    configure_late()
    for kind in ("taken", "waits", "nobody's"):
        runs.land("deliveries", [Delivery(kind, NOON, document_type=kind, uuid=kind)])
    consumed_at = NOON + timedelta(minutes=1)
    runs.decide(clock=consumed_at)
    configure_late("late")
    runs.decide(clock=NOON + timedelta(hours=4))
    landed = runs.rows(
        "select delivery_id, cast(landed_at as string) from {schema}.document_status "
        "where trigger_name = 'late'"
    )
    assert sorted(landed) == [
        (kind, f"{consumed_at:%F %T}") for kind in ("nobody's", "taken", "waits")
    ]


def test_a_trigger_added_later_takes_what_was_accepted_once_its_transport_was_known(
    runs: DbtRuns,
) -> None:
    """Though a row that is equal to it was rejected before, with a landed_at or without."""
    known = {"api": "MSG", "counts_deliveries": True, "first_delivery_count": 0}

    def configure_late(*transports: str, late: bool = False) -> None:
        runs.seed("transports", [{"transport": name, **known} for name in transports])
        configure(runs, "kept", "kept again")
        if late:
            condition = {"position": 1, "condition_name": "all", "document_type": "orders:placed"}
            runs.seed("triggers", [{"trigger_name": "late", "start_from": "2024-03-01"}])
            runs.seed("trigger_conditions", [{"trigger_name": "late", **condition}])
            runs.run("seed")

    of_pigeons = {"document_type": "orders:placed", "transport": "PIGEON"}
    rows = [
        Delivery(name, NOON, uuid=name, landed_at=landed_at, **of_pigeons)
        for name, landed_at in (("dated", NOON), ("undated", None), ("never", NOON))
    ]
    configure_late("RABBITMQ")
    runs.land("deliveries", rows)
    runs.decide(clock=NOON + timedelta(minutes=1))
    rejected = "select reason, count(*) from {schema}.rejected_deliveries group by reason"
    assert runs.rows(rejected) == [("UNKNOWN_TRANSPORT", 3)]
    configure_late("RABBITMQ", "PIGEON")
    runs.land("deliveries", rows[:2])
    runs.decide(clock=NOON + timedelta(minutes=2))
    configure_late("RABBITMQ", "PIGEON", late=True)
    runs.decide(clock=NOON + timedelta(minutes=3))
    assert runs.rows(
        "select delivery_id from {schema}.document_status where trigger_name = 'late' order by 1"
    ) == [("dated",), ("undated",)]


def test_a_trigger_that_is_disabled_or_enabled_is_published_without_other_news(
    runs: DbtRuns,
) -> None:
    def enabled(minute: int, name: str) -> bool:
        configure(runs, name)
        runs.decide(clock=NOON + timedelta(minutes=minute))
        [(found,)] = runs.rows(
            "select enabled from {schema}.trigger_states where trigger_name = 'on'"
        )
        return found

    landed = Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")
    configure(runs, "on")
    runs.land("deliveries", [landed])
    runs.decide(clock=NOON + timedelta(minutes=1))
    # the seed has lost it
    assert not enabled(2, "other")
    assert enabled(3, "on")
    published = runs.rows("select count(*) from {schema}.published_runs")
    assert enabled(4, "on")
    assert runs.rows("select count(*) from {schema}.published_runs") == published


def test_a_request_for_a_retired_trigger_is_refused(runs: DbtRuns) -> None:
    """Nobody would process what it asks for; once the trigger is back it may be asked again."""
    configure(runs, "kept", "gone")
    # without a key a document that was delivered before is in doubt
    runs.seed(
        "triggers",
        [{"trigger_name": name, "detect_duplicates": True} for name in ("kept", "gone")],
    )
    runs.run("seed")
    landed = {
        **vars(Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")),
        "redelivery_count": 1,
    }
    runs.land("deliveries", [landed])
    runs.decide(clock=NOON + timedelta(minutes=1))
    configure(runs, "kept")
    runs.decide(clock=NOON + timedelta(minutes=2))
    assert retire(runs, "gone") == ""
    runs.decide(clock=NOON + timedelta(minutes=3))

    def ask(number: int) -> list[tuple[str, str]]:
        request = {"resubmission_id": f"r{number}", "delivery_id": "d1", "trigger_name": "gone"}
        runs.land("resubmissions", [request])
        runs.decide(clock=NOON + timedelta(minutes=3 + number))
        return runs.rows(
            "select event, message from {schema}.journal_entries "
            f"where reference_id = 'r{number}'"
        )

    refused = "its trigger was retired: bring it back into seeds/triggers.csv first"
    assert ask(1) == [("REFUSED", refused)]
    configure(runs, "kept", "gone")
    assert ask(2) == [("RESUBMITTED", "comes as d1/resubmission-1")]


def test_documents_of_a_trigger_that_has_left_the_seed_end_by_its_settings(runs: DbtRuns) -> None:
    """By the defaults they would be interrupted, and be forgotten too soon."""
    week = timedelta(days=7)
    gone = {
        "trigger_name": "gone",
        "detect_duplicates": True,
        "use_history": True,
        "history_time_to_live_ms": week // timedelta(milliseconds=1),
        "execution_timeout_ms": timedelta(days=1) // timedelta(milliseconds=1),
    }
    condition = {"position": 1, "condition_name": "all", "document_type": "orders:placed"}
    runs.seed("triggers", [gone, {"trigger_name": "kept"}])
    runs.seed("trigger_conditions", [{"trigger_name": "gone", "service": "ship", **condition}])
    runs.run("seed")
    landed = Delivery("d1", NOON, landed_at=NOON, document_type="orders:placed", uuid="u1")
    runs.land("deliveries", [landed])
    runs.decide(clock=NOON)

    def says(event: str, at: datetime) -> Execution:
        return Execution(
            execution_id=event,
            delivery_id="d1",
            trigger_name="gone",
            service="ship",
            attempt=1,
            event=event,
            started_at=NOON,
            ended_at=None if event == "STARTED" else at,
            recorded_at=at,
        )

    configure(runs, "kept")
    runs.land("trigger_executions", [says("STARTED", NOON)])
    runs.decide(clock=NOON + timedelta(hours=2))
    assert runs.rows("select delivery_id, last_event from {schema}.open_documents") == [
        ("d1", "STARTED")
    ]
    # two published runs later they are known still
    runs.land("trigger_executions", [says("SUCCESS", NOON + timedelta(hours=3))])
    runs.decide(clock=NOON + timedelta(hours=3))
    assert runs.rows(
        "select processing_status, cast(expires_at as string) from {schema}.document_history "
        "order by 1"
    ) == [("completed", "2024-03-08 12:00:00"), ("processing", "2024-03-08 12:00:00")]
