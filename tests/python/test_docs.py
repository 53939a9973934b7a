"""dbt docs show every table and view with its columns, and the pictures of flow and lifecycle.

And dbt's unit tests of the models pass, which need a project that was run, as the docs do.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import yaml
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt_runs import LEDGERS, PROJECT_FOLDER, DbtRuns
from pyspark.sql import SparkSession

PICTURES = PROJECT_FOLDER / "docs" / "pictures"


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession, profiles_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> DbtRuns:
    """A project that was run once over nothing."""
    found = DbtRuns(spark, profiles_dir, tmp_path_factory.mktemp("docs"))
    found.run("seed")
    found.run("run")
    return found


def test_the_catalog_has_every_table_and_view_with_its_columns(
    runs: DbtRuns, tmp_path: Path
) -> None:
    result = runs.run("docs", "generate", "--target-path", str(tmp_path))
    catalog = result.result
    assert isinstance(catalog, CatalogArtifact)
    assert not catalog.errors
    manifest = runs._parsed()
    described = {
        name: node
        for name, node in {**manifest.nodes, **manifest.sources}.items()
        if node.resource_type in ("model", "seed", "source")
        and node.config.get("materialized") != "ephemeral"
    }
    shown = {**catalog.nodes, **catalog.sources}
    assert sorted(shown) == sorted(described)
    for name, node in described.items():
        if node.columns:
            missing = set(node.columns) - set(shown[name].columns)
            assert not missing, f"{name} is shown without {missing}"
        else:
            assert shown[name].columns, f"{name} is shown without columns"

    overview = manifest.docs["doc.exactly_once.__overview__"].block_contents
    for picture in PICTURES.glob("*.svg"):
        place = picture.relative_to(PROJECT_FOLDER)
        assert (tmp_path / place).is_file()
        assert f"({place})" in overview


def test_every_unit_test_of_the_models_passes(runs: DbtRuns) -> None:
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


def test_everything_is_described(runs: DbtRuns) -> None:
    manifest = runs._parsed()
    bare = [
        name
        for name, node in {**manifest.nodes, **manifest.sources, **manifest.exposures}.items()
        if node.resource_type in ("model", "seed", "source", "exposure")
        and not node.description.strip()
    ]
    assert not bare
    bare = [
        f"{name}.{column}"
        for name, node in {**manifest.nodes, **manifest.sources}.items()
        for column, described in node.columns.items()
        if not described.description.strip()
    ]
    assert not bare


def test_the_lineage_shows_the_stages_by_colour(runs: DbtRuns) -> None:
    colours: dict[str, set[str | None]] = {}
    for node in runs._parsed().nodes.values():
        if node.resource_type == "model":
            colours.setdefault(node.fqn[1], set()).add(node.docs.node_color)
    assert sorted(colours) == ["detect", "execute", "receive", "record", "report"]
    assert len({colour for found in colours.values() for colour in found} - {None}) == 5


def test_the_words_have_one_place() -> None:
    text = (PROJECT_FOLDER / "models" / "words.md").read_text(encoding="utf-8")
    words = set(re.findall(r"{% docs (\w+) %}", text))
    assert words >= {
        "document",
        "delivery",
        "trigger",
        "document_key",
        "history",
        "resolver",
        "decision",
        "ledger",
        "unfinished",
        "acknowledged",
        "event_time_now",
        "run",
    }


def test_every_promise_names_tests_that_are_there() -> None:
    """In docs/guarantees.md, and each failure of a machine that it speaks of has one."""
    text = (PROJECT_FOLDER / "docs" / "guarantees.md").read_text(encoding="utf-8")
    held = text.split("## Which test holds what")[1].split("\n## ")[0]
    named = set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", held))
    assert len(named) > 40
    for file, test in sorted(named):
        written = (PROJECT_FOLDER / "tests" / "python" / file).read_text(encoding="utf-8")
        assert f"def {test}(" in written, f"{file} has no {test}"
    rows = [line for line in held.splitlines() if line.startswith("| ")][2:]
    assert all("`test_" in row for row in rows)


def test_the_picture_of_the_lifecycle_has_every_state() -> None:
    picture = (PICTURES / "lifecycle.svg").read_text(encoding="utf-8")
    with (PROJECT_FOLDER / "seeds" / "status_transitions.csv").open(encoding="utf-8") as file:
        states = {row["to_state"] for row in csv.DictReader(file)}
    # drawn as the arrows back to RECEIVED, and as the last TRANSIENT_ERROR
    drawn_otherwise = {"RECOVERED", "RESUBMITTED", "RETRIES_EXHAUSTED"}
    words = set(re.findall(r"[A-Z_]{3,}", picture))
    assert states - words == drawn_otherwise


def test_a_schedule_makes_no_view_for_people(runs: DbtRuns) -> None:
    listed = runs.run("ls", "--selector", "hot_path", "--output", "path").result
    assert any("models/record/" in path for path in listed)
    assert any("models/execute/" in path for path in listed)
    for path in listed:
        assert not path.startswith(("models/report/", "tests/warnings/", "tests/audit/")), path


def test_the_ledgers_are_the_incremental_models(runs: DbtRuns) -> None:
    """19.7: as anybody who knows dbt lists them."""
    incremental = ("--select", "config.materialized:incremental", "--resource-type", "model")
    listed = runs.run("ls", *incremental, "--output", "name").result
    assert sorted(listed) == sorted(LEDGERS)
