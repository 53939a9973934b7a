"""What people write instead, on the same documents: each takes in a batch and finds what is new.

They know two states, this project knows three. They keep no reason, and forget nothing by
themselves. `rivals.processed` has a row per document; it is rolled back after each round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from lake import NOW, TTL_HOURS, Lake

TABLE = "rivals.processed"
LIVE = f"DBT_INTERNAL_DEST.received_at > timestamp '{NOW}' - interval {TTL_HOURS} hours"
ON = "DBT_INTERNAL_SOURCE.uuid = DBT_INTERNAL_DEST.uuid"
BATCH = """
    select uuid, min(received_at) as received_at, min(delivery_id) as delivery_id
    from batch
    group by uuid
"""


def _merge(lake: Lake, on: str, update: bool) -> None:
    matched = "when matched then update set * " if update else ""
    lake.sql(
        f"merge into {TABLE} as DBT_INTERNAL_DEST using ({BATCH}) as DBT_INTERNAL_SOURCE on {on} "
        f"{matched}when not matched then insert *"
    )


def merge_of_dbt(lake: Lake) -> None:
    """materialized='incremental', incremental_strategy='merge', unique_key='uuid'"""
    _merge(lake, ON, update=True)


def merge_with_predicates(lake: Lake) -> None:
    """the same with incremental_predicates on the live window"""
    _merge(lake, f"{ON} and {LIVE}", update=True)


def merge_insert_only(lake: Lake) -> None:
    """a MERGE that only inserts, on the live window"""
    _merge(lake, f"{ON} and {LIVE}", update=False)


def left_join(lake: Lake) -> None:
    """append what a left join on the uuid with the live window does not find"""
    lake.sql(
        f"insert into {TABLE} select b.* from ({BATCH}) as b left join (select uuid from {TABLE} "
        f"as DBT_INTERNAL_DEST where {LIVE}) as p on b.uuid = p.uuid where p.uuid is null"
    )


def row_number(lake: Lake) -> None:
    """row_number() over everything, as a table that is recreated"""
    lake.sql(
        "create or replace table rivals.deduplicated using iceberg as select uuid, received_at, "
        "delivery_id from (select *, row_number() over (partition by uuid order by received_at) "
        f"as n from (select * from {TABLE} union all select * from ({BATCH}))) where n = 1"
    )


SQL_RIVALS: dict[str, Callable[[Lake], None]] = {
    "MERGE as dbt writes it": merge_of_dbt,
    "MERGE, incremental_predicates": merge_with_predicates,
    "MERGE, insert only": merge_insert_only,
    "left join on the uuid, append": left_join,
    "row_number() over everything": row_number,
}


def timed(lake: Lake, rival: Callable[[Lake], None]) -> float:
    """Seconds that a rival takes for the view `batch`; its table is rolled back afterwards."""
    before = lake.sql(f"select snapshot_id from {TABLE}.refs where name = 'main'")[0][0]
    start = time.perf_counter()
    rival(lake)
    seconds = time.perf_counter() - start
    after = lake.sql(f"select snapshot_id from {TABLE}.refs where name = 'main'")[0][0]
    if after != before:
        lake.sql(f"call {lake.catalog}.system.rollback_to_snapshot('{TABLE}', {before})")
    return seconds


def watermark(lake: Lake, batch: str) -> float:
    """Seconds of dropDuplicatesWithinWatermark over files, for a batch on a state of all live ones.

    The state is filled first, which is not counted.
    """
    place = lake.folder / "watermark"
    source = place / "source"
    if not (place / "filled").exists():
        lake.spark.sql(
            f"select uuid, received_at from {TABLE} as DBT_INTERNAL_DEST where {LIVE}"
        ).write.parquet(str(source), mode="overwrite")
        _stream(lake, source, place)
        (place / "filled").touch()
    lake.spark.sql(f"select uuid, received_at from {batch}").write.parquet(
        str(source), mode="append"
    )
    return _stream(lake, source, place)


def _stream(lake: Lake, source: Path, place: Path) -> float:
    spark = lake.spark
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    start = time.perf_counter()
    (
        spark.readStream.schema("uuid string, received_at timestamp")
        .parquet(str(source))
        .withWatermark("received_at", f"{TTL_HOURS} hours")
        .dropDuplicatesWithinWatermark(["uuid"])
        .writeStream.option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .format("noop")
        .start()
        .awaitTermination()
    )
    return time.perf_counter() - start


def duckdb_anti_join(lake: Lake, batch: str) -> float:
    """DuckDB's anti join on the Parquet files of the live window."""
    files = [
        row[0].removeprefix("file:")
        for row in lake.sql(
            f"select file_path from {TABLE}.files where partition.received_at_hour >= "
            f"(unix_timestamp(timestamp '{NOW}') div 3600) - {TTL_HOURS}"
        )
    ]
    folder = lake.folder / "duckdb"
    arrived = lake.spark.sql(f"select uuid, received_at from {batch}")
    arrived.write.parquet(str(folder), mode="overwrite")
    start = time.perf_counter()
    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        connection.execute(
            "create table new as select distinct b.uuid from "
            f"read_parquet('{folder}/*.parquet') as b "
            "anti join read_parquet(?) as p on b.uuid = p.uuid",
            [files],
        )
    return time.perf_counter() - start
