"""The machine fails under a run: it says so in one line, and the next run goes on."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from dbt_runs import DbtRuns
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession
from test_transaction import delivery


@pytest.fixture
def runs(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> DbtRuns:
    return DbtRuns(spark, profiles_dir, tmp_path)


@pytest.fixture
def small_disk(runs: DbtRuns, lake: Path) -> Iterator[Path]:
    """A file system of 20 MB, where the project's tables will be."""
    folder = lake / "warehouse" / runs.schema
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def locked(catalog: Path) -> Iterator[None]:
    """Another program holds the catalog's file."""
    with closing(sqlite3.connect(catalog, isolation_level=None)) as connection:
        connection.execute("begin exclusive")
        yield
        connection.execute("rollback")


@contextmanager
def full(disk: Path, room: int) -> Iterator[None]:
    """So many bytes are left on a disk."""
    filler = disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(disk).free - room))
    yield
    filler.unlink()


@contextmanager
def read_only(runs: DbtRuns, disk: Path) -> Iterator[None]:
    remount = ["mount", "-o", "remount,ro", disk]
    for _ in range(30):
        # a writer that failed on a full disk holds its file open until Java collects it
        runs.spark._jvm.System.gc()
        if subprocess.run(remount, capture_output=True).returncode == 0:
            break
        time.sleep(1)
    else:
        subprocess.run(remount, check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


def assert_refused(runs: DbtRuns, told: str) -> None:
    """A run fails, says in a line why, and leaves what was published."""
    before = runs.rows("select * from {schema}.published_runs")
    result = runs.dbt("run", "--select", "tag:transaction")
    assert not result.success
    said = [line for line in "\n".join(runs.errors).splitlines() if told in line]
    assert said, runs.errors
    assert all("start the run again" in line for line in said)
    assert "\tat " not in "\n".join(runs.errors)
    assert runs.rows("select * from {schema}.published_runs") == before


def test_a_run_out_of_memory_stops_and_the_next_goes_on(
    runs: DbtRuns, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    # a document is in memory whole, and this one has no room there
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake}/catalog.db", warehouse=str(lake))
    landed = catalog.load_table(f"{runs.landing}.deliveries")
    rows = [delivery(2), delivery(3, document="x" * 600_000_000)]
    landed.append(pa.Table.from_pylist(rows, schema=landed.schema().as_arrow()))

    monkeypatch.setenv("EXACTLY_ONCE_MEMORY", "520m")
    process = runs.start("run", "--select", "tag:transaction")
    assert process.wait() != 0
    told = [line for line in runs.said().splitlines() if "start the run again" in line]
    # the error itself, or what the end of Spark's process did to the others
    assert told, runs.said()
    assert all("spark.driver.memory" in line for line in told)
    assert runs.rows("select count(*) from {schema}.published_runs") == [(1,)]

    monkeypatch.setenv("EXACTLY_ONCE_MEMORY", "8g")
    process = runs.start("run", "--select", "tag:transaction")
    assert process.wait() == 0, runs.said()
    assert decided(runs) == ["d1", "d2", "d3"]


def decided(runs: DbtRuns) -> list[str]:
    ids = "select distinct delivery_id from {schema}.document_status order by 1"
    return [row[0] for row in runs.rows(ids)]


def test_a_locked_catalog_stops_a_run_and_the_next_goes_on(runs: DbtRuns, lake: Path) -> None:
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    runs.land("deliveries", [delivery(2)])
    with locked(lake / "catalog.db"):
        result = runs.dbt("run", "--select", "tag:transaction")
    assert not result.success
    assert "[SQLITE_BUSY] The database file is locked" in "\n".join(runs.errors)
    assert "\tat " not in "\n".join(runs.errors)
    runs.decide()
    assert decided(runs) == ["d1", "d2"]


def test_a_catalog_that_is_down_is_named(runs: DbtRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """18.26: PostgreSQL holds the catalog and is down: the line says where it should be, and why it
    is not reached, without what the address says of a password.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setenv(
            "EXACTLY_ONCE_CATALOG", f"jdbc:postgresql://{address}/lake?user=me&password=secret"
        )
        monkeypatch.setenv("EXACTLY_ONCE_CATALOG_PASSWORD", "secret")
        process = runs.start("build", "--target", "warehouse")
        assert process.wait() != 0
    (line,) = [line for line in runs.said().splitlines() if "cannot be reached" in line]
    assert f"the catalog jdbc:postgresql://{address}/lake cannot be reached" in line
    assert f"Connection to {address} refused" in line
    assert "start the run again" in line
    assert "secret" not in runs.said()
    assert "memory" not in runs.said()


def test_a_full_disk_stops_a_run_and_the_next_goes_on(runs: DbtRuns, small_disk: Path) -> None:
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()
    assert list(small_disk.glob("document_status/data/**/*.parquet"))
    runs.land("deliveries", [delivery(2)])
    for room in (0, 300_000):
        with full(small_disk, room):
            assert_refused(runs, "No space left on device")
    with read_only(runs, small_disk):
        assert_refused(runs, "Read-only file system")
    runs.decide()
    assert decided(runs) == ["d1", "d2"]
