"""The project with its catalog behind REST and its files in S3, by real servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dbt_runs import PROJECT_FOLDER
from faults import HAPPENED
from rest_catalog import BUCKET, RestCatalog, running_rest_catalog, server_classpath
from test_targets import ON_RANDOM_FEEDS, run_agreement
from test_transaction import delivery

BIN = Path(sys.executable).parent
FAULTS = PROJECT_FOLDER / "tests" / "python" / "faults.py"
DECIDE = ("run", "--select", "tag:transaction")
TRIGGER = "orders_by_history"


@pytest.fixture(scope="session")
def classpath(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("moto.server", reason="moto's server is not installed: moto[server]")
    found = server_classpath(tmp_path_factory.mktemp("rest"))
    if found is None:
        pytest.skip("Maven is not installed, or cannot fetch Iceberg's REST server")
    return found


def test_with_a_rest_catalog_and_s3_the_project_decides_the_same(
    classpath: str, tmp_path: Path
) -> None:
    """22.10"""
    with running_rest_catalog(classpath, tmp_path) as catalog:
        run_agreement("rest", ON_RANDOM_FEEDS, **catalog.environment)


class Commands:
    """Processes that work on the project's own schemas in a catalog."""

    def __init__(self, catalog: RestCatalog, folder: Path) -> None:
        (folder / "profiles.yml").write_text((PROJECT_FOLDER / "profiles.example.yml").read_text())
        self._environment = {
            **os.environ,
            **catalog.environment,
            "DBT_PROFILES_DIR": str(folder),
            "DBT_TARGET": "rest",
            "DBT_TARGET_PATH": str(folder / "target"),
            "DBT_LOG_PATH": str(folder / "logs"),
        }

    def start(self, program: str | Path, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(program)] if program == FAULTS else [str(BIN / program)]
        return subprocess.Popen(
            [*command, *arguments],
            env=self._environment,
            cwd=PROJECT_FOLDER,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def finish(self, program: str, *arguments: str) -> str:
        process = self.start(program, *arguments)
        said, _ = process.communicate()
        assert process.returncode == 0, said[-3000:]
        return said

    def land(self, folder: Path, *deliveries: dict[str, Any]) -> None:
        file = folder / f"{deliveries[0]['delivery_id']}.jsonl"
        file.write_text("".join(json.dumps(row, default=str) + "\n" for row in deliveries))
        self.finish("exactly-once", "land", str(file))


def test_a_run_is_killed_in_publication_and_two_share_a_rest_catalog(
    classpath: str, tmp_path: Path
) -> None:
    """22.10: What a killed run has begun to publish the next one finishes; of two at once one
    publishes; pyiceberg reads what Spark has written."""
    with running_rest_catalog(classpath, tmp_path) as catalog:
        commands = Commands(catalog, tmp_path)
        commands.finish("dbt", "seed")
        commands.land(tmp_path, delivery(1), delivery(2, uuid="u1"))
        # published_runs has moved, and then nothing else does
        fault = json.dumps({"fast_forward": "document_status"})
        killed = commands.start(FAULTS, fault, *DECIDE)
        assert killed.stdout is not None
        for line in killed.stdout:
            if f"{HAPPENED} the publication of document_status fails" in line:
                break
        os.killpg(killed.pid, 9)
        killed.wait()
        assert statuses(catalog) == {}

        commands.land(tmp_path, delivery(3), delivery(4, uuid="u1"))
        two = [commands.start("dbt", *DECIDE) for _ in range(2)]
        said = [process.communicate()[0] for process in two]
        assert 0 in [process.returncode for process in two], said
        for process, text in zip(two, said, strict=True):
            assert process.returncode == 0 or "exactly_once: " in text, text[-3000:]
        assert statuses(catalog) == {
            ("d1", "NEW"): 1,
            ("d2", "DUPLICATE"): 1,
            ("d3", "NEW"): 1,
            ("d4", "DUPLICATE"): 1,
        }


def statuses(catalog: RestCatalog) -> Counter[tuple[str, str]]:
    """What pyiceberg reads of the decisions of one trigger."""
    from pyiceberg.catalog import load_catalog

    properties = {
        "type": "rest",
        "uri": catalog.uri,
        "s3.endpoint": catalog.s3,
        "s3.access-key-id": "tests",
        "s3.secret-access-key": "tests",
        "s3.region": "us-east-1",
        "warehouse": f"s3://{BUCKET}/warehouse",
    }
    table = load_catalog("lake", **properties).load_table("exactly_once.document_status")
    rows = table.scan(row_filter=f"trigger_name == '{TRIGGER}'").to_arrow().to_pylist()
    return Counter((row["delivery_id"], row["status"]) for row in rows)
