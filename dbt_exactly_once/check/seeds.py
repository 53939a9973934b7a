"""The configuration seeds of a project, read from its files."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_exactly_once.adapter.seed_files import seed_as_written
from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.run.seed_check import Seed


def read_seeds(project: Project, names: Iterable[str]) -> dict[str, Seed]:
    """The seeds by name: the project's own if it has one, else the package's."""
    found = {}
    for name in names:
        file = project.seed_file(name)
        table = seed_as_written(str(file), ",")
        rows = [{key: value or "" for key, value in row.items()} for row in table.rows]
        found[name] = Seed(name, str(file), list(table.column_names), rows)
    return found
