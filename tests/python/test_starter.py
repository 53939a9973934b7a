"""`exactly-once init` makes the files of a project, and overwrites none. test_example runs one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from dbt_runs import PROJECT_FOLDER

from dbt_exactly_once import cli
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.resolvers.hooks import load_hooks
from dbt_exactly_once.starter import initialise

EXAMPLE = PROJECT_FOLDER / "examples" / "shop"


def files_of(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): file.read_text()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_a_new_project_is_the_example_under_its_own_name(tmp_path: Path) -> None:
    said: list[str] = []
    folder = tmp_path / "Order-Desk"
    assert initialise(folder, said.append) == []
    made = files_of(folder)
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert set(made) == {*listed, "profiles.yml", "selectors.yml"}
    assert said == [f"{place} is new" for place in sorted(listed)] + [
        "profiles.yml is new",
        "selectors.yml is new",
    ]
    project = yaml.safe_load(made["dbt_project.yml"])
    assert project["name"] == "order_desk"
    assert project["vars"]["exactly_once"]["landing_schema"] == "order_desk_landing"
    assert project["dispatch"][0]["search_order"] == ["order_desk", "exactly_once", "dbt"]
    assert "order_desk" in project["models"]
    for place, text in made.items():
        assert "shop" not in text, place
    assert f"env_var('EXACTLY_ONCE_PROJECT', '{PROJECT_FOLDER}')" in made["packages.yml"]
    assert yaml.safe_load(made["profiles.yml"]) == yaml.safe_load(
        (PROJECT_FOLDER / "profiles.example.yml").read_text()
    )
    assert made["seeds/triggers.csv"].splitlines()[1].startswith("orders,")


def test_the_example_functions_can_be_called(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    initialise(folder, lambda _: None)
    hooks = load_hooks(folder)
    assert "orders.ship" in hooks.names("service")
    assert "orders.booked_before" in hooks.names("resolver")


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    (folder / "seeds").mkdir(parents=True)
    (folder / "seeds" / "triggers.csv").write_text("mine")
    (folder / "README.md").write_text("mine too")
    said: list[str] = []
    initialise(folder, said.append)
    assert (folder / "seeds" / "triggers.csv").read_text() == "mine"
    assert (folder / "README.md").read_text() == "mine too"
    assert "seeds/triggers.csv is there and stays as it is" in said
    assert "README.md is there and stays as it is" in said
    assert "dbt_project.yml is new" in said


PROJECT = """\
name: books
profile: lakehouse
seed-paths: [data]
macro-paths: [macros, more]

# what we have
models:
  books:
    +materialized: table
vars: {books_schema: b}
"""


def test_the_package_is_added_to_a_project_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(PROJECT)
    packages = "packages:\n  - package: dbt-labs/dbt_utils\n    version: 1.3.0\n"
    (tmp_path / "packages.yml").write_text(packages)
    said: list[str] = []
    left = initialise(tmp_path, said.append)

    assert (tmp_path / "packages.yml").read_text().startswith(packages)
    assert len(yaml.safe_load((tmp_path / "packages.yml").read_text())["packages"]) == 2
    text = (tmp_path / "dbt_project.yml").read_text()
    assert text.startswith(PROJECT), "what is there stays as it is"
    project = yaml.safe_load(text)
    assert project["flags"] == {"skip_nodes_if_on_run_start_fails": True}
    assert project["dispatch"] == [
        {"macro_namespace": "dbt", "search_order": ["books", "exactly_once", "dbt"]}
    ]
    assert project["seeds"]["exactly_once"]["triggers"] == {"+enabled": False}
    assert set(files_of(tmp_path)) == {
        "data/README.md",
        "data/trigger_conditions.csv",
        "data/triggers.csv",
        "dbt_project.yml",
        "macros/materialization_incremental_spark.sql",
        "macros/materialization_seed_spark.sql",
        "packages.yml",
        "selectors.yml",
    }
    assert said[-4:] == [
        "dbt_project.yml has flags at its end",
        "dbt_project.yml has dispatch at its end",
        "dbt_project.yml has seeds at its end",
        "packages.yml has exactly_once at its end",
    ]
    assert left == [
        "dbt_project.yml, under vars: {exactly_once: {landing_schema: books_landing}}",
        "dbt_project.yml, under models: {exactly_once: {+schema: ledgers}}",
        "profile lakehouse: its target starts Spark with an Iceberg catalog, as "
        f"{PROJECT_FOLDER}/profiles.example.yml does",
    ]

    # again: nothing but what is still to be done by hand
    before = files_of(tmp_path)
    assert initialise(tmp_path, said.append) == left
    assert files_of(tmp_path) == before

    profiles = yaml.safe_load((PROJECT_FOLDER / "profiles.example.yml").read_text())
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump({"lakehouse": profiles["exactly_once"]}))
    assert initialise(tmp_path, said.append) == left[:-1]


def test_packages_that_are_written_in_another_way_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: books\nprofile: p\n")
    for text in ("packages: [{package: a/b, version: 1}]\n", "packages:\n- package: a/b\n"):
        (tmp_path / "packages.yml").write_text(text)
        left = initialise(tmp_path, lambda _: None)
        assert (tmp_path / "packages.yml").read_text() == text
        assert left[0] == (
            "packages.yml, under packages: - local: "
            f"\"{{{{ env_var('EXACTLY_ONCE_PROJECT', '{PROJECT_FOLDER}') }}}}\""
        )


def test_packages_in_dependencies_yml_stay_the_only_ones(tmp_path: Path) -> None:
    """dbt refuses a project with packages in both files, and renders no Jinja in this one."""
    (tmp_path / "dbt_project.yml").write_text("name: books\nprofile: p\n")
    dependencies = tmp_path / "dependencies.yml"
    dependencies.write_text("packages:\n  - package: a/b\n    version: 1\n")
    left = initialise(tmp_path, lambda _: None)
    assert left[0] == f"dependencies.yml, under packages: - local: {PROJECT_FOLDER}"
    assert not (tmp_path / "packages.yml").exists()
    dependencies.write_text(f"packages:\n  - local: {PROJECT_FOLDER}\n")
    assert initialise(tmp_path, lambda _: None) == left[1:]

    # other projects may stand there
    dependencies.write_text("projects:\n  - name: others\n")
    assert initialise(tmp_path, lambda _: None) == left[1:]
    assert (tmp_path / "packages.yml").exists()


@pytest.mark.parametrize("installed", [False, True])
def test_a_package_that_is_there_in_another_way_gets_no_second_entry(
    tmp_path: Path, installed: bool
) -> None:
    folder, package = tmp_path / "desk", tmp_path / "package"
    folder.mkdir()
    package.mkdir()
    (package / "dbt_project.yml").write_text("name: exactly_once\n")
    (folder / "dbt_project.yml").write_text(
        "name: books\nprofile: p\npackages-install-path: packages\n"
    )
    place = "git: https://example.org/any.git" if installed else "local: ../package"
    text = f"packages:\n  - {place}\n"
    (folder / "packages.yml").write_text(text)
    if installed:
        (folder / "packages").mkdir()
        (folder / "packages" / "exactly_once").symlink_to(package)
    left = initialise(folder, lambda _: None)
    assert not any("packages" in line for line in left)
    assert (folder / "packages.yml").read_text() == text


def test_selectors_that_are_there_need_the_one_of_a_schedule(tmp_path: Path) -> None:
    """dbt takes over no selector of a package."""
    (tmp_path / "dbt_project.yml").write_text("name: books\nprofile: p\n")
    (tmp_path / "selectors.yml").write_text(
        "selectors:\n  - name: mine\n    definition: {method: tag, value: mine}\n"
    )
    left = initialise(tmp_path, lambda _: None)
    line = f"selectors.yml: the selector hot_path of {PROJECT_FOLDER}/selectors.yml"
    assert left.count(line) == 1
    (tmp_path / "selectors.yml").unlink()
    assert line not in initialise(tmp_path, lambda _: None)


@pytest.mark.parametrize("name", ["2nd", "exactly-once", "dbt", "DBT_Spark"])
def test_a_folder_that_gives_no_name_is_refused(tmp_path: Path, name: str) -> None:
    """dbt wants each name of a package once."""
    with pytest.raises(ExactlyOnceError, match=" is no name for a dbt project"):
        initialise(tmp_path / name, lambda _: None)
    assert not (tmp_path / name).exists()


def test_a_project_is_named_after_its_folder_however_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "desk" / "models").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "desk" / "models")
    initialise(Path(".."), lambda _: None)
    project = yaml.safe_load((tmp_path / "desk" / "dbt_project.yml").read_text())
    assert project["name"] == "desk"


def test_the_next_steps_can_be_copied_whatever_the_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my desk").mkdir()
    (tmp_path / "my desk" / "dbt_project.yml").write_text("name: desk\nprofile: p\n")
    assert cli.main(["init", "my desk"]) == 0
    assert "next: cd 'my desk'; dbt deps; " in capsys.readouterr().out


def test_a_project_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dbt_project.yml"
    file.write_text("name: [books\n")
    with pytest.raises(ExactlyOnceError) as error:
        initialise(tmp_path, lambda _: None)
    assert error.value.msg.startswith(f"{file} cannot be read, correct it: while parsing")
    assert "line 2" in error.value.msg
    assert "\n" not in error.value.msg


def test_the_command_prints_where_the_package_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["init", "--print-package"]) == 0
    assert capsys.readouterr().out == f"{PROJECT_FOLDER}\n"
