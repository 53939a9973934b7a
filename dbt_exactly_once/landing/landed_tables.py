"""The landed tables, made from their definition in models/receive/sources.yml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dbt_exactly_once.adapter.session import Project
from dbt_exactly_once.adapter.tables import Table, columns_of

SOURCE_NAME = "landing"
SOURCES_FILE = Path("models/receive/sources.yml")
REJECTED = "rejected_landings"
# columns in which rows of one id must agree to be the same: a service may have given its reports of
# a document one id, or have updated its row, and a person one id to all that a file asks for
SAME_IN = {
    "trigger_executions": ["delivery_id", "trigger_name", "event", "attempt"],
    "resubmissions": ["delivery_id", "trigger_name"],
    "trigger_commands": ["trigger_name"],
}
# a tag with this prefix and a schema of ledgers keeps the snapshot that the schema has consumed
CONSUMED_TAG = "exactly_once_consumed_"


class LandedTable(Table):
    """One table of the source; its first column identifies its rows."""

    @classmethod
    def of_source(cls, source: Mapping[str, Any]) -> LandedTable:
        """The table of a source as dbt's graph describes it."""
        meta = source["config"].get("meta") or {}
        return cls(
            source["identifier"],
            source["schema"],
            columns_of(source),
            meta.get("partitioned_by") or "",
        )

    @property
    def id_column(self) -> str:
        return self.columns[0][0]

    @property
    def day_column(self) -> str | None:
        """The time by whose days the table is partitioned."""
        match = re.fullmatch(r"days\((\w+)\)", self.partitioned_by)
        return match.group(1) if match else None

    @property
    def types(self) -> dict[str, str]:
        return {name: kind for name, kind, _ in self.columns}


def read_landed_tables(project: Project) -> dict[str, LandedTable]:
    """All tables of the source `landing`, by name, without dbt."""
    content = yaml.safe_load((project.package_folder / SOURCES_FILE).read_text(encoding="utf-8"))
    source = next(source for source in content["sources"] if source["name"] == SOURCE_NAME)
    return {
        table["name"]: LandedTable.of_source(
            {
                "identifier": table["name"],
                "schema": project.landing_schema,
                "columns": {column["name"]: column for column in table["columns"]},
                "config": table.get("config", {}),
            }
        )
        for table in source["tables"]
    }
