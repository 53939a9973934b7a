"""What the pages on the document history database and the subscribe path say, as one day.

`orders` and `doubts` look into history, `counts` has a resolver in its place. The worker of
`orders` is down from 10:00 to 13:00; the time to live is two hours.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

DAY = datetime(2026, 5, 1, tzinfo=timezone.utc)
TRIGGERS = [
    {"trigger_name": "orders", "detect_duplicates": True, "use_history": True},
    {"trigger_name": "counts", "detect_duplicates": True, "resolver": "answer_in_document"},
    {
        "trigger_name": "doubts",
        "detect_duplicates": True,
        "use_history": True,
        "processing_mode": "concurrent",
        "execution_timeout_ms": 36_000_000,
    },
    # its documents carry no id
    {
        "trigger_name": "keys",
        "detect_duplicates": True,
        "use_history": True,
        "key": "concat_ws('-', %sender%, %order/number%)",
    },
]


def at(time: str) -> datetime:
    hours, minutes = time.split(":")
    return DAY + timedelta(hours=int(hours), minutes=int(minutes))


class Day:
    """The lake on that day; times of day are texts such as 08:10."""

    def __init__(self, runs: DbtRuns) -> None:
        self.runs = runs
        self._number = 0

    def receive(self, name: str, trigger: str, time: str, **columns: Any) -> None:
        """A delivery lands one minute after it was received."""
        self.runs.land(
            "deliveries",
            [
                {
                    "delivery_id": name,
                    "received_at": at(time),
                    "landed_at": at(time) + timedelta(minutes=1),
                    "transport": "RABBITMQ",
                    "document_type": trigger,
                    "guaranteed": True,
                    "redelivery_count": 0,
                    **columns,
                }
            ],
        )

    def tell(self, event: str, name: str, trigger: str, time: str) -> None:
        """The service of a document reports; its clock is the wall's."""
        self._number += 1
        self.runs.land(
            "trigger_executions",
            [
                {
                    "execution_id": f"e{self._number}",
                    "delivery_id": name,
                    "trigger_name": trigger,
                    "service": f"serve_{trigger}",
                    "attempt": 1,
                    "event": event,
                    "started_at": at(time),
                    "ended_at": None if event == "STARTED" else at(time),
                    "message": f"no stock for order {name}" if event == "ERROR" else None,
                    "recorded_at": at(time),
                }
            ],
        )

    def request(self, number: int, name: str, trigger: str, time: str, **columns: Any) -> None:
        self.runs.land(
            "resubmissions",
            [
                {
                    "resubmission_id": f"r{number}",
                    "delivery_id": name,
                    "trigger_name": trigger,
                    "requested_at": at(time),
                    **columns,
                }
            ],
        )

    def decide(self, time: str) -> tuple[dict[str, str], dict[str, str]]:
        """A run: what it decides, and what waits for whom after it."""
        self.runs.decide(clock=at(time))
        decided = self.runs.rows(
            "select delivery_id, concat(status, ' ', rule_id) from {schema}.document_status "
            "where run_id = (select max_by(run_id, run_number) from {schema}.published_runs)"
        )
        waiting = self.runs.rows(
            "select delivery_id, concat(reason, ' ', blocked_by_delivery_id) "
            "from {schema}.waiting_deliveries"
        )
        return dict(decided), dict(waiting)

    def history(self, name: str) -> set[tuple[str, str, str]]:
        """The entries of a delivery, with their times of day."""
        rows = self.runs.rows(
            "select processing_status, date_format(started_at, 'HH:mm'), "
            "date_format(expires_at, 'HH:mm') from {schema}.document_history "
            f"where delivery_id = '{name}'"
        )
        return set(rows)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def day(spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Day:
    runs = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("day"))
    runs.add_udfs("answer_in_document")
    runs.seed("triggers", TRIGGERS)
    runs.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": trigger["trigger_name"],
                "position": 1,
                "condition_name": "all",
                "document_type": trigger["trigger_name"],
                # deciding completes what comes to keys
                "service": None
                if trigger["trigger_name"] == "keys"
                else f"serve_{trigger['trigger_name']}",
            }
            for trigger in TRIGGERS
        ],
    )
    runs.run("seed")
    return Day(runs)


def test_what_lands_at_ten_is_new_and_its_copies_wait(day: Day) -> None:
    """19.4: a serial trigger does not ask its resolver about a copy of an unfinished document."""
    day.receive("a", "orders", "10:00", uuid="order 1")
    day.receive("p", "counts", "10:00", uuid="count 1")
    answer = json.dumps({"answer": "DUPLICATE"})
    day.receive("q", "counts", "10:01", uuid="count 1", redelivery_count=1, document=answer)
    day.receive("x", "doubts", "10:00", uuid="doubt 1")
    first = json.dumps({"sender": "ann", "order": {"number": 7}})
    day.receive("k", "keys", "10:00", document=first)
    decided, waiting = day.decide("10:10")
    assert decided == {"a": "NEW R07", "p": "NEW R03", "x": "NEW R07", "k": "NEW R07"}
    assert waiting == {"q": "UNFINISHED_DOCUMENT p"}
    assert not (day.runs.folder / "calls").exists()
    assert day.history("a") == set(), "its service has not begun"


def test_a_copy_waits_for_a_worker_that_is_down(day: Day) -> None:
    """19.1 and 19.4: p has ended, so q is asked about; a has not begun, so b waits."""
    day.receive("b", "orders", "12:30", uuid="order 1")
    day.receive("y", "doubts", "12:20", uuid="doubt 1")
    sent_again = json.dumps({"order": {"number": 7, "note": "again"}, "sender": "ann"})
    day.receive("l", "keys", "11:59", document=sent_again)
    day.receive("m", "keys", "11:59", document="not JSON", uuid="an id that is not asked for")
    day.tell("STARTED", "x", "doubts", "12:00")
    day.tell("ERROR", "p", "counts", "12:10")
    decided, waiting = day.decide("12:40")
    assert decided == {
        "q": "DUPLICATE R06b",
        "y": "IN_DOUBT R10",
        # 19.8: the key is what the expression gives, and nothing else
        "l": "DUPLICATE R09",
        "m": "IN_DOUBT R12",
    }
    assert day.runs.rows(
        "select document_key, key_source from {schema}.document_status where delivery_id = 'l'"
    ) == [("ann-7", "EXPRESSION")]
    assert waiting == {"b": "UNFINISHED_DOCUMENT a"}
    assert day.history("x") == {("processing", "11:59", "13:59")}


def test_a_document_is_known_for_its_time_to_live_from_its_begin(day: Day) -> None:
    """19.1, 19.2 and 19.3: what ended at 13:05 is no gap, p is run again, y has settled itself."""
    day.tell("STARTED", "a", "orders", "13:00")
    day.tell("SUCCESS", "a", "orders", "13:05")
    # the service of x outlasts the time to live
    day.tell("SUCCESS", "x", "doubts", "14:30")
    for number, (name, trigger) in enumerate(
        [("y", "doubts"), ("p", "counts"), ("q", "counts"), ("a", "orders")], start=1
    ):
        day.request(number, name, trigger, "14:35")
    decided, waiting = day.decide("14:40")
    assert decided == {"b": "DUPLICATE R09", "p/resubmission-1": "NEW OPERATOR"}
    assert waiting == {}
    assert day.history("a") == {("processing", "12:59", "14:59"), ("completed", "12:59", "14:59")}
    assert day.history("x") == {("processing", "11:59", "13:59"), ("completed", "11:59", "14:29")}
    refused = day.runs.rows(
        "select delivery_id, message from {schema}.journal_entries where event = 'REFUSED'"
    )
    assert dict(refused) == {
        "y": "its document has succeeded since as x: give force: true to process it all the same",
        "q": "it is a DUPLICATE, which is not processed again",
        "a": "its document has succeeded",
    }


def test_history_is_made_again_as_it_was(day: Day) -> None:
    """19.1: rebuild_history finds the same begins and ends."""
    query = "select * except (run_id) from {schema}.document_history"
    before = sorted(day.runs.rows(query))
    day.runs.run(
        "run-operation", operation="rebuild_history", arguments_of_operation={}, clock=at("14:45")
    )
    assert sorted(day.runs.rows(query)) == before


def test_the_window_ends(day: Day) -> None:
    """19.1: after its time to live a copy is NEW; x is known until its service's end."""
    day.receive("c", "orders", "14:58", uuid="order 1")
    day.receive("d", "orders", "14:59", uuid="order 1")
    day.receive("z", "doubts", "14:28", uuid="doubt 1")
    day.tell("ERROR", "p/resubmission-1", "counts", "15:00")
    decided, _ = day.decide("15:10")
    assert decided == {"c": "DUPLICATE R09", "d": "NEW R07", "z": "DUPLICATE R08"}


def test_people_see_what_failed_and_resubmit_it(day: Day) -> None:
    """19.2 and 19.3: failures are grouped by cause, listed first, then resubmitted at once."""
    day.runs.run(
        "run",
        "--select",
        "decided_deliveries failed_documents failures_by_cause in_doubt_documents",
    )
    doubts = day.runs.rows(
        "select delivery_id, completed_by_delivery_id, date_format(completed_since, 'HH:mm') "
        "from {schema}.in_doubt_documents where trigger_name = 'doubts'"
    )
    assert doubts == [("y", "x", "14:40")]
    groups = day.runs.rows(
        "select trigger_name, service, cause, message_shape, documents, resubmit_command "
        "from {schema}.failures_by_cause"
    )
    *group, command = groups[0]
    assert groups == [(*group, command)]
    assert group == [
        "counts",
        "serve_counts",
        "ERROR",
        "the service has ended in error: no stock for order p/#",
        1,
    ]
    prefix = "dbt run-operation resubmit --args '"
    assert command.startswith(prefix)
    arguments = json.loads(command.removeprefix(prefix).removesuffix("'"))

    def resubmit(**more: Any) -> int:
        day.runs.run(
            "run-operation", operation="resubmit", arguments_of_operation={**arguments, **more}
        )
        return day.runs.rows("select count(*) from {landing}.resubmissions")[0][0]

    assert resubmit() == 4, "it lists only"
    assert resubmit(dry_run=True, really=True) == 4
    assert resubmit(cause="LOST", really=True) == 4
    assert resubmit(really=True) == 5
    # force overrules a settled doubt
    day.request(5, "y", "doubts", "15:15", force=True)
    decided, _ = day.decide("15:20")
    assert decided == {"p/resubmission-2": "NEW OPERATOR", "y/resubmission-1": "NEW OPERATOR"}
    for asked, why in (
        ({"trigger_name": "nobody"}, "no trigger is named nobody"),
        ({**arguments, "document": "{}"}, "document is the text of one delivery: name its"),
        ({**arguments, "delivery_id": "y"}, "delivery_id names one delivery: leave out service"),
        ({"delivery_id": "y"}, "no rejected row has the id y; of a delivery name the trigger_name"),
        ({**arguments, "force": "true"}, "force is true: use true or false, without quotes"),
        ({**arguments, "since": "last week"}, "since is last week: use a time such as 2026-01-31"),
    ):
        refused = day.runs.dbt("run-operation", operation="resubmit", arguments_of_operation=asked)
        assert not refused.success
        assert why in "\n".join([*failures(refused), *day.runs.errors])
