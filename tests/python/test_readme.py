"""docs/settings.md says of each setting and variable what it does, and links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

PROJECT_FOLDER = Path(__file__).parents[2]
DEFAULTS = PROJECT_FOLDER / "macros/seeds/trigger_defaults.sql"


def test_every_trigger_setting_has_its_default() -> None:
    page = (PROJECT_FOLDER / "docs" / "settings.md").read_text(encoding="utf-8")
    section = page.split("## Settings of a trigger")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (?:`(\w+)` )?\|", section, re.MULTILINE))
    written = re.findall(
        r"^\s+'(\w+)': \('\w+', (?:'(\w+)'|none)\)",
        DEFAULTS.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    # of the two that name a function, `none` is what a blank stands for
    functions = {"resolver": "none", "resource_monitor": "none"}
    assert told == {"trigger_name": "", **dict(written), **functions}


def test_every_variable_has_its_default() -> None:
    page = (PROJECT_FOLDER / "docs" / "settings.md").read_text(encoding="utf-8")
    section = page.split("## Variables of the project")[1]
    told = dict(re.findall(r"^\| `(\w+)` \| `(.*?)` \| \S", section, re.MULTILINE))
    project = yaml.safe_load((PROJECT_FOLDER / "dbt_project.yml").read_text(encoding="utf-8"))
    assert {name: yaml.safe_load(value) for name, value in told.items()} == project["vars"]


def test_every_link_of_a_page_leads_to_a_file() -> None:
    pages = [*PROJECT_FOLDER.glob("*.md"), *(PROJECT_FOLDER / "docs").glob("*.md")]
    links = [
        (page.name, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert len(pages) > 12
    assert not links


def test_the_pages_make_a_site_that_leads_to_each_of_them(tmp_path: Path) -> None:
    """22.12: Its navigation names every page, and no link in them is broken."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    found = subprocess.run(build, cwd=PROJECT_FOLDER, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    overview = (tmp_path / "index.html").read_text(encoding="utf-8")
    for page in (PROJECT_FOLDER / "docs").glob("*.md"):
        assert page.stem == "index" or f'href="{page.stem}/"' in overview


def test_what_make_cleans_away_is_not_the_users(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to(PROJECT_FOLDER / "Makefile")
    users = (".lake/catalog.db", ".lake/warehouse/a.parquet", "profiles.yml")
    makes = (".lake/demo/catalog.db", ".lake/lint/catalog.db", "target/manifest.json")
    for name in (*users, *makes):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    assert all((tmp_path / name).exists() for name in users)
    assert not any((tmp_path / name).exists() for name in makes)


def test_each_python_that_is_supported_is_tested_on_each_push() -> None:
    workflow = yaml.safe_load((PROJECT_FOLDER / ".github/workflows/test.yml").read_text())
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    makefile = (PROJECT_FOLDER / "Makefile").read_text(encoding="utf-8")
    first, behind = re.findall(r"\(3, (\d+)\) <= sys.version_info < \(3, (\d+)\)", makefile)[0]
    assert tested == [f"3.{minor}" for minor in range(int(first), int(behind))]
    declared = (PROJECT_FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    assert f'requires-python = ">={tested[0]}"' in declared
    commands = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    targets = {target for command in commands for target in re.findall(r"make ([\w-]+)", command)}
    assert targets == {"test", "test-all"}
    assert targets <= set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
