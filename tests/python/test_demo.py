"""The project that `make demo` makes is one that dbt can run."""

from __future__ import annotations

import shutil
from pathlib import Path

from dbt.cli.main import dbtRunner
from dbt_runs import PROJECT_FOLDER

from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.demo import BY_KILLED, BY_SERVICES, _demo_project


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
