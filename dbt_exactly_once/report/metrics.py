"""`exactly-once metrics`: figures of the report views in the text format of Prometheus.

Each metric is a query whose column `value` is the figure; the other columns are its labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dbt_exactly_once.report.page import Ask

PREFIX = "exactly_once_"


class Metric(NamedTuple):
    """A metric and where it comes from; {schema} is where the report views are."""

    name: str
    help: str
    sql: str


LAST_RUN = "from {schema}.run_log where run_number = (select max(run_number) from {schema}.run_log)"

METRICS = (
    Metric(
        "deliveries",
        "Deliveries that were decided, by status.",
        "select trigger_name, status, sum(deliveries) as value "
        "from {schema}.exactly_once_statistics group by all order by all",
    ),
    Metric(
        "doubts_not_looked_at",
        "Documents in doubt that nobody has looked at.",
        "select trigger_name, rule_id, sum(not_looked_at) as value "
        "from {schema}.doubts_by_cause group by all order by all",
    ),
    Metric(
        "waiting_documents",
        "Documents that wait, by reason.",
        "select trigger_name, reason, count(*) as value "
        "from {schema}.waiting_documents group by all order by all",
    ),
    Metric(
        "things_to_do",
        "Documents of each thing that a person should see to.",
        "select kind, trigger_name, sum(documents) as value "
        "from {schema}.things_to_do group by all order by all",
    ),
    Metric(
        "last_run_start_timestamp_seconds",
        "When the last published run started.",
        f"select unix_timestamp(started_at) as value {LAST_RUN}",
    ),
    Metric(
        "last_run_seconds",
        "How long the last published run took to its publication.",
        f"select seconds_to_publication as value {LAST_RUN}",
    ),
    *(
        Metric(f"last_run_{name}", meaning, f"select {name} as value {LAST_RUN}")
        for name, meaning in (
            ("taken", "Deliveries that the last run took."),
            ("decided", "Deliveries that the last run decided."),
            ("rejected", "Deliveries that the last run rejected."),
            ("rejected_at_landing", "Rows that landing rejected before the last run."),
        )
    ),
)


def metrics_text(ask: Ask, schema: str) -> str:
    """All metrics. ask: runs a query and gives its rows."""
    lines = []
    for metric in METRICS:
        name = PREFIX + metric.name
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} gauge"]
        for row in ask(metric.sql.format(schema=schema)):
            if row["value"] is not None:
                lines.append(f"{name}{_labels(row)} {row['value']}")
    return "\n".join(lines) + "\n"


def _labels(row: Mapping[str, Any]) -> str:
    found = [
        f'{name}="{_escaped("" if value is None else str(value))}"'
        for name, value in row.items()
        if name != "value"
    ]
    return f"{{{','.join(found)}}}" if found else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
