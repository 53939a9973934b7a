"""dbt's unit tests of the models pass, each on rows of its own."""

from __future__ import annotations

from pathlib import Path

import yaml
from dbt_runs import PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession


def test_every_unit_test_of_the_models_passes(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    runs.run("seed")
    # dbt reads the types of a model's columns from the tables that it selects from
    runs.run("run")
    result = runs.run("test", "--select", "test_type:unit")
    written = [
        test["name"]
        for path in (PROJECT_FOLDER / "models").rglob("*.yml")
        for test in yaml.safe_load(path.read_text(encoding="utf-8")).get("unit_tests", [])
    ]
    # the begin and the end of a command count as nodes too
    tested = [item.node for item in result.result.results]
    of_models = [node.name for node in tested if node.resource_type == "unit_test"]
    assert sorted(of_models) == sorted(written)
