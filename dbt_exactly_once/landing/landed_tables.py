"""The landed tables, made from their definition in models/receive/sources.yml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from dbt_exactly_once.adapter.tables import Table

SOURCE_NAME = "landing"
SOURCES_FILE = Path("models/receive/sources.yml")
REJECTED = "rejected_landings"
# begins the name of the tag that keeps the snapshot which a schema of ledgers has consumed
CONSUMED_TAG = "exactly_once_consumed_"


@dataclass(frozen=True)
class LandedTable:
    """One table of the source; its first column identifies its rows."""

    name: str
    columns: list[dict[str, str]]
    partitioned_by: str | None

    @property
    def id_column(self) -> str:
        return self.columns[0]["name"]

    @property
    def day_column(self) -> str | None:
        """The time by whose days the table is partitioned."""
        match = re.fullmatch(r"days\((\w+)\)", self.partitioned_by or "")
        return match.group(1) if match else None

    def ddl(self, schema: str) -> str:
        """`create table if not exists`, in a schema."""
        columns = tuple(
            (column["name"], column["data_type"], " ".join(column["description"].split()))
            for column in self.columns
        )
        return Table(self.name, schema, columns, self.partitioned_by or "").ddl()

    @property
    def types(self) -> dict[str, str]:
        return {column["name"]: column["data_type"] for column in self.columns}


def read_landed_tables(project_folder: Path) -> dict[str, LandedTable]:
    """All tables of the source `landing`, by name."""
    content = yaml.safe_load((project_folder / SOURCES_FILE).read_text(encoding="utf-8"))
    source = next(source for source in content["sources"] if source["name"] == SOURCE_NAME)
    return {
        table["name"]: LandedTable(
            name=table["name"],
            columns=[
                {key: str(column[key]) for key in ("name", "data_type", "description")}
                for column in table["columns"]
            ],
            partitioned_by=table.get("config", {}).get("meta", {}).get("partitioned_by"),
        )
        for table in source["tables"]
    }
