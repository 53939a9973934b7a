"""docs/other_readers.md holds: Python without Spark reads what was published, and appends."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession
from test_transaction import delivery

TRIGGER = "orders_by_history"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```",
    (PROJECT_FOLDER / "docs" / "other_readers.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.seed(
        "trigger_conditions",
        [
            {
                "trigger_name": TRIGGER,
                "position": 1,
                "condition_name": "created",
                "document_type": "order.created",
                "service": "book",
            },
            {
                "trigger_name": "orders_by_count",
                "position": 1,
                "condition_name": "created",
                "document_type": "order.created",
            },
        ],
    )
    found.run("seed")
    return found


def test_the_examples_read_statuses_and_say_what_a_service_has_done(
    runs: DbtRuns, lake: Path
) -> None:
    runs.land("deliveries", [delivery(1), delivery(2, uuid=None, redelivery_count=3)])
    runs.decide()

    names: dict[str, Any] = {}
    for example in EXAMPLES:
        text = example.replace("/absolute/path/.lake", str(lake))
        text = text.replace("exactly_once.", f"{runs.schema}.").replace(
            '"landing.', f'"{runs.landing}.'
        )
        exec(compile(text, "docs/other_readers.md", "exec"), names)
    doubts = names["in_doubt"].to_pylist()
    assert sorted((row["delivery_id"], row["trigger_name"]) for row in doubts) == [
        ("d2", "orders_by_count"),
        ("d2", TRIGGER),
    ]
    assert names["counts"] == [
        ("orders_by_count", "IN_DOUBT", 1),
        ("orders_by_count", "NEW", 1),
        (TRIGGER, "IN_DOUBT", 1),
        (TRIGGER, "NEW", 1),
    ]

    still_open = "select 1 from {schema}.open_documents where delivery_id = 'd1'"
    assert runs.rows(still_open) != []
    # the example has landed one more delivery; now the service of the first says it is done
    started = datetime.now(timezone.utc) - timedelta(seconds=1)
    names["say"]("STARTED", "d1", TRIGGER, "book", 1, started)
    names["say"]("SUCCESS", "d1", TRIGGER, "book", 1, started)
    runs.decide()
    assert runs.rows(still_open) == []
    assert runs.rows(
        "select count(*) from {schema}.document_status "
        f"where document_key = '5f0c' and trigger_name = '{TRIGGER}' and status = 'NEW'"
    ) == [(1,)]
