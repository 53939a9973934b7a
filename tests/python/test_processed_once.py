"""The generic test processed_once, on tables that know nothing of ledgers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dbt_runs import DbtRuns, failures
from pyspark.sql import SparkSession

from dbt_exactly_once.errors import ExactlyOnceError

EFFECTS = """
select * from values
    ('a', timestamp '2026-05-01 10:00:00'), ('a', timestamp '2026-05-01 12:00:00'),
    ('b', timestamp '2026-05-01 10:00:00'), ('b', timestamp '2026-05-01 11:59:59'),
    (null, timestamp '2026-05-01 10:00:00'), (null, timestamp '2026-05-01 10:00:00')
    as effects (order_number, booked_at)
"""
BOOKED = {"processed_at": "booked_at"}
# by its name, what a test is given, and the copies it finds
TESTS = {
    "a_window": ({"key": "order_number", "within": "2 hours", **BOOKED}, 1),
    "a_short_window": ({"key": "order_number", "within": "1 hour", **BOOKED}, 0),
    "no_window": ({"key": "order_number"}, 2),
    "an_expression": ({"key": "concat(order_number, booked_at)"}, 0),
}


def test_a_key_that_was_processed_again_is_found(
    spark: SparkSession, profiles_dir: Path, tmp_path: Path
) -> None:
    """22.8: within a time, or ever; a wrong use is told in a line."""
    runs = DbtRuns(spark, profiles_dir, tmp_path)
    project = yaml.safe_load((tmp_path / "dbt_project.yml").read_text())
    project["model-paths"] = ["models", "own"]
    (tmp_path / "dbt_project.yml").write_text(yaml.safe_dump(project))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "effects.sql").write_text(EFFECTS)

    def describe(given: dict[str, dict[str, str]]) -> None:
        tests = [
            {"exactly_once.processed_once": {"name": name, "arguments": arguments}}
            for name, arguments in given.items()
        ]
        described = {"models": [{"name": "effects", "data_tests": tests}]}
        (tmp_path / "own" / "effects.yml").write_text(yaml.safe_dump(described))
        runs.forget_parsed()

    describe({name: given for name, (given, _) in TESTS.items()})
    runs.run("run", "--select", "effects")
    told = failures(runs.dbt("test", "--select", "effects"))
    found = {name: text for name, _, text in (line.partition(": ") for line in told)}
    assert set(found) == {name for name, (_, copies) in TESTS.items() if copies}
    for name, text in found.items():
        assert f"Got {TESTS[name][1]} result" in text

    describe({"half": {"key": "order_number", "within": "1 hour"}})
    with pytest.raises(ExactlyOnceError, match="processed_at and within go together"):
        runs.run("test", "--select", "effects")
