"""A variable of the project that cannot be used stops a command; a line says what to use."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER

from dbt_exactly_once.adapter.session import find_project
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.run.variables import VARIABLES, checked_variables

SET = find_project(PROJECT_FOLDER).variables
# these are checked where they are read
ELSEWHERE = {"landing_schema", "as_of", "preview_triggers"}


def test_those_of_the_project_can_be_used_and_each_is_checked() -> None:
    assert SET.keys() == VARIABLES.keys() | ELSEWHERE
    assert checked_variables(SET.get) == {name: SET[name] for name in VARIABLES}


@pytest.mark.parametrize(
    ("name", "value", "use"),
    [
        ("history_unavailable", "false", "true or false"),
        ("history_unavailable", None, "true or false"),
        ("publish", 1, "true or false"),
        ("clock_skew_tolerance_ms", "60000", "a whole number, 0 to 10000000000000"),
        ("clock_skew_tolerance_ms", -1, "a whole number, 0 to 10000000000000"),
        ("allowed_lateness_ms", 1e6, "a whole number, 0 to 10000000000000"),
        ("max_recoveries", True, "a whole number, 0 to 10000000000000"),
        ("event_time_leap_ms", 10**14, "a whole number, 0 to 10000000000000"),
        ("resolver_tasks", 0, "a whole number, 1 to 10000000000000"),
        ("run_timeout", None, "a number, 0 or more"),
        ("keep_snapshots_hours", float("nan"), "a number, 0 or more"),
        ("keep_landed_days", 0.5, "a whole number, 0 or more, or null"),
        ("history_partition", "weeks", "hours or days"),
    ],
)
def test_a_wrong_one_is_told(name: str, value: Any, use: str) -> None:
    with pytest.raises(ExactlyOnceError) as error:
        checked_variables({**SET, name: value}.get)
    assert error.value.msg == f"exactly_once: variable {name} is {value!r}: use {use}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("run_timeout", 0.5), ("keep_snapshots_hours", 0), ("keep_journal_days", 0)],
)
def test_one_at_its_limit_can_be_used(name: str, value: Any) -> None:
    assert checked_variables({**SET, name: value}.get)[name] == value
