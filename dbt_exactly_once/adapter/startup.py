"""A quick start of Spark on this machine: jars that are not resolved, classes that are not loaded.

Half of a small run is Java loading classes. `exactly-once prepare` keeps them in an archive, as
Java itself offers (class data sharing), and an archive is used only with the Java and the jars that
it was made with. Nothing depends on it: without one Spark starts as it always does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dbt_exactly_once.errors import ExactlyOnceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dbt_exactly_once.adapter.session import Project

# beside the packages that it depends on, and gone with them
FOLDER = Path(sys.prefix) / "share" / "exactly-once"
PACKAGES = "spark.jars.packages"
CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# set for the run whose classes go into an archive: where it is written
WRITE_ARCHIVE = "EXACTLY_ONCE_WRITE_ARCHIVE"


def quickened(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a session with what this machine knows of their jars and classes."""
    if not str(parameters.get("spark.master", "")).startswith("local"):
        return parameters
    quick = dict(parameters)
    jars = _known_jars(quick.get(PACKAGES))
    if jars:
        del quick[PACKAGES]
        quick[CLASS_PATH] = ":".join([*jars, *filter(None, [quick.get(CLASS_PATH)])])
    options = [quick[JAVA_OPTIONS]] if quick.get(JAVA_OPTIONS) else []
    archive = _archive_of(quick)
    if os.environ.get(WRITE_ARCHIVE):
        # it warns of each class that an archive cannot hold
        options.append(f"-XX:ArchiveClassesAtExit={os.environ[WRITE_ARCHIVE]} -Xlog:cds=error")
    elif archive is not None and archive.exists():
        options.append(f"-XX:SharedArchiveFile={archive}")
    quick[JAVA_OPTIONS] = " ".join(options)
    return quick


def find_spark() -> None:
    """Spare Spark the Python processes by which it looks for itself and for data sources."""
    import pyspark

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    # what workers run
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # where Java finds no Python of this name, it asks none which data sources Python offers
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", "no-data-sources-in-python")


# ---------------------------------------------------------------- jars


def remember_jars(spark: SparkSession, packages: str | None) -> None:
    """Keep where the jars of some packages are, once Spark has resolved and fetched them."""
    listed = spark.conf.get("spark.jars", "")
    if not packages or not listed:
        return
    jars = [path.removeprefix("file:").replace("///", "/") for path in listed.split(",")]
    try:
        FOLDER.mkdir(parents=True, exist_ok=True)
        written = _jar_list(packages).with_suffix(f".{os.getpid()}")
        written.write_text("\n".join(jars), encoding="utf-8")
        written.replace(_jar_list(packages))
    except OSError:
        # an environment that cannot be written to: they are resolved anew each time
        return


def _jar_list(packages: str) -> Path:
    return FOLDER / f"jars-{_digest([packages])}.txt"


def _known_jars(packages: str | None) -> list[str]:
    if not packages or not _jar_list(packages).exists():
        return []
    jars = _jar_list(packages).read_text(encoding="utf-8").splitlines()
    return jars if all(Path(jar).is_file() for jar in jars) else []


# ---------------------------------------------------------------- classes


def _archive_of(parameters: dict[str, Any]) -> Path | None:
    """The archive for these parameters; its name changes with Java, its options and the jars."""
    java = _java()
    if java is None or PACKAGES in parameters:
        return None
    import pyspark

    jars = [Path(jar) for jar in str(parameters.get(CLASS_PATH, "")).split(":") if jar]
    jars += sorted((Path(pyspark.__file__).parent / "jars").iterdir())
    release = java.parents[1] / "release"
    known = [str(java), release.read_text(encoding="utf-8") if release.exists() else ""]
    # which garbage collector there is decides how objects lie in it
    known += re.findall(r"-XX:\+Use\w+GC", str(parameters.get(JAVA_OPTIONS, "")))
    for jar in jars:
        stat = jar.stat() if jar.exists() else None
        known.append(f"{jar} {stat and (stat.st_size, stat.st_mtime_ns)}")
    return FOLDER / f"classes-{_digest(known)}.jsa"


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# ---------------------------------------------------------------- exactly-once prepare


def prepare(project: Project, profiles_dir: str | None, target: str | None) -> str:
    """Make the archive for a target where there is none yet; returns what was done.

    The classes are those of a run in a lake of its own, which is thrown away.
    """
    from dbt_exactly_once.adapter.lake import SQLITE
    from dbt_exactly_once.adapter.session import read_credentials

    credentials = read_credentials(project, profiles_dir, target)
    parameters = credentials.server_side_parameters
    if credentials.method != "session" or not parameters.get("spark.master", "").startswith(
        "local"
    ):
        return "nothing to prepare: this target does not run Spark on this machine"
    if not any(str(value).startswith(SQLITE) for value in parameters.values()):
        return "nothing to prepare: this target's catalog is not a file on this machine"
    archive = _archive_of(quickened(parameters))
    if archive is not None and archive.exists():
        return f"{archive} is there"

    with tempfile.TemporaryDirectory(prefix="exactly_once_") as folder:
        place = Path(folder)
        _write_profile(place, parameters)
        # loads the seeds, and lets Spark fetch and name the jars
        _dbt(project, place, ["seed"], {})
        archive = _archive_of(quickened(parameters))
        if archive is None:
            return f"no archive was made: the jars of {PACKAGES} are not on this machine"
        written = archive.with_suffix(f".{os.getpid()}")
        try:
            # what runs on a schedule, so its classes are what is worth keeping
            command = ["build", "--selector", "hot_path"]
            _dbt(project, place, command, {WRITE_ARCHIVE: str(written)})
            if not written.exists():
                raise ExactlyOnceError(f"Java has written no archive to {archive.parent}")
            for old in FOLDER.glob("classes-*.jsa"):
                old.unlink()
            written.replace(archive)
        finally:
            written.unlink(missing_ok=True)
    return f"{archive} made, {archive.stat().st_size >> 20} MB"


def _write_profile(place: Path, parameters: dict[str, Any]) -> None:
    """The target with its lake in another place."""
    from dbt_exactly_once.adapter.lake import CATALOG_SETTING, SQLITE

    moved = dict(parameters)
    for name, value in parameters.items():
        setting = CATALOG_SETTING.fullmatch(name)
        if setting is not None:
            is_catalog_file = str(value).startswith(SQLITE)
            moved[name] = f"{SQLITE}{place}/catalog.db" if is_catalog_file else f"{place}/warehouse"
    output = {
        "type": "spark",
        "method": "session",
        "schema": "exactly_once",
        "host": "NA",
        "threads": 2,
        "server_side_parameters": moved,
    }
    profile = {"exactly_once": {"target": "local", "outputs": {"local": output}}}
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
        said = [line for line in run.stdout.splitlines() if line.strip()]
        raise ExactlyOnceError(
            f"dbt {command[0]} did not succeed in a lake of its own: " + " ".join(said[-3:])[:400]
        )
