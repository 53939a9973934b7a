"""The project that `make demo` makes is one that dbt can run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import run_demo as demo
from dbt.adapters.spark.connections import SparkCredentials
from dbt.cli.main import dbtRunner
from dbt_runs import PROJECT_FOLDER
from run_demo import (
    BY_KILLED,
    BY_SERVICES,
    LAKE,
    LINKED,
    _dbt,
    _demo_project,
    _step,
    run_demo,
)

from dbt_exactly_once.adapter.session import Project, find_project
from dbt_exactly_once.errors import ExactlyOnceError


def test_the_project_of_the_demo_has_its_services_and_can_be_parsed(tmp_path: Path) -> None:
    made = _demo_project(find_project(PROJECT_FOLDER), tmp_path)
    assert made.package_folder == PROJECT_FOLDER
    triggers = (made.folder / "seeds" / "triggers.csv").read_text(encoding="utf-8")
    assert all(f"\n{name}," in triggers for name in (BY_SERVICES, BY_KILLED))

    shutil.copy(PROJECT_FOLDER / "profiles.example.yml", tmp_path / "profiles.yml")
    place = ["--project-dir", str(made.folder), "--profiles-dir", str(tmp_path)]
    parsed = dbtRunner().invoke(["parse", "--quiet", *place])
    assert parsed.success, parsed.exception
    materialized = [node.config.materialized for node in parsed.result.nodes.values()]
    assert "service" in materialized


def test_dbt_writes_to_a_file_unless_asked_for_its_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = _demo_project(find_project(PROJECT_FOLDER), tmp_path)
    shutil.copy(PROJECT_FOLDER / "profiles.example.yml", tmp_path / "profiles.yml")
    _dbt(made, tmp_path, False, "parse")
    assert capfd.readouterr() == ("", "")
    assert "Running with dbt=" in (tmp_path / "logs" / "dbt.log").read_text(encoding="utf-8")
    _dbt(made, tmp_path, True, "parse")
    assert "Running with dbt=" in capfd.readouterr().out


def test_the_demo_has_its_own_target_whatever_the_user_has_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*LINKED, "seeds", "demo", "dbt_project.yml", "profiles.example.yml"):
        (tmp_path / name).symlink_to(PROJECT_FOLDER / name)
    for name in ("DBT_PROFILE", "DBT_TARGET", "EXACTLY_ONCE_LAKE"):
        monkeypatch.setenv(name, "production")

    def parse(credentials: SparkCredentials, _: Path) -> None:
        lake = tmp_path / LAKE
        assert str(lake) in credentials.server_side_parameters["spark.sql.catalog.lake.uri"]
        # in the place of Spark; it raises where dbt has another target
        _dbt(Project(lake / "project", {}, PROJECT_FOLDER), lake, False, "parse")
        raise ExactlyOnceError("enough was seen")

    monkeypatch.setattr(demo, "open_session", parse)
    with pytest.raises(ExactlyOnceError, match="enough was seen"):
        run_demo(Project(tmp_path, {}, PROJECT_FOLDER))


def test_a_step_says_what_it_does_what_came_of_it_and_how_long_it_took(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with _step("land a feed") as said:
        assert capsys.readouterr().out == "-- land a feed\n"
        said.append("landed 3")
    assert re.fullmatch(r"   landed 3; \d+ s\n", capsys.readouterr().out)
