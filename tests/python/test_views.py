"""A view is made anew where its SQL has changed, and tables have columns that are read quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

VIEWS = ["--select", "decided_deliveries", "duplicates"]


@pytest.fixture(scope="module")
def decided(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("views"))
    found.run("seed")
    found.decide()
    return found


@pytest.fixture
def runs(decided: DbtRuns) -> Iterator[DbtRuns]:
    """A lake of all these tests, with the project's models whatever a test has written there."""
    yield decided
    decided.give_back("models")


def made(runs: DbtRuns) -> dict[str, bool]:
    """Whether a command has made each of the views."""
    result = runs.run("run", *VIEWS)
    return {
        item.node.name: item.message != "UNCHANGED"
        for item in result.result.results
        if item.node.resource_type == "model"
    }


def test_a_view_is_made_anew_only_where_the_code_has_changed(runs: DbtRuns) -> None:
    for view in ("decided_deliveries", "duplicates"):
        runs.spark.sql(f"drop view if exists {runs.schema}.{view}")
    assert made(runs) == {"decided_deliveries": True, "duplicates": True}
    assert made(runs) == {"decided_deliveries": False, "duplicates": False}

    path = runs.own("models") / "report" / "duplicates.sql"
    path.write_text(path.read_text() + "-- said more\n")
    runs.forget_parsed()
    # a view that stands on a changed one may have other columns now
    assert made(runs) == {"decided_deliveries": True, "duplicates": True}
    assert made(runs) == {"decided_deliveries": False, "duplicates": False}


def test_a_view_that_is_gone_is_made_again(runs: DbtRuns) -> None:
    made(runs)
    runs.spark.sql(f"drop view {runs.schema}.duplicates")
    assert made(runs) == {"decided_deliveries": False, "duplicates": True}


def test_a_full_refresh_makes_every_view_anew(runs: DbtRuns) -> None:
    made(runs)
    runs.spark.sql(f"create or replace view {runs.schema}.duplicates as select 1 as one")
    runs.run("run", "--full-refresh", *VIEWS)
    assert "trigger_name" in runs.table("duplicates").columns


def test_a_broken_contract_is_told_although_the_view_stands(runs: DbtRuns) -> None:
    made(runs)
    path = runs.own("models") / "report" / "duplicates.sql"
    whole = path.read_text()
    path.write_text(whole.replace("    statuses.trigger_name,\n", "    1 as one,\n"))
    assert path.read_text() != whole
    runs.forget_parsed()
    (told,) = failures(runs.dbt("run", *VIEWS))
    assert "contract" in told
    assert "trigger_name" in runs.table("duplicates").columns


@pytest.mark.parametrize(
    "table", ["trigger_queue", "decisions", "document_status", "history_ledger"]
)
def test_what_has_many_rows_is_read_in_vectors(runs: DbtRuns, table: str) -> None:
    """Iceberg reads a table row by row where a column that is asked for has parts."""
    fields = runs.spark.table(f"{runs.schema}.{table}").schema.fields
    assert len(fields) > 5
    assert not {field.dataType.typeName() for field in fields} & {"array", "map", "struct"}
