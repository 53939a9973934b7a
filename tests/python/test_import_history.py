"""What was processed before, by something else, is brought into history."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from faults import Failing
from pyspark.sql import SparkSession

from dbt_exactly_once.run import history_import

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)
OLD = "{schema}.processed_orders"


@pytest.fixture
def seeded(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    """A project that has never run."""
    found = DbtRuns(spark, profiles_dir, tmp_path)
    detects = {"detect_duplicates": True, "use_history": True}
    found.seed(
        "triggers",
        [
            {"trigger_name": "orders", "history_time_to_live_ms": 3 * 86_400_000, **detects},
            {"trigger_name": "counts", "detect_duplicates": True, "use_history": False},
        ],
    )
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": name,
                "position": 1,
                "condition_name": "all",
                "document_type": "order",
            }
            for name in ("orders", "counts")
        ],
    )
    found.run("seed")
    make_old_table(found)
    return found


@pytest.fixture
def runs(seeded: DbtRuns) -> DbtRuns:
    """A project whose first run has decided a delivery."""
    land(seeded, "first", uuid="first", received_at=NOON)
    seeded.decide(clock=NOON)
    return seeded


def make_old_table(runs: DbtRuns) -> None:
    """An empty table of what was processed."""
    runs.rows(f"create table {OLD} (order_id string, done_at timestamp)")


def land(runs: DbtRuns, *names: str, **columns: Any) -> None:
    runs.land(
        "deliveries",
        [
            {
                "delivery_id": name,
                "received_at": NOON + timedelta(minutes=1),
                "landed_at": NOON + timedelta(minutes=1),
                "transport": "RABBITMQ",
                "document_type": "order",
                "guaranteed": True,
                "uuid": name.partition("/")[0],
                "document": "{}",
                **columns,
            }
            for name in names
        ],
    )


def processed(runs: DbtRuns, days: Mapping[str, float | None]) -> None:
    """Fill the table of what was processed: keys, and how many days before noon."""
    runs.rows(
        f"insert into {OLD} values "
        + ", ".join(
            f"({name}, "
            + ("null" if ago is None else f"timestamp '{NOON - timedelta(days=ago):%F %T}'")
            + ")"
            for name, ago in days.items()
        )
    )


def import_history(runs: DbtRuns, **arguments: Any) -> Any:
    """Call the operation."""
    known: dict[str, Any] = {
        "trigger_name": "orders",
        "relation": OLD.format(schema=runs.schema),
        "key": "order_id",
        "processed_at": "done_at",
    }
    return runs.dbt(
        "run-operation",
        operation="import_history",
        arguments_of_operation={**known, **arguments},
        quiet=False,
    )


def entries(runs: DbtRuns) -> list[tuple[Any, ...]]:
    """What history has but for the first document."""
    return runs.rows(
        "select document_key, processing_status, started_at, expires_at, delivery_id "
        "from {schema}.document_history where delivery_id != 'first' order by all"
    )


def statuses(runs: DbtRuns) -> Counter[tuple[str, str]]:
    return Counter(
        runs.rows(
            "select delivery_id, status from {schema}.document_status "
            "where delivery_id != 'first' and trigger_name = 'orders'"
        )
    )


def test_what_was_processed_elsewhere_is_a_duplicate_from_then_on(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    """22.6: A row is live, expired, without a usable key or without a time; a dry run says so and
    changes nothing, a second import adds nothing, and copies of what is live are duplicates."""
    rows = {"'a'": 1, "'b'": 2.5, "'c'": 30, "null": 1, "''": 1, f"'{'x' * 97}'": 1, "'d'": None}
    processed(runs, rows)
    processed(runs, {"'a'": 2})
    counted = (
        "8 rows: 3 live, 1 expired before 2026-04-30 12:00:00, 2 without a key, "
        "1 with a key longer than 96 characters, 1 without a time"
    )
    capfd.readouterr()
    assert import_history(runs, dry_run=True).success
    said = capfd.readouterr().out
    assert f"exactly_once: {counted}" in said
    assert "exactly_once: nothing is imported" in said
    assert entries(runs) == []

    assert import_history(runs).success
    said = capfd.readouterr().out
    assert f"exactly_once: {counted}" in said
    assert (
        "exactly_once: 2 documents were added to history; 1 rows repeat a key, or history knew them"
        in said
    )
    imported = entries(runs)
    noon = NOON.replace(tzinfo=None)
    assert imported == [
        (
            key,
            status,
            noon - timedelta(days=ago),
            noon + timedelta(days=3 - ago),
            f"import-2/{key}",
        )
        for key, ago in (("a", 1), ("b", 2.5))
        for status in ("completed", "processing")
    ]

    assert import_history(runs).success
    assert "exactly_once: 0 documents were added to history; 3 rows" in capfd.readouterr().out
    assert entries(runs) == imported

    # b expires half a day after noon
    land(runs, "a", "b", "c", "new")
    land(runs, "b/late", received_at=NOON + timedelta(days=1))
    everything = ("--select", "fqn:*", "--exclude-resource-type", "unit_test")
    runs.run("build", *everything, clock=NOON + timedelta(days=1))
    assert statuses(runs) == {
        ("a", "DUPLICATE"): 1,
        ("b", "DUPLICATE"): 1,
        ("b/late", "NEW"): 1,
        ("c", "NEW"): 1,
        ("new", "NEW"): 1,
    }
    assert runs.rows(
        "select matched_delivery_id from {schema}.document_status "
        "where delivery_id = 'a' and trigger_name = 'orders'"
    ) == [("import-2/a",)]


def test_an_import_goes_on_where_it_was_cut_off(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """22.6: It fails at each change of a table that it makes in turn, of three pieces; nothing is
    there twice, what was published stays, and the next import adds what is missing."""
    monkeypatch.setattr(history_import, "ROWS_OF_A_PIECE", 2)
    processed(runs, {f"'k{number}'": number / 3 for number in range(6)})
    # the engine that a dbt command has in a session of its own
    for number in range(1, 40):
        made: list[str] = []

        def fails(change: str) -> bool:
            # a branch that stays behind a publication stops nothing
            if "drop branch" in change:
                return False
            made.append(change)  # noqa: B023
            return len(made) == number  # noqa: B023

        with monkeypatch.context() as patch:
            Failing(patch, fails)
            result = import_history(runs)
        assert len(entries(runs)) == len(set(entries(runs)))
        assert len({entry[0] for entry in entries(runs)}) * 2 == len(entries(runs))
        if result.success:
            break
        assert "SQLITE_BUSY" in "\n".join(runs.errors)
    assert number > 6
    assert [entry[0] for entry in entries(runs)] == [f"k{n // 2}" for n in range(12)]
    kinds = "select kind, count(*) from {schema}.published_runs group by kind order by kind"
    assert ("run", 1) in runs.rows(kinds)
    land(runs, *(f"k{number}" for number in range(6)))
    runs.decide(clock=NOON)
    assert {status for _, status in statuses(runs)} == {"DUPLICATE"}


def test_history_made_anew_keeps_what_was_imported(
    runs: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    processed(runs, {"'a'": 1, "'b'": 2})
    assert import_history(runs).success
    imported = entries(runs)
    capfd.readouterr()
    runs.run("run-operation", operation="rebuild_history", quiet=False)
    assert (
        "2 of these documents were imported: what history had lost of those"
        in capfd.readouterr().out
    )
    assert entries(runs) == imported
    # a lost one comes back from where it came from
    runs.rows("delete from {schema}.history_ledger where document_key = 'a'")
    runs.run("run-operation", operation="rebuild_history")
    assert [entry[0] for entry in entries(runs)] == ["b", "b"]
    assert import_history(runs).success
    assert [entry[:4] for entry in entries(runs)] == [entry[:4] for entry in imported]


def test_an_import_that_cannot_be_is_refused_in_one_line(runs: DbtRuns) -> None:
    for arguments, why in (
        ({"trigger_name": "none"}, "exactly_once: no trigger is named none; seeds/triggers.csv"),
        (
            {"trigger_name": "counts"},
            "exactly_once: counts never looks into history: set detect_duplicates and use_history",
        ),
        (
            {"key": "missing"},
            "exactly_once: import_history cannot read key missing of "
            f"{OLD.format(schema=runs.schema)}: [UNRESOLVED_COLUMN",
        ),
        (
            {"relation": "no_schema.no_table"},
            "exactly_once: import_history cannot read key order_id of no_schema.no_table: "
            "[TABLE_OR_VIEW_NOT_FOUND]",
        ),
    ):
        assert not import_history(runs, **arguments).success
        assert why in "\n".join(runs.errors)

    # a seed that no run has checked: its time to live would be the default
    orders = {"trigger_name": "orders", "detect_duplicates": True, "use_history": True}
    runs.seed("triggers", [{**orders, "history_time_to_live_ms": "7 days"}])
    runs.run("seed")
    assert not import_history(runs).success
    assert "history_time_to_live_ms" in "\n".join(runs.errors)
    assert entries(runs) == []


def test_an_import_may_come_before_anything_was_published(
    seeded: DbtRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    """22.6: as the page about adopting has it, and with a delivery that has landed meanwhile. What
    expires later is live, since the feed has no time yet."""
    processed(seeded, {"'a'": 1, "'b'": 2})
    assert not import_history(seeded).success
    assert ".trigger_settings yet: start `dbt build` once" in "\n".join(seeded.errors)
    seeded.run("run", "--select", "tag:transaction")
    assert import_history(seeded, dry_run=True).success
    assert "exactly_once: 2 rows: 2 live, 0 expired, 0 without a key" in capfd.readouterr().out
    land(seeded, "a", "new")
    for number, failing in enumerate((True, False)):
        with pytest.MonkeyPatch.context() as patch:
            if failing:
                # behind the publication of the record, before that of history
                Failing(patch, lambda change: change.startswith("fast_forward"))
            assert import_history(seeded).success is not failing, number
    recorded = "select kind, run_number, publication_number from {schema}.published_runs order by 3"
    assert seeded.rows(recorded)[0] == ("import", 0, 1)
    assert len(entries(seeded)) == 4
    land(seeded, "b")
    everything = ("--select", "fqn:*", "--exclude-resource-type", "unit_test")
    seeded.run("build", *everything, clock=NOON)
    assert statuses(seeded) == {("a", "DUPLICATE"): 1, ("b", "DUPLICATE"): 1, ("new", "NEW"): 1}
    assert seeded.rows(recorded)[-1][:2] == ("run", 1)


def test_the_page_about_adopting_lands_the_feed_and_compares_both_answers(runs: DbtRuns) -> None:
    """22.6: Its SQL, as it stands there, in the schemas of this test."""
    page = (PROJECT_FOLDER / "docs" / "adopting.md").read_text(encoding="utf-8")
    _, land_feed, compare = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    for shown, meant in (
        ("landing.", "{landing}."),
        ("exactly_once.", "{schema}."),
        ("raw.orders", "{schema}.raw_orders"),
    ):
        land_feed, compare = (text.replace(shown, meant) for text in (land_feed, compare))
    processed(runs, {"'a'": 1})
    assert import_history(runs).success
    runs.rows(
        "create table {schema}.raw_orders as select *, '{{}}' as payload from values "
        "('m1', 'a', timestamp '2026-05-01 12:01:00'), "
        "('m2', 'b', timestamp '2026-05-01 12:02:00'), "
        "('m3', 'b', timestamp '2026-05-01 12:03:00'), "
        "('before', 'c', timestamp '2026-04-30 12:00:00') "
        "as feed (message_id, order_id, received_at)"
    )
    runs.rows(land_feed)
    runs.run("run", "--select", "tag:transaction", "decided_deliveries")
    # m3 is a copy to both, m1 only to history; m2 and the first of all are new to both
    assert runs.rows(compare) == [("DUPLICATE", False, 1), ("DUPLICATE", True, 1), ("NEW", True, 2)]
