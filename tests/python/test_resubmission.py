"""A landing that was rejected is taken again on request, once."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.run.door import ExactlyOnce

NOW = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed("triggers", [{"trigger_name": name} for name in ("orders", "archive")])
    condition = {"position": 1, "condition_name": "order", "document_type": "order"}
    found.seed(
        "trigger_conditions",
        [{**condition, "trigger_name": name} for name in ("orders", "archive")],
    )
    found.run("seed")
    return found


def delivery(name: str | None, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": name,
        "received_at": NOW,
        "landed_at": NOW,
        "transport": "RABBITMQ",
        "document_type": "order",
        "guaranteed": True,
        "uuid": f"u-{name}",
        "document": '{"order": 1}',
        **columns,
    }


def request(number: int, rejection_id: str, **columns: Any) -> dict[str, Any]:
    return {
        "resubmission_id": f"r{number}",
        "delivery_id": rejection_id,
        "requested_at": NOW.replace(minute=number),
        **columns,
    }


def decided(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(runs.rows("select delivery_id, trigger_name from {schema}.document_status"))


def journal(runs: DbtRuns) -> list[tuple[Any, ...]]:
    return sorted(
        runs.rows(
            "select reference_id, event, message from {schema}.journal_entries "
            "where event in ('RESUBMITTED', 'REFUSED')"
        )
    )


def test_a_rejected_landing_is_taken_again_once(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.land(
        "deliveries",
        [
            delivery("d1"),
            delivery("d1", document="other"),
            delivery("d1"),
            delivery(None),
            delivery("d2", guaranteed=None),
            delivery("d3", transport="PIGEON"),
        ],
    )
    runs.decide(clock=NOW)
    rejected: dict[str, str] = dict(
        runs.rows("select reason, rejection_id from {schema}.rejected_deliveries")
    )
    assert sorted(rejected) == [
        "CONFLICTING",
        "MISSING_DELIVERY_ID",
        "MISSING_GUARANTEED",
        "REPEATED",
        "UNKNOWN_TRANSPORT",
    ]
    corrected = json.dumps(
        {
            "delivery_id": "d2",
            "received_at": "2026-05-01T12:00:00Z",
            "transport": "RABBITMQ",
            "document_type": "order",
            "guaranteed": True,
        }
    )
    runs.land(
        "resubmissions",
        [
            request(1, rejected["CONFLICTING"], trigger_name="orders"),
            request(2, rejected["MISSING_DELIVERY_ID"], document="edited"),
            request(3, rejected["MISSING_GUARANTEED"], document=corrected),
            request(4, rejected["MISSING_GUARANTEED"]),
            request(5, rejected["REPEATED"]),
            # nothing was corrected: it is rejected again
            request(6, rejected["UNKNOWN_TRANSPORT"]),
            request(7, "nothing", trigger_name="orders"),
        ],
    )
    # a run that dies after it has landed them lands nothing twice
    with monkeypatch.context() as patch:
        patch.setattr(ExactlyOnce, "publish", _killed)
        assert not runs.dbt("run", "--select", "tag:transaction", clock=NOW).success
    runs.decide(clock=NOW)
    conflicting, unnamed = rejected["CONFLICTING"], rejected["MISSING_DELIVERY_ID"]
    assert decided(runs) == sorted(
        [
            (conflicting, "orders"),
            ("d1", "archive"),
            ("d1", "orders"),
            ("d2", "archive"),
            ("d2", "orders"),
            (unnamed, "archive"),
            (unnamed, "orders"),
        ]
    )
    assert journal(runs) == [
        ("r1", "RESUBMITTED", f"comes as {conflicting}"),
        ("r2", "RESUBMITTED", f"comes as {unnamed}"),
        ("r3", "RESUBMITTED", "comes as d2"),
        ("r4", "REFUSED", "it was resubmitted before"),
        ("r5", "REFUSED", "it repeats a delivery that has landed"),
        ("r6", "RESUBMITTED", "comes as d3"),
        ("r7", "REFUSED", "no decision is known for it"),
    ]
    assert runs.rows(
        "select delivery_id, document from {landing}.deliveries "
        f"where delivery_id in ('{conflicting}', '{unnamed}', 'd2') and landed_at > "
        "timestamp '2026-05-01 12:00:01' order by document"
    ) == [("d2", None), (unnamed, "edited"), (conflicting, "other")]
    assert runs.rows(
        "select count(*) from {schema}.rejected_deliveries where reason = 'UNKNOWN_TRANSPORT'"
    ) == [(2,)]

    runs.land("resubmissions", [request(8, conflicting, trigger_name="orders")])
    runs.decide(clock=NOW)
    assert journal(runs)[-1] == ("r8", "REFUSED", "it was resubmitted before")
    assert len(decided(runs)) == 7


def _killed(*_: Any, **__: Any) -> None:
    raise RuntimeError("killed")


@pytest.mark.parametrize("requested_at", [None, datetime(2100, 1, 1, tzinfo=timezone.utc)])
def test_a_request_lands_its_row_once_whatever_its_time(
    runs: DbtRuns, monkeypatch: pytest.MonkeyPatch, requested_at: datetime | None
) -> None:
    """The clock that has written a request, if it has, may be ahead of the run's."""
    runs.land("deliveries", [delivery("d1", guaranteed=None)])
    runs.decide(clock=NOW)
    [(rejected,)] = runs.rows("select rejection_id from {schema}.rejected_deliveries")
    corrected = json.dumps(
        {
            "delivery_id": "d1",
            "received_at": "2026-05-01T12:00:00Z",
            "transport": "RABBITMQ",
            "document_type": "order",
            "guaranteed": True,
        }
    )
    again = {**request(1, rejected, document=corrected), "requested_at": requested_at}
    runs.land("resubmissions", [again])
    with monkeypatch.context() as patch:
        patch.setattr(ExactlyOnce, "publish", _killed)
        assert not runs.dbt("run", "--select", "tag:transaction", clock=NOW).success
    runs.decide(clock=NOW)
    assert decided(runs) == [("d1", "archive"), ("d1", "orders")]
    assert journal(runs) == [("r1", "RESUBMITTED", "comes as d1")]
