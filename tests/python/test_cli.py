"""The command line: its options, their environment variables, its exit statuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from dbt_runs import PROJECT_FOLDER

from dbt_exactly_once.cli import COMMANDS, exactly_once, main
from dbt_exactly_once.commands import place
from dbt_exactly_once.errors import ExactlyOnceError


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    project = yaml.safe_load((PROJECT_FOLDER / "dbt_project.yml").read_text(encoding="utf-8"))
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"exactly-once {project['version']}\n"
    declared = (PROJECT_FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{project["version"]}"\n' in declared


def test_help_names_each_command_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-h"]) == 0
    said = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z][a-z-]+) +([A-Z][^\n]+)$", said.split("Commands:")[1], re.M)
    assert [name for name, _ in listed] == [command.name for command in COMMANDS]
    assert all(told.endswith(".") and "..." not in told for _, told in listed), listed
    documented = (PROJECT_FOLDER / "docs" / "commands.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`exactly-once {command.name}" in documented, command.name


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["lnd"], "No such command 'lnd'."),
        (["land", "--tabel", "x"], "No such option '--tabel'."),
        (["land", "--table", "x", "f"], "Invalid value for '--table': 'x' is not one of"),
        (["worker", "--concurrency", "0"], "Invalid value for '--concurrency': 0 is not in"),
        (["thrift-server", "--port", "0"], "Invalid value for '--port': 0 is not in the range"),
        (["run", "--every", "soon"], "Invalid value for '--every': 'soon' is no time such as"),
        (["move-catalog"], "Missing option '--to'."),
        (["send-errors"], "name a broker with --rabbitmq or --amqp"),
        (["land", "--rabbitmq", "a", "--amqp", "b"], "name one of --rabbitmq, --amqp"),
        (
            ["worker", "--send-errors-rabbitmq", "a", "--send-errors-amqp", "b"],
            "name one of --send-errors-rabbitmq, --send-errors-amqp",
        ),
    ],
)
def test_a_wrong_command_line_ends_with_status_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"\nError: {line}" in said.err


def test_options_are_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EXACTLY_ONCE_REPORT_OUTPUT", str(tmp_path / "none" / "page.html"))
    assert main(["report"]) == 1
    assert f"there is no folder {tmp_path}/none" in capsys.readouterr().err
    # named as dbt names them, so that both work in the same place
    monkeypatch.setenv("DBT_PROJECT_DIR", str(tmp_path))
    assert main(["migrate"]) == 1
    assert capsys.readouterr().err.startswith(f"exactly-once: no dbt_project.yml in {tmp_path}")
    monkeypatch.setenv("DBT_PROJECT_DIR", str(PROJECT_FOLDER))
    monkeypatch.setenv("DBT_TARGET", "nowhere")
    assert main(["migrate"]) == 1
    assert "does not have a target named 'nowhere'" in capsys.readouterr().err


def test_no_variable_of_an_option_has_another_meaning() -> None:
    """The variables of profiles.yml, and those that set what no option sets, stay what they are."""
    profile = (PROJECT_FOLDER / "profiles.example.yml").read_text(encoding="utf-8")
    taken = set(re.findall(r"EXACTLY_ONCE_[A-Z_]+", profile)) | {"EXACTLY_ONCE_PROJECT"}
    assert "EXACTLY_ONCE_LAKE" in taken
    read = {
        f"EXACTLY_ONCE_{command.name}_{option.name}".replace("-", "_").upper()
        for command in COMMANDS
        for option in command.params
        if isinstance(option, click.Option)
    }
    assert "EXACTLY_ONCE_LAND_RABBITMQ" in read
    assert not taken & read
    # of the command itself no option has one
    assert all(not option.allow_from_autoenv for option in exactly_once.params)


def test_an_error_that_nobody_foresaw_is_a_line_and_in_full_with_debug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("something\nlong")

    monkeypatch.setattr(place, "find_project", fail)
    assert main(["migrate"]) == 1
    assert capsys.readouterr().err == "exactly-once: something (--debug shows all of it)\n"
    with pytest.raises(ValueError, match="long"):
        main(["migrate", "--debug"])


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyboardInterrupt(), "exactly-once: stopped\n"),
        (ExactlyOnceError("exactly_once: mend it"), "exactly-once: mend it\n"),
    ],
)
def test_what_ends_a_command_is_said_in_a_line(
    error: BaseException,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(place, "find_project", fail)
    assert main(["migrate"]) == 1
    assert capsys.readouterr().err == line


def test_a_command_line_is_read_without_spark_and_dbt() -> None:
    """They take seconds to import."""
    told = (
        "import sys; from dbt_exactly_once.cli import main; main(['--help']); "
        "print({'pyspark', 'pyarrow', 'dbt.cli', 'dbt.adapters'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n"), done.stdout[-200:]
