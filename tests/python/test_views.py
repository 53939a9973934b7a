"""A view is made anew where its SQL has changed, and left alone where it has not."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns, failures
from pyspark.sql import SparkSession

VIEWS = ["--select", "document_statuses", "duplicates"]


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    found = DbtRuns(spark, profiles_dir, tmp_path)
    found.run("seed")
    found.decide()
    return found


def made(runs: DbtRuns) -> dict[str, bool]:
    """Whether a command has made each of the views."""
    result = runs.run("run", *VIEWS)
    return {
        item.node.name: item.message != "UNCHANGED"
        for item in result.result.results
        if item.node.resource_type == "model"
    }


def own_models(runs: DbtRuns) -> Path:
    """Models of the test's own, in the place of the link to the project's."""
    models = runs.folder / "models"
    models.unlink()
    for path in sorted((PROJECT_FOLDER / "models").rglob("*")):
        copy = models / path.relative_to(PROJECT_FOLDER / "models")
        if path.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return models


def test_a_view_is_made_anew_only_where_the_code_has_changed(runs: DbtRuns) -> None:
    assert made(runs) == {"document_statuses": True, "duplicates": True}
    assert made(runs) == {"document_statuses": False, "duplicates": False}

    models = own_models(runs)
    path = models / "report" / "duplicates.sql"
    path.write_text(path.read_text() + "-- said more\n")
    runs.forget_parsed()
    # a view that stands on a changed one may have other columns now
    assert made(runs) == {"document_statuses": True, "duplicates": True}
    assert made(runs) == {"document_statuses": False, "duplicates": False}


def test_a_view_that_is_gone_is_made_again(runs: DbtRuns) -> None:
    made(runs)
    runs.spark.sql(f"drop view {runs.schema}.duplicates")
    assert made(runs) == {"document_statuses": False, "duplicates": True}


def test_a_full_refresh_makes_every_view_anew(runs: DbtRuns) -> None:
    made(runs)
    runs.spark.sql(f"create or replace view {runs.schema}.duplicates as select 1 as one")
    runs.run("run", "--full-refresh", *VIEWS)
    assert "trigger_name" in runs.table("duplicates").columns


def test_a_broken_contract_is_told_although_the_view_stands(runs: DbtRuns) -> None:
    made(runs)
    path = own_models(runs) / "report" / "duplicates.sql"
    path.write_text(path.read_text().replace("select * from final", "select 1 as one from final"))
    runs.forget_parsed()
    (told,) = failures(runs.dbt("run", *VIEWS))
    assert "contract" in told
    assert "trigger_name" in runs.table("duplicates").columns
