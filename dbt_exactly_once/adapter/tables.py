"""A table of the project: where it is, and how it is created."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_exactly_once.adapter.engine import literal
from dbt_exactly_once.adapter.lake_version import VERSION_PROPERTY


@dataclass(frozen=True)
class Table:
    """A ledger, a landed table, or another table of a model."""

    name: str
    schema: str
    columns: tuple[tuple[str, str, str], ...] = ()
    partitioned_by: str = ""
    sorted_by: str = ""
    wap: bool = False
    # the lake's version, for the table that carries it
    version: int | None = None

    @property
    def relation(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def column_list(self) -> str:
        """The names of the columns, as a select lists them."""
        return ", ".join(name for name, _, _ in self.columns)

    @property
    def properties(self) -> dict[str, str]:
        """The table's own properties for Iceberg; upkeep gives them to a table that lacks them."""
        return {
            "write.metadata.delete-after-commit.enabled": "true",
            # a run adds little: with Iceberg's default size one task would write all of it
            "write.spark.advisory-partition-size-bytes": str(8 << 20),
            # each commit adds a manifest and each query reads all of them, 3 ms each; Iceberg would
            # merge 100
            "commit.manifest.min-count-to-merge": "10",
            **({"write.wap.enabled": "true"} if self.wap else {}),
        }

    def ddl(self) -> str:
        """`create table if not exists`, with the columns of the project's yml."""
        columns = ",\n    ".join(
            f"{name} {kind} comment {literal(text)}" for name, kind, text in self.columns
        )
        properties = self.properties
        if self.version is not None:
            properties[VERSION_PROPERTY] = str(self.version)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        partitioned = f"\npartitioned by ({self.partitioned_by})" if self.partitioned_by else ""
        return (
            f"create table if not exists {self.relation} (\n    {columns}\n) using iceberg"
            f"{partitioned}\ntblproperties ({listed})"
        )


def columns_of(node: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """The columns of a node of dbt's graph: name, type, description."""
    return tuple(
        (name, column["data_type"], " ".join((column.get("description") or "").split()))
        for name, column in node["columns"].items()
    )
