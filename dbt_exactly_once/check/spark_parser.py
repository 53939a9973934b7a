"""Spark's own parser, in a Java without a Spark session: it starts in a second."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt_exactly_once.adapter.startup import find_java
from dbt_exactly_once.errors import ExactlyOnceError, one_line
from dbt_exactly_once.run.filters import filter_sql
from dbt_exactly_once.run.seed_check import Expressions

PARSER = "org.apache.spark.sql.catalyst.parser.CatalystSqlParser$"
TIMES = "org.apache.spark.sql.catalyst.util.SparkDateTimeUtils$"
# little memory and quickly compiled: the process lives for a second
JAVA_OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]


class SparkParser(Expressions):
    """What Spark's parser finds wrong with a text; it knows no tables."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._parser = self._object(PARSER)

    def _object(self, name: str) -> Any:
        """The instance of a Scala object."""
        java = self._gateway.jvm.java.lang.Class.forName(name)
        return java.getField("MODULE$").get(None)

    def problem(self, text: str, is_filter: bool) -> str | None:
        try:
            self._parser.parseExpression(filter_sql(text))
        except Exception as error:
            return one_line(error)
        return None

    def is_time(self, text: str) -> bool:
        value = self._gateway.jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text)
        zone = self._gateway.jvm.java.time.ZoneOffset.UTC
        return bool(self._object(TIMES).stringToTimestamp(value, zone).isDefined())


@contextmanager
def spark_parser() -> Iterator[SparkParser]:
    """A parser, until the block ends."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ExactlyOnceError("pyspark is not installed: pip install pyspark")
    jars = Path(spec.origin).parent / "jars"
    port, token = launch_gateway(
        jarpath=str(next(jars.glob("py4j*.jar"))),
        classpath=f"{jars}/*",
        javaopts=JAVA_OPTIONS,
        java_path=str(find_java() or "java"),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield SparkParser(gateway)
    finally:
        gateway.shutdown()
