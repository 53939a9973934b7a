"""Rows that landing has rejected are seen where people look: in a run's lines, views and page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_runs import DbtRuns
from pyspark.sql import SparkSession

from dbt_exactly_once import cli
from dbt_exactly_once.adapter.session_engine import SessionEngine
from dbt_exactly_once.report.page import ask_spark, make_page

FINDING = (
    "rejected at landing: 2 rows for deliveries (NOT_JSON 1, UNKNOWN_TRANSPORT 1), see rejections"
)
TO_DO = (
    "to do: 2 rows for deliveries that were rejected and have not come in since; land them again, "
    "corrected, or resubmit them, then dbt run-operation mark_looked_at"
)


def test_rejected_landings_count_in_the_lines_of_a_run_in_things_to_do_and_on_the_page(
    spark: SparkSession,
    profiles_dir: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    runs.run("seed")
    file = tmp_path / "feed.jsonl"
    file.write_text('no JSON\n{"delivery_id": "a", "transport": "PIGEON", "guaranteed": true, ')
    with file.open("a") as more:
        more.write('"received_at": "2026-05-01T12:00:00Z"}\n')
    place = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    # the second landing repeats nothing that has landed
    assert cli.main(["land", str(file), *place]) == 1

    # a time that Python cannot read does not stop the page
    runs.spark.sql(
        f"insert into {runs.landing}.deliveries "
        "(delivery_id, received_at, landed_at, transport, document_type, guaranteed, uuid, "
        "redelivery_count) values ('zero', timestamp '0001-01-01', current_timestamp(), 'UM', "
        "'order.created', true, 'zero', 0)"
    )
    evaluated = []
    keep = SessionEngine.keep_in_memory

    def note(engine: SessionEngine, relation: str, *more: str) -> int | None:
        evaluated.append(relation)
        return keep(engine, relation, *more)

    monkeypatch.setattr(SessionEngine, "keep_in_memory", note)
    capfd.readouterr()
    runs.run(
        "build", "--exclude-resource-type", "unit_test", "--exclude", "path:seeds", quiet=False
    )
    said = capfd.readouterr().out
    assert f"exactly_once: {FINDING}" in said
    assert f"exactly_once: {TO_DO}" in said
    # nine tests and the line read one evaluation
    assert evaluated.count(f"{runs.schema}.things_to_do") == 1
    assert runs.rows("select rejected, rejected_at_landing from {schema}.run_log") == [(0, 2)]
    to_do: list[Any] = runs.rows(
        "select kind, trigger_name, documents, rows_behind from {schema}.things_to_do"
    )
    assert [row[:3] for row in to_do] == [("REJECTED", None, 2)]
    assert len(runs.rows(to_do[0][3])) == 2

    page = make_page(ask_spark(spark, runs.schema), runs.schema)
    assert "rows for deliveries that were rejected and have not come in since" in page
    assert "rejected at landing" in page

    def warned() -> list[str]:
        tests = runs.run("test", "--select", "tag:warning").result.results
        return [result.node.name for result in tests if result.status == "warn"]

    assert warned() == ["no_rejected_row_is_left"]
    runs.run("run-operation", operation="mark_looked_at")
    assert warned() == []
    assert runs.rows("select kind from {schema}.things_to_do") == []
