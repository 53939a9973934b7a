"""Spark starts with what this machine knows of its jars and classes, or as it always does."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt_exactly_once.adapter import prepare, startup
from dbt_exactly_once.adapter.lake import SQLITE
from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.errors import ExactlyOnceError

CATALOG = "spark.sql.catalog"
PACKAGES = "org.example:lake:1.0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Spark splits the options of Java at spaces
    place = tmp_path / "a folder"
    place.mkdir()
    monkeypatch.setattr(startup, "FOLDER", place / "share")
    monkeypatch.delenv(startup.WRITE_ARCHIVE, raising=False)
    return place


@pytest.fixture
def jar(folder: Path) -> Path:
    found = folder / "org.example_lake-1.0.jar"
    found.write_bytes(b"jar")
    return found


def parameters(**more: str) -> dict[str, Any]:
    return {"spark.master": "local[2]", startup.PACKAGES: PACKAGES, **more}


def remember(jar: Path) -> None:
    resolved = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: f"file://{jar}"))
    startup.remember_jars(resolved, PACKAGES)


def test_packages_are_resolved_until_their_jars_are_known(folder: Path) -> None:
    assert startup.quickened(parameters())[startup.PACKAGES] == PACKAGES


def test_known_jars_go_on_the_class_path_before_those_of_the_user(jar: Path) -> None:
    remember(jar)
    quick = startup.quickened(parameters(**{startup.CLASS_PATH: "/own.jar"}))
    assert startup.PACKAGES not in quick
    assert quick[startup.CLASS_PATH] == f"{jar}:/own.jar"


def test_packages_whose_jar_is_gone_are_resolved_again(jar: Path) -> None:
    remember(jar)
    jar.unlink()
    assert startup.quickened(parameters())[startup.PACKAGES] == PACKAGES


def test_a_cluster_gets_its_parameters_as_they_are_written(jar: Path) -> None:
    remember(jar)
    written = parameters(**{"spark.master": "spark://host:7077"})
    assert startup.quickened(written) == written


def test_an_archive_is_used_with_the_jars_it_was_made_with_only(jar: Path) -> None:
    remember(jar)
    quick = startup.quickened(parameters())
    archive = startup.archive_of(quick)
    assert archive is not None
    assert "SharedArchiveFile" not in quick[startup.JAVA_OPTIONS]

    archive.touch()
    quick = startup.quickened(parameters(**{startup.JAVA_OPTIONS: "-Dmine=1"}))
    options = shlex.split(quick[startup.JAVA_OPTIONS])
    assert options == ["-Dmine=1", f"-XX:SharedArchiveFile={archive}"]

    jar.write_bytes(b"another version")
    assert "SharedArchiveFile" not in startup.quickened(parameters())[startup.JAVA_OPTIONS]


def test_another_garbage_collector_has_another_archive(jar: Path) -> None:
    remember(jar)
    options = ["-XX:+UseSerialGC", "-XX:+UseG1GC"]
    archives = [
        startup.archive_of(startup.quickened(parameters(**{startup.JAVA_OPTIONS: text})))
        for text in options
    ]
    assert archives[0] != archives[1]


def test_a_process_of_many_runs_compiles_twice_what_stays_hot() -> None:
    """In place of the profile's own option alone; what else the profile says stays."""
    found = parameters(**{startup.JAVA_OPTIONS: "-Dmine=1 -XX:TieredStopAtLevel=1 -Dtoo=1"})
    startup.expect_many_small_runs(found)
    assert found[startup.JAVA_OPTIONS] == f"-Dmine=1 {startup.COMPILE_LATE} -Dtoo=1"
    other = parameters(**{startup.JAVA_OPTIONS: "-XX:TieredStopAtLevel=3"})
    startup.expect_many_small_runs(other)
    assert other[startup.JAVA_OPTIONS] == "-XX:TieredStopAtLevel=3"


def test_the_run_that_writes_an_archive_uses_none(
    jar: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(jar)
    archive = startup.archive_of(startup.quickened(parameters()))
    assert archive is not None
    archive.touch()
    monkeypatch.setenv(startup.WRITE_ARCHIVE, str(folder / "new"))
    options = shlex.split(startup.quickened(parameters())[startup.JAVA_OPTIONS])
    assert options[0] == f"-XX:ArchiveClassesAtExit={folder / 'new'}"
    assert not any("SharedArchiveFile" in option for option in options)


# ---------- exactly-once prepare


def prepared(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> str:
    """What the command says for a target with these settings, where it must run no dbt."""
    credentials = SimpleNamespace(method="session", server_side_parameters=parameters(**settings))
    monkeypatch.setattr(prepare, "read_credentials", lambda *_: credentials)
    monkeypatch.setattr(prepare, "_dbt", lambda *_: pytest.fail("dbt was run"))
    return prepare.prepare(Project(folder, {}, folder), None, None)


def test_nothing_is_prepared_in_a_lake_on_a_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old catalog in a file may stand beside it."""
    settings = {
        "spark.sql.defaultCatalog": "lake",
        f"{CATALOG}.lake.uri": "jdbc:postgresql://host/lake",
        f"{CATALOG}.old.uri": f"{SQLITE}/somewhere/catalog.db",
    }
    assert prepared(folder, monkeypatch, **settings) == (
        "nothing to prepare: this target's catalog is not a file on this machine"
    )


def test_an_environment_that_cannot_be_written_to_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    place = folder / "file" / "share"
    monkeypatch.setattr(prepare, "FOLDER", place)
    settings = {
        "spark.sql.defaultCatalog": "lake",
        f"{CATALOG}.lake.uri": f"{SQLITE}/somewhere/catalog.db",
    }
    assert prepared(folder, monkeypatch, **settings) == (
        f"no archive was made: {place} cannot be written by this user"
    )


def test_dbt_gets_the_profile_that_was_written_whatever_is_named_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\nprofile: lakehouse\n")
    prepare.write_profile(tmp_path, parameters())
    monkeypatch.setenv("DBT_PROFILE", "production")
    monkeypatch.setenv("DBT_TARGET", "production")
    project = Project(tmp_path, {}, tmp_path)
    prepare._dbt(project, tmp_path, ["parse"], {})
    with pytest.raises(ExactlyOnceError, match="dbt build did not succeed in a lake of its own"):
        prepare._dbt(project, tmp_path, ["build", "--selector", "none"], {})


def test_the_profile_names_the_catalog_that_spark_has_beside_the_lake(spark: SparkSession) -> None:
    """With Hive's, two processes of one folder are in each other's way."""
    assert spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
