"""Checks the configuration seeds against their rules: for `exactly-once check`, runs and previews.

Models read a cell in SQL, with the macro `seed_value`. `SeedCheck.value` reads it in the same way;
a test compares the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote_plus

from dbt_exactly_once.run.filters import clock_in
from dbt_exactly_once.run.seed_rules import REGISTERED, seed_rules
from dbt_exactly_once.run.variables import MOST

BITS = {"int": 31, "bigint": 63}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Seed:
    """A seed with every cell as it is written; a blank cell is an empty text."""

    name: str
    # how a message names its CSV
    file: str
    columns: Sequence[str]
    rows: Sequence[Row]


class Expressions(Protocol):
    """Spark's judgement of the texts in seeds that only it can read."""

    def problem(self, text: str, is_filter: bool) -> str | None:
        """Why a filter or a key cannot be used; None if it can."""
        ...

    def is_time(self, text: str) -> bool:
        """Whether Spark reads a text as a time, as try_cast does."""
        ...


class SeedCheck:
    """Finds what breaks the rules.

    words, defaults: what the macros seed_words and trigger_defaults return. registered: the
    functions of python_udfs by the settings that name one. spark: None if there is none to ask;
    then every time and filter is accepted, and every key that does not read the clock.
    """

    def __init__(
        self,
        words: Mapping[str, Sequence[str]],
        defaults: Mapping[str, tuple[str, str | None]],
        registered: Mapping[str, list[str]],
        spark: Expressions | None,
    ) -> None:
        self._rules = seed_rules(words, defaults)
        self._words = words
        self._defaults = defaults
        self._registered = registered
        self._spark = spark

    def problems(self, seeds: Mapping[str, Seed]) -> list[str]:
        """A line for each wrong value, and for each seed that cannot be checked."""
        found = [*self._unusable(seeds.values())]
        if found:
            return found
        for name in self._rules:
            lines = {*self._of_rows(seeds[name]), *self._unknown(seeds, name)}
            found += sorted(f"seed {name}, {line}" for line in lines)
        conditions = self._rules["trigger_conditions"]["row_name"]
        written = [
            (f"seed triggers, {what}", column, row)
            for what, column, row in map(_key, seeds["triggers"].rows)
        ]
        written += [
            (f"seed trigger_conditions, {_named(conditions, row)}: the filter", "filter", row)
            for row in seeds["trigger_conditions"].rows
        ]
        return [*found, *self._expressions(written)]

    def _of_rows(self, seed: Seed) -> Iterator[str]:
        """What is wrong in the rows of one seed, whatever the other seeds hold."""
        rules = self._rules[seed.name]
        for row in seed.rows:
            for cell in rules["cells"]:
                problem = self._problem(cell, row)
                if problem:
                    yield f"{_named(rules['row_name'], row)}: {problem}"
        yield from self._repeated(seed)

    def of_preview(self, previewed: Mapping[str, Mapping[str, Any]], triggers: Seed) -> list[str]:
        """What is wrong with the variable preview_triggers: settings by the names of triggers."""
        known = sorted(row["trigger_name"].strip(" ") for row in triggers.rows)
        found = []
        rows = []
        for name, settings in previewed.items():
            trigger = str(name)
            if not isinstance(settings, Mapping):
                found.append(f"trigger {trigger}: give settings, such as {{use_history: true}}")
                continue
            if trigger not in known:
                found.append(
                    f"no trigger is named {trigger}; {triggers.file} has {', '.join(known)}"
                )
            found += [
                f"trigger {trigger}: {setting} is no setting; they are {', '.join(self._defaults)}"
                for setting in settings
                if setting not in self._defaults
            ]
            given = {key: str(value) for key, value in settings.items() if value is not None}
            rows.append({**given, "trigger_name": trigger})
        found += sorted(self._of_rows(Seed("triggers", triggers.file, [*self._defaults], rows)))
        found += self._expressions([_key(row) for row in rows])
        return [f"preview_triggers, {line}" for line in found]

    def value(self, column: str, kind: str, text: str) -> str | None:
        """The value of a cell, by Spark type; None if it is blank or cannot be read."""
        text = text.strip(" ")
        words = ["true", "false"] if kind == "boolean" else self._words.get(column)
        if words:
            # ignores the case of ASCII letters only, as Java does
            spelled = (word for word in words if re.fullmatch(word, text, re.I | re.A))
            return next(spelled, None)
        if kind in BITS:
            # int() refuses very long texts
            digits = text.rstrip("\n").lstrip("0") or "0"
            is_number = re.search(r"^[0-9]+$", text) and len(digits) < 20
            is_number = is_number and int(digits) < 1 << BITS[kind]
            return str(int(text)) if is_number else None
        if kind == "timestamp":
            return text if text and (not self._spark or self._spark.is_time(text)) else None
        is_none = column in REGISTERED and text.lower() == "none"
        return None if is_none else text or None

    def _unusable(self, seeds: Collection[Seed]) -> Iterator[str]:
        """Seeds without rows or columns."""
        for seed in seeds:
            needed = self._rules[seed.name]["columns"] if seed.name in self._rules else []
            lacking = [name for name in needed if name not in seed.columns]
            if lacking and (seed.rows or seed.columns):
                yield (
                    f"{seed.file} has no column {', '.join(lacking)}: add it, a blank means the "
                    "default where there is one, and run `dbt seed`"
                )
            if not seed.rows:
                yield f"seed {seed.name} is empty: fill {seed.file} and run `dbt seed`"

    def _problem(self, cell: Mapping[str, Any], row: Row) -> str | None:
        """What is wrong with a cell."""
        text = row.get(cell["column"], "")
        value = self.value(cell["column"], cell["type"], text)
        problem = cell["problem"]
        is_too_great = cell["type"] == "bigint" and int(value or 0) > MOST
        if "longest" in cell:
            # as Iceberg writes it
            written = quote_plus(value or "", safe="*").replace("~", "%7E")
            if len(written) <= cell["longest"]:
                return None
        elif cell.get("registered"):
            names = self._registered[cell["column"]]
            if value is None or value in names:
                return None
            problem += " or ".join([*names, "none"])
        elif (
            (value is not None and not is_too_great)
            or (cell.get("may_be_blank") and not text.strip(" "))
            or ("where" in cell and self.value("", "boolean", row[cell["where"]]) != "true")
        ):
            return None
        return problem.replace("{value}", text or "blank")

    def _unknown(self, seeds: Mapping[str, Seed], name: str) -> Iterator[str]:
        """Rows that refer to what another seed does not have."""
        refers = self._rules[name].get("refers_to")
        if not refers:
            return
        column = refers["column"]
        known = {row[column].strip(" ") for row in seeds[refers["seed"]].rows} - {""}
        for row in seeds[name].rows:
            if row[column].strip(" ") not in known:
                yield f"{_named(self._rules[name]['row_name'], row)}: {refers['problem']}"

    def _repeated(self, seed: Seed) -> Iterator[str]:
        """Rows that repeat values that must be unique."""
        for unique in self._rules[seed.name]["unique"]:
            columns = unique["columns"]
            counts = Counter(
                tuple(self.value(name, kind, row[name]) for name, kind in columns.items())
                for row in seed.rows
            )
            for values, count in counts.items():
                if count > 1 and None not in values:
                    row = dict(zip(columns, map(str, values), strict=True))
                    yield f"{_named(unique['row_name'], row)}: {unique['problem']}"

    def _expressions(self, written: Iterable[tuple[str, str, Row]]) -> Iterator[str]:
        """Keys and filters that cannot be used; written: what each is, its column, its row."""
        for what, column, row in written:
            text = self.value(column, "string", row.get(column, ""))
            if not text:
                continue
            clock = clock_in(text) if column == "key" else None
            if clock:
                problem = f"{clock} gives each copy of a document another key"
            else:
                problem = self._spark and self._spark.problem(text, column == "filter")
            if problem:
                yield f"{what} {text} cannot be used, correct it: {problem}"


def _key(row: Row) -> tuple[str, str, Row]:
    """The key expression of a trigger, as SeedCheck._expressions takes it."""
    return f"{_named([('trigger ', 'trigger_name')], row)}: the key", "key", row


def _named(parts: Iterable[tuple[str, str]], row: Row) -> str:
    return "".join(f"{words}{row[column] or '(none)'}" for words, column in parts)
