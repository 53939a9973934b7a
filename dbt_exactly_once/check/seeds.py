"""The configuration seeds, held to the rules of a run, which macros/seeds/seed_rules.sql has.

A run reads the seeds in SQL, as `seed_value` does. `_value` reads them in the same way; a test
compares what both find.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from dbt_exactly_once.adapter.session import PROJECT_FILE, Project, read_yaml
from dbt_exactly_once.run.seeds import seed_as_written

MACROS = Path("macros/seeds")
# each may call those before it
RULES = ("seed_words", "trigger_defaults", "seed_rules")
BITS = {"int": 31, "bigint": 63}

Row = Mapping[str, str]
# whether Spark reads a text as a time
IsTime = Callable[[str], bool]


@dataclass(frozen=True)
class Seed:
    """A CSV with every cell as it is written."""

    name: str
    file: Path
    columns: list[str]
    rows: list[Row]


def read_rules(package_folder: Path) -> dict[str, Any]:
    """What each of RULES returns; its file is Jinja that uses nothing of dbt but `return`."""
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    found: dict[str, Any] = {}
    for name in RULES:
        text = (package_folder / MACROS / f"{name}.sql").read_text(encoding="utf-8")
        returned: list[Any] = []
        known = {other: lambda value=value: value for other, value in found.items()}
        template = environment.from_string(f"{text}{{{{ {name}() }}}}")
        template.render({**known, "return": returned.append})
        [found[name]] = returned
    return found


def folders(project_folder: Path, kind: str) -> list[Path]:
    """Where a project has its seeds or models, by kind: seed or model."""
    named = read_yaml(project_folder / PROJECT_FILE).get(f"{kind}-paths", [f"{kind}s"])
    return [project_folder / name for name in named]


def read_seeds(project: Project, names: Iterable[str]) -> dict[str, Seed]:
    """The seeds by name: the project's own where it has one, else the package's."""
    found = {}
    for name in names:
        own, packages = folders(project.folder, "seed"), folders(project.package_folder, "seed")
        places = (folder / f"{name}.csv" for folder in [*own, *packages])
        file = next(place for place in places if place.is_file())
        table = seed_as_written(str(file), ",")
        rows = [{key: value or "" for key, value in row.items()} for row in table.rows]
        found[name] = Seed(name, file, list(table.column_names), rows)
    return found


class SeedCheck:
    """Finds what breaks the rules, in the words of a run."""

    def __init__(
        self, rules: Mapping[str, Any], registered: Mapping[str, list[str]], is_time: IsTime
    ) -> None:
        self._rules = rules["seed_rules"]
        self._words = rules["seed_words"]
        self._defaults = rules["trigger_defaults"]
        self._registered = registered
        self._is_time = is_time

    def problems(self, seeds: Mapping[str, Seed]) -> list[str]:
        """A line for each wrong value, and for each seed that cannot be checked."""
        found = [*self._unusable(seeds.values())]
        if found:
            return found
        for name, rules in self._rules.items():
            lines = set(self._of_rows(seeds[name], rules)) | set(self._repeated(seeds[name], rules))
            if rules.get("refers_to"):
                lines |= set(self._unknown(seeds, name, rules))
            found += sorted(f"seed {name}, {line}" for line in lines)
        return found

    def _unusable(self, seeds: Collection[Seed]) -> Iterator[str]:
        """Seeds without rows or columns."""
        for seed in seeds:
            needed = list(self._defaults) if seed.name == "triggers" else []
            # a CSV that was written before has blanks in them
            lacking = [name for name in needed if name not in {*seed.columns, "key"}]
            if lacking:
                yield (
                    f"{seed.file} has no column {', '.join(lacking)}: add it, a blank means the "
                    "default"
                )
            if not seed.rows:
                yield f"seed {seed.name} is empty: fill {seed.file}"

    def _of_rows(self, seed: Seed, rules: Mapping[str, Any]) -> Iterator[str]:
        for row in seed.rows:
            for cell in rules["cells"]:
                problem = self._problem(cell, row)
                if problem:
                    yield f"{_named(rules['row_name'], row)}: {problem}"

    def _problem(self, cell: Mapping[str, Any], row: Row) -> str | None:
        """What is wrong with a cell."""
        text = row.get(cell["column"], "")
        value = self._value(cell["column"], cell["type"], text)
        problem = cell["problem"]
        if cell.get("registered"):
            names = self._registered[cell["column"]]
            if value is None or value in names:
                return None
            problem += " or ".join([*names, "none"])
        elif (
            value is not None
            or (cell.get("may_be_blank") and not text.strip(" "))
            or ("where" in cell and self._value("", "boolean", row[cell["where"]]) != "true")
        ):
            return None
        return problem.replace("{value}", text or "blank")

    def _value(self, column: str, kind: str, text: str) -> str | None:
        """What a cell says; None where it is blank or cannot be read. See seed_value."""
        text = text.strip(" ")
        words = ["true", "false"] if kind == "boolean" else self._words.get(column)
        if words:
            # upper and lower case of ASCII only, as in Java
            spelled = (word for word in words if re.fullmatch(word, text, re.I | re.A))
            return next(spelled, None)
        if kind in BITS:
            is_number = re.search(r"^[0-9]+$", text) and int(text) < 1 << BITS[kind]
            return str(int(text)) if is_number else None
        if kind == "timestamp":
            return text if text and self._is_time(text) else None
        is_none = column in self._registered and text.lower() == "none"
        return None if is_none else text or None

    def _unknown(
        self, seeds: Mapping[str, Seed], name: str, rules: Mapping[str, Any]
    ) -> Iterator[str]:
        """Rows that refer to what another seed does not have."""
        column, other = rules["refers_to"]["column"], rules["refers_to"]["seed"]
        known = {row[column].strip(" ") for row in seeds[other].rows} - {""}
        for row in seeds[name].rows:
            if row[column].strip(" ") not in known:
                yield f"{_named(rules['row_name'], row)}: {rules['refers_to']['problem']}"

    def _repeated(self, seed: Seed, rules: Mapping[str, Any]) -> Iterator[str]:
        """Rows that share what no two may share."""
        for unique in rules["unique"]:
            columns = unique["columns"]
            counts = Counter(
                tuple(self._value(name, kind, row[name]) for name, kind in columns.items())
                for row in seed.rows
            )
            for values, count in counts.items():
                if count > 1 and None not in values:
                    row = dict(zip(columns, map(str, values), strict=True))
                    yield f"{_named(unique['row_name'], row)}: {unique['problem']}"


def _named(parts: Iterable[tuple[str, str]], row: Row) -> str:
    return "".join(f"{words}{row[column] or '(none)'}" for words, column in parts)
