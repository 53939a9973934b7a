"""Values that somebody else chose are data: kept as they came, shown, and never run."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.landing.land import land
from dbt_exactly_once.report.page import ask_spark, make_page

TRIGGER = "takes all"
# as a delivery_id and as a uuid, which becomes the document key
HOSTILE = {
    "SQL that ends a text": "x'; drop table history_ledger; --",
    "SQL in a backslash": "\\' or 1=1 -- \\",
    "double quotes": '" or ""="',
    "backticks": "`document_status`",
    "Jinja": "{{ adapter.exactly_once.operations(graph, invocation_id, var).reset_state(graph) }}",
    "a Jinja block": "{% do run_query('drop table document_status') %}",
    "a Jinja comment that is not closed": "{# never",
    "a variable of Spark": "${spark.master} ${env:HOME}",
    "a parameter mark": "? :name %(name)s %s",
    "a wildcard": "100%_",
    "HTML": "<script>document.title = 'taken'</script>",
    "an HTML attribute": "\" onmouseover=\"document.title = 'taken'",
    "NUL": "a\x00b",
    "line ends": "a\r\nb\u2028c",
    "escape sequences of a terminal": "\x1b[2J\x1b[31mred",
    "a formula": "=cmd|' /C calc'!A0",
    "a path": "../../../../etc/passwd",
    "right to left": "\u202egnp.exe",
    "an emoji of four bytes": "👩‍🚀" * 5,
    "Latin a": "paypal",
    "Cyrillic a": "p\u0430ypal",
    "e with accent": "caf\u00e9",
    "e and an accent": "cafe\u0301",
    "lower case": "order-1",
    "upper case": "ORDER-1",
    "a blank at the end": "order-1 ",
    "a blank at the start": " order-1",
    "a tab at the end": "order-1\t",
    "a zero-width space": "order\u200b-1",
    "the word null": "null",
    "only a blank": " ",
}
HOSTILE_TYPE = "order.{{ 1/0 }}'; drop table x --"
# one that is longer than history's keys
LONG = "long-" * 20_000


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed(
        "triggers", [{"trigger_name": TRIGGER, "detect_duplicates": True, "use_history": True}]
    )
    conditions = {"has a mark": "order.created", "hostile": HOSTILE_TYPE}
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": TRIGGER,
                "position": position,
                "condition_name": name,
                "document_type": document_type,
                "filter": "%mark% is not null or %deep% is not null or %text% is not null",
            }
            for position, (name, document_type) in enumerate(conditions.items())
        ],
    )
    found.run("seed")
    return found


def delivery(delivery_id: str, minute: int, **other: Any) -> dict[str, Any]:
    return {
        "delivery_id": delivery_id,
        "received_at": f"2026-03-01T10:{minute:02}:00Z",
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": delivery_id,
        "redelivery_count": 0,
        "document": json.dumps({"mark": delivery_id}),
    } | other


def land_rows(runs: DbtRuns, rows: list[dict[str, Any]]) -> None:
    file = runs.folder / "feed.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    project = Project(PROJECT_FOLDER, {"landing_schema": runs.landing}, PROJECT_FOLDER)
    landed = land(runs.spark, project, [file])
    assert (landed.landed, landed.rejected) == (len(rows), 0)


def test_hostile_ids_are_kept_apart_and_decided(runs: DbtRuns) -> None:
    rows = [delivery(text, 0) for text in HOSTILE.values()]
    # each comes again under an id of its own
    rows += [
        delivery(f"again {name}", 1, uuid=text, redelivery_count=1)
        for name, text in HOSTILE.items()
    ]
    land_rows(runs, rows)
    runs.run("run")
    found = {
        row[0]: row[1:]
        for row in runs.rows(
            "select delivery_id, document_key, rule_id, matched_delivery_id "
            "from {schema}.document_status"
        )
    }
    wanted = {text: (text, "R07", None) for text in HOSTILE.values()}
    wanted |= {f"again {name}": (text, "R09", text) for name, text in HOSTILE.items()}
    assert found == wanted
    page = make_page(ask_spark(runs.spark, runs.schema), runs.schema)
    assert "document.title" not in page.replace("&lt;script&gt;document.title", "")


def test_operations_take_hostile_ids_for_ids(runs: DbtRuns) -> None:
    text = HOSTILE["SQL that ends a text"]
    rows = [
        delivery(name, minute, document_type=HOSTILE_TYPE)
        for minute, name in enumerate((text, HOSTILE["Jinja"]))
    ]
    land_rows(runs, [*rows, delivery("copy", 5, uuid=text, redelivery_count=1)])
    held = {"delivery_id": text, "trigger_name": TRIGGER, "reason": HOSTILE["a Jinja block"]}
    runs.run("run-operation", operation="hold_delivery", arguments_of_operation=held)
    runs.decide()
    assert runs.rows(
        "select delivery_id, reason from {schema}.waiting_deliveries order by received_at"
    )[0] == (text, "HELD")
    # its copy went first meanwhile
    runs.run("run-operation", operation="release_delivery", arguments_of_operation=held)
    runs.decide()
    asked = {"delivery_id": "copy", "trigger_name": TRIGGER, "reason": text, "document": text}
    runs.run("run-operation", operation="resubmit", arguments_of_operation=asked)
    runs.run("run")
    for name in (text, HOSTILE["Jinja"]):
        asked = {"delivery_id": name, "trigger_name": TRIGGER}
        runs.run("run-operation", operation="explain", arguments_of_operation=asked)
    asked = {"document_key": text}
    runs.run("run-operation", operation="explain", arguments_of_operation=asked)
    assert runs.rows(
        "select delivery_id, status from {schema}.document_status order by received_at"
    ) == [(text, "DUPLICATE"), (HOSTILE["Jinja"], "NEW"), ("copy", "NEW")]


def test_large_deep_and_far_values_are_decided(runs: DbtRuns) -> None:
    deep = '{"deep": ' + "[" * 5_000 + "]" * 5_000 + "}"
    large = json.dumps({"text": "x" * 10_000_000})
    rows = [
        delivery("large", 0, document=large),
        delivery("deep", 1, document=deep),
        delivery("no JSON", 2, document="{'mark': 1"),
        delivery("no document", 3, document=None),
        delivery("year 1", 4, received_at="0001-01-01T00:00:00Z"),
        delivery("year 9999", 5, received_at="9999-12-31T23:59:59.999999Z"),
        delivery("after year 9999", 6, received_at="9999-12-31T23:59:59.999999Z", uuid="year 9999"),
        delivery("greatest count", 7, redelivery_count=2**31 - 1),
        delivery("least count", 8, redelivery_count=-(2**31)),
        delivery("long", 9, uuid=LONG),
    ]
    land_rows(runs, rows)
    now = datetime(2026, 3, 1, 11, tzinfo=timezone.utc)
    runs.decide(clock=now)
    land_rows(runs, [delivery("an hour later", 59)])
    runs.decide(clock=now)
    found = dict(runs.rows("select delivery_id, rule_id from {schema}.document_status"))
    by_itself = dict.fromkeys([row["delivery_id"] for row in rows] + ["an hour later"], "R07")
    # the key is too long; of two received at once the lesser id goes first
    assert found == by_itself | {"long": "R12", "year 9999": "R09"}
