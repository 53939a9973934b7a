"""`exactly-once prepare`: the archive of classes that lets Spark start quickly, see startup.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from dbt_exactly_once.adapter.lake import CATALOG_SETTING, SQLITE, catalog_settings
from dbt_exactly_once.adapter.session import Project, read_credentials
from dbt_exactly_once.adapter.startup import (
    FOLDER,
    PACKAGES,
    WRITE_ARCHIVE,
    archive_of,
    quickened,
)
from dbt_exactly_once.errors import ExactlyOnceError

# the names in the profile that is written for the preparing run
PROFILE = "exactly_once"
TARGET = "local"


def prepare(project: Project, profiles_dir: str | None, target: str | None) -> str:
    """Make the archive for a target if there is none yet; returns what was done.

    The classes are those that a run loads. It runs in a lake of its own, which is thrown away.
    """
    credentials = read_credentials(project, profiles_dir, target)
    parameters = credentials.server_side_parameters
    if credentials.method != "session" or not parameters.get("spark.master", "").startswith(
        "local"
    ):
        return "nothing to prepare: this target does not run Spark on this machine"
    # dbt seed and dbt build run below: they must not touch a lake that is in use
    if not str(catalog_settings(parameters)[1].get("uri")).startswith(SQLITE):
        return "nothing to prepare: this target's catalog is not a file on this machine"
    archive = archive_of(quickened(parameters))
    if archive is not None and archive.exists():
        return f"{archive} is there"
    if not _can_keep_files():
        return f"no archive was made: {FOLDER} cannot be written by this user"

    with tempfile.TemporaryDirectory(prefix="exactly_once_") as folder:
        place = Path(folder)
        write_profile(place, parameters)
        # loads the seeds; Spark fetches the jars, and their paths are stored
        _dbt(project, place, ["seed"], {})
        archive = archive_of(quickened(parameters))
        if archive is None:
            return f"no archive was made: the jars of {PACKAGES} are not on this machine"
        written = archive.with_suffix(f".{os.getpid()}")
        try:
            # a scheduled run does this, so its classes are worth keeping
            command = ["build", "--selector", "hot_path"]
            _dbt(project, place, command, {WRITE_ARCHIVE: str(written)})
            if not written.exists():
                raise ExactlyOnceError(f"Java has written no archive to {archive.parent}")
            for old in archive.parent.glob("classes-*.jsa"):
                old.unlink()
            written.replace(archive)
        finally:
            written.unlink(missing_ok=True)
    return f"{archive} made, {archive.stat().st_size >> 20} MB"


def _can_keep_files() -> bool:
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=FOLDER):
            return True
    except OSError:
        return False


def write_profile(place: Path, parameters: dict[str, Any]) -> None:
    """Write a profiles.yml for the target with its lake in another folder.

    Any other catalog, on a server, stays as it is.
    """
    moved = dict(parameters)
    for name, value in parameters.items():
        setting = CATALOG_SETTING.fullmatch(name)
        if setting is not None and str(value).startswith(SQLITE):
            moved[name] = f"{SQLITE}{place}/catalog.db"
            moved[f"{setting[1]}.warehouse"] = f"{place}/warehouse"
    output = {
        "type": "spark",
        "method": "session",
        "schema": "exactly_once",
        "host": "NA",
        "threads": 2,
        "server_side_parameters": moved,
    }
    profile = {PROFILE: {"target": TARGET, "outputs": {TARGET: output}}}
    (place / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")


def _dbt(project: Project, place: Path, command: list[str], settings: dict[str, str]) -> None:
    """Run dbt in a process of its own and wait until its Java has ended too.

    Java writes the archive after dbt has ended; it keeps the pipe open until then.
    """
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from dbt.cli.main import cli; cli()",
            *command,
            f"--project-dir={project.folder}",
            f"--profiles-dir={place}",
            # overrides what the project, DBT_PROFILE and DBT_TARGET name
            f"--profile={PROFILE}",
            f"--target={TARGET}",
            f"--target-path={place / 'target'}",
            f"--log-path={place / 'logs'}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **settings},
        check=False,
    )
    if run.returncode != 0:
        lines = [line for line in run.stdout.splitlines() if line.strip()]
        raise ExactlyOnceError(
            f"dbt {command[0]} did not succeed in a lake of its own: " + " ".join(lines[-3:])[:400]
        )
