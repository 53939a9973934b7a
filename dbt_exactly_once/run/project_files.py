"""The files that dbt reads a project from, to find out whether any has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbt_exactly_once.adapter.session import PROJECT_FILE, read_yaml
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.resolvers.hooks import PACKAGE as FUNCTIONS

# the folders that dbt reads if dbt_project.yml names none
FOLDERS = {
    "model-paths": ["models"],
    "macro-paths": ["macros"],
    "seed-paths": ["seeds"],
    "test-paths": ["tests"],
    "snapshot-paths": ["snapshots"],
    "analysis-paths": ["analyses"],
    "function-paths": ["functions"],
}
# the files that dbt reads in folders that may have others, such as Python tests
ENDINGS = {
    "test-paths": (".sql", ".yml", ".yaml", ".csv"),
    "function-paths": (".sql", ".yml", ".yaml", ".py"),
}
# the files that define tables and views
CODE = (".sql", ".yml", ".yaml")
FILES = (PROJECT_FILE, "selectors.yml", "packages.yml", "dependencies.yml")

# each file with its time and size
Seen = dict[str, tuple[int, int]]


def files_of_project(folder: Path, profiles_dir: Path) -> Seen:
    """Time and size of each file of a project, its packages, its functions and its profile."""
    seen: Seen = {}
    for path in [profiles_dir / "profiles.yml", *_files_of(folder)]:
        try:
            found = path.stat()
        except OSError:
            # an editor has just replaced it
            continue
        seen[str(path)] = found.st_mtime_ns, found.st_size
    return seen


def code_version(folder: Path) -> str:
    """A checksum of the code of a project and its packages. A table or view stores it, to tell
    whether it was made by the same code."""
    digest = hashlib.sha256()
    for path in sorted(_files_of(folder)):
        if path.suffix in CODE and path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _files_of(folder: Path) -> Iterator[Path]:
    content = _content(folder)
    yield from (folder / name for name in FILES)
    for key, usual in FOLDERS.items():
        for place in content.get(key) or usual:
            endings = ENDINGS.get(key, "")
            files = _files_below(folder / place)
            yield from (path for path in files if path.name.endswith(endings))
    yield from _files_below(folder / FUNCTIONS)
    packages = folder / str(content.get("packages-install-path", "dbt_packages"))
    if packages.is_dir():
        for package in sorted(packages.iterdir()):
            if (package / PROJECT_FILE).is_file():
                yield from _files_of(package)


def _content(folder: Path) -> dict[str, Any]:
    """The content of dbt_project.yml; empty if the file is broken, which dbt reports."""
    try:
        return read_yaml(folder / PROJECT_FILE)
    except ExactlyOnceError:
        return {}


def _files_below(top: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(top):
        inner[:] = [name for name in inner if not _is_ignored(name)]
        yield from (Path(folder, name) for name in names if not _is_ignored(name))


def _is_ignored(name: str) -> bool:
    """Hidden files, backups and caches, which dbt does not read."""
    return name.startswith(".") or name.endswith("~") or name == "__pycache__"
