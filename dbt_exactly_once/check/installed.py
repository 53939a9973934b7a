"""What is installed: Python, Java, and the packages in versions that fit."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from dbt_exactly_once.adapter.startup import PACKAGES, check_java, find_java, java_version
from dbt_exactly_once.check.findings import Finding, left, right, wrong
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.extras import DISTRIBUTION

# the packages whose versions are shown; all are checked
SHOWN = ("dbt-core", "dbt-spark", "pyspark", "pyarrow")


def check_versions() -> Iterator[Finding]:
    """Whether this Python and the packages in it are what the installed wheel asks for."""
    shown = ", ".join(f"{name} {_version(name) or 'missing'}" for name in SHOWN)
    try:
        declared = metadata(DISTRIBUTION)
    except PackageNotFoundError:
        yield left(f"{shown}: which versions fit is known where pip has installed {DISTRIBUTION}")
        return
    python, needed = platform.python_version(), str(declared["Requires-Python"])
    is_right = SpecifierSet(needed).contains(python)
    found = [None if is_right else f"Python is {python}, needed is {needed}"]
    found += [_problem(Requirement(text)) for text in declared.get_all("Requires-Dist") or []]
    problems = [wrong(text) for text in found if text]
    yield from problems or [right(f"Python {python}, {shown}")]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _problem(needed: Requirement) -> str | None:
    """What is wrong with a package that is needed without any extra."""
    if needed.marker and not needed.marker.evaluate({"extra": ""}):
        return None
    here = _version(needed.name)
    if here and needed.specifier.contains(here, prereleases=True):
        return None
    found = f"is {here}" if here else "is not installed"
    return f"{needed.name} {found}: pip install '{needed.name}{needed.specifier}'"


def check_local_java() -> Finding:
    """Whether there is a Java that Spark starts with."""
    try:
        check_java()
    except ExactlyOnceError as error:
        return wrong(error.msg)
    java = find_java()
    known = java_version(java) if java else None
    return right(f"Java {known or 'of an unknown version'} ({java})")


def check_iceberg(settings: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether Iceberg's jar is made for the Spark that is installed."""
    made_for = re.search(r"iceberg-spark-runtime-(\d+\.\d+)_", str(settings.get(PACKAGES, "")))
    spark = re.match(r"\d+\.\d+", _version("pyspark") or "")
    if made_for and spark and made_for.group(1) != spark.group():
        yield wrong(
            f"profiles.yml: {PACKAGES} has Iceberg for Spark {made_for.group(1)}, installed is "
            f"{spark.group()}: name iceberg-spark-runtime-{spark.group()}_2.13"
        )
