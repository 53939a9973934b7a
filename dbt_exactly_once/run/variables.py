"""The allowed values of the project's variables; a wrong one stops a command before it acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt_exactly_once.errors import ExactlyOnceError

# a few hundred years in milliseconds: Spark can still add it to a time
MOST = 10**13


def _is_whole(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value <= MOST


_BOOLEAN = (lambda value: type(value) is bool, "true or false")
_NUMBER = (
    lambda value: type(value) in (int, float) and 0 <= value <= MOST,
    "a number, 0 or more",
)
_WHOLE = (_is_whole, f"a whole number, 0 to {MOST}")
_POSITIVE = (lambda value: _is_whole(value, 1), f"a whole number, 1 to {MOST}")
_DAYS = (
    lambda value: value is None or _is_whole(value),
    "a whole number, 0 or more, or null",
)
# for each variable a check of its value, and what to use; names of schemas, times and the settings
# of previews are checked where they are read
VARIABLES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "clock_skew_tolerance_ms": _WHOLE,
    "allowed_lateness_ms": _WHOLE,
    "event_time_leap_ms": _WHOLE,
    "removal_hold_days": _WHOLE,
    "max_recoveries": _WHOLE,
    "history_unavailable": _BOOLEAN,
    "publish": _BOOLEAN,
    "preview_all_landed": _BOOLEAN,
    "run_timeout": _NUMBER,
    "max_deliveries_per_key": _POSITIVE,
    "resolver_timeout_ms": _POSITIVE,
    "resolver_tasks": _POSITIVE,
    "maintain_every_runs": _WHOLE,
    "keep_snapshots_hours": _NUMBER,
    "keep_statuses_days": _DAYS,
    "keep_journal_days": _DAYS,
    "keep_landed_days": _DAYS,
    "history_partition": (lambda value: value in ("hours", "days"), "hours or days"),
}


def checked_variables(value_of: Callable[[str], Any]) -> dict[str, Any]:
    """The variables by their names; value_of: gives the value of one.

    Raises ExactlyOnceError at the first that cannot be used.
    """
    variables = {name: value_of(name) for name in VARIABLES}
    for name, (can_be_used, use) in VARIABLES.items():
        if not can_be_used(variables[name]):
            raise ExactlyOnceError(
                f"exactly_once: variable {name} is {variables[name]!r}: use {use}"
            )
    return variables
