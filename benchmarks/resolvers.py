"""What asking a resolver costs against a bare UDF of Spark's that does the same.

    python benchmarks/resolvers.py [--deliveries 200000] [--rounds 5]

Four functions that answer NEW to everything, on the same deliveries in one session, in turn: a
resolver and a PySpark UDF that take one delivery, a resolver and a pandas UDF that take a table.
Prints the median seconds of each and the two ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dbt_exactly_once.adapter.startup import find_spark
from dbt_exactly_once.resolvers.hooks import load_hooks, register_hooks

RESOLVERS = """
import pandas as pd
from python_udfs import Delivery, resolver

@resolver("benchmark.row")
def row(delivery: Delivery) -> str:
    return "NEW"

@resolver("benchmark.table")
def table(deliveries: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"status": ["NEW"] * len(deliveries)})
"""


def make_deliveries(spark: SparkSession, number: int) -> DataFrame:
    """Deliveries with a document of some 100 characters, kept in memory."""
    deliveries = spark.range(number).select(
        f.concat(f.lit("d"), "id").alias("delivery_id"),
        f.lit(True).alias("ends_on_new"),
        f.lit(True).alias("ends_on_transient_error"),
        f.lit("orders:placed").alias("document_type_name"),
        f.lit(1).alias("redelivery_count"),
        f.expr("uuid()").alias("uuid"),
        f.lit(None).cast("string").alias("track_id"),
        f.lit(None).cast("string").alias("event_id"),
        f.concat(
            f.lit('{"order": {"number": "'),
            "id",
            f.lit('", "text": "'),
            f.repeat(f.lit("x"), 70),
            f.lit('"}}'),
        ).alias("document"),
        f.lit("RABBITMQ").alias("transport"),
        f.lit("orders").alias("trigger_name"),
        f.expr("timestamp '2024-03-01 10:00:00'").alias("received_at"),
    )
    cached = deliveries.repartition(2).cache()
    cached.count()
    return cached


def ways(deliveries: DataFrame) -> dict[str, Callable[[], DataFrame]]:
    """Each way of answering, as a query over the deliveries."""
    columns = deliveries.columns[3:]
    bare_row = f.udf(lambda *values: "NEW", "string")

    @f.pandas_udf("string")
    def bare_table(delivery: pd.DataFrame) -> pd.Series:
        return pd.Series(["NEW"] * len(delivery))

    def ask(resolver: str) -> DataFrame:
        chain = f.array(f.struct(*deliveries.columns))
        return deliveries.select(
            f.call_function("ask_resolver", f.lit(resolver), f.lit("orders"), f.lit(30000), chain)
        )

    return {
        "PySpark UDF": lambda: deliveries.select(bare_row(*columns)),
        "resolver": lambda: ask("benchmark.row"),
        "pandas UDF": lambda: deliveries.select(bare_table(f.struct(*columns))),
        "table resolver": lambda: ask("benchmark.table"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--deliveries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()

    # the workers run this Python, whichever is first on the path
    find_spark()
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder) / "python_udfs" / "benchmark.py"
        module.parent.mkdir()
        module.write_text(RESOLVERS)
        register_hooks(load_hooks(folder), spark)
    deliveries = make_deliveries(spark, arguments.deliveries)
    seconds: dict[str, list[float]] = {}
    # the first round starts the workers
    for number in range(arguments.rounds + 1):
        for name, query in ways(deliveries).items():
            started = time.perf_counter()
            query().write.format("noop").mode("overwrite").save()
            if number:
                seconds.setdefault(name, []).append(time.perf_counter() - started)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:16} {median:7.2f} s")
    print(f"resolver / PySpark UDF      {medians['resolver'] / medians['PySpark UDF']:.2f}")
    print(f"table resolver / pandas UDF {medians['table resolver'] / medians['pandas UDF']:.2f}")


if __name__ == "__main__":
    main()
