"""`exactly-once init`: makes a dbt project that uses this package, or adds it to an existing one.

A new project is examples/shop under another name. Of the files that exist, only dbt_project.yml and
packages.yml are changed, and only by lines at their end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from dbt_exactly_once.adapter.session import PACKAGE, PROJECT_FILE, read_yaml
from dbt_exactly_once.errors import ExactlyOnceError

PACKAGES_FILE = "packages.yml"
# may list packages instead; dbt refuses a project that lists them in both files
DEPENDENCIES_FILE = "dependencies.yml"
SELECTORS_FILE = "selectors.yml"
SELECTOR = "hot_path"
# packages that each project has; dbt accepts each name only once
TAKEN = (PACKAGE, "dbt", "dbt_spark")
# the example, its project name, and the path of the package in its packages.yml
EXAMPLE = "examples/shop"
EXAMPLE_NAME = "shop"
EXAMPLE_PLACE = "'../..'"
# the files of the example that an existing project needs; it has its own version of the others
NEEDED = (
    "macros/materialization_incremental_spark.sql",
    "macros/materialization_seed_spark.sql",
    "seeds/README.md",
    "seeds/trigger_conditions.csv",
    "seeds/triggers.csv",
    SELECTORS_FILE,
)

Echo = Callable[[str], None]


def package_folder() -> Path:
    """The dbt project of this Python package: in a wheel within the package, else around it."""
    within = Path(__file__).parent / "project"
    return within if within.is_dir() else Path(__file__).parents[1]


def initialise(folder: Path, echo: Echo) -> list[str]:
    """Make a project in a folder, or add the package to one; returns what is left to do."""
    folder = folder.resolve()
    if (folder / PROJECT_FILE).is_file():
        return _join(folder, echo)
    name = _name_for(folder)
    _write(folder, _example(name, folder), echo)
    return _missing_selector(folder)


def install_packages(folder: Path) -> None:
    """Have dbt install the package."""
    from dbt_exactly_once.adapter.dbt_commands import dbt

    done = dbt(["deps", "--quiet", f"--project-dir={folder}", f"--profiles-dir={folder}"])
    if done.failures:
        raise ExactlyOnceError(f"dbt deps did not succeed in {folder}: {done.failures[0]}")


def _name_for(folder: Path) -> str:
    name = re.sub(r"\W+", "_", folder.name, flags=re.ASCII).strip("_").lower()
    if name in TAKEN:
        raise ExactlyOnceError(
            f"{name} is no name for a dbt project, one of its packages has it: name another folder"
        )
    if not name or name[0].isdigit():
        raise ExactlyOnceError(
            f"{folder.name} is no name for a dbt project: name a folder with letters, digits and "
            "underscores, beginning with a letter"
        )
    return name


def _example(name: str, folder: Path) -> dict[str, str]:
    """The text of each file of a new project, by its path in the project."""
    source = package_folder() / EXAMPLE
    files = {}
    for file in sorted(source.rglob("*")):
        place = file.relative_to(source).as_posix()
        if file.is_file() and not _is_made_by_tools(place):
            text = file.read_text(encoding="utf-8")
            files[place] = re.sub(rf"\b{EXAMPLE_NAME}(?=\b|_)", name, text)
    where = _place_of_package(folder)
    files[PACKAGES_FILE] = files[PACKAGES_FILE].replace(EXAMPLE_PLACE, f"'{where}'")
    profile = (package_folder() / "profiles.example.yml").read_text(encoding="utf-8")
    # its first lines are about this repository
    files["profiles.yml"] = profile.partition("#\n")[2]
    # dbt does not take over the selectors of a package
    files[SELECTORS_FILE] = (package_folder() / SELECTORS_FILE).read_text(encoding="utf-8")
    return files


def _is_made_by_tools(place: str) -> bool:
    made = {"target", "logs", "dbt_packages", "__pycache__", ".lake", "profiles.yml", ".user.yml"}
    return bool(made & set(place.split("/"))) or place == "package-lock.yml"


def _place_of_package(folder: Path) -> str:
    """The path of the package for packages.yml: relative if it is in the project's folder."""
    package = package_folder().resolve()
    inside = package.is_relative_to(folder)
    return Path(os.path.relpath(package, folder)).as_posix() if inside else package.as_posix()


def _write(folder: Path, files: dict[str, str], echo: Echo) -> None:
    """Write the files that do not exist; existing ones stay as they are."""
    for place, text in files.items():
        if (folder / place).exists():
            echo(f"{place} is there and stays as it is")
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
        echo(f"{place} is new")


# ---------- an existing project


def _join(folder: Path, echo: Echo) -> list[str]:
    project = read_yaml(folder / PROJECT_FILE)
    name = str(project.get("name"))
    if name == PACKAGE:
        raise ExactlyOnceError(f"{folder} is the package itself: name the folder of a project")
    example = _example(name, folder)
    seeds, macros = (
        (project.get(f"{kind}-paths") or [f"{kind}s"])[0] for kind in ("seed", "macro")
    )
    needed = {
        place.replace("seeds/", f"{seeds}/").replace("macros/", f"{macros}/"): example[place]
        for place in NEEDED
    }
    _write(folder, needed, echo)
    left = _add_settings(folder, project, yaml.safe_load(example[PROJECT_FILE]), echo)
    left += _add_package(folder, project, example[PACKAGES_FILE], echo)
    left += _missing_selector(folder)
    left += _missing_profile(folder, str(project.get("profile")))
    return left


def _missing_profile(folder: Path, name: str) -> list[str]:
    """What is left to do if no target in the project's own folder has Iceberg in its Spark."""
    file = folder / "profiles.yml"
    profile = (read_yaml(file) if file.is_file() else {}).get(name) or {}
    outputs = (profile.get("outputs") or {}).values()
    parameters = [(output or {}).get("server_side_parameters") or {} for output in outputs]
    if any("iceberg" in str(found.get("spark.sql.extensions")) for found in parameters):
        return []
    example = package_folder() / "profiles.example.yml"
    return [f"profile {name}: its target starts Spark with an Iceberg catalog, as {example} does"]


def _missing_selector(folder: Path) -> list[str]:
    """What is left to do if selectors.yml existed before and lacks the selector."""
    selectors = read_yaml(folder / SELECTORS_FILE).get("selectors") or []
    if any(isinstance(entry, dict) and entry.get("name") == SELECTOR for entry in selectors):
        return []
    return [f"{SELECTORS_FILE}: the selector {SELECTOR} of {package_folder() / SELECTORS_FILE}"]


def _add_settings(
    folder: Path, project: dict[str, Any], example: dict[str, Any], echo: Echo
) -> list[str]:
    """Add the settings that the root project needs; returns what must be added by hand."""
    dispatch = example["dispatch"]
    wanted = {
        "flags": {"skip_nodes_if_on_run_start_fails": True},
        "vars": example["vars"],
        "dispatch": dispatch,
        "models": {PACKAGE: example["models"][PACKAGE]},
        "seeds": {PACKAGE: example["seeds"][PACKAGE]},
    }
    left = []
    for key, value in wanted.items():
        if key not in project:
            text = yaml.safe_dump({key: value}, sort_keys=False)
            _append(folder / PROJECT_FILE, "\n# for exactly_once\n" + text)
            echo(f"{PROJECT_FILE} has {key} at its end")
        elif not _is_in(value, project[key]):
            lines = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
            left.append(f"{PROJECT_FILE}, under {key}: {lines.strip()}")
    return left


def _is_in(wanted: Any, found: Any) -> bool:
    """Whether a setting is there already, as the project wants it."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found for key in wanted)
    return any(PACKAGE in (item.get("search_order") or []) for item in found or [])


def _add_package(folder: Path, project: dict[str, Any], text: str, echo: Echo) -> list[str]:
    file = folder / PACKAGES_FILE
    content, others = (
        read_yaml(folder / name) if (folder / name).is_file() else {}
        for name in (PACKAGES_FILE, DEPENDENCIES_FILE)
    )
    if _has_package(folder, project, [content.get("packages"), others.get("packages")]):
        return []
    if "packages" in others:
        # dbt renders no Jinja there
        return [f"{DEPENDENCIES_FILE}, under packages: - local: {_place_of_package(folder)}"]
    if not file.is_file():
        _write(folder, {PACKAGES_FILE: text}, echo)
        return []
    entry = text.partition("\n")[2]
    if list(content) == ["packages"] and isinstance(content["packages"], list):
        # a list in brackets, or one that is indented in another way, is left alone
        before = file.read_text(encoding="utf-8")
        joined = before.rstrip("\n") + "\n" + entry
        if _packages_in(joined) == len(content["packages"]) + 1:
            file.write_text(joined, encoding="utf-8")
            echo(f"{PACKAGES_FILE} has exactly_once at its end")
            return []
    return [f"{PACKAGES_FILE}, under packages: {entry.strip().splitlines()[-1].strip()}"]


def _has_package(folder: Path, project: dict[str, Any], lists: list[Any]) -> bool:
    """Whether this package is installed, or is in a list of packages."""
    installed = folder / project.get("packages-install-path", "dbt_packages") / PACKAGE
    if installed.is_dir():
        return True
    entries = [entry for listed in lists for entry in listed or []]
    places = [str(entry.get("local", "")) for entry in entries if isinstance(entry, dict)]
    return any("EXACTLY_ONCE_PROJECT" in place or _is_package(folder, place) for place in places)


def _is_package(folder: Path, place: str) -> bool:
    file = folder / Path(place).expanduser() / PROJECT_FILE
    return bool(place) and file.is_file() and read_yaml(file).get("name") == PACKAGE


def _packages_in(text: str) -> int:
    try:
        return len(yaml.safe_load(text)["packages"])
    except (yaml.YAMLError, TypeError, KeyError):
        return -1


def _append(file: Path, text: str) -> None:
    before = file.read_text(encoding="utf-8")
    file.write_text(before.rstrip("\n") + "\n" + text, encoding="utf-8")
