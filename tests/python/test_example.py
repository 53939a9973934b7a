"""examples/shop, as `exactly-once init` makes it: a dbt project with this one as its package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from dbt_exactly_once import cli


class Shop:
    """A project that init has made, with schemas of its own."""

    def __init__(self, spark: SparkSession, profiles_dir: Path, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        name = uuid4().hex[:8]
        self.schema, self.landing = f"shop_{name}", f"shop_landing_{name}"
        assert cli.main(["init", str(folder)]) == 0
        project = yaml.safe_load((folder / "dbt_project.yml").read_text())
        project["vars"]["exactly_once"]["landing_schema"] = self.landing
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        profile = yaml.safe_load((folder / "profiles.yml").read_text())
        assert profile == yaml.safe_load((profiles_dir / "profiles.yml").read_text())
        profile["exactly_once"]["outputs"]["local"]["schema"] = self.schema
        (folder / "profiles.yml").write_text(yaml.safe_dump(profile))

    def dbt(self, *arguments: str) -> None:
        place = [f"--project-dir={self.folder}", f"--profiles-dir={self.folder}", "--quiet"]
        result = dbtRunner().invoke([*arguments, *place])
        failed = [
            f"{item.node.name}: {item.message}"
            for item in getattr(result.result, "results", None) or []
            if str(item.status) in ("error", "fail")
        ]
        assert result.success, failed or result.exception

    def land(self, *rows: dict[str, Any]) -> None:
        file = self.folder / f"{uuid4().hex}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        place = [f"--project-dir={self.folder}", f"--profiles-dir={self.folder}"]
        assert cli.main(["land", str(file), *place]) == 0

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        text = sql.format(schema=self.schema, ledgers=f"{self.schema}_ledgers")
        return [tuple(row) for row in self.spark.sql(text).collect()]


@pytest.fixture
def shop(spark: SparkSession, profiles_dir: Path, tmp_path: Path) -> Shop:
    return Shop(spark, profiles_dir, tmp_path / "shop")


def order(number: int, total: float, **columns: Any) -> dict[str, Any]:
    return {
        "delivery_id": f"d{number}",
        "received_at": f"2026-05-01T12:00:{number:02}Z",
        "transport": "RABBITMQ",
        "document_type": "order.created",
        "guaranteed": True,
        "uuid": f"u{number}",
        "redelivery_count": 0,
        "document": {"order": {"number": f"A{number}", "total": total}},
        **columns,
    }


def test_a_project_decides_and_processes_with_this_one_as_its_package(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.land(order(1, 250.0), order(2, 20.0), order(3, 20.0, uuid="u2"))
    assert capsys.readouterr().out.splitlines()[-1] == (
        "deliveries: landed 3, rejected 0, repeated 0"
    )
    shop.dbt("build", "--exclude-resource-type", "unit_test")
    statuses = "select delivery_id, status from {ledgers}.document_status order by 1"
    assert shop.rows(statuses) == [("d1", "NEW"), ("d2", "NEW"), ("d3", "DUPLICATE")]
    assert shop.rows("select order_number from {schema}.small_orders") == [("A2",)]
    booked = "select delivery_id, order_number from {schema}.booked_orders"
    assert shop.rows(booked) == [("d1", "A1")]

    # the views are beside the ledgers, in a schema of their own
    page = shop.folder / "page.html"
    place = [f"--project-dir={shop.folder}", f"--profiles-dir={shop.folder}"]
    assert cli.main(["report", f"--output={page}", *place]) == 0
    assert f"{shop.schema}_ledgers" in page.read_text()

    shop.land(order(4, 250.0, uuid="u1"))
    # as a schedule does, by the selectors that init has copied
    shop.dbt("build", "--selector", "hot_path")
    assert shop.rows(statuses)[-1] == ("d4", "DUPLICATE")
    assert shop.rows(booked) == [("d1", "A1")]


def test_a_project_that_lacks_what_the_package_needs_of_it_is_told_so(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not sent to `dbt seed` in a circle."""
    macros = shop.folder / "macros"
    texts = {}
    for name in ("incremental", "seed"):
        boilerplate = macros / f"materialization_{name}_spark.sql"
        texts[boilerplate] = boilerplate.read_text()
        boilerplate.unlink()
    shop.dbt("seed")
    for boilerplate, does in zip(texts, ("write its ledgers", "load its seeds"), strict=True):
        with pytest.raises(AssertionError):
            shop.dbt("run")
        assert (
            f"exactly_once: this project has no macros/{boilerplate.name}, which lets the package "
            f"{does}: run `exactly-once init`, which adds it"
        ) in capsys.readouterr().out
        boilerplate.write_text(texts[boilerplate])

    # the seeds are as dbt has loaded them
    with pytest.raises(AssertionError):
        shop.dbt("run")
    assert (
        "exactly_once: seed decision_rules was loaded by dbt and not by this package: run "
        "`dbt seed --full-refresh`"
    ) in capsys.readouterr().out
    shop.dbt("seed", "--full-refresh")
    shop.dbt("run", "--select", "tag:transaction")

    for boilerplate in texts:
        boilerplate.unlink()
    assert cli.main(["init", str(shop.folder)]) == 0
    said = capsys.readouterr().out
    for boilerplate, text in texts.items():
        assert f"macros/{boilerplate.name} is new" in said
        assert boilerplate.read_text() == text


LATEST_TOTALS = """
{{ config(
    materialized='incremental',
    incremental_strategy='merge',
    file_format='iceberg',
    unique_key='customer',
) }}
select
    'C1' as customer,
    {{ '2' if is_incremental() else '1' }} as total
"""


def test_incremental_models_of_a_project_are_those_of_dbt_spark(shop: Shop) -> None:
    """19.7: only the package's ledgers are written in its way."""
    (shop.folder / "models" / "latest_totals.sql").write_text(LATEST_TOTALS)
    for total in (1, 2):
        shop.dbt("run", "--select", "latest_totals")
        assert shop.rows("select * from {schema}.latest_totals") == [("C1", total)]


WORDS_OF_THE_PACKAGE = {
    "models/us_states.sql": """
        {{ config(materialized='table', tags=['state']) }}
        select 'NY' as name
    """,
    "models/payments.sql": LATEST_TOTALS.replace("config(", "config(tags=['transaction'],"),
    "tests/no_state_is_named_ny.sql": """
        {{ config(severity='warn', tags=['warning']) }}
        select * from {{ ref('us_states') }} where name = 'NY'
    """,
    "models/raw.yml": """
        sources:
          - name: landing
            schema: {landing}
            tables: [name: raw_orders]
    """,
}


def test_tags_and_sources_of_a_project_are_its_own(shop: Shop) -> None:
    """The package has a source landing and tags its models, and so may another project."""
    for file, text in WORDS_OF_THE_PACKAGE.items():
        place = shop.folder / file
        place.parent.mkdir(exist_ok=True)
        place.write_text(text.replace("{landing}", f"{shop.landing}_raw"))
    shop.land(order(1, 250.0))
    shop.dbt("build", "--exclude-resource-type", "unit_test")
    shop.dbt("build", "--selector", "hot_path")
    assert shop.rows("select total from {schema}.payments") == [(1,)]
    tables = {name for _, name, _ in shop.rows(f"show tables in {shop.landing}")}
    assert "raw_orders" not in tables
    shop.dbt("run-operation", "maintain")
    shop.dbt("run-operation", "reset_state", "--args", "{really: true}")
    assert shop.rows("select name, total from {schema}.us_states, {schema}.payments") == [("NY", 1)]
    shop.dbt("run")
    assert shop.rows("select delivery_id from {ledgers}.document_status") == [("d1",)]


def test_tests_of_a_project_are_those_of_dbt(shop: Shop) -> None:
    """They know no macro of the package by its name alone, and none is left out."""
    (shop.folder / "models" / "customers.sql").write_text("select 'C1' as customer")
    properties = {"name": "customers", "columns": [{"name": "customer", "data_tests": ["unique"]}]}
    models = shop.folder / "models" / "customers.yml"
    models.write_text(yaml.safe_dump({"models": [properties]}))
    shop.dbt("build", "--select", "customers")
    (shop.folder / "models" / "customers.sql").write_text("select explode(array(1, 1)) as customer")
    with pytest.raises(AssertionError, match="unique_customers_customer: Got 1 result"):
        shop.dbt("build", "--select", "customers")


def test_seeds_of_a_project_are_those_of_dbt(shop: Shop) -> None:
    """Only the package's seeds are tables of text, with any names that dbt takes for columns."""
    (shop.folder / "seeds" / "countries.csv").write_text("country,unit price\nPL,007\n")
    project = yaml.safe_load((shop.folder / "dbt_project.yml").read_text())
    types = {"+column_types": {"unit price": "bigint"}, "+quote_columns": True}
    project["seeds"] = {**project.get("seeds", {}), project["name"]: {"countries": types}}
    (shop.folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
    shop.dbt("seed")
    assert shop.rows("select * from {schema}.countries") == [("PL", 7)]


def test_triggers_of_a_project_may_be_without_the_column_key(shop: Shop) -> None:
    """A CSV that is older than that setting is right, as it is in a clone."""
    triggers = shop.folder / "seeds" / "triggers.csv"
    lines = triggers.read_text().splitlines()
    assert lines[0].endswith(",key")
    triggers.write_text("".join(f"{line.rpartition(',')[0]}\n" for line in lines))
    shop.land(order(1, 250.0))
    shop.dbt("seed")
    shop.dbt("run", "--select", "tag:transaction")
    assert shop.rows("select document_key, key_source from {ledgers}.document_status") == [
        ("u1", "UUID")
    ]
