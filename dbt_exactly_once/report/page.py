"""The page of `exactly-once report`: one HTML file from the report views.

Beside every number is the query that it comes from, to copy. The queries are in queries.py, the
layout is in templates/page.html, the charts are in charts.py. The page loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import jinja2

from dbt_exactly_once.adapter.engine import in_utc, readable_rows
from dbt_exactly_once.errors import ExactlyOnceError
from dbt_exactly_once.report.queries import QUERIES

Ask = Callable[[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Answer:
    """A query and its rows."""

    name: str
    sql: str
    rows: list[dict[str, Any]]


def make_page(ask: Ask, schema: str, made_at: datetime | None = None) -> str:
    """The whole page as HTML.

    ask: runs a query and gives its rows as mappings; schema: where the report views are.
    """

    def answer(name: str, **values: str) -> Answer:
        sql = dedent(QUERIES[name]).strip("\n").format(schema=schema, **values)
        return Answer(name, sql, ask(sql))

    unit = unit_of(answer("span").rows[0]["hours"])
    answers = {
        name.replace("-", "_"): answer(name, unit=unit) for name in QUERIES if name != "span"
    }
    template = _templates().get_template("page.html")
    made_at = made_at or datetime.now(timezone.utc)
    return template.render(answers, schema=schema, unit=unit, made_at=made_at)


def unit_of(hours: int | None) -> str:
    """The unit in which a span of hours is shown."""
    return "hour" if (hours or 0) <= 96 else "day" if hours <= 24 * 120 else "month"


def _templates() -> jinja2.Environment:
    # imports matplotlib, which only a report needs
    from dbt_exactly_once.report import charts

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"charts": charts, "duration": duration}
    environment.filters |= {"minute": "{:%Y-%m-%d %H:%M}".format, "thousands": "{:,}".format}
    environment.tests |= {
        "time": lambda value: isinstance(value, datetime),
        "numbers": _are_numbers,
    }
    return environment


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers; a boolean is not one."""
    return any(isinstance(v, (int, Decimal)) and not isinstance(v, bool) for v in values)


def duration(milliseconds: int) -> str:
    """A span of time in words."""
    spans = (
        (1000, 1, "ms"),
        (120_000, 1000, "s"),
        (7_200_000, 60_000, "min"),
        (172_800_000, 3_600_000, "h"),
    )
    divisor, unit = next(
        ((divisor, unit) for limit, divisor, unit in spans if milliseconds < limit),
        (86_400_000, "days"),
    )
    return f"{milliseconds / divisor:.1f}".removesuffix(".0") + f" {unit}"


def ask_spark(spark: Any, schema: str) -> Ask:
    """Ask a Spark session; raises ExactlyOnceError if it does not have all report views."""
    there = set()
    if spark.catalog.databaseExists(schema):
        there = {row[1] for row in spark.sql(f"show views in {schema}").collect()}
    wanted = re.findall(r"\{schema\}\.(\w+)", "".join(QUERIES.values()))
    missing = sorted({*wanted} - there)
    if missing:
        raise ExactlyOnceError(
            f"{missing[0]} is not in schema {schema}: make the views with `dbt build`, or with "
            "`dbt run --select exactly_once.report` after a run"
        )

    def shown(value: Any) -> Any:
        # without "+00:00"
        return in_utc(value).replace(tzinfo=None) if isinstance(value, datetime) else value

    return lambda sql: [
        {name: shown(value) for name, value in row.asDict().items()}
        for row in readable_rows(spark.sql(sql))
    ]
