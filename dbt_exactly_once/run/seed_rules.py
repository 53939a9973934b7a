"""The rules of each configuration seed, as data.

For each seed:

columns: what its CSV must have; key was added later, and counts as blank in a CSV that lacks it.
row_name: how a row is named, as pairs of words and a column.
cells: the problem to report if the value of a cell cannot be read, or is blank without
`may_be_blank`. If `where` names a column, only rows in which that column is true have the problem.
The value of a `registered` cell must name a function of python_udfs. `longest`: of a value as it is
written in a path; other problems of the cell have a rule of their own.
unique: columns, each with its type, whose values no two rows share.
refers_to: a column whose values must be in the same column of another seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_exactly_once.run.variables import MOST

# of a trigger's name in a path: waiting_deliveries has a folder trigger_name=NAME for each, and the
# name of a folder has at most 255 bytes
LONGEST_NAME = 255 - len("trigger_name=")
# the settings of seeds that name a function of python_udfs
REGISTERED = ("resolver", "resource_monitor")

_NUMBER = "a whole number, 0 or more"
_USES = {
    "boolean": "true or false",
    "timestamp": "a time such as 2026-01-31 12:00:00 (UTC)",
    "int": _NUMBER,
    "bigint": f"a whole number, 0 to {MOST}",
}
_TRIGGER = [("trigger ", "trigger_name")]
_OF_TRIGGER = (" of trigger ", "trigger_name")
_POSITION = [("condition ", "position"), _OF_TRIGGER]
_TRANSPORT = [("transport ", "transport")]


def _cell(column: str, kind: str, problem: str) -> dict[str, Any]:
    return {"column": column, "type": kind, "problem": f"{column} {problem}"}


def _unique(
    columns: Mapping[str, str], row_name: Sequence[tuple[str, str]], problem: str
) -> dict[str, Any]:
    return {"columns": columns, "row_name": row_name, "problem": problem}


_CONDITIONS: dict[str, Any] = {
    "columns": [
        "trigger_name",
        "position",
        "condition_name",
        "document_type",
        "filter",
        "service",
    ],
    "row_name": _POSITION,
    "cells": [
        _cell("position", "int", "is no whole number: number the conditions of a trigger"),
        _cell("condition_name", "string", "is blank: give every condition a name"),
        _cell("document_type", "string", "is blank: name the type that the condition takes"),
    ],
    "refers_to": {
        "column": "trigger_name",
        "seed": "triggers",
        "problem": "no such trigger in the seed triggers: add it there or correct the name",
    },
    "unique": [
        _unique(
            {"trigger_name": "string", "position": "int"},
            _POSITION,
            "two conditions stand in one position: number them differently",
        ),
        _unique(
            {"trigger_name": "string", "condition_name": "string"},
            [("condition ", "condition_name"), _OF_TRIGGER],
            "the name stands there more than once in this trigger: name every condition "
            "differently",
        ),
    ],
}


def seed_rules(
    words: Mapping[str, Sequence[str]], defaults: Mapping[str, tuple[str, str | None]]
) -> dict[str, dict[str, Any]]:
    """The rules by seed; words and defaults are what the macros of their names return."""
    too_long = (
        f"is too long: use at most {LONGEST_NAME} characters, of which each that is neither a "
        "Latin letter nor a digit counts as 3 to 12"
    )
    triggers = {
        "columns": ["trigger_name", *(name for name in defaults if name != "key")],
        "row_name": _TRIGGER,
        "cells": [
            _cell("trigger_name", "string", "is blank: give every trigger a name"),
            {**_cell("trigger_name", "string", too_long), "longest": LONGEST_NAME},
            *_settings(words, defaults),
        ],
        "unique": [
            _unique(
                {"trigger_name": "string"},
                _TRIGGER,
                "the name stands there more than once: name every trigger differently",
            )
        ],
    }
    first = _cell(
        "first_delivery_count", "int", "is no whole number: say what the first delivery reads"
    )
    transports = {
        "columns": ["transport", "api", "counts_deliveries", "first_delivery_count"],
        "row_name": _TRANSPORT,
        "cells": [
            _cell("api", "string", f"is {{value}}: use {' or '.join(words['api'])}"),
            _cell("counts_deliveries", "boolean", "is neither true nor false"),
            {**first, "where": "counts_deliveries"},
        ],
        "unique": [
            _unique(
                {"transport": "string"},
                _TRANSPORT,
                "the name stands there more than once: name every transport once",
            )
        ],
    }
    return {"triggers": triggers, "trigger_conditions": _CONDITIONS, "transports": transports}


def _settings(
    words: Mapping[str, Sequence[str]], defaults: Mapping[str, tuple[str, str | None]]
) -> list[dict[str, Any]]:
    """The settings of triggers: one of a few words, a value of a type, or a function's name."""
    found = []
    for setting, (kind, _) in defaults.items():
        if kind != "string" or setting in words:
            use = " or ".join(words[setting]) if setting in words else _USES[kind]
            found.append(_cell(setting, kind, f"is {{value}}: use {use}"))
    for setting in REGISTERED:
        problem = "is {value}, which no module of python_udfs registers: use "
        found.append({**_cell(setting, "string", problem), "registered": True})
    return [{**cell, "may_be_blank": True} for cell in found]
