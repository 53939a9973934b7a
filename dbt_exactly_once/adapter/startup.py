"""A faster start of Spark on this machine: its jars are found and its classes loaded only once.

Java spends half of a small run on loading classes. `exactly-once prepare` keeps them in an archive
(Java's class data sharing). An archive is used only with the Java and the jars that it was made
with. Nothing depends on it: without an archive Spark starts as it always does.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_exactly_once.errors import ExactlyOnceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# in the Python environment, so that it is deleted together with the packages
FOLDER = Path(sys.prefix) / "share" / "exactly-once"
PACKAGES = "spark.jars.packages"
CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
LEAST_JAVA = 17
# for a process of one run: Java's second compiler is not used at all
COMPILE_NOTHING_TWICE = "-XX:TieredStopAtLevel=1"
# for a process of many small runs: it compiles only what is hot in all of them
COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=30000 -XX:Tier4MinInvocationThreshold=5000 "
    "-XX:Tier4CompileThreshold=60000 -XX:Tier4BackEdgeThreshold=200000"
)
# set for the run whose classes go into an archive: the file to write
WRITE_ARCHIVE = "EXACTLY_ONCE_WRITE_ARCHIVE"


def quickened(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a session, with the jars and the archive that this machine has for them."""
    if not str(parameters.get("spark.master", "")).startswith("local"):
        return parameters
    quick = dict(parameters)
    jars = _known_jars(quick.get(PACKAGES))
    if jars:
        del quick[PACKAGES]
        quick[CLASS_PATH] = ":".join([*jars, *filter(None, [quick.get(CLASS_PATH)])])
    options = [quick[JAVA_OPTIONS]] if quick.get(JAVA_OPTIONS) else []
    archive = archive_of(quick)
    if os.environ.get(WRITE_ARCHIVE):
        # by default Java warns of each class that an archive cannot hold
        place = shlex.quote(os.environ[WRITE_ARCHIVE])
        options.append(f"-XX:ArchiveClassesAtExit={place} -Xlog:cds=error")
    elif archive is not None and archive.exists():
        options.append(f"-XX:SharedArchiveFile={shlex.quote(str(archive))}")
    quick[JAVA_OPTIONS] = " ".join(options)
    return quick


def expect_many_small_runs(parameters: dict[str, Any]) -> None:
    """Let Java use its second compiler for hot code; a profile for one-run processes forbids it."""
    options = str(parameters.get(JAVA_OPTIONS, ""))
    parameters[JAVA_OPTIONS] = options.replace(COMPILE_NOTHING_TWICE, COMPILE_LATE)


def find_spark() -> None:
    """Keep Spark from starting Python processes to find itself and Python's data sources."""
    import pyspark

    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    # the Python of Spark's workers
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # there is no Python of this name, so Java starts none to list Python's data sources
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", "no-data-sources-in-python")


def check_java() -> None:
    """Refuse a machine without a Java that can run Spark; Spark's own error names another cause.

    The version is read from a file beside Java, without a process; a Java without it is accepted.
    """
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        found = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no Java here"
    else:
        version = java_version(java)
        if version is None or version >= LEAST_JAVA:
            return
        found = f"{java} is Java {version}"
    raise ExactlyOnceError(
        f"exactly_once: Spark needs Java {LEAST_JAVA} or later, and {found}: apt-get install "
        f"openjdk-{LEAST_JAVA}-jre-headless, or brew install openjdk@{LEAST_JAVA}, or set "
        "JAVA_HOME to one"
    )


def java_version(java: Path) -> int | None:
    release = java.parents[1] / "release"
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    # Java 8 calls itself 1.8
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(match.group(1)) if match else None


# ---------------------------------------------------------------- jars


def remember_jars(spark: SparkSession, packages: str | None) -> None:
    """Store the paths of the packages' jars, once Spark has resolved and fetched them."""
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
        # the environment cannot be written to: Spark resolves the jars each time
        return


def _jar_list(packages: str) -> Path:
    return FOLDER / f"jars-{_digest([packages])}.txt"


def _known_jars(packages: str | None) -> list[str]:
    if not packages or not _jar_list(packages).exists():
        return []
    jars = _jar_list(packages).read_text(encoding="utf-8").splitlines()
    return jars if all(Path(jar).is_file() for jar in jars) else []


# ---------------------------------------------------------------- classes


def archive_of(parameters: dict[str, Any]) -> Path | None:
    """The archive for these parameters; its name changes with Java, its options and the jars."""
    java = find_java()
    if java is None or PACKAGES in parameters:
        return None
    import pyspark

    jars = [Path(jar) for jar in str(parameters.get(CLASS_PATH, "")).split(":") if jar]
    jars += sorted((Path(pyspark.__file__).parent / "jars").iterdir())
    release = java.parents[1] / "release"
    known = [str(java), release.read_text(encoding="utf-8") if release.exists() else ""]
    # the garbage collector decides how objects are laid out in the archive
    known += re.findall(r"-XX:\+Use\w+GC", str(parameters.get(JAVA_OPTIONS, "")))
    for jar in jars:
        stat = jar.stat() if jar.exists() else None
        known.append(f"{jar} {stat and (stat.st_size, stat.st_mtime_ns)}")
    return FOLDER / f"classes-{_digest(known)}.jsa"


def find_java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
