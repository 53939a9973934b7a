"""The same project on a cluster and with its catalog in PostgreSQL decides the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER, DbtRuns, failures
from postgres import Postgres
from pyspark.sql import SparkSession
from spark_cluster import spark_cluster
from test_agreement import CLUSTER_SEED, SEEDS
from test_transaction import delivery

from dbt_exactly_once.cli import main

BIN = Path(sys.executable).parent
# runs that reach most rules of triggers without a resolver
ON_RANDOM_FEEDS = f"test_random_feeds_are_decided_as_the_reference_model_decides_them[{SEEDS[0]}]"
# two runs in which resolvers give every answer, and their module must have reached the workers
WITH_RESOLVERS = f"test_resolvers_are_asked_as_the_reference_model_asks_them[{CLUSTER_SEED}]"
THEIR_SETTINGS = {"EXACTLY_ONCE_RESOLVER_SEEDS": str(CLUSTER_SEED)}


def run_agreement(target: str, test: str, **settings: str) -> None:
    """Let a test of agreement run in a process of its own, with Spark as a target has it."""
    found = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            f"tests/python/test_agreement.py::{test}",
        ],
        cwd=PROJECT_FOLDER,
        env={**os.environ, "EXACTLY_ONCE_TEST_TARGET": target, **settings},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-5000:]
    assert "1 passed" in found.stdout


def test_a_cluster_decides_as_the_reference_model_decides(tmp_path: Path) -> None:
    with spark_cluster(tmp_path, workers=2) as address:
        run_agreement("cluster", WITH_RESOLVERS, EXACTLY_ONCE_CLUSTER=address, **THEIR_SETTINGS)
    for number in range(2):
        log = (tmp_path / f"worker-{number}.log").read_text()
        assert "Asked to launch executor" in log, "both workers have worked"


def test_with_its_catalog_in_postgresql_the_project_decides_the_same(postgres: Postgres) -> None:
    run_agreement("warehouse", ON_RANDOM_FEEDS, **catalog_settings(postgres))


def catalog_settings(postgres: Postgres) -> dict[str, str]:
    return {
        "EXACTLY_ONCE_CATALOG": f"jdbc:{postgres.address}".replace("tests@", ""),
        "EXACTLY_ONCE_CATALOG_USER": "tests",
    }


def test_a_lake_moves_to_postgresql_and_two_processes_share_it(
    spark: SparkSession,
    profiles_dir: Path,
    lake: Path,
    tmp_path: Path,
    postgres: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    runs = DbtRuns(spark, profiles_dir, folder)
    _use_schema_everywhere(runs)
    runs.run("seed")
    runs.land("deliveries", [delivery(1)])
    runs.decide()

    environment = {
        **os.environ,
        **catalog_settings(postgres),
        "EXACTLY_ONCE_LAKE": str(lake),
        "DBT_PROFILES_DIR": str(folder),
    }
    place = ["--project-dir", str(folder)]

    def call(program: str, *arguments: str) -> str:
        found = subprocess.run(
            [BIN / program, *arguments, *place],
            env=environment,
            cwd=PROJECT_FOLDER,
            capture_output=True,
            text=True,
        )
        assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
        return found.stdout

    told = call("exactly-once", "move-catalog", "--target", "local", "--to", "warehouse")
    assert f"{runs.schema}.published_runs" in told
    assert f"{runs.landing}.deliveries" in told

    # nobody goes on with the old one by mistake
    for command in (["run"], ["test", "--select", "a_delivery_is_decided_once"]):
        (told,) = failures(runs.dbt(*command))[:1]
        assert "have moved to another catalog" in told
    file = tmp_path / "more.jsonl"
    copy = {**delivery(2, uuid="u1"), "landed_at": None}
    file.write_text(json.dumps(copy, default=str) + "\n")
    monkeypatch.setenv("EXACTLY_ONCE_LAKE", str(lake))
    assert main(["land", str(file), *place, "--profiles-dir", str(folder)]) == 1
    assert "have moved to another catalog: use the target that leads" in capfd.readouterr().err

    # one process publishes, another explains: what was processed before the move is known
    call("exactly-once", "land", str(file), "--target", "warehouse")
    call("dbt", "run", "--target", "warehouse")
    told = call(
        "dbt",
        "run-operation",
        "explain",
        "--args",
        json.dumps({"delivery_id": "d2", "trigger_name": "orders_by_history"}),
        "--target",
        "warehouse",
    )
    assert "DUPLICATE" in told
    assert "d1" in told

    # and back: what was processed over there is known here, and nobody goes on there
    call("exactly-once", "move-catalog", "--target", "warehouse", "--to", "local")
    third = {**delivery(3, uuid="u1"), "landed_at": None}
    file.write_text(json.dumps(third, default=str) + "\n")
    call("exactly-once", "land", str(file), "--target", "local")
    call("dbt", "run", "--target", "local")
    asked = json.dumps({"delivery_id": "d3", "trigger_name": "orders_by_history"})
    told = call("dbt", "run-operation", "explain", "--args", asked, "--target", "local")
    assert "DUPLICATE" in told
    assert not [row for row in runs.rows("show tables in {schema}") if row[1].endswith("__moved")]
    report = [BIN / "exactly-once", "report", *place, "--target", "warehouse"]
    refused = subprocess.run(
        report, env=environment, cwd=PROJECT_FOLDER, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "have moved to another catalog" in refused.stderr


def _use_schema_everywhere(runs: DbtRuns) -> None:
    """Let all targets of the project lead to its one schema."""
    import yaml

    file = runs.folder / "profiles.yml"
    profile: dict[str, Any] = yaml.safe_load(file.read_text())
    for output in profile["exactly_once"]["outputs"].values():
        output["schema"] = runs.schema
    file.write_text(yaml.safe_dump(profile))
