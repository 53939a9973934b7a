"""What `pip install` brings: the command and the dbt project, under a name of its own."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from email import message_from_string
from email.message import Message
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from dbt_runs import PROJECT_FOLDER

PLACE = "dbt_exactly_once/project/"
# where a name is imported from is not always what declares it
EXTRA_MODULES = {
    "pika": "rabbitmq",
    "proton": "amqp",
    "confluent_kafka": "kafka",
    "boto3": "sqs",
    "matplotlib": "report",
    "psycopg": "postgres",
}
DISTRIBUTIONS = {
    "proton": "python-qpid-proton",
    "confluent_kafka": "confluent-kafka",
    "boto3": "boto3",
}


def run(*command: object, folder: Path) -> str:
    """What a command says that must succeed, with nothing of this environment but its packages."""
    kept = ("PATH", "HOME", "JAVA_HOME", "LANG")
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        capture_output=True,
        text=True,
        env={name: os.environ[name] for name in kept if name in os.environ},
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def tracked(*places: str) -> list[str]:
    """The project's files in some folders, as git has them, with new ones and without ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *places],
        cwd=PROJECT_FOLDER,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [name for name in listed if (PROJECT_FOLDER / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """The wheel, built as pip builds it from a folder that has the project's files only."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked("."):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PROJECT_FOLDER / name, source / name)
    # an earlier build has left a model that the project has no more
    left = source / "build" / "lib" / PLACE / "models" / "left.sql"
    left.parent.mkdir(parents=True)
    left.write_text("select 1")
    place = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--quiet", "-w", place],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-2000:]
    [file] = place.iterdir()
    assert re.fullmatch(r"dbt_exactly_once-[\d.]+-py3-none-any\.whl", file.name)
    with ZipFile(file) as opened:
        yield opened


@pytest.fixture
def installed(wheel: ZipFile, tmp_path: Path) -> Path:
    """The programs of an environment that has the wheel, and what it depends on from this one."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    run(programs / "pip", "install", "--quiet", "--no-deps", wheel.filename, folder=tmp_path)
    [packages] = environment.glob("lib/python*/site-packages")
    # a path entry, which does not bring this environment's own entries along
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return programs


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


def test_the_wheel_has_the_command_and_the_plugin(wheel: ZipFile) -> None:
    names = wheel.namelist()
    [entries] = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
    assert "exactly-once = dbt_exactly_once.cli:main" in wheel.read(entries).decode()
    python = [name for name in tracked("dbt_exactly_once", "python_udfs") if name.endswith(".py")]
    assert "python_udfs/_hooks.py" in python
    others = [name for name in tracked("dbt_exactly_once") if not name.endswith(".py")]
    assert others
    assert set(others) <= set(names)
    found = {name for name in names if name.endswith(".py") and not name.startswith(PLACE)}
    assert found == set(python)


def test_the_wheel_has_the_whole_dbt_project(wheel: ZipFile) -> None:
    parts = ("models", "macros", "seeds", "tests", "docs/pictures", "examples")
    files = ("dbt_project.yml", "profiles.example.yml", "selectors.yml")
    wanted = {name for name in tracked(*parts) if not name.startswith("tests/python/")}
    for folder in ("models/report", "macros/run", "seeds", "tests/invariants"):
        assert any(name.startswith(f"{folder}/") for name in wanted), folder
    found = {
        name.removeprefix(PLACE)
        for name in wheel.namelist()
        if name.startswith(PLACE) and not name.endswith("/")
    }
    assert found == wanted | set(files)
    for name in ("dbt_project.yml", "models/report/things_to_do.sql"):
        assert wheel.read(PLACE + name) == (PROJECT_FOLDER / name).read_bytes()


@pytest.mark.long
def test_from_the_wheel_alone_a_feed_is_decided(installed: Path, tmp_path: Path) -> None:
    """In an empty folder: init, land, dbt build, report."""
    command = installed / "exactly-once"
    dbt = (installed / "python", "-m", "dbt.cli.main")
    said = run(command, "init", "shop", folder=tmp_path)
    assert said.endswith("next: cd shop; exactly-once land FILE; dbt build\n")
    package = run(command, "init", "--print-package", folder=tmp_path).strip()
    assert package.startswith(str(installed.parent)), "the project in the wheel is used"

    shop = tmp_path / "shop"
    rows = [
        {
            "delivery_id": f"d{number}",
            "received_at": f"2026-05-01T12:00:0{number}Z",
            "transport": "RABBITMQ",
            "document_type": "order.created",
            "guaranteed": True,
            "uuid": uuid,
            "redelivery_count": 0,
            "document": {"order": {"number": uuid, "total": total}},
        }
        for number, (uuid, total) in enumerate([("a", 250.0), ("b", 20.0), ("b", 20.0)])
    ]
    (shop / "feed.json").write_text(json.dumps(rows, indent=2))
    assert run(command, "land", "feed.json", folder=shop) == (
        "deliveries: landed 3, rejected 0, repeated 0\n"
    )
    run(*dbt, "build", "--exclude-resource-type", "unit_test", folder=shop)
    select = "select delivery_id, status from {{ ref('exactly_once', 'decided_deliveries') }}"
    shown = run(*dbt, "--quiet", "show", "--output", "json", "--inline", select, folder=shop)
    statuses = {row["delivery_id"]: row["status"] for row in json.loads(shown)["show"]}
    assert statuses == {"d0": "NEW", "d1": "NEW", "d2": "DUPLICATE"}
    run(command, "report", folder=shop)
    assert "DUPLICATE" in (shop / "exactly_once_report.html").read_text()


def test_the_wheel_names_itself_where_it_is_and_its_extras(metadata: Message) -> None:
    assert metadata["Name"] == "dbt-exactly-once"
    urls = dict(url.split(", ") for url in metadata.get_all("Project-URL", []))
    assert urls["Homepage"] == "https://github.com/exactly-once/dbt-exactly-once"
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues"}
    extras = {"rabbitmq", "amqp", "kafka", "sqs", "report", "postgres", "dev"}
    assert set(metadata.get_all("Provides-Extra", [])) == extras


def test_what_is_imported_is_declared(metadata: Message) -> None:
    required: dict[str, set[str]] = {}
    for line in metadata.get_all("Requires-Dist", []):
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"](\w+)['\"]", line)
        assert name
        required.setdefault(extra[1] if extra else "", set()).add(_normal(name[0]))
    owners = packages_distributions()
    for module in sorted(_imported("dbt_exactly_once", "python_udfs")):
        declared = required[EXTRA_MODULES.get(module, "")]
        names = [DISTRIBUTIONS[module]] if module in DISTRIBUTIONS else owners[module]
        assert declared & set(map(_normal, names)), f"{module} is imported and not declared"


def test_the_name_of_another_project_is_nowhere_installed() -> None:
    """exactly-once on the package index is another project."""
    for name in tracked("."):
        if not name.endswith((".py", ".md", ".toml", ".yml", ".sh", "Makefile")):
            continue
        text = (PROJECT_FOLDER / name).read_text(encoding="utf-8")
        wrong = re.findall(r"(?:pip install[^\n]*[\s'\"]|[\s'\"])exactly-once\[", text)
        assert not wrong, name


def _imported(*folders: str) -> set[str]:
    """The top-level modules that Python files of some folders import, without our own."""
    found: set[str] = set()
    for name in tracked(*folders):
        if not name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse((PROJECT_FOLDER / name).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module)
    modules = {name.split(".")[0] for name in found}
    return modules - sys.stdlib_module_names - set(folders)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
